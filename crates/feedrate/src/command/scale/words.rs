//! Words for the result of a search, for terminals and reports. This module decides nothing.
//!
//! Long because its tests list whole answers.

use super::answer::SearchResult;
use super::plain_read::PlainRead;
use feedrate_measure::metric::{Better, Metric, Unit};
use feedrate_results::conclusion::ConclusionLine;
use feedrate_spec::units;
use feedrate_study::scale::SearchedDataset;
use feedrate_study::search::{ACCELERATORS, SearchTarget};
use std::cmp::Ordering;

/// Name of the doubt on runs whose samples are smaller than the workload's.
const SHRUNK: &str = "records_shrunk";

/// The answer, the reason for it, doubts, and why the search stopped early.
pub(super) fn lines(search: &SearchResult) -> Vec<ConclusionLine> {
    let line = |name: String, value: String| ConclusionLine { name, value };
    let mut lines = vec![line("Answer".into(), format!("{}{}", answer(search), limit(search)))];
    if let Some(fails) = search.found.fails {
        lines
            .push(line(format!("Why {fails} {}", verb(search, fails, "fail")), search.why.clone()));
    } else if !search.why.is_empty() {
        lines.push(line("Limit".into(), search.why.clone()));
    }
    lines.extend(search.plain_read.as_ref().map(|read| plain_read(search, read)));
    lines.extend(doubts(search));
    lines.extend(search.stopped.iter().map(|why| line("Not decided".into(), why.clone())));
    lines.extend(search.dataset.map(|used| line("Dataset".into(), dataset(used))));
    for number in &search.again {
        let again = match search.find {
            SearchTarget::Largest => "holds",
            SearchTarget::Smallest => "fails",
        };
        let why = format!("the metric does not change monotonically with {}", search.key);
        lines.push(line(format!("But {number} {again}"), why));
    }
    lines
}

/// What the storage itself delivers, such as `812 MB/s of the 3.4 GB/s that 5 accelerators need`.
fn plain_read(search: &SearchResult, read: &PlainRead) -> ConclusionLine {
    let rate = read.bytes_per_second.map(units::bytes_per_second_rounded);
    let number = read.number;
    let named = match search.key.as_str() {
        ACCELERATORS => units::counted(number, "accelerator"),
        key => format!("{key}={number}"),
    };
    let need = verb(search, number, "need");
    let is_enough = search.is_enough(read);
    let needed = read.needed_bytes_per_second.map(units::bytes_per_second_rounded);
    let for_full = for_full_utilisation(search);
    let value = match (rate, needed) {
        (Some(rate), Some(needed)) if is_enough => {
            format!("{rate}; {named} {need} {needed}{for_full}")
        }
        (Some(rate), Some(needed)) => {
            format!("{rate} of the {needed} that {named} {need}{for_full}")
        }
        (Some(rate), None) => format!("{rate}; the rate that {named} {need} is unknown"),
        (None, _) => {
            format!(
                "an unknown rate ({})",
                read.unknown_because.as_deref().unwrap_or("not measured")
            )
        }
    };
    ConclusionLine { name: "The storage alone gives".into(), value }
}

