//! All processors of the machine were busy.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::noise::{OtherUse, are_cores_busy};

/// Name of the doubt.
pub const NAME: &str = "client_cpu_saturated";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "All cores of this machine were busy: it may be the client that is slow, not the storage.",
        evidence: "the {cores} were {busy_percent:.0} % busy in an epoch[; other programs used {others:.1} of them][, mostly {process}]",
        advice: "[stop {process}|stop other programs], or use fewer accelerators or workers on this machine[, or leave out {checks}]",
    },
    needs_loader: false,
    check: Some(|derived| {
        let shares = derived.record.epochs.iter().filter_map(|epoch| epoch.host.cpu_busy_share);
        let busiest = shares.fold(0.0, f64::max);
        if !are_cores_busy(busiest) {
            return None;
        }
        let cores = derived.record.all_cpus();
        let others = OtherUse::new(derived).filter(OtherUse::is_large);
        let process = others.as_ref().and_then(OtherUse::busiest_name);
        Some(
            Facts::new()
                .with("cores", cores)
                .with("busy_percent", busiest * 100.0)
                .with_known("others", others.as_ref().map(|others| others.cores))
                .with_known("process", process)
                .with_known("checks", derived.record.plan.loader.verify.then_some("`--verify`")),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("the 8 cores were 97 % busy", |r| {
            r.epochs[2].host.cpu_busy_share = Some(0.97);
        }),
        super::tests::fires("97 % busy in an epoch; other programs used 7.", |r| {
            for epoch in &mut r.epochs {
                epoch.host.cpu_busy_share = Some(0.97);
                epoch.host.process_cpu_ns = Some(1_000_000);
            }
        }),
        super::tests::silent(|r| r.epochs[2].host.cpu_busy_share = Some(0.9)),
        super::tests::silent(|r| r.epochs[2].host.cpu_busy_share = None),
    ],
};
