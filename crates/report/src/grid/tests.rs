//! Tests of the columns of settings.

use super::*;

#[test]
fn runs_that_differ_in_one_factor_at_a_time_have_its_name_and_level() {
    let run = |processes: u32, parameter: &str, value: &str, levels: [&str; 2]| ReportedRun {
        run: Run {
            accelerators: Some(processes),
            parameter: parameter.into(),
            value: value.into(),
            ..Run::default()
        },
        factors: ["format", "threads"]
            .into_iter()
            .zip(levels)
            .map(|(name, level)| (name.to_string(), level.to_string()))
            .collect(),
        ..ReportedRun::default()
    };
    let mut runs = vec![
        run(1, "processes", "1", ["npz", "4"]),
        run(4, "processes", "4", ["npz", "4"]),
        run(4, "format", "png", ["png", "4"]),
        run(4, "threads", "8", ["npz", "8"]),
    ];
    let columns = |runs: &[ReportedRun]| {
        let mut table = ReportTable::new("");
        add_settings(&mut table, &Report::default(), &runs.iter().collect::<Vec<_>>());
        let names = table.columns.iter().map(|column| column.name.clone());
        (names.collect::<Vec<String>>(), table.title)
    };
    let (names, title) = columns(&runs);
    assert_eq!(names, ["Parameter", "Value"]);
    assert!(
        title.ends_with("Other settings of each: processes 4, format npz, threads 4."),
        "{title}"
    );
    // Two factors at once.
    runs.push(run(1, "threads", "8", ["npz", "8"]));
    assert_eq!(columns(&runs).0, ["Processes", "format", "threads"]);
}
