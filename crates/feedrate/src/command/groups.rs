//! The part of `feedrate analyze` that holds groups of runs to the utilisation that was asked for.

use crate::text;
use feedrate_results::groups::{Passes, ResultGroup};
use feedrate_results::import::Bound;
use feedrate_spec::units;

/// Groups that are shown, at most.
const GROUPS_MAX: usize = 40;

const HEADER: [&str; 10] = [
    "System",
    "Workload",
    "Acc",
    "Runs",
    "Bar",
    "Reported",
    "All steps",
    "Pass as reported",
    "With all steps",
    "First step",
];

/// A line for each group; `None` without any.
pub(super) fn page(groups: &[ResultGroup]) -> Option<String> {
    let has_systems = groups.iter().any(|group| group.submission.is_some());
    let skipped = usize::from(!has_systems);
    let rows = groups.iter().take(GROUPS_MAX).map(|group| row(group).into_iter().skip(skipped));
    let numbers: Vec<usize> = [2, 3, 4, 5, 6].map(|column| column - skipped).into();
    let header = HEADER.into_iter().skip(skipped);
    let mut lines = vec![
        "Utilisation in percent against the bar; the first step, which AU leaves out, in units of reading threads × compute:".to_string(),
        text::table_of_numbers(header, rows, &numbers),
    ];
    let more = groups.len().saturating_sub(GROUPS_MAX);
    lines.extend((0 < more).then(|| format!(" and {more} more with `--json`")));
    (!groups.is_empty()).then(|| lines.join("\n"))
}

fn row(group: &ResultGroup) -> [String; 10] {
    let submission = group.submission.as_ref();
    let workload = match group.parameter.as_str() {
        "processes" => group.workload.clone(),
        _ => format!("{}, {} {}", group.workload, group.parameter, group.value),
    };
    let side = match group.bound {
        None => "",
        Some(Bound::AtMost) => "≤ ",
        Some(Bound::AtLeast) => "≥ ",
    };
    let percent = |value: Option<f64>| text::known(value, |percent| format!("{percent:.1}"));
    let first_step = group.first_step_s.map(|first_s| {
        let units = group.first_step_units.map(|units| format!("{units:.1} × "));
        format!("{}({})", units.unwrap_or_default(), units::seconds(first_s))
    });
    [
        text::known(submission, |of| format!("{}/{}", of.submitter, of.system)),
        workload,
        text::known(group.accelerators, |count| count.to_string()),
        match group.left_out {
            0 => group.runs.len().to_string(),
            more => format!("{} of {}", group.runs.len(), group.runs.len() + more),
        },
        text::known(group.bar_percent, |bar| format!("{bar}")),
        percent(group.reported_percent),
        text::known(group.all_steps_percent, |all| format!("{side}{all:.1}")),
        passes(group.passes_reported),
        passes(group.passes_all_steps),
        text::known(first_step, |text| text),
    ]
}

/// How many of the runs.
fn passes(passes: Passes) -> String {
    let Passes { yes, no, unknown } = passes;
    match (yes + no, unknown) {
        (0, 0) => "-".into(),
        (0, _) => "not known".into(),
        (known, 0) => format!("{yes} of {known}"),
        (known, _) => format!("{yes} of {known}, {unknown} not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_is_a_line() {
        let group = ResultGroup {
            source: "r".into(),
            submission: None,
            workload: "unet3d_h100".into(),
            accelerators: Some(2),
            parameter: "processes".into(),
            value: "2".into(),
            runs: vec![0, 1],
            left_out: 1,
            bar_percent: Some(90.0),
            reported_percent: Some(92.35),
            all_steps_percent: Some(91.46),
            bound: Some(Bound::AtMost),
            passes_reported: Passes { yes: 2, no: 0, unknown: 0 },
            passes_all_steps: Passes { yes: 0, no: 1, unknown: 1 },
            first_step_s: Some(6.63),
            first_step_units: Some(1.283),
        };
        let text = page(&[group]).unwrap();
        let line: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        let expected =
            "unet3d_h100 2 2 of 3 90 92.3 ≤ 91.5 2 of 2 0 of 1, 1 not known 1.3 × (6.63 s)";
        assert_eq!(line.join(" "), expected);
        assert_eq!(page(&[]), None);
    }
}
