//! Sentences about epochs and checkpoints: what changes while runs last.

use super::number::{against, chance, list, range, two_digits, with_ends};
use super::terms::title;
use feedrate_analysis::finding::{EffectSize, EffectUnit, Finding, Quantity};
use feedrate_analysis::precision::ALPHA;
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_spec::units::{self, counted};

pub(super) fn epochs(finding: &Finding, experiments: usize) -> String {
    let effects = finding.effects.iter();
    let parts = list(effects.map(|of| part(of, "of the first epoch", "that of later ones")));
    format!("{}{parts}{}", untested(finding), rests(finding, experiments))
}

pub(super) fn checkpoints(finding: &Finding, experiments: usize) -> String {
    let (mut costs, mut parts) = (Vec::new(), Vec::new());
    let mut is_idle = true;
    for of in &finding.effects {
        match of.quantity {
            Quantity::CheckpointDuration => {
                costs.push(format!("a checkpoint takes {}", amount(of)))
            }
            Quantity::CheckpointShare => {
                costs.push(format!("checkpoints are {} of the time", amount(of)));
            }
            Quantity::DuringCheckpoints(_) => {
                is_idle = false;
                parts.push(part(of, "during it", "that before"));
            }
            _ => parts.push(part(of, "after it", "that before")),
        }
    }
    let idle = if is_idle { "; no step lies in one" } else { "" };
    let beside = if parts.is_empty() {
        String::new()
    } else {
        format!("; {}{}", list(&parts), rests(finding, experiments))
    };
    format!("{}{}{idle}{beside}", untested(finding), costs.join(", "))
}

/// `samples per second of the first epoch is 38 % below that of later ones [36 %, 40 %]`; what is not told from nothing is a range.
fn part(of: &EffectSize, when: &str, other: &str) -> String {
    let (Quantity::FirstEpoch(name)
    | Quantity::DuringCheckpoints(name)
    | Quantity::AfterCheckpoints(name)) = of.quantity
    else {
        return String::new();
    };
    let title = if name == SAMPLES_WHOLE.id.name() { "throughput" } else { title(name) };
    match of.p {
        // In samples: bytes are read ahead of the steps that take them.
        Some(p) if ALPHA <= p => {
            format!("{title} {when} is not told apart from {other} ({})", range(of))
        }
        _ => format!("{title} {when} is {}", against(other, of)),
    }
}

/// Seconds, or a share of the time, with its interval.
fn amount(of: &EffectSize) -> String {
    with_ends(of.estimate, of.low.zip(of.high), |value| match of.unit {
        EffectUnit::Seconds => units::seconds(value),
        _ => format!("{} %", two_digits(100.0 * value)),
    })
}

fn untested(finding: &Finding) -> &'static str {
    let is_tested = finding.effects.iter().any(|of| of.low.is_some());
    if is_tested { "" } else { "not tested: " }
}

fn rests(finding: &Finding, experiments: usize) -> String {
    let tested = finding.effects.iter().filter(|of| of.p.is_some());
    let p = tested.clone().filter_map(|of| of.p).filter(|p| *p < ALPHA).reduce(f64::max);
    let tests = tested.filter_map(|of| of.tests).max().unwrap_or(1);
    let runs = finding.effects.iter().map(|of| of.n).max().unwrap_or(0);
    let chance = p.map_or(String::new(), |p| format!(" ({})", chance(p, tests)));
    let runs = counted(runs as u64, "run");
    format!(", {runs} of {}{chance}", counted(experiments as u64, "experiment"))
}
