//! Tests of designs: factors, the order of their levels, and baselines.

use super::*;
use feedrate_measure::record::StudyRun;
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::run::Run;
use feedrate_results::state::StudyState;
use feedrate_results::table::Table;

fn run(levels: &[(&str, &str)]) -> Settings {
    let settings = levels.iter().map(|(key, level)| ((*key).to_string(), (*level).to_string()));
    settings.chain([("workload".to_string(), "w".to_string())]).collect()
}

fn design(runs: &[Settings], declared: &DeclaredFactors) -> Design {
    designs(&runs.iter().collect::<Vec<_>>(), declared).remove(0)
}

/// Formats each factor with its levels and the baseline in brackets.
fn factor_texts(design: &Design) -> Vec<String> {
    let level_text = |factor: &Factor, index: usize| {
        let level = &factor.levels[index];
        if index == factor.baseline { format!("[{level}]") } else { level.clone() }
    };
    let factor_text = |factor: &Factor| {
        let indexes = 0..factor.levels.len();
        let levels: Vec<String> = indexes.map(|index| level_text(factor, index)).collect();
        format!("{}: {}", factor.name, levels.join(" "))
    };
    design.factors.iter().map(factor_text).collect()
}

/// Runs that change one factor at a time from png and 8 threads.
fn one_factor_at_a_time() -> Vec<Settings> {
    [("8", "png"), ("8", "npz"), ("8", "hdf5"), ("16", "png"), ("4", "png")]
        .map(|(threads, format)| run(&[("loader.workers", threads), ("dataset.format", format)]))
        .into()
}

fn declared(text: &str) -> DeclaredFactors {
    DeclaredFactors::from_table(&Table::parse("s.csv", text).unwrap())
}

#[test]
fn a_setting_that_the_format_determines_is_no_factor() {
    let check = |runs: &[(&str, &str)], expected: &[&str]| {
        let runs = runs.iter().map(|(format, decodes)| {
            run(&[("dataset.format", format), ("loader.decodes_members", decodes)])
        });
        let design = design(&runs.collect::<Vec<_>>(), &DeclaredFactors::default());
        assert_eq!(factor_texts(&design), expected);
        assert!(design.factors.iter().all(|factor| factor.followers.is_empty()));
    };
    let sweep = [("npz", "false"), ("hdf5", "false"), ("png", "true")];
    check(&sweep, &["format: [npz] hdf5 png"]);
    let undecoded = [("npz", "false"), ("png", "true"), ("png", "false")];
    let expected = ["format: npz [png]", "loader.decodes_members: [false] true"];
    check(&undecoded, &expected);
}

/// Without checkpoints, there is no interval between them.
#[test]
fn a_setting_that_another_one_switches_off_stays_at_its_common_level() {
    let runs = [Some("2"), Some("2"), Some("1"), None].map(|interval| {
        let mut settings = vec![("loader.batch_size", "1")];
        let checkpoint = [("checkpoint.format", "pt"), ("checkpoint.fsync", "true")];
        settings.extend(interval.into_iter().flat_map(|_| checkpoint));
        settings.extend(interval.map(|interval| ("checkpoint.interval", interval)));
        run(&settings)
    });
    let design = design(&runs, &DeclaredFactors::default());
    assert_eq!(factor_texts(&design), ["checkpoint: [pt] unset", "checkpoint.interval: 1 [2]"]);
    assert!(design.factors.iter().all(|factor| factor.followers.is_empty()));
}

#[test]
fn settings_that_change_together_are_one_factor() {
    let runs = [("1", "npz", Some("2")), ("2", "npz", None), ("2", "png", None)];
    let runs = runs.map(|(batch, format, threads)| {
        let encoding = format!("of {format}");
        let mut settings = vec![("loader.batch_size", batch), ("dataset.format", format)];
        settings.extend([("dataset.encoding", encoding.as_str()), ("model", "m")]);
        settings.extend(threads.map(|threads| ("x.threads", threads)));
        run(&settings)
    });
    let design = design(&runs, &DeclaredFactors::default());
    assert_eq!(factor_texts(&design), ["batch_size: 1 [2]", "format: [npz] png"]);
    assert_eq!(design.factors[0].followers, ["x.threads"]);
    assert_eq!(design.factors[1].followers, ["dataset.encoding"]);
    assert_eq!(design.cells.len(), 3);
    assert_eq!(design.levels_of(&design.cells[0])["format"], "npz");
}

