//! The sides of a comparison: the runs of feedrate or DLIO below a folder, or the runs of a study's rows.
//!
//! Runs that are not compared are listed with the reason.

use super::SideDoubt;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE};
use feedrate_results::import::{RunOrigin, find, normalized_text};
use feedrate_results::index::{LeftOut, ReadOptions, RunIndex, RunsError};
use feedrate_results::run::{ROWS, Reason, Run};
use std::collections::BTreeMap;
use std::path::Path;

/// The runs of one side.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Usable runs in the order of their start.
    pub runs: Vec<Run>,
    /// Runs that must not be used because of a doubt.
    pub invalid: Vec<Run>,
    /// Runs that are not used for other reasons, and folders that cannot be read.
    pub left_out: Vec<LeftOut>,
}

impl Runs {
    /// The runs whose settings represent the side: the usable runs, or the invalid runs if none is usable.
    pub(super) fn representative(&self) -> &[Run] {
        if self.runs.is_empty() { &self.invalid } else { &self.runs }
    }

    fn all(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().chain(&self.invalid)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.runs.iter_mut().chain(&mut self.invalid)
    }

    /// Each doubt with the number of runs that have it, most severe first.
    pub(super) fn doubts(&self) -> Vec<SideDoubt> {
        let mut counts: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
        for doubt in self.all().flat_map(|run| &run.doubts) {
            *counts.entry((doubt.severity, &doubt.name)).or_default() += 1;
        }
        counts
            .into_iter()
            .map(|((severity, name), runs)| SideDoubt { severity, name: name.into(), runs })
            .collect()
    }
}

/// Finds a run that is on both sides, possibly as a copy, and returns both folders.
pub fn find_shared_run<'a>(a: &'a Runs, b: &'a Runs) -> Option<(&'a Path, &'a Path)> {
    let folder = |run: &Run| std::fs::canonicalize(&run.path).ok();
    let is_same_run = |run: &Run, other: &Run| {
        let run_folder = folder(run);
        let is_same_folder = run_folder.is_some() && run_folder == folder(other);
        // Two runs never have the same start and the same times.
        let is_copy = run.started.is_some()
            && run.started == other.started
            && run.steps == other.steps
            && run.values == other.values
            && run.series == other.series;
        is_same_folder || is_copy
    };
    let mut pairs = a.all().flat_map(|run| b.all().map(move |other| (run, other)));
    let (run, other) = pairs.find(|(run, other)| is_same_run(run, other))?;
    Some((run.path.as_path(), other.path.as_path()))
}

/// Reads the runs of A and of B with `threads` threads. If some runs are of feedrate and others are not, only the settings that both
/// programs have are kept.
///
/// # Errors
/// A folder cannot be read or contains no run.
pub fn read_sides(a: &Path, b: &Path, threads: usize) -> Result<(Runs, Runs), RunsError> {
    let options = ReadOptions { threads, ..ReadOptions::default() };
    let (mut side_a, mut side_b) = if has_foreign_runs(a) || has_foreign_runs(b) {
        // One index for both sides: a run of one side may have read the dataset that a run of the other generated.
        let index = RunIndex::read(&[a.into(), b.into()], &options)?;
        (Runs::from(index.subset_below(0, a)), Runs::from(index.subset_below(1, b)))
    } else {
        let index_a = RunIndex::read(&[a.into()], &options)?;
        let index_b = RunIndex::read(&[b.into()], &options)?;
        (Runs::from(index_a), Runs::from(index_b))
    };
    for run in side_a.all_mut().chain(side_b.all_mut()).filter(|run| !run.is_from_feedrate()) {
        run.settings.extend(run.hosts.map(|count| ("hosts".into(), count.to_string())));
    }
    let all_runs = || side_a.all().chain(side_b.all());
    if all_runs().any(Run::is_from_feedrate) && !all_runs().all(Run::is_from_feedrate) {
        side_a.all_mut().chain(side_b.all_mut()).for_each(keep_common_settings);
    }
    Ok((side_a, side_b))
}

