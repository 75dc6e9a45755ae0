//! The part of `feedrate analyze` that holds groups of runs to the utilisation that was asked for.

use crate::text;
use feedrate_report::words::answer::passes;
use feedrate_results::groups::{CheckpointGroup, Passes, ResultGroup};
use feedrate_results::import::Bound;
use feedrate_results::run::Submission;
use feedrate_spec::units;

/// Groups that are shown, at most.
const GROUPS_MAX: usize = 40;

const HEADER: [&str; 10] =
    ["System", "Workload", "Varied", "Acc", "Bar", "Rep.", "Pass", "All", "Pass", "First"];

/// Letters of a system, a workload or what was varied, at most, where one or two of them are told: a line has room in 80 columns.
const NAME_MAX: [usize; 2] = [18, 14];

/// A line for each group; `None` without any.
pub(super) fn page(groups: &[ResultGroup]) -> Option<String> {
    let first = groups.first()?;
    let used: Vec<&ResultGroup> = groups.iter().filter(|group| !group.runs.is_empty()).collect();
    let names = [
        used.iter().any(|group| group.submission.is_some()),
        used.iter().any(|group| group.workload != first.workload),
        used.iter().any(|group| !varied(group).is_empty()),
    ];
    let has_workloads = names[1];
    let name_max = NAME_MAX[usize::from(1 < names.iter().filter(|is_told| **is_told).count())];
    let columns = (0..HEADER.len()).filter(|column| names.get(*column).copied().unwrap_or(true));
    let columns: Vec<usize> = columns.collect();
    let numbers: Vec<usize> =
        (0..columns.len()).filter(|&at| [3, 4, 5, 7].contains(&columns[at])).collect();
    let rows = used.iter().take(GROUPS_MAX).map(|group| {
        let mut cells = row(group, name_max);
        columns.iter().map(|&at| std::mem::take(&mut cells[at])).collect::<Vec<String>>()
    });
    let of = if has_workloads { String::new() } else { format!("{}: ", first.workload) };
    let mut lines = vec![
        format!("{of}AU (%) reported and of all steps; first step in threads × compute"),
        text::table_of_numbers(columns.iter().map(|&at| HEADER[at]), rows, &numbers),
    ];
    let (more, left_out) = (used.len().saturating_sub(GROUPS_MAX), groups.len() - used.len());
    lines.extend((0 < more).then(|| format!(" and {more} more with `--json`")));
    lines.extend(
        (0 < left_out).then(|| format!(" and {left_out} left out: none of their runs may be used")),
    );
    Some(lines.join("\n"))
}

fn varied(group: &ResultGroup) -> String {
    match group.parameter.as_str() {
        "processes" => String::new(),
        _ => format!("{} {}", group.parameter, group.value),
    }
}

fn row(group: &ResultGroup, name_max: usize) -> [String; 10] {
    let side = match group.bound {
        None => "",
        Some(Bound::AtMost) => "≤ ",
        Some(Bound::AtLeast) => "≥ ",
    };
    [
        system(group.submission.as_ref(), name_max),
        text::cut(&group.workload, name_max),
        text::cut(&varied(group), name_max),
        text::known(group.accelerators, |count| count.to_string()),
        text::known(group.bar_percent, |bar| format!("{bar}")),
        text::known(group.reported_percent, |percent| format!("{percent:.1}")),
        short(group.passes_reported),
        text::known(group.all_steps_percent, |all| format!("{side}{all:.1}")),
        short(group.passes_all_steps),
        text::known(group.first_step_units, |units| format!("{units:.1} ×")),
    ]
}

/// A line for each group of runs of checkpoints; `None` without any.
pub(super) fn checkpoints(groups: &[CheckpointGroup]) -> Option<String> {
    let known = |bytes| text::known(bytes, |bytes: f64| units::bytes(bytes as u64));
    let rate = |rate| text::known(rate, |rate: f64| units::bytes_per_second(rate));
    let rows = groups.iter().take(GROUPS_MAX).map(|group| {
        [
            system(group.submission.as_ref(), NAME_MAX[0]),
            text::cut(&group.workload, NAME_MAX[0]),
            text::known(group.accelerators, |count| count.to_string()),
            group.runs.len().to_string(),
            known(group.bytes),
            rate(group.written_bytes_per_second),
            rate(group.read_bytes_per_second),
        ]
    });
    let header = ["System", "Workload", "Acc", "Runs", "Size", "Written", "Read"];
    let table = text::table_of_numbers(header, rows, &[2, 3, 4, 5, 6]);
    (!groups.is_empty()).then(|| format!("Checkpoints as reported, means of their runs\n{table}"))
}

fn system(submission: Option<&Submission>, name_max: usize) -> String {
    let name = |of: &Submission| text::cut(&format!("{}/{}", of.submitter, of.system), name_max);
    text::known(submission, name)
}

/// `5/6, 1 ?`: how many of the runs that may be used.
fn short(of: Passes) -> String {
    passes(of).replace(" of ", "/").replace("unknown", "?")
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
        let text = page(std::slice::from_ref(&group)).unwrap();
        let line: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        let expected = "2 90 92.3 2/2 ≤ 91.5 0/1, 1 ? 1.3 ×";
        assert_eq!(line.join(" "), expected);
        assert!(text.starts_with("unet3d_h100: "), "the workload is named once: {text}");
        let other = ResultGroup { workload: "resnet50".into(), ..group.clone() };
        let submission = Submission {
            division: "closed".into(),
            submitter: "Vendor".into(),
            system: "System_of_16_clients".into(),
        };
        let passes_all_steps = Passes { yes: 5, no: 0, unknown: 0 };
        let of_system =
            ResultGroup { submission: Some(submission), passes_all_steps, ..group.clone() };
        let text = page(&[of_system, other]).unwrap();
        assert!(text.contains("resnet50  ") && text.contains("unet3d_h100  "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let unused = ResultGroup { runs: vec![], ..group };
        assert!(
            page(&[unused]).unwrap().ends_with(" and 1 left out: none of their runs may be used")
        );
        assert_eq!(page(&[]), None);
    }
}