#[test]
fn numbers_ascend_and_other_levels_keep_their_order() {
    let design = design(&one_factor_at_a_time(), &DeclaredFactors::default());
    assert_eq!(factor_texts(&design), ["format: [png] npz hdf5", "read_threads: 4 [8] 16"]);
    assert_eq!(design.factors[1].numbers, Some(vec![4.0, 8.0, 16.0]));
    let mixed = ["8", "", "2"].map(|size| match size {
        "" => run(&[]),
        size => run(&[("loader.prefetch_size", size)]),
    });
    let mixed_design = self::design(&mixed, &DeclaredFactors::default());
    assert_eq!(factor_texts(&mixed_design), ["prefetch_size: [2] 8 unset"]);
}

#[test]
fn the_csv_declares_the_order_of_levels_and_the_baseline() {
    let factors = declared(
        "model,epochs,processes,overrides,run\n# baseline: w, 1 process\n\
         # factor format (dataset.format): npz, hdf5 (baseline), png\nw,,1,dataset.format=png,N\n",
    );
    let design = design(&one_factor_at_a_time(), &factors);
    assert_eq!(factor_texts(&design), ["format: npz [hdf5] png", "read_threads: 4 [8] 16"]);
}

#[test]
fn levels_of_an_overview_are_in_the_declared_order() {
    let csv = "model,epochs,processes,overrides,run\n\
               # factor format (dataset.format): npz, hdf5 (baseline), png\n\
               w,,4,++workload.dataset.format=png,N\nw,,4,++workload.dataset.format=npz,N\nw,,1,,N\n";
    let table = Table::parse("s.csv", csv).unwrap();
    let rows: Vec<Row> = table.rows().cloned().collect();
    let mut overview = Overview::new(&rows, &StudyState::default());
    DeclaredFactors::from_table(&table).sort_levels(&mut overview);
    let factors = overview.factors.iter().map(|factor| {
        let levels: Vec<&str> = factor.levels.iter().map(|row| row.level.as_str()).collect();
        format!("{}: {}", factor.factor, levels.join(" "))
    });
    assert_eq!(factors.collect::<Vec<_>>(), ["processes: 1 4", "dataset.format: npz png -"]);
}

