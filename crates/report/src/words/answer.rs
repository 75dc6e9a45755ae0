//! Renders the answer of a run, or of several, as a few lines for terminals and reports. Decides nothing.

use crate::number::count_names;
use feedrate_analysis::answer::{Answer, AnswerKind, UnknownBecause};
use feedrate_measure::budget::BudgetPart;
use feedrate_measure::doubt::{CPU_SATURATED, Doubt, PAGE_CACHE, Severity};
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::slow_accelerators::SlowAccelerators;
use feedrate_measure::verdict::Bound;
use feedrate_measure::waits::{WaitCause, WaitPart};
use feedrate_results::groups::Passes;
use feedrate_spec::units;
use std::cmp::Reverse;

/// At most three lines: the answer, which begins with [`head`]; the needed and delivered rates; and the parts of the run outside of training.
pub fn lines(answer: &Answer, doubts: &[Doubt]) -> Vec<String> {
    let first = format!("{} {}", head(answer), says(answer, doubts));
    [first].into_iter().chain(rates(answer)).chain(outside_training(answer)).collect()
}

/// The answer in capitals: `YES:`, `PROBABLY YES:` if it rests on few steps, `YES while training:` if checkpoints or evaluations take a large
/// part of the run.
pub fn head(answer: &Answer) -> String {
    let probably = if answer.rests_on_few_steps() { "PROBABLY " } else { "" };
    let is_limited = answer.kind == AnswerKind::Yes && answer.is_about_training_alone();
    let scope = if is_limited { " while training" } else { "" };
    format!("{probably}{}{scope}:", answer.kind.name().to_uppercase())
}

/// The parts of the run outside of training: `Checkpoints took 66 % of the run (7.1 s), evaluation 5 % (600 ms, at 22 % AU).`
fn outside_training(answer: &Answer) -> Option<String> {
    if matches!(answer.kind, AnswerKind::Checkpoints | AnswerKind::Rate) {
        return None;
    }
    let budget = answer.time_budget?;
    let mut parts = Vec::new();
    for part in answer.parts_outside_training() {
        let name = match part {
            BudgetPart::Checkpoints => "checkpoints",
            BudgetPart::Evaluation => "evaluation",
            _ => "work outside of steps",
        };
        let took = if parts.is_empty() { " took" } else { "" };
        let of_run = if parts.is_empty() { " of the run" } else { "" };
        let time = units::seconds(budget.part_s(part)?);
        let au = answer.evaluation_au_percent.filter(|_| part == BudgetPart::Evaluation);
        let au = au.map_or_else(String::new, |au| {
            format!(", at {} % AU", percent_near_target(au, answer.required_percent))
        });
        parts.push(format!("{name}{took} {:.0} %{of_run} ({time}{au})", budget.percent(part)?));
    }
    (!parts.is_empty()).then(|| change_first_letter(&parts.join(", "), |c| c.to_ascii_uppercase()))
}

/// The loader's speed in a run without compute: `730 samples/s, decode-bound (89 %), 4 workers on 2 cores`. `None` for other runs.
pub fn ceiling(answer: &Answer, workers: u64, cores: u64) -> Option<String> {
    if answer.kind != AnswerKind::Rate {
        return None;
    }
    let rate = answer.samples_per_second?;
    let is_bound = |part: &WaitPart| match answer.verdict {
        Bound::StorageBound => part.cause == WaitCause::Read,
        Bound::MetadataBound => part.cause == WaitCause::Open,
        Bound::DecodeBound => part.cause == WaitCause::Decode,
        Bound::ClientBound => part.cause == WaitCause::Client,
        _ => false,
    };
    let share = answer.wait.filter(is_bound);
    let share = share.map_or_else(String::new, |part| format!(" ({:.0} %)", part.percent));
    Some(format!(
        "{}, {}{share}, {} on {}",
        units::per_second(rate, "samples"),
        answer.verdict.name(),
        units::counted(workers, "worker"),
        units::counted(cores, "core"),
    ))
}

