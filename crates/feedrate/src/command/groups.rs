//! The part of `feedrate analyze` that holds groups of runs to the utilisation that was asked for.

use crate::text;
use feedrate_report::words::answer::passes;
use feedrate_results::groups::{CheckpointGroup, Passes, ResultGroup};
use feedrate_results::import::Bound;
use feedrate_results::run::Submission;
use feedrate_spec::units;
use std::collections::BTreeSet;

/// Groups that are shown, at most.
const GROUPS_MAX: usize = 40;

const HEADER: [&str; 10] =
    ["System", "Workload", "Varied", "Acc", "Bar", "Rep.", "Pass", "All", "Pass", "First"];

/// Letters of a system, a workload or what was varied, at most, where one or two of them are told: a line has room in 80 columns.
const NAME_MAX: [usize; 2] = [30, 14];

/// The same of checkpoints.
const CHECKPOINT_NAME_MAX: usize = 18;

/// Letters of a line that has nothing but a system.
const HEAD_MAX: usize = 79;

/// A line for each group; `None` without any.
pub(super) fn page(groups: &[ResultGroup]) -> Option<String> {
    let first = groups.first()?;
    let mut used: Vec<&ResultGroup> =
        groups.iter().filter(|group| !group.runs.is_empty()).collect();
    let mut names = [
        used.iter().any(|group| group.submission.is_some()),
        used.iter().any(|group| group.workload != first.workload),
        used.iter().any(|group| group.parameter != "processes"),
    ];
    let has_workloads = names[1];
    let systems = used.iter().map(|group| group.submission.as_ref());
    let has_sources = !names[0] && used.iter().any(|group| group.source != first.source);
    // A line has no room for three names.
    let has_heads = has_sources || names.iter().all(|is_told| *is_told) || look_alike(systems);
    if has_heads {
        names[0] = false;
        used.sort_by(|a, b| (&a.submission, &a.source).cmp(&(&b.submission, &b.source)));
    }
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
    let table = text::table_of_numbers(columns.iter().map(|&at| HEADER[at]), rows, &numbers);
    let heads = used.iter().map(|group| match &group.submission {
        None if has_sources => group.source.clone(),
        submission => head(submission.as_ref()),
    });
    let mut lines = vec![
        format!("{of}AU (%) reported and of all steps; first step in threads × compute"),
        if has_heads { headed(&table, heads) } else { table },
    ];
    let (more, left_out) = (used.len().saturating_sub(GROUPS_MAX), groups.len() - used.len());
    lines.extend((0 < more).then(|| format!(" and {more} more with `--json`")));
    lines.extend(
        (0 < left_out).then(|| format!(" and {left_out} left out: none of their runs may be used")),
    );
    Some(lines.join("\n"))
}

fn varied(group: &ResultGroup, name_max: usize) -> String {
    match group.parameter.as_str() {
        "processes" => String::new(),
        parameter => text::setting(parameter, &group.value, name_max),
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
        varied(group, name_max),
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
    let mut groups: Vec<&CheckpointGroup> = groups.iter().collect();
    let has_heads = look_alike(groups.iter().map(|group| group.submission.as_ref()));
    if has_heads {
        groups.sort_by(|a, b| a.submission.cmp(&b.submission));
    }
    let rows = groups.iter().take(GROUPS_MAX).map(|group| {
        [
            system(group.submission.as_ref(), CHECKPOINT_NAME_MAX),
            text::cut(&group.workload, CHECKPOINT_NAME_MAX),
            text::known(group.accelerators, |count| count.to_string()),
            group.runs.len().to_string(),
            known(group.bytes),
            rate(group.written_bytes_per_second),
            rate(group.read_bytes_per_second),
        ]
    });
    let header = ["System", "Workload", "Acc", "Runs", "Size", "Written", "Read"];
    let table = text::table_of_numbers(header, rows, &[2, 3, 4, 5, 6]);
    let heads = groups.iter().map(|group| head(group.submission.as_ref()));
    let table = if has_heads { headed(&table, heads) } else { table };
    (!groups.is_empty()).then(|| format!("Checkpoints as reported, means of their runs\n{table}"))
}

fn system(submission: Option<&Submission>, name_max: usize) -> String {
    let name = |of: &Submission| text::cut(&format!("{}/{}", of.submitter, of.system), name_max);
    text::known(submission, name)
}

/// Whether different systems have the same cell.
fn look_alike<'a>(systems: impl Iterator<Item = Option<&'a Submission>>) -> bool {
    let all: BTreeSet<Option<&Submission>> = systems.collect();
    let cells: BTreeSet<String> = all.iter().map(|one| system(*one, NAME_MAX[1])).collect();
    cells.len() < all.len()
}

fn head(system: Option<&Submission>) -> String {
    system.map_or_else(|| "of no submission".into(), Submission::to_string)
}

/// A table with a line of its own before the rows of each system or source.
fn headed(table: &str, heads: impl Iterator<Item = String>) -> String {
    let mut rows = table.lines();
    let mut lines: Vec<String> = rows.next().map(str::to_string).into_iter().collect();
    let mut last = None;
    for (row, head) in rows.zip(heads) {
        if last.as_ref() != Some(&head) {
            lines.push(text::cut(&head, HEAD_MAX));
            last = Some(head);
        }
        lines.push(row.into());
    }
    lines.join("\n")
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
            round: None,
            division: "closed".into(),
            submitter: "Vendor".into(),
            system: "System_of_16_clients".into(),
        };
        let passes_all_steps = Passes { yes: 5, no: 0, unknown: 0 };
        let of_system =
            ResultGroup { submission: Some(submission), passes_all_steps, ..group.clone() };
        let text = page(&[of_system.clone(), other.clone()]).unwrap();
        assert!(text.contains("resnet50  ") && text.contains("unet3d_h100  "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let mut again = ResultGroup { parameter: "num_files_train".into(), ..of_system.clone() };
        again.submission.as_mut().unwrap().round = Some("v2.0".into());
        let text = page(&[again, of_system, other]).unwrap();
        let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).skip(1).collect();
        let system = "closed/Vendor/System_of_16_clients";
        assert_eq!(heads, ["of no submission", system, &format!("v2.0/{system}")]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let [nfs, lustre] =
            ["nfs", "lustre"].map(|source| ResultGroup { source: source.into(), ..group.clone() });
        let text = page(&[nfs, lustre]).unwrap();
        let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).skip(1).collect();
        assert_eq!(heads, ["lustre", "nfs"], "{text}");
        let unused = ResultGroup { runs: vec![], ..group };
        assert!(
            page(&[unused]).unwrap().ends_with(" and 1 left out: none of their runs may be used")
        );
        assert_eq!(page(&[]), None);
    }
}
