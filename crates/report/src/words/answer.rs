//! Renders the answer of a run, or of several, as a few lines for terminals and reports. Decides nothing.

use crate::number::count_names;
use crate::words::io_answer;
use feedrate_analysis::advice::SampleRequests;
use feedrate_analysis::answer::{Answer, AnswerKind, UnknownBecause, relevant_doubts};
use feedrate_measure::budget::BudgetPart;
use feedrate_measure::checkpoints::{CheckpointMedium, CheckpointSummary, Checkpoints};
use feedrate_measure::doubt::{Doubt, find_origin_doubt};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED};
use feedrate_measure::slow_accelerators::SlowAccelerators;
use feedrate_measure::verdict::Bound;
use feedrate_measure::waits::{WaitCause, WaitPart};
use feedrate_results::groups::Passes;
use feedrate_spec::units;
use std::cmp::Reverse;

/// At most three lines: the answer, which begins with [`head`]; the needed and delivered rates; and the time for checkpoints and evaluations.
pub fn lines(answer: &Answer, doubts: &[Doubt]) -> Vec<String> {
    let first = format!("{} {}{}", head(answer), says(answer, doubts), chosen_note(&[answer]));
    let mut lines = vec![first];
    let watched = answer.watched_io.as_ref().filter(|_| answer.fed.is_some());
    lines.extend(watched.map(io_answer::watched_line).or_else(|| rates(answer)));
    match outside_training(answer) {
        // A line of its own is for checkpoints and evaluations.
        Some(outside) if !answer.is_about_training_alone() && lines.len() > 1 => {
            lines[1] += &format!("; {}", change_first_letter(&outside, |c| c.to_ascii_lowercase()));
        }
        outside => lines.extend(outside),
    }
    lines
}

/// The answer in capitals: `YES:`, `PROBABLY YES:` if it is only probable, `YES while training:` if checkpoints or evaluations take a large
/// part of the run.
pub fn head(answer: &Answer) -> String {
    let probably = if answer.is_only_probable() { "PROBABLY " } else { "" };
    let is_limited = answer.kind == AnswerKind::Yes && answer.is_about_training_alone();
    let scope = if is_limited { " while training" } else { "" };
    format!("{probably}{}{scope}:", answer.kind.name().to_uppercase())
}

