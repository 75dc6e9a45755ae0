//! What is compared: the runs below a folder, of our records or of DLIO's files, or those of a study's rows. Says of each that is not why.

use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{
    AU_SUSTAINED, BARRIER_S, Basis, DELIVERED_WHOLE, DELIVERED_WINDOWED, METRICS, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, Provenance, SAMPLES_WHOLE, SAMPLES_WINDOWED, STALL_PERCENT, Value,
};
use feedrate_measure::record::Record;
use feedrate_measure::summary::Summary;
use feedrate_results::all::{Analysis, analyse};
use feedrate_results::case::{Activity, Case, ROWS, load};
use feedrate_results::import::{DLIO, Kind, find, same_text};
use feedrate_results::response::Response;
use feedrate_results::runs::{LeftOut, Origin, Run, Runs, RunsError, Turn, place, runs_of};
use feedrate_spec::units::MIB;
use std::path::{Path, PathBuf};

/// The runs of A and of B, read by so many threads. Where some are of DLIO and some are ours, their settings are those that both have names for.
///
/// # Errors
/// One of them cannot be looked into, or holds no run.
pub fn sides(a: &Path, b: &Path, threads: usize) -> Result<(Runs, Runs), RunsError> {
    let (kinds_of_a, kinds_of_b) = (kinds(a)?, kinds(b)?);
    let of_dlio: Vec<PathBuf> = [(a, &kinds_of_a), (b, &kinds_of_b)]
        .into_iter()
        .filter(|(_, kinds)| holds_dlio(kinds))
        .map(|(path, _)| path.to_path_buf())
        .collect();
    // Together: a dataset that a run of one side made may be what one of the other read.
    let analysis = match of_dlio.is_empty() {
        true => Analysis::default(),
        false => analyse(&of_dlio, threads)?,
    };
    let (mut a, mut b) = (side(a, &kinds_of_a, &analysis)?, side(b, &kinds_of_b, &analysis)?);
    let all = || a.runs.iter().chain(&b.runs);
    if all().any(is_of_dlio) && !all().all(is_of_dlio) {
        a.runs.iter_mut().chain(&mut b.runs).for_each(keep_common);
    }
    Ok((a, b))
}

/// What is compared where nothing is asked for: utilisation, and throughput in the truest unit that all runs have.
pub fn main_responses(a: &Runs, b: &Runs) -> Vec<&'static Response> {
    let has = |name: &str| {
        let response = Response::find(name);
        a.runs
            .iter()
            .chain(&b.runs)
            .all(|run| response.as_ref().is_ok_and(|of| run.summary.figures.value(of).is_some()))
    };
    let rates = ["delivered_bytes_per_second", "samples_per_second"];
    let rate = rates.into_iter().find(|name| has(name)).unwrap_or(rates[0]);
    ["au_all_steps_percent", rate]
        .into_iter()
        .filter_map(|name| Response::find(name).ok())
        .collect()
}

fn is_of_dlio(run: &Run) -> bool {
    run.place.get("program").is_some_and(|program| program == DLIO)
}

fn keep_common(run: &mut Run) {
    let is_common = |key: &str| {
        let in_table = ROWS.iter().any(|(_, plan, dlio, _)| *plan == key && !dlio.is_empty());
        // Whether there are checkpoints, and in which format: not the same question.
        ["workload", "accelerators"].contains(&key) || (in_table && key != "checkpoint.format")
    };
    run.settings.retain(|key, _| is_common(key));
    run.settings.values_mut().for_each(|value| *value = same_text(value));
}

/// Who wrote the runs of a folder; of a study's CSV nobody is asked.
fn kinds(path: &Path) -> Result<Vec<Kind>, RunsError> {
    if path.is_file() {
        return Ok(Vec::new());
    }
    let failed = |error| RunsError::Io { path: path.into(), source: error };
    Ok(find(path).map_err(failed)?.0.into_iter().map(|one| one.kind).collect())
}

fn holds_dlio(kinds: &[Kind]) -> bool {
    kinds.iter().any(|kind| *kind != Kind::Record)
}

/// `analysis`: of all folders that hold runs of DLIO.
fn side(path: &Path, kinds: &[Kind], analysis: &Analysis) -> Result<Runs, RunsError> {
    if !holds_dlio(kinds) {
        return runs_of(path);
    }
    let mut side = match kinds.contains(&Kind::Record) {
        true => runs_of(path)?,
        false => Runs::default(),
    };
    let whole = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let root = whole(path);
    let is_below = |one: &Path| whole(one).starts_with(&root);
    let is_new = |one: &&LeftOut| !side.left_out.iter().any(|known| known.path == one.path);
    let left_out = analysis.left_out.iter().filter(|one| is_below(&one.path)).filter(is_new);
    let left_out: Vec<LeftOut> = left_out.cloned().collect();
    side.left_out.extend(left_out);
    let of_dlio = analysis.runs.iter().filter(|case| case.kind != Kind::Record);
    for case in of_dlio.filter(|case| is_below(&case.path)) {
        let run = match unusable(case, path) {
            Some(why) => Err(why),
            None => {
                load(&case.path, case.kind, &case.source).map(|loaded| run(case, &loaded.record))
            }
        };
        match run {
            Ok(run) => side.runs.push(run),
            Err(why) => side.left_out.push(LeftOut { path: case.path.clone(), why }),
        }
    }
    side.runs.sort_by(|a, b| a.origin.cmp_start(&b.origin).then(a.path.cmp(&b.path)));
    side.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(side)
}