/// Doubts about the runs that decide the answer, such as `au_disagrees at 4 and 5, other_io at 5`. With them, the answer is only probable.
fn doubts(search: &SearchResult) -> Option<ConclusionLine> {
    let doubts = search.doubts_at_limit();
    let texts = doubts.iter().map(|(name, numbers)| {
        let numbers: Vec<String> = numbers.iter().map(|number| units::count(*number)).collect();
        format!("{name} at {}", numbers.join(" and "))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| ConclusionLine {
        name: "Doubts".into(),
        value: format!("{}; `feedrate list NAME` explains", texts.join(", ")),
    })
}

/// The dataset, such as `168 files, 25.3 GB; …`.
fn dataset(used: SearchedDataset) -> String {
    let files = match used.files.cmp(&used.workload_files) {
        Ordering::Equal => units::counted(used.files, "file"),
        Ordering::Less => {
            format!("{} of the workload's {} files", used.files, units::count(used.workload_files))
        }
        Ordering::Greater => {
            let files = units::counted(used.files, "file");
            format!("{files} (the workload has {})", units::count(used.workload_files))
        }
    };
    let bytes = units::bytes(used.bytes);
    format!("{files}, {bytes}; if a cache inside the storage holds them, the answer is too good")
}

/// The answer, such as `4 H100s (resnet50) at ≥ 90 % AU for certain`. It mentions shrunk samples.
fn answer(search: &SearchResult) -> String {
    let mut doubts = search.numbers.iter().flat_map(|number| &number.doubts);
    let prefix = if doubts.any(|doubt| doubt == SHRUNK) { "With shrunk samples: " } else { "" };
    format!("{prefix}{}", finding(search))
}

fn finding(search: &SearchResult) -> String {
    let from = search.from;
    let max = search.max;
    let condition = condition(search);
    let is_doubted = !search.doubts_at_limit().is_empty();
    let probably = if is_doubted { "PROBABLY " } else { "" };
    let certain = if is_doubted { "" } else { " for certain" };
    let not_even = if is_doubted { "PROBABLY not even" } else { "Not even" };
    match (search.find, search.found.certain, search.found.not_decided) {
        (SearchTarget::Largest, Some(number), None) if number == max => {
            let subject = subject(search, number, "");
            format!("{probably}{subject} {condition}{certain}, the largest number tried")
        }
        (SearchTarget::Largest, Some(number), _) => {
            format!("{probably}{} {condition}{certain}", subject(search, number, ""))
        }
        (SearchTarget::Smallest, Some(number), _) => {
            format!("{probably}{} {condition}{certain}", subject(search, number, " or more"))
        }
        (SearchTarget::Largest, None, None) => {
            format!("{not_even} {} {condition}", subject(search, from, ""))
        }
        (SearchTarget::Smallest, None, None) => {
            format!("{not_even} {} {condition}", subject(search, max, ""))
        }
        (_, None, Some(_)) => format!("Nothing {condition} for certain"),
    }
}

/// Numbers beyond the answer, such as `; 5 and 6 not decided; 7 lack 230 MB/s for 90 %`.
fn limit(search: &SearchResult) -> String {
    let mut text = match search.found.not_decided {
        None => String::new(),
        Some((low, high)) if low == high => format!("; {low} not decided"),
        Some((low, high)) if low + 1 == high => format!("; {low} and {high} not decided"),
        Some((low, high)) => format!("; {low} to {high} not decided"),
    };
    if search.is_undecided_by_busy_cores() {
        text += ", as the cores were busy";
    }
    if let Some((number, needed)) = search.needed_if_undecided() {
        let rate = units::bytes_per_second_rounded(needed);
        let for_full = for_full_utilisation(search);
        text += &format!("; {number} {} {rate}{for_full}", verb(search, number, "need"));
    }
    if let Some(fails) = search.found.fails {
        text += &match search.lacks_bytes_per_second {
            _ if search.ends_at_busy_cores() && search.are_others_busy_at(fails) => {
                format!("; at {fails} other programs kept this machine busy: repeat when idle")
            }
            _ if search.ends_at_busy_cores() => {
                format!("; {fails} {} the cores of this machine", verb(search, fails, "saturate"))
            }
            Some(lacks) => {
                let rate = units::bytes_per_second_rounded(lacks);
                let target = Unit::Percent.limit_text(search.bound);
                format!("; {fails} {} {rate} for {target}", verb(search, fails, "lack"))
            }
            None if search.is_plain_read_enough() => {
                format!("; {fails} {}, not for bandwidth", verb(search, fails, "fail"))
            }
            None => format!("; {fails} {}", verb(search, fails, "fail")),
        };
    }
    text
}

/// Says to which utilisation a needed rate belongs, if the search has another target.
fn for_full_utilisation(search: &SearchResult) -> &'static str {
    let is_utilisation = Metric::find(&search.response).is_ok_and(Metric::is_utilisation);
    if is_utilisation && search.bound < 100.0 { " for 100 %" } else { "" }
}

/// The number with its meaning, such as `4 H100s (resnet50)` or `reader.batch_size=4 (my)`.
fn subject(search: &SearchResult, number: u64, more: &str) -> String {
    let count = format!("{}{more}", units::count(number));
    if search.key != ACCELERATORS {
        return format!("{}={count} ({})", search.key, search.workload);
    }
    let plural = if number == 1 && more.is_empty() { "" } else { "s" };
    match accelerator(&search.workload) {
        Some((model, name)) => format!("{count} {}{plural} ({model})", name.to_uppercase()),
        None => format!("{count} accelerator{plural} ({})", search.workload),
    }
}

