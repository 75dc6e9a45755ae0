//! Hosts that disagree about the time.

use super::{Check, Doubt, Severity, found};

/// Time services keep clocks nearer.
const APART_MAX_NS: i64 = 1_000_000_000;

pub(super) static DOUBT: Doubt = Doubt {
    name: "clocks_differ",
    severity: Severity::Warning,
    meaning: "Ranks that wait for each other in every step begin and end all blocks over a second apart, by the same time: their hosts' clocks differ. Whole epochs are taken on the clock of the first rank.",
    check: Check::OfRun(|loaded| {
        let offsets = &loaded.imported?.clock_offsets_ns;
        let (least, most) = (*offsets.iter().min()?, *offsets.iter().max()?);
        if most - least <= APART_MAX_NS {
            return None;
        }
        let first = loaded.imported?.ranks.first()?;
        let others = || offsets.iter().copied().filter(|offset| *offset != 0);
        let seconds = |ns: i64| format!("{:+.2}", ns as f64 / 1e9);
        let (from, to) = (seconds(others().min()?), seconds(others().max()?));
        let (clocks, are) = match others().count() {
            1 => ("clock", "is"),
            _ => ("clocks", "are"),
        };
        let span = if from == to { from } else { format!("{from} to {to}") };
        found(
            format!(
                "the {clocks} of {} of {} ranks {are} {span} s from that of rank {first}",
                others().count(),
                offsets.len()
            ),
            "keep the clocks of hosts together by a time service; beginnings and ends of different ranks cannot be compared as they stand in the files",
        )
    }),
};
