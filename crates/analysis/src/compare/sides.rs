//! Sides of a comparison: the runs below a folder, of our records or of DLIO's files, or those of a study's rows. Says of each that is not why.

use super::SideDoubt;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE};
use feedrate_results::import::{RunOrigin, find, normalized_text};
use feedrate_results::index::{LeftOut, ReadOptions, RunIndex, RunsError};
use feedrate_results::run::{ROWS, Reason, Run};
use std::collections::BTreeMap;
use std::path::Path;

/// The runs of a side.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// In the order they were started.
    pub runs: Vec<Run>,
    /// Runs that must not be used for a doubt.
    pub invalid: Vec<Run>,
    /// Runs that are not used, and folders that cannot be read.
    pub left_out: Vec<LeftOut>,
}

impl Runs {
    /// The runs that tell what was set: those that may be used, if there are any.
    pub(super) fn telling(&self) -> &[Run] {
        if self.runs.is_empty() { &self.invalid } else { &self.runs }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().chain(&self.invalid)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.runs.iter_mut().chain(&mut self.invalid)
    }

    /// Each doubt with the number of its runs, the worst first.
    pub(super) fn doubts(&self) -> Vec<SideDoubt> {
        let mut counts: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
        for doubt in self.all().flat_map(|run| &run.doubts) {
            *counts.entry((doubt.severity, &doubt.name)).or_default() += 1;
        }
        let counts = counts.into_iter();
        let named =
            counts.map(|((severity, name), runs)| SideDoubt { severity, name: name.into(), runs });
        named.collect()
    }
}

/// A run that is on both sides, or a copy of one: its two folders.
pub fn find_shared_run<'a>(a: &'a Runs, b: &'a Runs) -> Option<(&'a Path, &'a Path)> {
    let mut pairs = a.all().flat_map(|one| b.all().map(move |other| [one, other]));
    let found = pairs.find(|pair| {
        let [folder, other] = pair.map(|run| std::fs::canonicalize(&run.path).ok());
        let [values, others] = pair.map(|run| (&run.started, run.steps, &run.values, &run.series));
        (folder.is_some() && folder == other) || (values.0.is_some() && values == others)
    });
    found.map(|pair| (pair[0].path.as_path(), pair[1].path.as_path()))
}

/// The runs of A and of B, read by so many threads. Where some are of DLIO and some are ours, their settings are those that both have names for.
///
/// # Errors
/// One of them cannot be looked into, or holds no run.
pub fn read_sides(a: &Path, b: &Path, threads: usize) -> Result<(Runs, Runs), RunsError> {
    let options = ReadOptions { threads, ..ReadOptions::default() };
    let (of_a, of_b) = if holds_dlio(a) || holds_dlio(b) {
        // Together: a dataset that a run of one side made may be what one of the other read.
        let both = RunIndex::read(&[a.into(), b.into()], &options)?;
        (both.below(0, a), both.below(1, b))
    } else {
        (RunIndex::read(&[a.into()], &options)?, RunIndex::read(&[b.into()], &options)?)
    };
    let (mut a, mut b) = (Runs::from(of_a), Runs::from(of_b));
    for run in a.all_mut().chain(b.all_mut()).filter(|run| !run.is_own()) {
        run.settings.extend(run.hosts.map(|count| ("hosts".into(), count.to_string())));
    }
    if a.all().chain(b.all()).any(Run::is_own) && !a.all().chain(b.all()).all(Run::is_own) {
        a.all_mut().chain(b.all_mut()).for_each(keep_common);
    }
    Ok((a, b))
}

impl From<RunIndex> for Runs {
    fn from(index: RunIndex) -> Self {
        let invalid = index.runs.iter();
        let invalid = invalid.filter(|run| matches!(run.unusable, Some(Reason::Invalid { .. })));
        let invalid = invalid.cloned().collect();
        let (runs, left_out) = index.into_usable();
        Runs { runs, invalid, left_out }
    }
}

/// Whether a folder holds runs of DLIO; of a study's CSV nobody is asked.
fn holds_dlio(path: &Path) -> bool {
    find(path).is_ok_and(|(found, _)| found.iter().any(|one| one.origin != RunOrigin::Feedrate))
}

/// Responses that are compared where none is asked for: utilisation and throughput, in samples, which are the same work whatever their format and size.
pub static MAIN_RESPONSES: [&Metric; 2] = [&AU_ALL_STEPS, &SAMPLES_WHOLE];

