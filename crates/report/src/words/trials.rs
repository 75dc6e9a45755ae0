//! Trials of changes in words, once for terminals and pages. Decides nothing.

use feedrate_measure::metric::Unit;
use feedrate_results::trials::{COMBINATION, Outcome, TrialsResult, Tried, TriedAdvice};

/// A change that was tried: `reader.read_threads=4`, or what to do where no key does it.
pub fn tried_change(of: &TriedAdvice) -> String {
    match &of.change {
        _ if of.name == COMBINATION => "the best two together".into(),
        none if none.is_empty() && of.overrides.is_empty() => of.name.clone(),
        none if none.is_empty() => of.overrides.join(" "),
        change => change.clone(),
    }
}

/// Its outcome, in a few words.
pub fn outcome(of: Outcome) -> &'static str {
    match of {
        Outcome::NoEffect => "withdrawn: no effect",
        Outcome::Hurts => "withdrawn: hurts",
        Outcome::Helps | Outcome::NotDecided | Outcome::NotTried => of.name(),
    }
}

/// The outcome of trials: what helps, what is taken back, and whether anything was left open.
pub fn tried(of: &TrialsResult) -> Vec<String> {
    let all = |is_wanted: fn(&TriedAdvice) -> bool| {
        let rows = of.advice.iter().filter(|row| is_wanted(row));
        let rows = rows.filter_map(|row| Some((tried_name(row), utilisation(&row.tried?))));
        rows.map(|(name, au)| format!("{name} {au}")).collect::<Vec<_>>().join(", ")
    };
    let without = of.baseline.map(|of| format!("; without a change {}", utilisation(&of)));
    let helps = match all(|row| row.outcome == Outcome::Helps) {
        none if none.is_empty() => "nothing that was tried is shown to help".into(),
        helps => format!("helps, as tried: {helps}"),
    };
    let mut says = vec![helps + &without.unwrap_or_default()];
    let withdrawn = all(TriedAdvice::is_withdrawn);
    says.extend((!withdrawn.is_empty()).then(|| format!("withdrawn, as tried: {withdrawn}")));
    says.extend(of.stopped.iter().map(|why| format!("not all is decided: {why}")));
    says
}

fn tried_name(of: &TriedAdvice) -> String {
    let change = tried_change(of);
    if of.name == COMBINATION { change } else { format!("`{change}`") }
}

/// `97.1 % [96.8, 97.4] AU`.
fn utilisation(of: &Tried) -> String {
    let interval = of.interval.map(|[low, high]| format!(" [{low:.1}, {high:.1}]"));
    format!("{}{} AU", Unit::Percent.text(of.mean_percent), interval.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_told_with_its_figures() {
        let row = |name: &str, outcome, mean_percent| TriedAdvice {
            name: name.into(),
            overrides: vec![format!("{name}=4")],
            change: format!("{name}=4"),
            predicted_percent: None,
            interval: None,
            tried: Some(Tried { mean_percent, interval: Some([mean_percent - 1.0, 99.0]), n: 2 }),
            outcome,
            reason: None,
            break_even_epochs: None,
            command: None,
        };
        let mut of = TrialsResult {
            workload: "w".into(),
            asked: Vec::new(),
            plan: None,
            goal: None,
            best: None,
            baseline: Some(Tried { mean_percent: 31.0, interval: None, n: 1 }),
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
        let told = [
            "helps, as tried: `threads=4` 97.0 % [96.0, 99.0] AU, the best two together 98.0 % [97.0, 99.0] AU; without a change 31.0 % AU",
            "withdrawn, as tried: `prefetch=4` 31.5 % [30.5, 99.0] AU",
            "not all is decided: the budget is spent",
        ];
        assert_eq!(tried(&of), told);
        of.advice.truncate(0);
        let told = "nothing that was tried is shown to help; without a change 31.0 % AU";
        assert_eq!(tried(&of)[0], told);
    }
}
