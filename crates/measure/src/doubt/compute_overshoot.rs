//! Emulated compute steps took longer than configured.

use super::{Bias, Doubt, DoubtKind, RecordDoubt, Severity};
use crate::derived::Derived;
use crate::facts::{Fact, Facts};
use crate::metric::COMPUTE_S;
use crate::record::AcceleratorEpoch;
#[cfg(test)]
use feedrate_spec::plan::ClientPlan;
#[cfg(test)]
use feedrate_spec::workload::TimeSpec;

/// Name of the doubt.
pub const NAME: &str = "compute_overshoot";
/// Largest overshoot that causes no doubt, as a share of the configured time.
const OVERSHOOT_MAX: f64 = 0.01;
/// Delay with which a sleeping process wakes up. It is allowed if a client is emulated, as the real training process has it too.
const WAKE_UP_DELAY_S: f64 = 1e-4;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "Compute steps took more than one percent longer than configured (if a client is emulated, by an additional 0.1 ms): the accelerators requested data at a lower rate than they should have.",
        evidence: "a step's compute took {step_compute_s} on average, but {configured_s} is configured",
        advice: "[on {device}, a step lasts at least as long as the copy of its batch: use smaller batches, longer steps, or a device for each accelerator\
                 |leave a core idle: use fewer accelerators or workers on this machine, or stop other programs]",
    },
    needs_loader: false,
    check: Some(check),
    #[cfg(test)]
    cases: &[
        super::tests::fires("took 500 ms on average, but 490 ms is configured", |r| {
            r.plan.train.compute = TimeSpec::Constant { mean: 0.49 };
        }),
        super::tests::silent(|r| r.plan.train.compute = TimeSpec::Constant { mean: 0.496 }),
        super::tests::silent(|r| {
            r.plan.train.compute = TimeSpec::Normal { mean: 0.4, stdev: 0.1 };
        }),
        super::tests::silent(|r| {
            r.plan.train.compute = TimeSpec::Constant { mean: 0.495 };
            r.plan.loader.client = Some(ClientPlan::default());
        }),
        super::tests::silent(|r| r.plan.train.compute = TimeSpec::None),
        super::tests::silent(|r| {
            r.plan.train.compute = TimeSpec::Constant { mean: 0.4 };
            r.plan.train.slow_accelerators = vec![(1, 1.5)];
        }),
    ],
};

/// Measured ÷ configured compute time of a step, from the doubt in `doubts`; `None` if it is not among them.
pub fn compute_stretch(doubts: &[Doubt]) -> Option<f64> {
    let doubt = doubts.iter().find(|doubt| doubt.name == NAME)?;
    let number = |name| match doubt.facts.get(name)? {
        Fact::Number(number) => Some(*number),
        _ => None,
    };
    Some(number("step_compute_s")? / number("configured_s")?)
}

fn check(derived: &Derived) -> Option<Facts> {
    let train = &derived.record.plan.train;
    // Random compute times have no configured value to compare with.
    let configured_s = train.constant_compute_s(derived.record.plan.accelerators)?;
    let first = derived.record.epochs.iter().filter_map(|epoch| epoch.accelerators.first());
    let steps: u64 = first.map(AcceleratorEpoch::steps).sum();
    if steps == 0 || configured_s <= 0.0 {
        return None;
    }
    let step_s = derived.value(&COMPUTE_S)? / steps as f64;
    let sleeps = derived.record.plan.loader.client.is_some() && train.on_devices.is_none();
    let wake_up_delay_s = if sleeps { WAKE_UP_DELAY_S } else { 0.0 };
    if step_s <= configured_s * (1.0 + OVERSHOOT_MAX) + wake_up_delay_s {
        return None;
    }
    let facts = Facts::new()
        .with("step_compute_s", step_s)
        .with("configured_s", configured_s)
        .with_known("device", train.on_devices.clone());
    Some(facts)
}
