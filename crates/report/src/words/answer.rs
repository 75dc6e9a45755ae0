//! The answer of a run in a few lines, the same for terminals and reports. Decides nothing.

use feedrate_measure::answer::{Answer, AnswerKind, UnknownBecause};
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::verdict::{Bound, Verdict};
use feedrate_measure::waits::{WaitCause, WaitPart};
use feedrate_results::groups::Passes;
use feedrate_spec::units;

/// At most two: the answer, what was needed and delivered. The first begins with [`head`].
pub fn lines(answer: &Answer, verdict: &Verdict, doubts: &[Doubt]) -> Vec<String> {
    let first = format!("{} {}", head(answer), says(answer, verdict, doubts));
    [first].into_iter().chain(rates(answer)).collect()
}

/// `YES:`.
pub fn head(answer: &Answer) -> String {
    format!("{}:", answer.kind.name().to_uppercase())
}

/// `730 samples/s, decode-bound (89 %), 4 workers on 2 cores`: of a run without compute, how fast its loader was. `None` of others.
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

/// How many doubts there are of each severity.
pub fn counted(doubts: &[Doubt]) -> String {
    let count = |severity| doubts.iter().filter(|doubt| doubt.severity == severity).count() as u64;
    let counts = Severity::ALL.map(|severity| match (severity, count(severity)) {
        (_, 0) => None,
        (Severity::Invalid, count) => Some(format!("{count} invalid")),
        (severity, count) => Some(units::counted(count, severity.name())),
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}

fn says(answer: &Answer, verdict: &Verdict, doubts: &[Doubt]) -> String {
    match answer.kind {
        AnswerKind::Yes | AnswerKind::No => {
            let scope = match answer.window {
                Some(window) if answer.au_kind == Some(AU_ALL_STEPS.id.name()) => {
                    match window.steps {
                        1 => ", over its one step".into(),
                        steps => format!(", over all {steps} steps"),
                    }
                }
                _ => String::new(),
            };
            let name = answer.verdict.name();
            format!("{}{scope}, {name}{}", reached(answer).unwrap_or_default(), windowed(answer))
        }
        AnswerKind::Unknown => unknown(answer, verdict, doubts),
        AnswerKind::Rate => {
            let samples = answer.samples_per_second.map(|rate| units::per_second(rate, "samples"));
            let bytes = answer.delivered_bytes_per_second.map(units::bytes_per_second_rounded);
            let rates: Vec<String> = bytes.into_iter().chain(samples).collect();
            let from = match answer.verdict {
                Bound::CacheFed => " from memory, cache-fed",
                _ if answer.is_memory_served => " from memory",
                _ => "",
            };
            format!("{}{from}; without compute there is no AU", rates.join(", "))
        }
        AnswerKind::Checkpoints => verdict.evidence.clone(),
    }
}

/// `54 % AU of the 90 % asked`, with as many digits as tell the two apart.
fn reached(answer: &Answer) -> Option<String> {
    let (au, asked) = (answer.au_percent?, answer.asked_percent);
    Some(format!("{} % AU of the {asked} % asked", told_apart(au, asked)))
}

/// `all-steps AU 86 % of the 90 % asked; 98 % of the wait is reading`: of a utilisation that is not the one of the answer.
pub fn falls_short(name: &str, au: f64, asked: f64, answer: &Answer) -> String {
    let kind = name.trim_start_matches("au_").trim_end_matches("_percent").replace('_', "-");
    let waits = answer.wait.map_or_else(String::new, |part| format!("; {}", wait(part)));
    format!("{kind} AU {} % of the {asked} % asked{waits}", told_apart(au, asked))
}

/// A percentage with as many digits as tell it apart from what was asked.
pub fn told_apart(au: f64, asked: f64) -> String {
    let mut texts = (0..4).map(|digits| format!("{au:.digits$}"));
    let is_true =
        |text: &String| text.parse().is_ok_and(|told: f64| (asked <= told) == (asked <= au));
    texts.find(is_true).unwrap_or_else(|| au.to_string())
}

fn windowed(answer: &Answer) -> String {
    let Some(percent) = answer.windowed_disagrees_percent else { return String::new() };
    let says = if answer.fed == Some(true) { "no" } else { "yes" };
    let percent = told_apart(percent, answer.asked_percent);
    format!("; MLPerf's windowed AU says {says}: {percent} %")
}

fn unknown(answer: &Answer, verdict: &Verdict, doubts: &[Doubt]) -> String {
    let named = |name: &str| doubts.iter().find(|doubt| doubt.name == name);
    let because = answer.unknown_because.map_or("", UnknownBecause::name);
    let facts = match answer.unknown_because {
        Some(UnknownBecause::CacheFed) => named("page_cache").map(|doubt| {
            doubt.facts.render("[{read_bytes} were read, {device_bytes} of them from the device]")
        }),
        Some(UnknownBecause::Interrupted) => named("incomplete_run").map(|doubt| {
            doubt
                .facts
                .render("[{checkpoints} done|{epochs_done} of {epochs_planned} epochs are there|steps of {begun_epochs} are there]")
        }),
        Some(UnknownBecause::Incomplete) => {
            named("incomplete_run").map(|doubt| doubt.evidence.clone())
        }
        _ => doubts
            .iter()
            .find(|doubt| doubt.severity == Severity::Invalid)
            .map(|doubt| format!("{}: {}", doubt.name, doubt.evidence)),
    };
    let facts = facts.filter(|facts| !facts.is_empty());
    let evidence = || begun(verdict.evidence.trim_end_matches('.'), |c| c.to_ascii_lowercase());
    let facts = facts.unwrap_or_else(evidence);
    format!("{because}, {facts}")
}

fn rates(answer: &Answer) -> Option<String> {
    let rate = units::bytes_per_second_rounded;
    let needs = answer.needed_bytes_per_second.zip(answer.delivered_bytes_per_second);
    let needs = needs.map(|(needed, delivered)| {
        let percent = 100.0 * delivered / needed;
        format!("needs {}, gets {} ({percent:.0} %)", rate(needed), rate(delivered))
    });
    let more = match answer.kind {
        AnswerKind::Unknown => reached(answer).map(|reached| format!("measured {reached}")),
        AnswerKind::Yes => waiting(answer),
        AnswerKind::No if answer.wait.is_none() => waiting(answer),
        AnswerKind::No | AnswerKind::Rate => answer.wait.map(wait),
        AnswerKind::Checkpoints => return None,
    };
    let parts: Vec<String> = needs.into_iter().chain(more).collect();
    (!parts.is_empty()).then(|| begun(&parts.join("; "), |c| c.to_ascii_uppercase()))
}

fn waiting(answer: &Answer) -> Option<String> {
    answer.waited_percent.map(|percent| format!("{percent:.0} % of the time is waiting"))
}

/// With another first letter.
fn begun(text: &str, letter: fn(char) -> char) -> String {
    let mut letters = text.chars();
    letters.next().map(letter).into_iter().chain(letters).collect()
}

fn wait(part: WaitPart) -> String {
    let cause = match part.cause {
        WaitCause::Open => "opening",
        WaitCause::Read => "reading",
        WaitCause::Decode => "decoding",
        WaitCause::Client => "the client's own work",
        WaitCause::Skew => "for each other",
    };
    format!("{:.0} % of the wait is {cause}", part.percent)
}

/// `5 of 6`: how many runs reach the bar.
pub fn passes(of: Passes) -> String {
    match (of.yes + of.no, of.unknown) {
        (0, _) => "unknown".into(),
        (known, 0) => format!("{} of {known}", of.yes),
        (known, unknown) => format!("{} of {known}, {unknown} unknown", of.yes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{block, checkpoints_alone, epoch, plan, record, simple};
    use feedrate_measure::record::Record;
    use feedrate_measure::summary::Summary;

    #[track_caller]
    fn check(record: &Record, expected: &[&str]) {
        let summary = Summary::new(record);
        assert_eq!(lines(&summary.answer, &summary.verdict, &summary.doubts), expected);
    }

    /// 40 steps of 200 ms, of which an accelerator computes half.
    fn starved(accelerators: u32) -> Record {
        let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; accelerators as usize];
        record(plan(accelerators, 40), vec![epoch(1, blocks)])
    }

    #[test]
    fn who_starves_is_told_of_what() {
        check(
            &starved(2),
            &[
                "NO: 50 % AU of the 90 % asked, storage-bound",
                "Needs 40 MB/s, gets 20 MB/s (50 %); 100 % of the wait is reading",
            ],
        );
        check(
            &simple(&[(300, 100, 0, 4_000_000)]),
            &[
                "NO: 25 % AU of the 90 % asked, over its one step, storage-bound",
                "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
            ],
        );
        check(
            &simple(&[(300, 100, 0, 4_000_000); 3]),
            &[
                "NO: 25 % AU of the 90 % asked, over all 3 steps, storage-bound",
                "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
            ],
        );
    }

    #[test]
    fn who_is_fed_is_told_of_no_help() {
        let mut fed = starved(1);
        fed.plan.metric.au_target_percent = 45.5;
        let rates = "Needs 20 MB/s, gets 10 MB/s (50 %); 50 % of the time is waiting";
        check(&fed, &["YES: 50 % AU of the 45.5 % asked, compute-bound", rates]);
    }

    #[test]
    fn mlperfs_window_is_told_where_it_decides_otherwise() {
        let mut steps = [(0, 100, 0, 1_000_000); 6];
        steps[0].0 = 600;
        let summary = Summary::new(&simple(&steps));
        let first = &lines(&summary.answer, &summary.verdict, &summary.doubts)[0];
        let says = "NO: 50 % AU of the 90 % asked, over all 6 steps, storage-bound; MLPerf's windowed AU says yes: 100 %";
        assert_eq!(first, says);
    }

    #[test]
    fn what_a_run_does_not_tell_is_named() {
        let mut stopped = starved(1);
        (stopped.complete, stopped.plan.train.epochs) = (false, 3);
        stopped.stopped_because = Some("interrupted".into());
        let measured = "Needs 20 MB/s, gets 10 MB/s (50 %); measured 50 % AU of the 90 % asked";
        check(&stopped, &["UNKNOWN: interrupted, 1 of 3 epochs are there", measured]);
        stopped.stopped_because = None;
        let why = "1 of 3 epochs are there: it was killed, or is still going on";
        check(&stopped, &[&format!("UNKNOWN: incomplete, {why}"), measured]);
        let mut cached = starved(1);
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(80_000_000);
        let why = "UNKNOWN: cache-fed, 80 MB were read, 0 B of them from the device";
        check(&cached, &[why, measured]);
        let mut nothing = starved(1);
        nothing.epochs.clear();
        check(&nothing, &["UNKNOWN: invalid, no step was finished"]);
    }

    #[test]
    fn without_compute_there_is_a_rate() {
        let mut rate = starved(1);
        rate.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        let wait = "100 % of the wait is reading";
        check(&rate, &["RATE: 10 MB/s, 5 samples/s; without compute there is no AU", wait]);
    }

    #[test]
    fn without_training_there_are_checkpoints() {
        let mut alone = checkpoints_alone(3);
        alone.complete = true;
        let says = "CHECKPOINTS: 2 checkpoints of 1 GiB written in 3 s, 682.7 MiB/s. 1 checkpoint of 1 GiB read in 500 ms, 2 GiB/s.";
        check(&alone, &[says]);
    }

    #[test]
    fn a_rounded_percentage_is_on_its_side_of_what_was_asked() {
        for (au, asked, expected) in [
            (54.4, 90.0, "54"),
            (89.7, 90.0, "89.7"),
            (89.96, 90.0, "89.96"),
            (89.99999, 90.0, "89.99999"),
            (90.0, 90.0, "90"),
            (90.3, 90.0, "90"),
            (90.4, 90.2, "90.4"),
        ] {
            assert_eq!(told_apart(au, asked), expected);
        }
    }

    #[test]
    fn another_utilisation_than_that_of_the_answer_is_named() {
        let told =
            falls_short("au_all_steps_percent", 86.2, 90.0, &Summary::new(&starved(1)).answer);
        assert_eq!(told, "all-steps AU 86 % of the 90 % asked; 100 % of the wait is reading");
    }

    #[test]
    fn doubts_are_counted_by_severity() {
        let mut stopped = starved(1);
        assert_eq!(counted(&Summary::new(&stopped).doubts), "none");
        stopped.complete = false;
        assert_eq!(counted(&Summary::new(&stopped).doubts), "1 invalid");
    }
}
