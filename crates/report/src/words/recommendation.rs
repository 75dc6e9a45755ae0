//! Renders the best of the tested configurations as sentences.

use super::number::{list, quoted, with_interval};
use feedrate_analysis::estimate::Middle;
use feedrate_analysis::recommendation::{Configuration, Recommendation};
use feedrate_measure::metric::Unit;
use feedrate_spec::units::counted;

/// Sentences on the best configuration, its changes against the baseline, and the combinations that were not tested.
pub fn sentences(recommendation: &Recommendation) -> Vec<String> {
    let Some((first, others)) = recommendation.best.split_first() else { return Vec::new() };
    let ties = match (recommendation.indistinguishable, recommendation.tested - 1) {
        (0, _) => String::new(),
        (others, all) if others == all => "; all others may be as fast".into(),
        (others, all) => format!("; {others} of {all} others may be as fast"),
    };
    let mut says =
        vec![format!("most throughput: {}{ties}", configuration_text(first, recommendation.unit))];
    says.extend(changes_text(first));
    match others {
        [] if recommendation.is_au_known => says.push("none of the others has a higher AU".into()),
        [] => {}
        [between @ .., last] => {
            let more = match between.len() as u64 {
                0 => String::new(),
                more => format!("; {} between these two", counted(more, "configuration")),
            };
            says.push(format!(
                "highest AU: {}{more}",
                configuration_text(last, recommendation.unit)
            ));
        }
    }
    for (name, followers) in &recommendation.followed {
        let followers = list(followers.iter().map(|name| quoted(name)));
        says.push(format!("{followers} always changed together with `{name}`"));
    }
    let untested = recommendation.combinations.saturating_sub(recommendation.tested as u64);
    match untested {
        0 if !recommendation.followed.is_empty() => {}
        0 => says.push(format!(
            "all {} combinations of their levels were tested",
            recommendation.combinations
        )),
        untested => says.push(format!(
            "untested: {untested} of {} combinations of their levels",
            recommendation.combinations
        )),
    }
    if !recommendation.doubts.is_empty() {
        let names = list(recommendation.doubts.iter().map(|name| quoted(name)));
        says.push(format!("some of these runs have doubts: {names}"));
    }
    says
}

/// The best configuration in a few words, for a line on several groups.
pub fn short_text(recommendation: &Recommendation) -> String {
    let Some(first) = recommendation.best.first() else { return String::new() };
    match (recommendation.indistinguishable, recommendation.tested - 1) {
        (ties, others) if ties == others => {
            format!("no measurable winner among {}", recommendation.tested)
        }
        (0, _) => levels(first),
        (ties, others) => format!("{} ({ties} of {others} others may be as fast)", levels(first)),
    }
}

fn levels(configuration: &Configuration) -> String {
    let levels = configuration.levels.iter().map(|(name, level)| format!("`{name}` {level}"));
    levels.collect::<Vec<_>>().join(", ")
}

/// A configuration with its results: `format npz, read_threads 4: 812 MB/s [800 MB/s, 824 MB/s] at 93.1 % AU, n = 3`.
fn configuration_text(configuration: &Configuration, unit: Unit) -> String {
    let levels = levels(configuration);
    let au = mean_text(&configuration.au_percent, Unit::Percent).map(|au| format!(" at {au} AU"));
    let throughput = mean_text(&configuration.throughput, unit).unwrap_or_default();
    let runs = match configuration.n {
        1 => "one run".into(),
        count => format!("n = {count}"),
    };
    format!("{levels}: {throughput}{}, {runs}", au.unwrap_or_default())
}

fn mean_text(middle: &Middle, unit: Unit) -> Option<String> {
    Some(with_interval(middle.estimate?, middle.interval, |value| unit.text(value)))
}

/// The changes against the baseline; `None` if there are none.
fn changes_text(configuration: &Configuration) -> Option<String> {
    let parts = configuration.changes.iter();
    let parts = parts.map(|change| {
        format!("`{}` {} instead of {}", change.factor, change.level, change.baseline)
    });
    (!configuration.changes.is_empty()).then(|| format!("against the baseline: {}", list(parts)))
}
