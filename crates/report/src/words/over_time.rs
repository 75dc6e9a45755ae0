//! Renders findings on changes during runs: the first epoch against later ones, and training around checkpoints.

use super::number::{chance, list, range, relative_to, two_digits, with_interval};
use super::terms::title;
use feedrate_analysis::finding::{EffectSize, EffectUnit, Finding, Quantity};
use feedrate_analysis::precision::ALPHA;
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_spec::units::{self, counted};

/// A finding on the first epoch.
pub(super) fn epochs(finding: &Finding, experiments: usize) -> String {
    let effects = finding.effects.iter();
    let parts = list(
        effects.map(|effect| phase_comparison(effect, "of the first epoch", "that of later ones")),
    );
    format!("{}{parts}{}", untested_prefix(finding), evidence(finding, experiments))
}

/// A finding on the cost of checkpoints.
pub(super) fn checkpoints(finding: &Finding, experiments: usize) -> String {
    let mut costs = Vec::new();
    let mut share = None;
    let mut parts = Vec::new();
    let mut is_idle = true;
    for effect in &finding.effects {
        match effect.quantity {
            Quantity::CheckpointDuration => {
                costs.push(format!("takes {}", amount(effect)));
            }
            Quantity::CheckpointNetCost => costs.push(format!("costs {} net", amount(effect))),
            Quantity::CheckpointShare => {
                share = Some(format!("checkpoints are {} of the time", amount(effect)));
            }
            Quantity::DuringCheckpoints(_) => {
                is_idle = false;
                parts.push(phase_comparison(effect, "during it", "that before"));
            }
            _ => parts.push(phase_comparison(effect, "after it", "that before")),
        }
    }
    let idle = if is_idle { "; no step ran during one" } else { "" };
    let beside = if parts.is_empty() {
        String::new()
    } else {
        format!("; {}{}", list(&parts), evidence(finding, experiments))
    };
    let each = (!costs.is_empty()).then(|| format!("a checkpoint {}", list(&costs)));
    let costs: Vec<String> = each.into_iter().chain(share).collect();
    format!("{}{}{idle}{beside}", untested_prefix(finding), costs.join("; "))
}

/// Compares two phases: `throughput of the first epoch is 38 % below that of later ones [36 %, 40 %]`. An insignificant difference is shown by its
/// interval.
fn phase_comparison(effect: &EffectSize, when: &str, other: &str) -> String {
    let (Quantity::FirstEpoch(name)
    | Quantity::DuringCheckpoints(name)
    | Quantity::AfterCheckpoints(name)) = effect.quantity
    else {
        return String::new();
    };
    let title = if name == SAMPLES_WHOLE.id.name() { "throughput" } else { title(name) };
    match effect.p {
        // Throughput is in samples, because bytes are read ahead of the steps that use them.
        Some(p) if ALPHA <= p => {
            format!("{title} {when} does not differ measurably from {other} ({})", range(effect))
        }
        _ => format!("{title} {when} is {}", relative_to(other, effect)),
    }
}

/// A duration or a share of the time, with its interval.
fn amount(effect: &EffectSize) -> String {
    with_interval(effect.estimate, effect.low.zip(effect.high), |value| match effect.unit {
        EffectUnit::Seconds => units::seconds(value),
        _ => format!("{} %", two_digits(100.0 * value)),
    })
}

/// A prefix for findings without a test.
fn untested_prefix(finding: &Finding) -> &'static str {
    let is_tested = finding.effects.iter().any(|effect| effect.low.is_some());
    if is_tested { "" } else { "not tested: " }
}

/// The number of runs and experiments behind a finding, and its largest significant p value.
fn evidence(finding: &Finding, experiments: usize) -> String {
    let tested = finding.effects.iter().filter(|effect| effect.p.is_some());
    let p = tested.clone().filter_map(|effect| effect.p).filter(|p| *p < ALPHA).reduce(f64::max);
    let tests = tested.filter_map(|effect| effect.tests).max().unwrap_or(1);
    let runs = finding.effects.iter().map(|effect| effect.n).max().unwrap_or(0);
    let chance = p.map_or(String::new(), |p| format!(" ({})", chance(p, tests)));
    let runs = counted(runs as u64, "run");
    format!(", {runs} of {}{chance}", counted(experiments as u64, "experiment"))
}