/// At most two lines on the answers of several runs: the number of fed runs, the bounds of the others and their utilisation; then the needed and delivered
/// rates.
pub fn summary_lines(answers: &[&Answer]) -> Vec<String> {
    if answers.is_empty() {
        return Vec::new();
    }
    let decided = || answers.iter().filter(|answer| answer.fed.is_some());
    let au = decided().filter_map(|answer| Some((answer.au_percent?, answer.required_percent)));
    let au = range(au.map(|(au, target)| (au, percent_near_target(au, target))));
    let target = range(
        decided().map(|answer| (answer.required_percent, answer.required_percent.to_string())),
    );
    let says = au.zip(target).map(|(au, target)| format!("; {au} % AU, target {target} %"));
    let first = count_by_kind(answers) + &says.unwrap_or_default();
    let rates = |property: fn(&Answer) -> Option<f64>| {
        let rates = answers.iter().filter_map(|answer| property(answer));
        range(rates.map(|rate| (rate, units::bytes_per_second_rounded(rate))))
    };
    let needed = rates(|answer| answer.needed_bytes_per_second);
    let rates = needed.zip(rates(|answer| answer.delivered_bytes_per_second));
    let rates = rates.map(|(needed, delivered)| format!("needs {needed}, gets {delivered}"));
    [first].into_iter().chain(rates).collect()
}

/// The number of runs by kind of answer: `NO for 39 of 54 runs (storage-bound), YES for 15`.
fn count_by_kind(answers: &[&Answer]) -> String {
    let count = |kind| answers.iter().filter(|answer| answer.kind == kind).count();
    let mut kinds: Vec<(AnswerKind, usize)> = AnswerKind::ALL
        .map(|kind| (kind, count(kind)))
        .into_iter()
        .filter(|entry| entry.1 > 0)
        .collect();
    kinds.sort_by_key(|entry| Reverse(entry.1));
    let mut parts = Vec::new();
    for (index, (kind, count)) in kinds.into_iter().enumerate() {
        let runs = match (index, answers.len()) {
            (0, 1) => "1 run".into(),
            (0, all) if all == count => format!("all {all} runs"),
            (0, all) => format!("{count} of {all} runs"),
            _ => count.to_string(),
        };
        let bounds = if kind == AnswerKind::No { bounds(answers) } else { String::new() };
        parts.push(format!("{} for {runs}{bounds}", kind.name().to_uppercase()));
    }
    parts.join(", ")
}

