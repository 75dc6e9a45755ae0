//! This machine had no processor left.

use super::{Doubt, Severity, found};
use crate::record::System;

const BUSY_SHARE_MAX: f64 = 0.95;

pub(super) static DOUBT: Doubt = Doubt {
    name: "client_cpu_saturated",
    severity: Severity::Warning,
    meaning: "All cores of this machine were busy: it may be the client that is slow, not the storage.",
    check: |facts| {
        let shares = facts.record.epochs.iter().filter_map(|epoch| epoch.host.cpu_busy_share);
        let busiest = shares.fold(0.0, f64::max);
        if busiest <= BUSY_SHARE_MAX {
            return None;
        }
        found(
            format!(
                "the {} cores were {:.0} % busy in an epoch",
                facts.record.machines().iter().map(System::all_cpus).sum::<u32>(),
                busiest * 100.0
            ),
            "use fewer accelerators or workers on this machine, stop other programs, or check less (`--verify`, checksums)",
        )
    },
};