/// Why a run of DLIO must not be compared; one that was put aside is, where it is what was asked for.
fn unusable(case: &Case, asked: &Path) -> Option<String> {
    let invalid = case.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid);
    let aside = case.put_aside.as_ref().filter(|_| case.path != asked);
    match (case.activity, aside, invalid) {
        (_, Some(word), _) => Some(format!("{word}: a study put it aside")),
        (Activity::Generation, ..) => Some("it generated data, and trained nothing".into()),
        (Activity::Checkpoints, ..) => Some("it trained nothing: checkpoints only".into()),
        (_, _, Some(doubt)) => Some(format!("{}: {}", doubt.name, doubt.evidence)),
        _ if case.steps == 0 => Some("it has no steps that can be read".into()),
        _ => None,
    }
}

fn run(case: &Case, record: &Record) -> Run {
    let mut settings = case.settings.clone();
    settings.extend(case.hosts.map(|count| ("hosts".into(), count.to_string())));
    Run {
        path: case.path.clone(),
        settings,
        place: place(record),
        turn: Turn::default(),
        origin: Origin::of(record),
        summary: summary(case, record),
    }
}

/// What DLIO's files do not tell is not known: a record that was made of them has 0 there.
fn summary(case: &Case, record: &Record) -> Summary {
    let mut summary = Summary::new(record);
    let values = &mut summary.figures.values;
    for metric in METRICS.iter().filter(|metric| !metric.basis.contains(&Basis::Steps)) {
        values.remove(&metric.id);
    }
    let rates = &case.throughput;
    let bytes = |mib: Option<f64>| mib.map(|mib| mib * MIB);
    let stall = case.stall.load_percent.filter(|percent| 0.0 < *percent);
    for (metric, number, provenance) in [
        (&DELIVERED_WINDOWED, None, Provenance::Estimated),
        (&DELIVERED_WHOLE, bytes(rates.whole_read_mib_per_second), Provenance::Estimated),
        (&NOMINAL_WINDOWED, bytes(rates.windowed_mib_per_second), Provenance::Recomputed),
        (&NOMINAL_WHOLE, bytes(rates.whole_mib_per_second), Provenance::Recomputed),
        (&SAMPLES_WINDOWED, rates.windowed_samples_per_second, Provenance::Recomputed),
        (&SAMPLES_WHOLE, rates.whole_samples_per_second, Provenance::Recomputed),
        (&AU_SUSTAINED, None, Provenance::Recomputed),
        (&BARRIER_S, None, Provenance::Recomputed),
        (&STALL_PERCENT, stall, Provenance::Recomputed),
    ] {
        values.remove(&metric.id);
        values.extend(number.map(|number| (metric.id, Value { number, provenance })));
    }
    summary.doubts.clone_from(&case.doubts);
    summary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Pairing, Question, Verdict, compare};
    use feedrate_measure::example::simple;
    use feedrate_measure::record::file;
    use feedrate_results::import::fake::Fake;
    use std::fs;

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
        sides(a, b, 1).unwrap()
    }

    #[test]
    fn trees_of_dlio_are_compared_experiment_by_experiment() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(a.path(), 1.0);
        write(b.path(), 2.2);
        fs::remove_file(b.path().join("threads8/run0/1_output.json")).unwrap();
        Fake { train: false, generate: true, ..Fake::default() }.write(b.path(), "made");
        let (a, b) = both(a.path(), b.path());
        let responses = main_responses(&a, &b);
        let names: Vec<&str> = responses.iter().map(|one| one.id.name()).collect();
        assert_eq!(names, ["au_all_steps_percent", "delivered_bytes_per_second"]);
        let found = compare(a, b, &responses, Question::Within(0.02), Pairing::None);
        let told: Vec<(&str, Verdict, usize)> = found
            .findings
            .iter()
            .map(|one| (one.experiment.as_str(), one.verdict, one.b.values.len()))
            .collect();
        let (few, many) =
            ("fake, 4 accelerators, loader.workers=4", "fake, 4 accelerators, loader.workers=8");
        assert_eq!(told[..2], [(few, Verdict::Differs, 3); 2]);
        assert_eq!(told[2..], [(many, Verdict::Differs, 2); 2]);
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
    fn a_run_that_read_what_the_other_side_made_is_left_out() {
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
        Fake { start_s: 36_200.0, slower: 4.0, ..Fake::default() }.write(root, "fake/4/later");
        let (a, b) = both(&root.join("fake/4"), &root.join(name));
        assert!(a.runs.is_empty() && a.left_out[0].why.starts_with("stale_data: "), "{a:?}");
        assert_eq!(b.runs.len(), 1);
    }

    #[test]
    fn what_files_do_not_tell_has_no_value() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1.0);
        let (a, _) = both(folder.path(), folder.path());
        let of = |name: &str| a.runs[0].summary.figures.value(Response::find(name).unwrap());
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
            &[Response::find("au_all_steps").unwrap()],
            Question::Within(0.02),
            Pairing::None,
        );
        assert_eq!((found.findings.len(), found.findings[0].verdict), (1, Verdict::Differs));
        let differs: Vec<&str> = found.differs_in.iter().map(|one| one.setting.as_str()).collect();
        assert!(
            differs.contains(&"loader.batch_size") && differs.contains(&"workload"),
            "{differs:?}"
        );
        assert!(!differs.contains(&"loader.piece_bytes"), "{differs:?}");
        assert!(
            found.notes.iter().any(|note| note.contains("not the same program")),
            "{:?}",
            found.notes
        );
    }
}