/// The bounds of the runs that were not fed: ` (36 storage-bound, 3 decode-bound)`, or ` (storage-bound)` if all runs share it.
fn bounds(answers: &[&Answer]) -> String {
    let unfed = answers.iter().filter(|answer| answer.kind == AnswerKind::No);
    let counts = count_names(unfed.map(|answer| answer.verdict.name()));
    match counts[..] {
        [] => String::new(),
        [(only, _)] => format!(" ({only})"),
        _ => {
            let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
            format!(" ({})", counts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The texts of the smallest and the largest value: `18 to 97`.
pub fn range(values: impl Iterator<Item = (f64, String)>) -> Option<String> {
    let mut values: Vec<(f64, String)> = values.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((_, low), (_, high)) = values.first().zip(values.last())?;
    Some(if low == high { low.clone() } else { format!("{low} to {high}") })
}

/// The number of doubts by severity, with the names of all but notes.
pub fn counted(doubts: &[Doubt]) -> String {
    let counts = Severity::ALL.into_iter().filter_map(|severity| {
        let selected = doubts.iter().filter(|doubt| doubt.severity == severity);
        let names: Vec<&str> = selected.map(|doubt| doubt.name.as_str()).collect();
        let count = names.len() as u64;
        match severity {
            _ if count == 0 => None,
            Severity::Invalid => Some(format!("{count} invalid ({})", names.join(", "))),
            Severity::Warning => {
                let counted = units::counted(count, severity.name());
                Some(format!("{counted} ({})", names.join(", ")))
            }
            Severity::Note => Some(units::counted(count, severity.name())),
        }
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}

/// The text after the head of an answer.
fn says(answer: &Answer, doubts: &[Doubt]) -> String {
    match answer.kind {
        AnswerKind::Yes | AnswerKind::No => {
            let scope = match answer.window {
                Some(window) if answer.au_kind == Some(AU_ALL_STEPS.id.name()) => {
                    match window.steps {
                        1 => " over its one step".into(),
                        steps => format!(" over all {steps} steps"),
                    }
                }
                _ => String::new(),
            };
            let name = answer.verdict.name();
            let reached = utilisation_and_target(answer, &scope).unwrap_or_default();
            format!("{reached}, {name}{}", windowed_note(answer))
        }
        AnswerKind::Unknown => unknown_text(answer, doubts),
        AnswerKind::Rate => {
            let samples = answer.samples_per_second.map(|rate| units::per_second(rate, "samples"));
            let bytes = answer.delivered_bytes_per_second.map(units::bytes_per_second_rounded);
            let rates: Vec<String> = bytes.into_iter().chain(samples).collect();
            let is_possible = device_bytes_are_unknown(doubts);
            let from = match answer.verdict {
                Bound::CacheFed if is_possible => " possibly from memory, cache-fed",
                Bound::CacheFed => " from memory, cache-fed",
                Bound::CpuSaturated => " on busy cores, cpu-saturated",
                _ if answer.is_memory_served && is_possible => " possibly from memory",
                _ if answer.is_memory_served => " from memory",
                _ => "",
            };
            format!("{}{from}; without compute there is no AU", rates.join(", "))
        }
        AnswerKind::Checkpoints => answer.evidence.clone(),
    }
}

/// Whether an unknown number of bytes may have come from the page cache, because the kernel does not report it.
fn device_bytes_are_unknown(doubts: &[Doubt]) -> bool {
    let page_cache = doubts.iter().find(|doubt| doubt.name == PAGE_CACHE);
    page_cache.is_some_and(|doubt| doubt.facts.get("device_bytes").is_none())
}

/// The utilisation, its `scope` and its target: `54 % AU over all 3 steps, target 90 %`.
fn utilisation_and_target(answer: &Answer, scope: &str) -> Option<String> {
    let au = answer.au_percent?;
    let target = answer.required_percent;
    let interval = if answer.rests_on_few_steps() { answer.interval } else { None };
    let interval = interval.map(|[low, high]| format!(" [{low:.0}, {high:.0}]"));
    let au = percent_near_target(au, target);
    Some(format!("{au} % AU{}{scope}, target {target} %", interval.unwrap_or_default()))
}

/// A second utilisation, besides the one that decides the answer: `all-steps AU 86 %, target 90 %; 98 % of the wait is reading`.
pub fn other_utilisation(
    name: &str,
    au_percent: f64,
    target_percent: f64,
    answer: &Answer,
) -> String {
    let kind = name.trim_start_matches("au_").trim_end_matches("_percent").replace('_', "-");
    let waits = answer.wait.map_or_else(String::new, |part| format!("; {}", wait(part, answer)));
    format!(
        "{kind} AU {} %, target {target_percent} %{waits}",
        percent_near_target(au_percent, target_percent)
    )
}

/// A percentage with enough digits to show whether it reaches the target.
pub fn percent_near_target(au_percent: f64, target_percent: f64) -> String {
    let is_reached = target_percent <= au_percent;
    let is_true = |text: &String| {
        text.parse().is_ok_and(|shown: f64| (target_percent <= shown) == is_reached)
    };
    let mut texts = (0..4).map(|digits| format!("{au_percent:.digits$}"));
    texts.find(is_true).unwrap_or_else(|| au_percent.to_string())
}

/// A note on MLPerf's windowed utilisation if it contradicts the answer.
fn windowed_note(answer: &Answer) -> String {
    let Some(percent) = answer.windowed_disagrees_percent else { return String::new() };
    let says = if answer.fed == Some(true) { "no" } else { "yes" };
    let percent = percent_near_target(percent, answer.required_percent);
    format!("; MLPerf's windowed AU says {says}: {percent} %")
}

/// The text of an unknown answer: its cause and the evidence.
fn unknown_text(answer: &Answer, doubts: &[Doubt]) -> String {
    let named = |name: &str| doubts.iter().find(|doubt| doubt.name == name);
    let because = match answer.unknown_because {
        Some(UnknownBecause::CacheFed) if device_bytes_are_unknown(doubts) => "possibly cache-fed",
        because => because.map_or("", UnknownBecause::name),
    };
    let facts = match answer.unknown_because {
        Some(UnknownBecause::CacheFed) => named(PAGE_CACHE).map(|doubt| {
            doubt.facts.render(
                "[{read_bytes} were read, {device_bytes} of them from the device|{read_bytes} were read, and how many of them came from the device is unknown]",
            )
        }),
        Some(UnknownBecause::CpuSaturated) => named(CPU_SATURATED).map(|doubt| {
            doubt.facts.render(
                "[the {cores} of this machine were {busy_percent:.0} % busy, and reading may have waited for them]",
            )
        }),
        Some(UnknownBecause::Interrupted) => named("incomplete_run").map(|doubt| {
            doubt
                .facts
                .render("[{checkpoints} done|{epochs_done} of {epochs_planned} epochs are complete|steps of {begun_epochs} are recorded]")
        }),
        Some(UnknownBecause::Incomplete) => {
            named("incomplete_run").map(|doubt| doubt.evidence.clone())
        }
        _ => doubts
            .iter()
            .find(|doubt| doubt.severity == Severity::Invalid)
            .map(|doubt| format!("{}: {}", doubt.name, doubt.evidence)),
    };
    let evidence =
        || change_first_letter(answer.evidence.trim_end_matches('.'), |c| c.to_ascii_lowercase());
    let text = facts.filter(|facts| !facts.is_empty()).unwrap_or_else(evidence);
    format!("{because}, {text}")
}

/// The needed and delivered rates, and the cause of waits.
fn rates(answer: &Answer) -> Option<String> {
    let rate = units::bytes_per_second_rounded;
    let needs = answer.needed_bytes_per_second.zip(answer.delivered_bytes_per_second);
    let needs = needs.map(|(needed, delivered)| {
        let percent = 100.0 * delivered / needed;
        format!("needs {}, gets {} ({percent:.0} %)", rate(needed), rate(delivered))
    });
    let more = match answer.kind {
        AnswerKind::Unknown => {
            utilisation_and_target(answer, "").map(|reached| format!("measured {reached}"))
        }
        AnswerKind::Yes => waiting_share(answer),
        AnswerKind::No if answer.wait.is_none() => waiting_share(answer),
        AnswerKind::No | AnswerKind::Rate => answer.wait.map(|part| wait(part, answer)),
        AnswerKind::Checkpoints => return None,
    };
    let parts: Vec<String> = needs.into_iter().chain(more).collect();
    (!parts.is_empty()).then(|| change_first_letter(&parts.join("; "), |c| c.to_ascii_uppercase()))
}

/// The share of time that accelerators waited: `3 % of the time is waiting`.
fn waiting_share(answer: &Answer) -> Option<String> {
    let during = if answer.is_about_training_alone() { "training" } else { "time" };
    answer.waited_percent.map(|percent| format!("{percent:.0} % of the {during} is waiting"))
}

/// The text with its first letter changed by `letter`.
fn change_first_letter(text: &str, letter: fn(char) -> char) -> String {
    let mut letters = text.chars();
    letters.next().map(letter).into_iter().chain(letters).collect()
}

fn wait(part: WaitPart, answer: &Answer) -> String {
    let cause = match (part.cause, &answer.slow_accelerators) {
        (WaitCause::Open, _) => "opening".into(),
        (WaitCause::Read, _) => "reading".into(),
        (WaitCause::Decode, _) => "decoding".into(),
        (WaitCause::Client, _) => "the client's own work".into(),
        (WaitCause::Skew, None) => "for slower accelerators".into(),
        (WaitCause::Skew, Some(slow)) => format!("for {}", slow_accelerators(slow)),
    };
    format!("{:.0} % of the wait is {cause}", part.percent)
}

/// Slow accelerators with their compute times: `accelerator 1 (60 ms of compute a step, the others 30 ms)`.
fn slow_accelerators(slow: &SlowAccelerators) -> String {
    let name = match slow.accelerators.len() {
        1 => format!("accelerator {}", slow.slowest),
        count => format!("{count} accelerators, most often {}", slow.slowest),
    };
    let computes = slow.compute_s.zip(slow.others_compute_s);
    computes.map_or(name.clone(), |(compute_s, others_compute_s)| {
        let compute_s = units::seconds(compute_s);
        let others_compute_s = units::seconds(others_compute_s);
        format!("{name} ({compute_s} of compute a step, the others {others_compute_s})")
    })
}

/// The number of runs that reach the target: `5 of 6`.
pub fn passes(passes: Passes) -> String {
    match (passes.yes + passes.no, passes.unknown) {
        (0, _) => "unknown".into(),
        (known, 0) => format!("{} of {known}", passes.yes),
        (known, unknown) => format!("{} of {known}, {unknown} unknown", passes.yes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_analysis::answer::AnsweredSummary;
    use feedrate_measure::example::{
        block, checkpoint, checkpoint_only_record, epoch, plan, record, simple,
    };
    use feedrate_measure::record::Record;
    use feedrate_spec::plan::EvaluationPlan;
    use feedrate_spec::workload::TimeSpec;

    #[track_caller]
    fn check(record: &Record, expected: &[&str]) {
        let summary = AnsweredSummary::new(record);
        assert_eq!(lines(&summary.answer, &summary.summary.doubts), expected);
    }

    /// 40 steps of 200 ms, of which an accelerator computes half.
    fn starved_run(accelerators: u32) -> Record {
        let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; accelerators as usize];
        let mut plan = plan(accelerators, 40);
        plan.train.compute = TimeSpec::Constant { mean: 0.1 };
        record(plan, vec![epoch(1, blocks)])
    }

    #[test]
    fn a_starved_run_names_its_bound() {
        check(
            &starved_run(2),
            &[
                "NO: 50 % AU, target 90 %, storage-bound",
                "Needs 40 MB/s, gets 20 MB/s (50 %); 100 % of the wait is reading",
            ],
        );
        check(
            &simple(&[(300, 100, 0, 4_000_000)]),
            &[
                "PROBABLY NO: 25 % AU over its one step, target 90 %, storage-bound",
                "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
            ],
        );
        check(
            &simple(&[(300, 100, 0, 4_000_000); 3]),
            &[
                "NO: 25 % AU over all 3 steps, target 90 %, storage-bound",
                "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
            ],
        );
    }

    #[test]
    fn a_fed_run_states_its_rates() {
        let mut fed = starved_run(1);
        fed.plan.metric.au_target_percent = 45.5;
        let rates = "Needs 20 MB/s, gets 10 MB/s (50 %); 50 % of the time is waiting";
        check(&fed, &["YES: 50 % AU, target 45.5 %, compute-bound", rates]);
    }

    /// Four seconds of training that is fed, then a checkpoint of eight seconds.
    fn fed_with_checkpoint() -> Record {
        let mut record = simple(&[(10, 990, 0, 1_000_000); 4]);
        record.epochs[0].checkpoints.push(checkpoint(4000, 12_000, 1 << 30, 4));
        record.epochs[0].end_ns = 12_000_000_000;
        record
    }

    #[test]
    fn each_large_part_of_the_run_is_named() {
        let rates = "Needs 1.01 MB/s, gets 1 MB/s (99 %); 1 % of the training is waiting";
        let mut record = fed_with_checkpoint();
        record.plan.train.compute = TimeSpec::Constant { mean: 0.99 };
        let first = "YES while training: 99 % AU over all 4 steps, target 90 %, compute-bound";
        check(&record, &[first, rates, "Checkpoints took 67 % of the run (8 s)"]);
        // An evaluation of one step, a fifth of which is computing.
        record.plan.evaluation = Some(EvaluationPlan {
            after_epoch: 1,
            epochs_between: 1,
            loader: record.plan.loader.clone(),
            train: record.plan.train.clone(),
        });
        let steps = vec![vec![block(12_000, &[(800, 200, 0, 1000)])]];
        record.evaluations.push(epoch(1, steps));
        let outside = "Checkpoints took 62 % of the run (8 s), evaluation 8 % (1 s, at 20 % AU)";
        check(&record, &[first, rates, outside]);
        record.epochs[0].checkpoints.clear();
        let outside =
            "Work outside of steps took 62 % of the run (8 s), evaluation 8 % (1 s, at 20 % AU)";
        check(&record, &[first, rates, outside]);
    }

    #[test]
    fn time_between_epochs_does_not_limit_the_answer_to_training() {
        let mut record = simple(&[(10, 990, 0, 1_000_000); 4]);
        record.epochs[0].end_ns += 1_000_000_000;
        let rates = "Needs 1.01 MB/s, gets 1 MB/s (99 %); 1 % of the time is waiting";
        record.plan.train.compute = TimeSpec::Constant { mean: 0.99 };
        let first = "YES: 99 % AU over all 4 steps, target 90 %, compute-bound";
        check(&record, &[first, rates, "Work outside of steps took 20 % of the run (1 s)"]);
        record.epochs[0].end_ns = 4_040_000_000;
        check(&record, &[first, rates]);
    }

    /// The second accelerator computes for 60 ms, and the first one for 30 ms; 1 MB a step each.
    #[test]
    fn the_slow_accelerator_is_named_and_determines_the_needed_rate() {
        let fast = block(0, &[(1, 30, 30, 1_000_000); 40]);
        let slow = block(0, &[(1, 60, 0, 1_000_000); 40]);
        let mut plan = plan(2, 40);
        plan.train.compute = TimeSpec::Constant { mean: 0.03 };
        plan.train.slow_accelerators = vec![(1, 2.0)];
        let waits =
            "94 % of the wait is for accelerator 1 (60 ms of compute a step, the others 30 ms)";
        let rates = format!("Needs 33.3 MB/s, gets 32.8 MB/s (98 %); {waits}");
        let first = "NO: 74 % AU, target 90 %, barrier-bound";
        check(&record(plan, vec![epoch(1, vec![vec![fast], vec![slow]])]), &[first, &rates]);
    }

    #[test]
    fn mlperfs_window_is_mentioned_if_it_decides_otherwise() {
        let mut steps = [(0, 100, 0, 1_000_000); 6];
        steps[0].0 = 600;
        let summary = AnsweredSummary::new(&simple(&steps));
        let first = &lines(&summary.answer, &summary.summary.doubts)[0];
        let says = "PROBABLY NO: 50 % AU [7, 93] over all 6 steps, target 90 %, storage-bound; MLPerf's windowed AU says yes: 100 %";
        assert_eq!(first, says);
    }

    #[test]
    fn an_unknown_answer_states_its_cause() {
        let mut stopped = starved_run(1);
        (stopped.complete, stopped.plan.train.epochs) = (false, 3);
        stopped.stopped_because = Some("interrupted".into());
        let measured = "Needs 20 MB/s, gets 10 MB/s (50 %); measured 50 % AU, target 90 %";
        check(&stopped, &["UNKNOWN: interrupted, 1 of 3 epochs are complete", measured]);
        stopped.stopped_because = None;
        let why = "1 of 3 epochs are complete: it was killed, or is still going on";
        check(&stopped, &[&format!("UNKNOWN: incomplete, {why}"), measured]);
        let mut cached = starved_run(1);
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(80_000_000);
        let why = "UNKNOWN: cache-fed, 80 MB were read, 0 B of them from the device";
        check(&cached, &[why, measured]);
        cached.epochs[0].host.process_device_read_bytes = None;
        let why = "UNKNOWN: possibly cache-fed, 80 MB were read, and how many of them came from the device is unknown";
        check(&cached, &[why, measured]);
        let mut busy = starved_run(1);
        busy.epochs[0].host.cpu_busy_share = Some(0.97);
        let why = "UNKNOWN: cpu-saturated, the 8 cores of this machine were 97 % busy, and reading may have waited for them";
        check(&busy, &[why, measured]);
        let mut nothing = starved_run(1);
        nothing.epochs.clear();
        check(&nothing, &["UNKNOWN: invalid, no step was finished"]);
    }

    #[test]
    fn without_compute_there_is_a_rate() {
        let mut rate = starved_run(1);
        rate.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        let wait = "100 % of the wait is reading";
        check(&rate, &["RATE: 10 MB/s, 5 samples/s; without compute there is no AU", wait]);
    }

    #[test]
    fn without_training_there_are_checkpoints() {
        let mut alone = checkpoint_only_record(3);
        alone.complete = true;
        let says = "CHECKPOINTS: 2 checkpoints of 1 GiB written in 3 s, 682.7 MiB/s. 1 checkpoint of 1 GiB read in 500 ms, 2 GiB/s.";
        check(&alone, &[says]);
    }

    #[test]
    fn answers_of_several_runs_are_counted_with_their_ranges() {
        let answer = |accelerators, target_percent| {
            let mut record = starved_run(accelerators);
            record.plan.metric.au_target_percent = target_percent;
            AnsweredSummary::new(&record).answer
        };
        let answers = [answer(1, 45.0), answer(1, 90.0), answer(2, 90.0)];
        let lines = summary_lines(&answers.each_ref());
        let says = "NO for 2 of 3 runs (storage-bound), YES for 1; 50 % AU, target 45 to 90 %";
        assert_eq!(lines, [says, "needs 20 MB/s to 40 MB/s, gets 10 MB/s to 20 MB/s"]);
        let mut rate = starved_run(1);
        rate.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        let rate = AnsweredSummary::new(&rate).answer;
        assert_eq!(summary_lines(&[&rate, &rate]), ["RATE for all 2 runs"]);
        assert!(summary_lines(&[]).is_empty());
    }

    #[test]
    fn a_rounded_percentage_stays_on_its_side_of_the_target() {
        for (au, target, expected) in [
            (54.4, 90.0, "54"),
            (89.7, 90.0, "89.7"),
            (89.96, 90.0, "89.96"),
            (89.99999, 90.0, "89.99999"),
            (90.0, 90.0, "90"),
            (90.3, 90.0, "90"),
            (90.4, 90.2, "90.4"),
        ] {
            assert_eq!(percent_near_target(au, target), expected);
        }
    }

    #[test]
    fn a_second_utilisation_is_named_by_its_kind() {
        let text = other_utilisation(
            "au_all_steps_percent",
            86.2,
            90.0,
            &AnsweredSummary::new(&starved_run(1)).answer,
        );
        assert_eq!(text, "all-steps AU 86 %, target 90 %; 100 % of the wait is reading");
    }

    #[test]
    fn doubts_are_counted_by_severity() {
        let mut stopped = starved_run(1);
        assert_eq!(counted(&AnsweredSummary::new(&stopped).summary.doubts), "none");
        stopped.complete = false;
        assert_eq!(
            counted(&AnsweredSummary::new(&stopped).summary.doubts),
            "1 invalid (incomplete_run)"
        );
    }
}
