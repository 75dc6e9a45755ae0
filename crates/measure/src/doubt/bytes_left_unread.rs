//! An epoch reads only a part of the files, because samples do not include all datasets, arrays or columns.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use feedrate_spec::escape;

/// Share of the files' bytes below which the doubt is reported.
const READ_SHARE_MIN: f64 = 0.8;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "bytes_left_unread",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "An epoch reads less than 80 % of the files' bytes: a job that uses the rest needs more from the storage.",
        evidence: "an epoch reads {read_percent:.0} % of the files: {read_names}[, not {unread_names}]",
        advice: "if the job reads more, name it in `dataset.members` (in parquet `dataset.parquet.columns`)",
    },
    needs_loader: false,
    check: Some(|derived| {
        // Also for members that the user named: the workload of an automatic choice names them as well.
        let members = derived.record.members.as_ref()?;
        let share = members.read_share().filter(|share| *share < READ_SHARE_MIN)?;
        let names = |are_read| -> Vec<String> {
            let names = members.names(are_read).into_iter();
            names.map(|name| escape::one_line(name).to_string()).collect()
        };
        let unread = Some(names(false)).filter(|names| !names.is_empty());
        Some(
            Facts::new()
                .with("read_percent", 100.0 * share)
                .with("read_names", names(true))
                .with_known("unread_names", unread),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("an epoch reads 70 % of the files: images, not masks; labels", |r| {
            r.members = super::tests::members(700);
        }),
        super::tests::silent(|r| r.members = super::tests::members(900)),
    ],
};