/// Splits a workload's name such as `resnet50_h100` into model and accelerator. An accelerator is one or two letters and three digits.
fn accelerator(workload: &str) -> Option<(&str, &str)> {
    let (model, name) = workload.rsplit_once('_')?;
    let digits = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = name.len() - digits.len();
    let is_accelerator =
        (1..=2).contains(&letters) && digits.len() == 3 && digits.parse::<u16>().is_ok();
    is_accelerator.then_some((model, name))
}

/// The condition, such as `at ≥ 90 % AU (sustained)`.
fn condition(search: &SearchResult) -> String {
    let Ok(metric) = Metric::find(&search.response) else {
        return format!("at {} of {}", search.response, search.bound);
    };
    let sign = if metric.better == Better::Higher { "≥" } else { "≤" };
    let bound = metric.unit.limit_text(search.bound);
    if metric.is_utilisation() {
        match metric.axis.strip_prefix("AU, ") {
            Some(kind) => format!("at {sign} {bound} AU ({kind})"),
            None => format!("at {sign} {bound} {}", metric.label()),
        }
    } else {
        format!("with {} {sign} {bound}", metric.id.name())
    }
}

/// The verb with the ending for this number.
fn verb(search: &SearchResult, number: u64, verb: &str) -> String {
    let is_plural = search.key == ACCELERATORS && number != 1;
    format!("{verb}{}", if is_plural { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scale::answer::SearchedNumber;
    use feedrate_study::search::{Certainty, SearchBounds};

    fn result(workload: &str, key: &str, response: &str, bound: f64) -> SearchResult {
        let found = SearchBounds { certain: None, not_decided: None, fails: None };
        SearchResult {
            workload: workload.into(),
            key: key.into(),
            response: response.into(),
            bound,
            find: SearchTarget::Largest,
            found,
            lacks_bytes_per_second: None,
            why: String::new(),
            stopped: None,
            runs: 0,
            took_s: 0.0,
            oldest_run: None,
            from: 1,
            max: 16,
            numbers: Vec::new(),
            again: Vec::new(),
            plain_read: None,
            dataset: None,
            overrides: Vec::new(),
            notes: Vec::new(),
            results: String::new(),
        }
    }

    fn line_texts(search: &SearchResult) -> Vec<String> {
        let mut lines = Vec::new();
        for line in super::lines(search) {
            let is_answer = line.name == "Answer";
            let named = format!("{}: {}", line.name, line.value);
            lines.push(if is_answer { line.value } else { named });
        }
        lines
    }

    #[track_caller]
    fn check(change: impl Fn(&mut SearchResult), expected: &[&str]) {
        let mut search = result("resnet50_h100", ACCELERATORS, "au_sustained_percent", 90.0);
        change(&mut search);
        assert_eq!(line_texts(&search), expected);
    }

    #[test]
    fn shrunk_samples_are_named_in_the_answer() {
        check(
            |search| {
                search.found.certain = Some(4);
                search.numbers = vec![searched(4, "", &["page_cache", "records_shrunk"])];
            },
            &[
                "With shrunk samples: PROBABLY 4 H100s (resnet50) at ≥ 90 % AU (sustained)",
                "Doubts: page_cache at 4, records_shrunk at 4; `feedrate list NAME` explains",
            ],
        );
    }

    fn searched(number: u64, verdict: &str, doubts: &[&str]) -> SearchedNumber {
        SearchedNumber {
            number,
            state: Certainty::Holds,
            values: Vec::new(),
            mean: None,
            interval: None,
            verdict: verdict.into(),
            evidence: String::new(),
            needed_bytes_per_second: None,
            delivered_bytes_per_second: None,
            is_machine_used_by_others: false,
            doubts: doubts.iter().map(|name| (*name).to_string()).collect(),
            relevant_doubts: doubts.iter().map(|name| (*name).to_string()).collect(),
            run_dirs: Vec::new(),
        }
    }

    #[test]
    fn undecided_numbers_name_busy_cores_and_the_needed_rate() {
        let undecided = |verdict: &str| SearchedNumber {
            values: vec![80.0, 95.0],
            needed_bytes_per_second: Some(475e6),
            ..searched(5, verdict, &[])
        };
        let set = |search: &mut SearchResult, verdict: &str| {
            search.found.not_decided = Some((1, 5));
            search.why = "for 6 H100s, the dataset needs 4 GB".into();
            search.numbers = vec![undecided(verdict)];
        };
        let limit = "Limit: for 6 H100s, the dataset needs 4 GB";
        let busy = "Nothing at ≥ 90 % AU (sustained) for certain; 1 to 5 not decided, as the cores were busy; 5 need 475 MB/s for 100 %";
        check(|search| set(search, "cpu-saturated"), &[busy, limit]);
        let noisy = "Nothing at ≥ 90 % AU (sustained) for certain; 1 to 5 not decided; 5 need 475 MB/s for 100 %";
        check(|search| set(search, "storage-bound"), &[noisy, limit]);
    }

    #[test]
    fn warnings_about_deciding_runs_are_named_and_make_the_answer_uncertain() {
        let set_doubts = |search: &mut SearchResult, doubts: &[&str]| {
            search.found = SearchBounds { certain: Some(4), not_decided: None, fails: Some(5) };
            search.why = "82 % AU, target 90 %, storage-bound".into();
            search.numbers = vec![
                searched(2, "compute-bound", &["clock_step"]),
                searched(4, "compute-bound", doubts),
                searched(5, "storage-bound", doubts),
            ];
        };
        let why = "Why 5 fail: 82 % AU, target 90 %, storage-bound";
        check(
            |search| set_doubts(search, &[]),
            &["4 H100s (resnet50) at ≥ 90 % AU (sustained) for certain; 5 fail", why],
        );
        let doubts = "Doubts: other_io at 4 and 5; `feedrate list NAME` explains";
        check(
            |search| set_doubts(search, &["other_io"]),
            &["PROBABLY 4 H100s (resnet50) at ≥ 90 % AU (sustained); 5 fail", why, doubts],
        );
    }

    #[test]
    fn the_rate_of_plain_reads_is_beside_the_needed_rate() {
        let known = |search: &mut SearchResult| {
            search.found.certain = Some(4);
            search.plain_read = Some(PlainRead {
                number: 5,
                bytes_per_second: Some(812e6),
                needed_bytes_per_second: Some(3.4e9),
                unknown_because: None,
            });
        };
        let answer = "4 H100s (resnet50) at ≥ 90 % AU (sustained) for certain";
        let line =
            "The storage alone gives: 812 MB/s of the 3.4 GB/s that 5 accelerators need for 100 %";
        check(known, &[answer, line]);
        let unknown = |search: &mut SearchResult| {
            known(search);
            let read = search.plain_read.as_mut().unwrap();
            (read.bytes_per_second, read.unknown_because) = (None, Some("no files".into()));
        };
        check(unknown, &[answer, "The storage alone gives: an unknown rate (no files)"]);
        let enough = |search: &mut SearchResult| {
            known(search);
            search.plain_read.as_mut().unwrap().needed_bytes_per_second = Some(500e6);
        };
        check(
            enough,
            &[answer, "The storage alone gives: 812 MB/s; 5 accelerators need 500 MB/s for 100 %"],
        );
        // The storage delivers enough for the failing number, so that its runs lack no rate.
        let fails = |search: &mut SearchResult| {
            enough(search);
            search.found.fails = Some(5);
            search.lacks_bytes_per_second = Some(2.8e6);
            search.drop_lack_despite_plain_read();
        };
        let answer =
            "4 H100s (resnet50) at ≥ 90 % AU (sustained) for certain; 5 fail, not for bandwidth";
        let line = "The storage alone gives: 812 MB/s; 5 accelerators need 500 MB/s for 100 %";
        check(fails, &[answer, "Why 5 fail: ", line]);
        // 90 % of 900 MB/s are enough for 90 % AU.
        let nearly = |search: &mut SearchResult| {
            fails(search);
            search.lacks_bytes_per_second = Some(2.8e6);
            search.plain_read.as_mut().unwrap().needed_bytes_per_second = Some(900e6);
            search.drop_lack_despite_plain_read();
        };
        let line = "The storage alone gives: 812 MB/s; 5 accelerators need 900 MB/s for 100 %";
        check(nearly, &[answer, "Why 5 fail: ", line]);
    }

    #[test]
    fn busy_cores_are_named_as_the_limit() {
        check(
            |search| {
                search.found.fails = Some(1);
                search.lacks_bytes_per_second = Some(5e6);
                search.numbers = vec![searched(1, "cpu-saturated", &[])];
            },
            &[
                "Not even 1 H100 (resnet50) at ≥ 90 % AU (sustained); 1 saturates the cores of this machine",
                "Why 1 fails: ",
            ],
        );
        let others = "Not even 1 H100 (resnet50) at ≥ 90 % AU (sustained); at 1 other programs kept this machine busy: repeat when idle";
        check(
            |search| {
                search.found.fails = Some(1);
                let mut busy = searched(1, "cpu-saturated", &[]);
                busy.is_machine_used_by_others = true;
                search.numbers = vec![busy];
            },
            &[others, "Why 1 fails: "],
        );
    }

    #[test]
    fn the_answer_names_certain_undecided_and_failing_numbers() {
        check(
            |search| {
                search.found =
                    SearchBounds { certain: Some(4), not_decided: Some((5, 6)), fails: Some(7) };
                search.lacks_bytes_per_second = Some(230e6);
                search.why = "82 % AU, target 90 %, storage-bound".into();
                search.stopped = Some("`--max-runs 20` is reached".into());
            },
            &[
                "4 H100s (resnet50) at ≥ 90 % AU (sustained) for certain; 5 and 6 not decided; 7 lack 230 MB/s for 90 %",
                "Why 7 fail: 82 % AU, target 90 %, storage-bound",
                "Not decided: `--max-runs 20` is reached",
            ],
        );
        check(
            |search| {
                search.found =
                    SearchBounds { certain: Some(1), not_decided: Some((2, 9)), fails: Some(10) };
                search.why = "metadata-bound".into();
            },
            &[
                "1 H100 (resnet50) at ≥ 90 % AU (sustained) for certain; 2 to 9 not decided; 10 fail",
                "Why 10 fail: metadata-bound",
            ],
        );
        check(
            |search| {
                search.found.certain = Some(16);
                search.why = "`--max` is reached".into();
                search.dataset = Some(SearchedDataset {
                    files: 448,
                    bytes: 67_400_000_000,
                    workload_files: 168,
                });
            },
            &[
                "16 H100s (resnet50) at ≥ 90 % AU (sustained) for certain, the largest number tried",
                "Limit: `--max` is reached",
                "Dataset: 448 files (the workload has 168), 67.4 GB; if a cache inside the storage holds them, the answer is too good",
            ],
        );
        check(
            |search| {
                search.found.fails = Some(1);
                search.workload = "my_own".into();
                search.lacks_bytes_per_second = Some(5e6);
                search.why = "storage-bound".into();
            },
            &[
                "Not even 1 accelerator (my_own) at ≥ 90 % AU (sustained); 1 lacks 5 MB/s for 90 %",
                "Why 1 fails: storage-bound",
            ],
        );
        check(
            |search| search.found.not_decided = Some((1, 16)),
            &["Nothing at ≥ 90 % AU (sustained) for certain; 1 to 16 not decided"],
        );
    }

    #[test]
    fn other_keys_responses_and_edges_are_named() {
        let mut search = result("w", "reader.read_threads", "stall_percent", 2.5);
        search.find = SearchTarget::Smallest;
        search.found = SearchBounds { certain: Some(9), not_decided: None, fails: Some(8) };
        search.again = vec![12];
        assert_eq!(
            line_texts(&search),
            [
                "reader.read_threads=9 or more (w) with stall_percent ≤ 2.5 % for certain; 8 fails",
                "Why 8 fails: ",
                "But 12 fails: the metric does not change monotonically with reader.read_threads",
            ]
        );
        for (response, expected) in [
            ("au_all_steps_percent", "at ≥ 90 % AU (all steps)"),
            ("au_windowed_percent", "at ≥ 90 % AU (windowed)"),
        ] {
            assert_eq!(condition(&result("w", ACCELERATORS, response, 90.0)), expected);
        }
        search.found = SearchBounds { certain: None, not_decided: None, fails: Some(16) };
        assert!(line_texts(&search)[0].starts_with("Not even reader.read_threads=16 (w) with"));
    }

    #[test]
    fn the_accelerator_is_part_of_the_workloads_name() {
        for (workload, expected) in [
            ("unet3d_h100", Some(("unet3d", "h100"))),
            ("unet3d_mi355", Some(("unet3d", "mi355"))),
            ("unet3d_h100_custom", None),
            ("llama3_405b", None),
            ("my_run", None),
            ("h100", None),
        ] {
            assert_eq!(accelerator(workload), expected, "{workload}");
        }
    }
}