impl From<RunIndex> for Runs {
    fn from(index: RunIndex) -> Self {
        let is_invalid = |run: &&Run| matches!(run.unusable, Some(Reason::Invalid { .. }));
        let invalid = index.runs.iter().filter(is_invalid).cloned().collect();
        let (runs, left_out) = index.into_usable();
        Runs { runs, invalid, left_out }
    }
}

/// Whether a folder contains runs of other programs; false for the CSV of a study.
fn has_foreign_runs(path: &Path) -> bool {
    find(path).is_ok_and(|(found, _)| found.iter().any(|run| run.origin != RunOrigin::Feedrate))
}

/// The responses that are compared by default: utilisation, and throughput in samples, as samples are the same work for every format and
/// size.
pub static MAIN_RESPONSES: [&Metric; 2] = [&AU_ALL_STEPS, &SAMPLES_WHOLE];

/// Keeps the settings that both feedrate and DLIO have.
fn keep_common_settings(run: &mut Run) {
    run.settings.retain(|key, _| {
        let is_in_table = ROWS.iter().any(|(_, plan, dlio)| plan == key && !dlio.is_empty());
        // This setting enables checkpoints in DLIO and is their format in feedrate.
        ["workload", "accelerators"].contains(&key.as_str())
            || (is_in_table && key != "workflow.checkpoint")
    });
    run.settings.values_mut().for_each(|value| *value = normalized_text(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ComparisonVerdict, Note, Pairing, Question, VerdictReason, compare};
    use feedrate_measure::example::simple;
    use feedrate_measure::record::file;
    use feedrate_results::import::fake::Fake;
    use std::fs;
    use std::path::PathBuf;

    /// Writes three runs with 4 and three with 8 reading threads. Times grow with `slower`, the threads and the number of the run.
    fn write_runs(root: &Path, slower: f64) {
        for (threads, threads_factor) in [(4, 1.0), (8, 2.0)] {
            for run in 0..3 {
                let run_slower = slower * threads_factor * (1.0 + 0.01 * f64::from(run));
                let start_s = 36_000.0 + 100.0 * f64::from(run + threads as i32);
                let fake = Fake { threads, slower: run_slower, start_s, ..Fake::default() };
                fake.write(root, &format!("threads{threads}/run{run}"));
            }
        }
    }

    fn read(a: &Path, b: &Path) -> (Runs, Runs) {
        read_sides(a, b, 1).unwrap()
    }

    #[test]
    fn folders_of_dlio_are_compared_by_experiment() {
        let folder_a = tempfile::tempdir().unwrap();
        let folder_b = tempfile::tempdir().unwrap();
        write_runs(folder_a.path(), 1.0);
        write_runs(folder_b.path(), 2.2);
        fs::remove_file(folder_b.path().join("threads8/run0/1_output.json")).unwrap();
        let generation = Fake { train: false, generate: true, ..Fake::default() };
        generation.write(folder_b.path(), "made");
        let (a, b) = read(folder_a.path(), folder_b.path());
        let found = compare(a, b, &MAIN_RESPONSES, Question::Within(0.02), Pairing::None, &[]);
        let verdicts: Vec<(&str, ComparisonVerdict, usize)> = found
            .findings
            .iter()
            .map(|finding| (finding.experiment.as_str(), finding.verdict, finding.b.values.len()))
            .collect();
        let four_threads = "fake, 4 accelerators, loader.workers=4";
        let eight_threads = "fake, 4 accelerators, loader.workers=8";
        assert_eq!(verdicts[..2], [(four_threads, ComparisonVerdict::Differs, 3); 2]);
        // One of the three runs of B is invalid.
        assert_eq!(verdicts[2..], [(eight_threads, ComparisonVerdict::CannotTell, 2); 2]);
        assert_eq!(found.findings[2].reason, VerdictReason::InvalidRuns { a: 0, b: 1 });
        let doubt = found.doubts_of_b.first().unwrap();
        assert_eq!((doubt.name.as_str(), doubt.runs), ("missing_ranks", 1));
        assert!(!found.is_met());
        // 1.8 of 6.15 s.
        let au = found.findings[0].a.values[0];
        assert!((au - 180.0 / 6.15).abs() < 0.01, "{au}");
        let reasons: Vec<&str> =
            found.left_out_of_b.iter().map(|left_out| left_out.why.as_str()).collect();
        assert!(
            reasons[0].starts_with("it generated data")
                && reasons[1].starts_with("missing_ranks: "),
            "{reasons:?}"
        );
    }

    #[test]
    fn a_run_is_doubted_if_it_may_have_read_data_that_the_other_side_generated() {
        let folder = tempfile::tempdir().unwrap();
        let overrides = vec!["dataset.record_length_bytes=400000000"];
        let large = || Fake {
            record_length: 400_000_000,
            slower: 4.0,
            overrides: overrides.clone(),
            ..Fake::default()
        };
        let name = "fake/4_record_length_bytes_400000000";
        let root = folder.path();
        Fake { generate: true, train: false, ..large() }.write(root, &format!("{name}/made"));
        Fake { start_s: 36_100.0, ..large() }.write(root, &format!("{name}/run"));
        Fake { start_s: 36_200.0, slower: 3.0, ..Fake::default() }.write(root, "fake/4/later");
        let (a, b) = read(&root.join("fake/4"), &root.join(name));
        let is_stale =
            |side: &Runs| side.runs[0].doubts.iter().any(|doubt| doubt.name == "stale_data");
        assert_eq!((a.runs.len(), is_stale(&a)), (1, true));
        assert_eq!((b.runs.len(), is_stale(&b)), (1, false));
    }

    #[test]
    fn metrics_without_data_have_no_value() {
        let folder = tempfile::tempdir().unwrap();
        write_runs(folder.path(), 1.0);
        let (a, _) = read(folder.path(), folder.path());
        let value = |name: &str| a.runs[0].metric(Metric::find(name).unwrap());
        assert_eq!(value("au_sustained"), None);
        // A rank waits for 4.05 to 4.35 of 6.15 s.
        let stall = value("stall").unwrap();
        assert!((stall - 100.0 * 4.2 / 6.15).abs() < 0.01, "{stall}");
        assert!((value("duration_s").unwrap() - 2.0 * 6.15).abs() < 0.01);
    }

    #[test]
    fn runs_of_feedrate_and_dlio_are_compared_by_their_common_settings() {
        let feedrate_folder = tempfile::tempdir().unwrap();
        let dlio_folder = tempfile::tempdir().unwrap();
        for load_ms in [1000, 1001] {
            let folder: PathBuf = feedrate_folder.path().join(load_ms.to_string());
            fs::create_dir_all(&folder).unwrap();
            let mut record = simple(&[(load_ms, 1000, 0, 1_000_000); 20]);
            record.started = format!("2026-11-21T10:00:00.00{load_ms}");
            file::write(&folder, &record).unwrap();
        }
        for run in 0..2 {
            let slower = 1.0 + f64::from(run) / 1000.0;
            Fake { slower, ..Fake::default() }.write(dlio_folder.path(), &format!("run{run}"));
        }
        let (a, b) = read(feedrate_folder.path(), dlio_folder.path());
        let found = compare(
            a,
            b,
            &[Metric::find("au_all_steps").unwrap()],
            Question::Within(0.02),
            Pairing::None,
            &[],
        );
        let differs =
            vec!["workload", "processes", "batch_size", "record_length_bytes", "computation_time"];
        let reason = VerdictReason::NotComparable { differs, unknown: vec![] };
        assert_eq!((found.findings.len(), &found.findings[0].reason), (1, &reason));
        let settings: Vec<&str> =
            found.differs_in.iter().map(|differing| differing.setting.as_str()).collect();
        assert!(
            settings.contains(&"loader.batch_size") && settings.contains(&"workload"),
            "{settings:?}"
        );
        assert!(!settings.contains(&"loader.piece_bytes"), "{settings:?}");
        let differs_in_program = |note: &Note| matches!(note, Note::Differs(differing) if differing.setting == "program");
        assert!(found.notes.iter().any(differs_in_program), "{:?}", found.notes);
    }
}
