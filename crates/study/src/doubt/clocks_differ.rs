//! Hosts that disagree about the time.

use super::{Check, Doubt, Severity, found};

/// Time services keep clocks nearer.
const APART_MAX_NS: i64 = 1_000_000_000;

pub(super) static DOUBT: Doubt = Doubt {
    name: "clocks_differ",
    severity: Severity::Warning,
    meaning: "Ranks that wait for each other in every step begin and end all blocks over a second apart, by the same time: their hosts' clocks differ. Whole epochs are taken on the clock of rank 0.",
    check: Check::OfRun(|loaded| {
        let offsets = &loaded.clock_offsets_ns;
        let (least, most) = (*offsets.iter().min()?, *offsets.iter().max()?);
        if most - least <= APART_MAX_NS {
            return None;
        }
        let seconds = |ns: i64| ns as f64 / 1e9;
        let count = offsets.iter().filter(|offset| **offset != 0).count();
        found(
            format!(
                "the clocks of {count} of {} ranks are {:+.2} to {:+.2} s from that of rank 0, {:.2} s apart",
                offsets.len(),
                seconds(least),
                seconds(most),
                seconds(most - least)
            ),
            "keep the clocks of hosts together by a time service; beginnings and ends of different ranks cannot be compared as they stand in the files",
        )
    }),
};
