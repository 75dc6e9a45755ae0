//! The best of the tested configurations, in sentences.

use super::number::{list, two_digits, with_ends};
use feedrate_analysis::recommendation::{Configuration, ConfigurationMean, Recommendation};
use feedrate_measure::metric::Unit;
use feedrate_spec::units::counted;

/// Say what did best, what it takes, and what was not tried; a sentence each.
pub fn sentences(of: &Recommendation) -> Vec<String> {
    let Some((first, others)) = of.best.split_first() else { return Vec::new() };
    let ties = match (of.not_told_apart, of.tested - 1) {
        (0, _) => String::new(),
        (others, all) if others == all => "; all others may be as fast".into(),
        (others, all) => format!("; {others} of {all} others may be as fast"),
    };
    let mut says = vec![format!("most throughput: {}{ties}", reached(first, of.unit))];
    says.extend(costs(first, of.unit));
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
    if !of.held.is_empty() {
        let held = of.held.iter().map(|(name, level)| format!("`{name}` {level}"));
        let others = counted(of.of_other_work as u64, "configuration");
        let are = if of.of_other_work == 1 { "is" } else { "are" };
        let held = list(&held.collect::<Vec<_>>());
        says.push(format!("all of this at {held}; {others} of other work {are} not compared"));
    }
    for (name, followers) in &of.followed {
        let followers: Vec<String> = followers.iter().map(|name| format!("`{name}`")).collect();
        says.push(format!("{} always changed together with `{name}`", list(&followers)));
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
        let names: Vec<String> = of.doubts.iter().map(|name| format!("`{name}`")).collect();
        says.push(format!("runs of these are doubted: {}", list(&names)));
    }
    says
}

/// `format npz, read_threads 4: 812 MB/s [800 MB/s, 824 MB/s] at 93.1 % AU, n = 3`.
fn reached(of: &Configuration, unit: Unit) -> String {
    let levels = of.levels.iter().map(|(name, level)| format!("`{name}` {level}"));
    let levels = levels.collect::<Vec<_>>().join(", ");
    let au = of.au_percent.map(|au| format!(" at {} AU", written(&au, Unit::Percent)));
    let throughput = written(&of.throughput, unit);
    let once = if of.n == 1 { "one run" } else { "" };
    let runs = if once.is_empty() { format!("n = {}", of.n) } else { once.into() };
    format!("{levels}: {throughput}{}, {runs}", au.unwrap_or_default())
}

fn written(of: &ConfigurationMean, unit: Unit) -> String {
    with_ends(of.middle, of.interval.map(|one| (one.low, one.high)), |value| unit.text(value))
}

fn costs(of: &Configuration, unit: Unit) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(times) = of.times_accelerators() {
        let each = of.throughput_each.map(|rate| unit.text(rate));
        let each = each.map_or(String::new(), |each| format!(" ({each} each)"));
        parts.push(format!("{} × the accelerators{each}", two_digits(times)));
    }
    let others = of.changes.iter().filter(|change| change.factor != "processes");
    parts.extend(
        others.map(|of| format!("`{}` {} instead of {}", of.factor, of.level, of.baseline)),
    );
    (!parts.is_empty()).then(|| format!("against the baseline: {}", list(&parts)))
}