/// Keep what ours and DLIO's both have names for.
fn keep_common(run: &mut Run) {
    run.settings.retain(|key, _| {
        let in_table = ROWS.iter().any(|(_, plan, dlio)| plan == key && !dlio.is_empty());
        // Whether there are checkpoints, and in which format: not the same question.
        ["workload", "accelerators"].contains(&key.as_str())
            || (in_table && key != "workflow.checkpoint")
    });
    run.settings.values_mut().for_each(|value| *value = normalized_text(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ComparisonVerdict, Ground, Note, Pairing, Question, compare};
    use feedrate_measure::example::simple;
    use feedrate_measure::record::file;
    use feedrate_results::import::fake::Fake;
    use std::fs;
    use std::path::PathBuf;

    /// Three runs of each read_threads, `slower` by that and a little more each.
    fn write(root: &Path, slower: f64) {
        for (threads, of_threads) in [(4, 1.0), (8, 2.0)] {
            for run in 0..3 {
                let slower = slower * of_threads * (1.0 + 0.01 * f64::from(run));
                let start_s = 36_000.0 + 100.0 * f64::from(run + threads as i32);
                let fake = Fake { threads, slower, start_s, ..Fake::default() };
                fake.write(root, &format!("threads{threads}/run{run}"));
            }
        }
    }

    fn both(a: &Path, b: &Path) -> (Runs, Runs) {
        read_sides(a, b, 1).unwrap()
    }

    #[test]
    fn trees_of_dlio_are_compared_experiment_by_experiment() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(a.path(), 1.0);
        write(b.path(), 2.2);
        fs::remove_file(b.path().join("threads8/run0/1_output.json")).unwrap();
        Fake { train: false, generate: true, ..Fake::default() }.write(b.path(), "made");
        let (a, b) = both(a.path(), b.path());
        let found = compare(a, b, &MAIN_RESPONSES, Question::Within(0.02), Pairing::None, &[]);
        let told: Vec<(&str, ComparisonVerdict, usize)> = found
            .findings
            .iter()
            .map(|one| (one.experiment.as_str(), one.verdict, one.b.values.len()))
            .collect();
        let (few, many) =
            ("fake, 4 accelerators, loader.workers=4", "fake, 4 accelerators, loader.workers=8");
        assert_eq!(told[..2], [(few, ComparisonVerdict::Differs, 3); 2]);
        // Of three runs of B one must not be used.
        assert_eq!(told[2..], [(many, ComparisonVerdict::CannotTell, 2); 2]);
        assert_eq!(found.findings[2].ground, Ground::InvalidRuns { a: 0, b: 1 });
        let doubt = found.doubts_of_b.first().unwrap();
        assert_eq!((doubt.name.as_str(), doubt.runs), ("missing_ranks", 1));
        assert!(!found.is_met());
        // 1.8 of 6.15 s, and of 10.5 s.
        let au = found.findings[0].a.values[0];
        assert!((au - 180.0 / 6.15).abs() < 0.01, "{au}");
        let why: Vec<&str> = found.left_out_of_b.iter().map(|one| one.why.as_str()).collect();
        assert!(
            why[0].starts_with("it generated data") && why[1].starts_with("missing_ranks: "),
            "{why:?}"
        );
    }

    #[test]
    fn a_run_that_may_have_read_what_the_other_side_made_is_doubted() {
        let folder = tempfile::tempdir().unwrap();
        let over = vec!["dataset.record_length_bytes=400000000"];
        let large = || Fake {
            record_length: 400_000_000,
            slower: 4.0,
            overrides: over.clone(),
            ..Fake::default()
        };
        let (name, root) = ("fake/4_record_length_bytes_400000000", folder.path());
        Fake { generate: true, train: false, ..large() }.write(root, &format!("{name}/made"));
        Fake { start_s: 36_100.0, ..large() }.write(root, &format!("{name}/run"));
        Fake { start_s: 36_200.0, slower: 3.0, ..Fake::default() }.write(root, "fake/4/later");
        let (a, b) = both(&root.join("fake/4"), &root.join(name));
        let is_stale =
            |side: &Runs| side.runs[0].doubts.iter().any(|doubt| doubt.name == "stale_data");
        assert_eq!((a.runs.len(), is_stale(&a)), (1, true));
        assert_eq!((b.runs.len(), is_stale(&b)), (1, false));
    }

    #[test]
    fn what_files_do_not_tell_has_no_value() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1.0);
        let (a, _) = both(folder.path(), folder.path());
        let of = |name: &str| a.runs[0].metric(Metric::find(name).unwrap());
        assert_eq!(of("au_sustained"), None);
        // Of 6.15 s a rank waits 4.05 to 4.35 s.
        let stall = of("stall").unwrap();
        assert!((stall - 100.0 * 4.2 / 6.15).abs() < 0.01, "{stall}");
        assert!((of("duration_s").unwrap() - 2.0 * 6.15).abs() < 0.01);
    }

    #[test]
    fn ours_and_dlios_are_compared_by_what_both_have_names_for() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for load_ms in [1000, 1001] {
            let folder: PathBuf = ours.path().join(load_ms.to_string());
            fs::create_dir_all(&folder).unwrap();
            let mut record = simple(&[(load_ms, 1000, 0, 1_000_000); 20]);
            record.started = format!("2026-11-21T10:00:00.00{load_ms}");
            file::write(&folder, &record).unwrap();
        }
        for run in 0..2 {
            let slower = 1.0 + f64::from(run) / 1000.0;
            Fake { slower, ..Fake::default() }.write(theirs.path(), &format!("run{run}"));
        }
        let (a, b) = both(ours.path(), theirs.path());
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
        let ground = Ground::NotComparable { differs, unknown: vec![] };
        assert_eq!((found.findings.len(), &found.findings[0].ground), (1, &ground));
        let differs: Vec<&str> = found.differs_in.iter().map(|one| one.setting.as_str()).collect();
        assert!(
            differs.contains(&"loader.batch_size") && differs.contains(&"workload"),
            "{differs:?}"
        );
        assert!(!differs.contains(&"loader.piece_bytes"), "{differs:?}");
        assert!(
            found
                .notes
                .iter()
                .any(|note| matches!(note, Note::Differs(of) if of.setting == "program")),
            "{:?}",
            found.notes
        );
    }
}
