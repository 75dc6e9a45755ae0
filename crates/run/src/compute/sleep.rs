//! Compute as a wait of known length, carried out by the driver's timers.

use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member = Member {
    name: "sleep",
    summary: "a wait to an absolute deadline, of constant or drawn length",
    abilities: &[],
};
