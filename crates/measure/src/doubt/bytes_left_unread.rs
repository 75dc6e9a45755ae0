//! An epoch reads only a part of the files, because samples do not include all datasets, arrays or columns.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::READ_SHARE_MIN;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "bytes_left_unread",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "An epoch reads less than 80 % of the files' bytes: a job that uses the rest needs more from the storage.",
        evidence: "an epoch reads {read_percent:.0} % of the files: {read_members}[, not {unread_members}]",
        advice: "if the job reads more, name it in `dataset.members` (in parquet `dataset.parquet.columns`)",
    },
    needs_loader: false,
    check: Some(|derived| {
        // Also for members that the user named: the workload of an automatic choice names them as well.
        let members = derived.record.members.as_ref()?;
        let share = derived.record.read_share().filter(|share| *share < READ_SHARE_MIN)?;
        let unread = (!members.names(false).is_empty()).then(|| members.list_of_unread());
        Some(
            Facts::new()
                .with("read_percent", 100.0 * share)
                .with("read_members", members.list_of_read())
                .with_known("unread_members", unread),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "an epoch reads 70 % of the files: `images`, not `masks` and `labels`",
            |r| {
                r.members = super::tests::members(700);
            },
        ),
        // Files that were not opened before the run hold more.
        super::tests::fires(
            "an epoch reads 60 % of the files: `images`, not `masks` and `labels`",
            |r| {
                r.members = super::tests::members(900);
                set_stored_bytes(r, 60.0);
            },
        ),
        super::tests::silent(|r| r.members = super::tests::members(900)),
        super::tests::silent(|r| {
            r.members = super::tests::members(700);
            set_stored_bytes(r, 90.0);
        }),
    ],
};

#[cfg(test)]
fn set_stored_bytes(record: &mut crate::record::Record, read_bytes: f64) {
    let io = &mut record.epochs[0].accelerators[0].io;
    io.count_stored(read_bytes, 100.0);
}