/// The parts of the run outside of training: `Checkpoints took 66 % of the run (7.1 s), evaluation 5 % (600 ms, at 22 % AU).`
fn outside_training(answer: &Answer) -> Option<String> {
    let is_alone = answer.verdict == Bound::CheckpointsOnly;
    if is_alone || answer.kind == AnswerKind::Rate {
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

/// The answers of several runs in one line: the number of fed runs, the bounds of the others, their utilisation, and the needed and delivered rates.
/// `None` without answers.
pub fn summary(answers: &[&Answer]) -> Option<String> {
    if answers.is_empty() {
        return None;
    }
    let decided = || answers.iter().filter(|answer| answer.fed.is_some());
    let au = decided().filter_map(|answer| Some((answer.au_percent?, answer.required_percent)));
    let au = range(au.map(|(au, target)| (au, percent_near_target(au, target))));
    let target = range(
        decided().map(|answer| (answer.required_percent, answer.required_percent.to_string())),
    );
    let scope = if decided().count() < answers.len() { "decided runs: " } else { "" };
    let is_sustained = decided().all(|answer| answer.au_kind == Some(AU_SUSTAINED.id.name()));
    let kind = if is_sustained { " (sustained)" } else { "" };
    let says =
        au.zip(target).map(|(au, target)| format!("; {scope}{au} % AU{kind}, target {target} %"));
    let first = count_by_kind(answers) + &says.unwrap_or_default();
    let rates = |property: fn(&Answer) -> Option<f64>| {
        let rates = answers.iter().filter_map(|answer| property(answer));
        range(rates.map(|rate| (rate, units::bytes_per_second_rounded(rate))))
    };
    let needed = rates(|answer| answer.needed_bytes_per_second);
    let rates = needed.zip(rates(|answer| answer.delivered_bytes_per_second));
    let rates = rates.map(|(needed, delivered)| format!("; needs {needed}, gets {delivered}"));
    Some(first + &rates.unwrap_or_default() + &chosen_note(answers))
}

/// Names the figures of a workload that are not official.
fn chosen_note(answers: &[&Answer]) -> String {
    let figures = answers.iter().find_map(|answer| answer.chosen_figures);
    figures.map_or_else(String::new, |figures| {
        format!("; {figures} was chosen by feedrate, as the official figure is not public")
    })
}

/// The number of runs by kind of answer: `NO for 39 of 54 runs (storage-bound), YES for 15`.
pub fn count_by_kind(answers: &[&Answer]) -> String {
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
        let bounds = bounds(answers, kind);
        parts.push(format!("{} for {runs}{bounds}", kind.name().to_uppercase()));
    }
    parts.join(", ")
}

/// The bounds of the runs that were not fed, or the causes of unknown answers: ` (36 storage-bound, 3 decode-bound)`, or ` (storage-bound)` if
/// all runs share it. Empty for other kinds.
fn bounds(answers: &[&Answer], kind: AnswerKind) -> String {
    let names =
        answers.iter().filter(|answer| answer.kind == kind).filter_map(|answer| match kind {
            AnswerKind::No => Some(answer.verdict.name()),
            AnswerKind::Unknown => answer.unknown_because.map(UnknownBecause::name),
            _ => None,
        });
    let counts = count_names(names);
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

/// A line for each doubt that could change the answer, unless the answer itself names it; the number of all other doubts, which `command`
/// lists, follows in the last line.
pub fn doubt_lines(answer: &Answer, doubts: &[Doubt], command: &str) -> Vec<String> {
    let causes = answer.causes_of_unknown(doubts);
    let mut shown = relevant_doubts(Some(answer), doubts);
    shown.retain(|doubt| !causes.contains(doubt));
    let others = doubts.len() - shown.len();
    let lines = shown.iter().map(|doubt| format!("Doubt: {} ({})", doubt.evidence, doubt.name));
    let mut lines: Vec<String> = lines.collect();
    match lines.last_mut() {
        Some(last) if others > 0 => *last += &format!("; {command} lists {others} more"),
        Some(_) => {}
        None if doubts.is_empty() => lines.push("Doubts: none".into()),
        None if !causes.is_empty() => lines.push(format!("Doubts: {command} lists {others}")),
        None => {
            lines.push(format!("Doubts: none could change the answer; {command} lists {others}"))
        }
    }
    lines
}

/// The names of doubts, or `none`.
pub fn doubt_names(doubts: &[&Doubt]) -> String {
    let names: Vec<&str> = doubts.iter().map(|doubt| doubt.name.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
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
            let reached = utilisation_and_target(answer, &scope).unwrap_or_default();
            let bottleneck = match answer.noise {
                None => format!(", {}", answer.verdict.name()),
                Some(_) => String::new(),
            };
            format!("{reached}{bottleneck}{}{}", all_steps_note(answer), windowed_note(answer))
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
        AnswerKind::Checkpoints => {
            answer.checkpoints.as_ref().map_or_else(String::new, checkpoint_rates)
        }
    }
}

/// The rates of written and read checkpoints, with where the bytes were: `written at 1.2 GB/s, durable (fsync); read at 3 GB/s from the
/// device`.
fn checkpoint_rates(checkpoints: &CheckpointSummary) -> String {
    let rate = |checkpoints: &Checkpoints| {
        checkpoints.bytes_per_second.map_or_else(
            || "too fast to measure a rate".to_string(),
            |rate| format!("at {}", units::bytes_per_second_rounded(rate)),
        )
    };
    let written = checkpoints.save.map(|save| {
        let medium = match save.medium {
            CheckpointMedium::Storage => ", durable (`fsync`)",
            CheckpointMedium::Store => " to a store of objects",
            CheckpointMedium::MemoryFileSystem => " to a file system in memory",
            CheckpointMedium::PageCache | CheckpointMedium::Unknown => {
                " into the page cache, not durable (no `fsync`)"
            }
        };
        format!("written {}{medium}", rate(&save))
    });
    let read = checkpoints.load.map(|load| {
        let all_bytes = units::bytes(load.bytes * load.count);
        let medium = match (load.medium, load.device_bytes) {
            (CheckpointMedium::Storage, _) => " from the device".into(),
            (CheckpointMedium::Store, _) => " from a store of objects".into(),
            (CheckpointMedium::MemoryFileSystem, _) => " from a file system in memory".into(),
            (CheckpointMedium::PageCache, Some(device_bytes)) => {
                let device_bytes = units::bytes(device_bytes);
                format!(" from the page cache ({device_bytes} of {all_bytes} from the device)")
            }
            _ => " from the device or the page cache".into(),
        };
        format!("read {}{medium}", rate(&load))
    });
    [written, read].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The number, size and time of checkpoints, and their slowest ranks: `3 checkpoints of 268 MB written in 17 s, 2 read in 1.5 s; rank 1 is slowest in
/// writing: 5.8 s a checkpoint, mean of all ranks 5.2 s`.
fn checkpoint_times(checkpoints: &CheckpointSummary) -> String {
    let parts = [(checkpoints.save, "written", "writing"), (checkpoints.load, "read", "reading")];
    let mut times = Vec::new();
    let mut slowest_ranks = Vec::new();
    for (checkpoints, done, doing) in parts {
        let Some(checkpoints) = checkpoints else { continue };
        let count = if times.is_empty() {
            let size = units::bytes(checkpoints.bytes);
            format!("{} of {size}", units::counted(checkpoints.count, "checkpoint"))
        } else {
            checkpoints.count.to_string()
        };
        let total_s = checkpoints.duration_s.map(|mean_s| mean_s * checkpoints.count as f64);
        let total = total_s.map_or("an unknown time".into(), units::seconds);
        times.push(format!("{count} {done} in {total}"));
        slowest_ranks.extend(checkpoints.slowest_rank.map(|slowest| {
            format!(
                "rank {} is slowest in {doing}: {} a checkpoint, mean of all ranks {}",
                slowest.rank,
                units::seconds(slowest.duration_s),
                units::seconds(slowest.all_ranks_duration_s)
            )
        }));
    }
    [times.join(", ")].into_iter().chain(slowest_ranks).collect::<Vec<_>>().join("; ")
}

/// Whether an unknown number of bytes may have come from memory, because the kernel does not report it.
fn device_bytes_are_unknown(doubts: &[Doubt]) -> bool {
    find_origin_doubt(doubts).is_some_and(|doubt| doubt.facts.get("device_bytes").is_none())
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

/// The utilisation over all steps if it differs from the one that decides.
fn all_steps_note(answer: &Answer) -> String {
    let Some(percent) = answer.differing_all_steps_percent() else { return String::new() };
    format!("; {} % over all steps", percent_near_target(percent, answer.required_percent))
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
    let because = match answer.unknown_because {
        Some(UnknownBecause::CacheFed) if answer.verdict == Bound::CheckpointsOnly => {
            "rates of memory"
        }
        Some(UnknownBecause::CacheFed) if device_bytes_are_unknown(doubts) => "possibly cache-fed",
        because => because.map_or("", UnknownBecause::name),
    };
    let checkpoints = answer.checkpoints.as_ref().filter(|_| {
        answer.verdict == Bound::CheckpointsOnly
            && answer.unknown_because == Some(UnknownBecause::CacheFed)
    });
    let facts = checkpoints.map(checkpoint_rates).or_else(|| {
        answer.causes_of_unknown(doubts).first().map(|doubt| match answer.unknown_because {
            Some(UnknownBecause::CacheFed) => doubt.facts.render(
                "[{read_bytes} were read, {device_bytes} of them from the device|{read_bytes} were read, and how many of them came from the device is unknown]",
            ),
            Some(UnknownBecause::CpuSaturated) => doubt.facts.render(
                "[the {cores} of this machine were {busy_percent:.0} % busy, and work may have waited for them][; other programs used {others:.1} of them][, mostly {process}]",
            ),
            Some(UnknownBecause::Interrupted) => doubt
                .facts
                .render("[{checkpoints} done|{epochs_done} of {epochs_planned} epochs are complete, and epoch {stopped_epoch} up to step {stopped_step} of {last_step}|{epochs_done} of {epochs_planned} epochs are complete|steps of {begun_epochs} are recorded]"),
            Some(UnknownBecause::Incomplete | UnknownBecause::DataUnread) => doubt.evidence.clone(),
            _ => format!("{}: {}", doubt.name, doubt.evidence),
        })
    });
    let evidence =
        || change_first_letter(answer.evidence.trim_end_matches('.'), |c| c.to_ascii_lowercase());
    let text = facts.filter(|facts| !facts.is_empty()).unwrap_or_else(evidence);
    format!("{because}, {text}")
}

/// The needed and delivered rates, and the cause of waits; for a run without training the times of its checkpoints.
fn rates(answer: &Answer) -> Option<String> {
    if answer.verdict == Bound::CheckpointsOnly {
        return answer.checkpoints.as_ref().map(checkpoint_times);
    }
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
    let parts: Vec<String> =
        needs.into_iter().chain(more).chain(in_flight(answer)).chain(retries(answer)).collect();
    (!parts.is_empty()).then(|| change_first_letter(&parts.join("; "), |c| c.to_ascii_uppercase()))
}

/// Requests that workers had in flight: `41 of 64 requests in flight per worker`.
fn in_flight(answer: &Answer) -> Option<String> {
    let requests = answer.requests_in_flight?;
    let mean = requests.mean?;
    Some(format!("{mean:.1} of {} requests in flight per worker", requests.limit))
}

/// Requests of a library, if they matter: `Requests: 70 a sample, as numpy reads npz; reader.requests=large would take 9`.
pub fn requests_line(requests: &SampleRequests) -> String {
    let SampleRequests { library, format, per_sample, large_per_sample } = requests;
    let large = format!("reader.requests=large would take {large_per_sample:.0}");
    format!("Requests: {per_sample:.0} a sample, as {library} reads {format}; {large}")
}

/// What repeated requests to an object store cost: `retries cost 3.1 s of 40 s in reads`.
fn retries(answer: &Answer) -> Option<String> {
    let retries = answer.retries?;
    let lost = units::seconds(retries.lost_s);
    Some(format!("retries cost {lost} of {} in reads", units::seconds(retries.reading_s)))
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
mod tests;
