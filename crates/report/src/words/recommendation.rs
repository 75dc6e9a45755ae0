//! The best of the tested configurations, in sentences.

use super::number::{list, quoted, with_ends};
use feedrate_analysis::estimate::Middle;
use feedrate_analysis::recommendation::{Configuration, Recommendation};
use feedrate_measure::metric::Unit;
use feedrate_spec::units::counted;

/// Say what did best, what it takes, and what was not tried; a sentence each.
pub fn sentences(of: &Recommendation) -> Vec<String> {
    let Some((first, others)) = of.best.split_first() else { return Vec::new() };
    let ties = match (of.indistinguishable, of.tested - 1) {
        (0, _) => String::new(),
        (others, all) if others == all => "; all others may be as fast".into(),
        (others, all) => format!("; {others} of {all} others may be as fast"),
    };
    let mut says = vec![format!("most throughput: {}{ties}", reached(first, of.unit))];
    says.extend(costs(first));
    match others {
        [] if of.is_au_known => says.push("none of the others has a higher AU".into()),
        [] => {}
        [between @ .., last] => {
            let more = between.len() as u64;
            let more = match more {
                0 => String::new(),
                more => format!("; {} between these two", counted(more, "configuration")),
            };
            says.push(format!("highest AU: {}{more}", reached(last, of.unit)));
        }
    }
    for (name, followers) in &of.followed {
        let followers = list(followers.iter().map(|name| quoted(name)));
        says.push(format!("{followers} always changed together with `{name}`"));
    }
    let untested = of.combinations.saturating_sub(of.tested as u64);
    match untested {
        0 if !of.followed.is_empty() => {}
        0 => says.push(format!("all {} combinations of their levels were tested", of.combinations)),
        untested => says.push(format!(
            "untested: {untested} of {} combinations of their levels",
            of.combinations
        )),
    }
    if !of.doubts.is_empty() {
        let names = list(of.doubts.iter().map(|name| quoted(name)));
        says.push(format!("runs of these are doubted: {names}"));
    }
    says
}

/// Say what did best where all groups have a line together.
pub fn in_short(of: &Recommendation) -> String {
    let Some(first) = of.best.first() else { return String::new() };
    match (of.indistinguishable, of.tested - 1) {
        (ties, others) if ties == others => format!("none of {} is told apart", of.tested),
        (0, _) => levels(first),
        (ties, others) => format!("{} ({ties} of {others} others may be as fast)", levels(first)),
    }
}

fn levels(of: &Configuration) -> String {
    let levels = of.levels.iter().map(|(name, level)| format!("`{name}` {level}"));
    levels.collect::<Vec<_>>().join(", ")
}

/// `format npz, read_threads 4: 812 MB/s [800 MB/s, 824 MB/s] at 93.1 % AU, n = 3`.
fn reached(of: &Configuration, unit: Unit) -> String {
    let levels = levels(of);
    let au = written(&of.au_percent, Unit::Percent).map(|au| format!(" at {au} AU"));
    let throughput = written(&of.throughput, unit).unwrap_or_default();
    let once = if of.n == 1 { "one run" } else { "" };
    let runs = if once.is_empty() { format!("n = {}", of.n) } else { once.into() };
    format!("{levels}: {throughput}{}, {runs}", au.unwrap_or_default())
}

fn written(of: &Middle, unit: Unit) -> Option<String> {
    Some(with_ends(of.estimate?, of.interval, |value| unit.text(value)))
}

fn costs(of: &Configuration) -> Option<String> {
    let parts = of.changes.iter();
    let parts = parts.map(|of| format!("`{}` {} instead of {}", of.factor, of.level, of.baseline));
    (!of.changes.is_empty()).then(|| format!("against the baseline: {}", list(parts)))
}
