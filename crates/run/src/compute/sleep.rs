//! A wait of known length, which the driver's timers carry out.

use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member = Member {
    name: "sleep",
    summary: "a wait to an absolute deadline, of constant or drawn length",
    abilities: &[],
};