#[test]
fn a_comment_above_rows_marks_the_baseline() {
    let csv = "model,epochs,processes,overrides,run\n# Vary\nw,1,4,reader.read_threads=4,N\n\
                   # Baseline: vary processes\nw,1,1,,N\nw,1,4,,N\n\
                   # Formats\nw,1,4,dataset.format=npz,N\nw,1,4,dataset.format=hdf5,N\n";
    let add_processes = |runs: &mut Vec<Settings>| {
        runs.iter_mut().for_each(|run| drop(run.insert("accelerators".into(), "4".into())));
        runs.push(run(&[
            ("accelerators", "1"),
            ("loader.workers", "8"),
            ("dataset.format", "png"),
        ]));
    };
    let mut declared_runs = one_factor_at_a_time();
    add_processes(&mut declared_runs);
    // Two levels of read_threads are not declared.
    let found = design(&declared_runs, &declared(csv));
    assert_eq!(
        factor_texts(&found),
        ["format: npz hdf5 [png]", "processes: 1 [4]", "read_threads: 4 [8] 16"]
    );
    // Without the comment the baseline is the level that most cells have.
    let mut runs: Vec<Settings> = [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b"), ("2", "c")]
        .map(|(threads, x)| run(&[("loader.workers", threads), ("x", x)]))
        .into();
    runs.rotate_left(1);
    assert_eq!(
        factor_texts(&design(&runs, &DeclaredFactors::default())),
        ["read_threads: 1 [2]", "x: [b] a c"]
    );
}

#[test]
fn declared_factors_stay_separate_even_if_they_changed_together() {
    let runs = [("1", "4"), ("2", "8")]
        .map(|(batch, threads)| run(&[("loader.batch_size", batch), ("loader.workers", threads)]));
    assert_eq!(design(&runs, &DeclaredFactors::default()).factors.len(), 1);
    let both =
        "model,epochs,processes,overrides,run\nw,1,1,reader.batch_size=1 reader.read_threads=4,N\n";
    assert_eq!(design(&runs, &declared(both)).factors.len(), 2);
}

#[test]
fn a_design_can_be_restricted_to_some_runs_and_factors() {
    let design = design(&one_factor_at_a_time(), &DeclaredFactors::default());
    let few = design.restrict(|_| true, |run| run != 0 && run != 3);
    assert_eq!(factor_texts(&few), ["format: [png] npz hdf5", "read_threads: 4 [8]"]);
    assert_eq!(few.cells.iter().map(|cell| cell.runs.len()).sum::<usize>(), 3);
    let formats = design.restrict(|factor| factor.name == "format", |_| true);
    assert_eq!(
        (factor_texts(&formats).len(), formats.cells[0].runs.as_slice()),
        (1, &[0, 3, 4][..])
    );
    let without_threads = design.restrict(|_| true, |run| run == 1 || run == 2);
    assert_eq!(factor_texts(&without_threads), ["format: [npz] hdf5"]);
}

#[test]
fn a_slice_is_at_the_baselines() {
    let design = design(&one_factor_at_a_time(), &DeclaredFactors::default());
    let slice_runs = |free| -> Vec<usize> {
        design.slice(&[free]).iter().flat_map(|cell| cell.runs.clone()).collect()
    };
    assert_eq!(slice_runs(0), [0, 1, 2], "formats");
    assert_eq!(slice_runs(1), [4, 0, 3], "threads");
}

#[test]
fn a_factor_can_be_determined_by_one_with_more_levels() {
    let runs = [("1", "x"), ("2", "x"), ("4", "y")]
        .map(|(threads, level)| run(&[("loader.workers", threads), ("a", level)]));
    let design = design(&runs, &DeclaredFactors::default());
    assert_eq!((design.determined_by(0), design.determined_by(1)), (Some(1), None));
}

/// Batch size and processes changed independently only in one run. Without it their effects cannot be separated.
#[test]
fn a_restricted_design_keeps_factors_that_change_together() {
    let runs = [("4", "1"), ("6", "7"), ("4", "7")].map(|(accelerators, batch)| {
        run(&[("accelerators", accelerators), ("loader.batch_size", batch)])
    });
    let design = design(&runs, &DeclaredFactors::default());
    let restricted = design.restrict(|_| true, |run| run != 2);
    assert_eq!(restricted.factors.len(), 2, "{:?}", factor_texts(&restricted));
    assert!(restricted.factors.iter().all(|factor| factor.followers.is_empty()));
}

/// The baseline and the levels of the CSV are in the units of the workload, and the settings of runs in those of the plan.
#[test]
fn levels_of_the_csv_are_found_in_the_settings_of_runs() {
    let text = "\
model,epochs,processes,overrides,run
# factor throttle (storage.throttle.bytes_per_second): 95MB/s, 100MB/s (baseline), 105MB/s
w,1,1,++workload.storage.throttle.bytes_per_second=95MB/s,Y
w,1,1,++workload.storage.throttle.bytes_per_second=100MB/s,Y
w,1,1,++workload.storage.throttle.bytes_per_second=105MB/s,Y
";
    let runs = ["95", "105", "105", "100"].map(|rate| {
        let bytes_per_second = format!("{rate}000000");
        let key = "storage.throttle.bytes_per_second";
        let study = StudyRun {
            overrides: vec![format!("++workload.{key}={rate}MB/s")],
            ..StudyRun::default()
        };
        let setting = ("storage.throttle_bytes_per_second", bytes_per_second.as_str());
        Run { settings: run(&[setting]), study: Some(study), ..Run::default() }
    });
    let settings = runs.each_ref().map(|run| run.settings.clone());
    let without_runs = declared(text);
    let texts = |declared: &DeclaredFactors| factor_texts(&design(&settings, declared));
    let with_runs = without_runs.clone().with_settings(&runs.each_ref());
    assert_eq!(texts(&with_runs), ["throttle_bytes_per_second: 95000000 [100000000] 105000000"]);
    assert_ne!(texts(&without_runs), texts(&with_runs));
}
