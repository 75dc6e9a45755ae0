//! Renders trials of changes as text for terminals and reports. Decides nothing.

use feedrate_measure::metric::Unit;
use feedrate_results::trials::{COMBINATION, Outcome, TrialRuns, TrialsResult, TriedAdvice};

/// A change that was tried: `reader.read_threads=4`, or instructions if no setting makes the change.
pub fn tried_change(advice: &TriedAdvice) -> String {
    match &advice.change {
        _ if advice.name == COMBINATION => "the best two together".into(),
        none if none.is_empty() && advice.overrides.is_empty() => advice.name.clone(),
        none if none.is_empty() => advice.overrides.join(" "),
        change => change.clone(),
    }
}

/// An outcome in a few words.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NoEffect => "withdrawn: no effect",
        Outcome::Hurts => "withdrawn: hurts",
        Outcome::Helps | Outcome::NotDecided | Outcome::NotTried => outcome.name(),
    }
}

/// Sentences on trials: the changes that help, the withdrawn changes, and the reason for an early end.
pub fn tried(trials: &TrialsResult) -> Vec<String> {
    let all = |is_wanted: fn(&TriedAdvice) -> bool| {
        let rows = trials.advice.iter().filter(|row| is_wanted(row));
        let rows = rows.filter_map(|row| Some((tried_name(row), utilisation(&row.tried?))));
        rows.map(|(name, au)| format!("{name} {au}")).collect::<Vec<_>>().join(", ")
    };
    let without = trials.baseline.map(|run| format!("; without a change {}", utilisation(&run)));
    let helps = match all(|row| row.outcome == Outcome::Helps) {
        none if none.is_empty() && trials.advice.iter().all(|row| row.tried.is_none()) => {
            "no change was tried".into()
        }
        none if none.is_empty() => "nothing that was tried helped measurably".into(),
        helps => format!("helped when tried: {helps}"),
    };
    let mut says = vec![helps + &without.unwrap_or_default()];
    let withdrawn = all(TriedAdvice::is_withdrawn);
    says.extend((!withdrawn.is_empty()).then(|| format!("withdrawn after trials: {withdrawn}")));
    says.extend(mispredicted(&trials.advice).map(|rows| format!("mispredicted: {rows}")));
    says.extend(trials.stopped.iter().map(|why| format!("not everything is decided: {why}")));
    says
}

/// The changes whose measured utilisation is outside of the predicted interval: `` `threads=4` 15.0 % AU, predicted 94.6 [89.2, 100.0] ``.
/// `None` if there are none.
pub fn mispredicted(advice: &[TriedAdvice]) -> Option<String> {
    let rows = advice.iter().filter(|row| row.is_mispredicted == Some(true));
    let rows = rows.filter_map(|row| {
        let ([low, high], percent) = row.interval.zip(row.predicted_percent)?;
        let measured = utilisation(&row.tried?);
        Some(format!(
            "{} {measured}, predicted {percent:.1} [{low:.1}, {high:.1}]",
            tried_name(row)
        ))
    });
    let rows: Vec<String> = rows.collect();
    (!rows.is_empty()).then(|| rows.join("; "))
}

/// A change as a name in backticks; the combination has none.
fn tried_name(advice: &TriedAdvice) -> String {
    let change = tried_change(advice);
    if advice.name == COMBINATION { change } else { format!("`{change}`") }
}

/// The measured utilisation: `97.1 % [96.8, 97.4] AU`.
fn utilisation(tried: &TrialRuns) -> String {
    let interval = tried.interval.map(|[low, high]| format!(" [{low:.1}, {high:.1}]"));
    format!("{}{} AU", Unit::Percent.text(tried.mean_percent), interval.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_summarized_with_their_figures() {
        let row = |name: &str, outcome, mean_percent| TriedAdvice {
            name: name.into(),
            overrides: vec![format!("{name}=4")],
            change: format!("{name}=4"),
            predicted_percent: None,
            interval: None,
            tried: Some(TrialRuns {
                mean_percent,
                interval: Some([mean_percent - 1.0, 99.0]),
                n: 2,
            }),
            is_mispredicted: None,
            outcome,
            reason: None,
            break_even_epochs: None,
            command: None,
        };
        let mut trials = TrialsResult {
            workload: "w".into(),
            base: Vec::new(),
            plan: None,
            goal: None,
            best: None,
            baseline: Some(TrialRuns { mean_percent: 31.0, interval: None, n: 1 }),
            advice: vec![
                row("threads", Outcome::Helps, 97.0),
                row("prefetch", Outcome::NoEffect, 31.5),
                row("format", Outcome::NotDecided, 40.0),
                row(COMBINATION, Outcome::Helps, 98.0),
            ],
            stopped: Some("the budget is spent".into()),
            runs: 9,
            took_s: 1.0,
            oldest_run: None,
            results: String::new(),
        };
        let sentences = [
            "helped when tried: `threads=4` 97.0 % [96.0, 99.0] AU, the best two together 98.0 % [97.0, 99.0] AU; without a change 31.0 % AU",
            "withdrawn after trials: `prefetch=4` 31.5 % [30.5, 99.0] AU",
            "not everything is decided: the budget is spent",
        ];
        assert_eq!(tried(&trials), sentences);
        let threads = &mut trials.advice[0];
        (threads.predicted_percent, threads.interval) = (Some(60.0), Some([55.0, 65.0]));
        threads.is_mispredicted = Some(true);
        assert_eq!(
            tried(&trials)[2],
            "mispredicted: `threads=4` 97.0 % [96.0, 99.0] AU, predicted 60.0 [55.0, 65.0]"
        );
        trials.advice.truncate(0);
        let sentences = "no change was tried; without a change 31.0 % AU";
        assert_eq!(tried(&trials)[0], sentences);
    }
}
