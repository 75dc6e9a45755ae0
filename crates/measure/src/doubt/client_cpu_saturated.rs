//! All processors of the machine were busy.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::noise::are_cores_busy;
use crate::record::System;

/// Name of the doubt.
pub const NAME: &str = "client_cpu_saturated";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "All cores of this machine were busy: it may be the client that is slow, not the storage.",
        evidence: "the {cores} were {busy_percent:.0} % busy in an epoch",
        advice: "use fewer accelerators or workers on this machine, stop other programs, or check less (`--verify`, checksums)",
    },
    needs_loader: false,
    check: Some(|derived| {
        let shares = derived.record.epochs.iter().filter_map(|epoch| epoch.host.cpu_busy_share);
        let busiest = shares.fold(0.0, f64::max);
        if !are_cores_busy(busiest) {
            return None;
        }
        let cores: u32 = derived.record.machines().iter().map(System::all_cpus).sum();
        Some(Facts::new().with("cores", cores).with("busy_percent", busiest * 100.0))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("the 8 cores were 97 % busy", |r| {
            r.epochs[2].host.cpu_busy_share = Some(0.97);
        }),
        super::tests::silent(|r| r.epochs[2].host.cpu_busy_share = Some(0.9)),
        super::tests::silent(|r| r.epochs[2].host.cpu_busy_share = None),
    ],
};
