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
        meaning: "An epoch reads less than 80 % of the files' bytes, or not the values that they store elsewhere: a job that uses the rest needs more from the storage.",
        evidence: "an epoch reads [{read_percent:.0} % of the files: ]{read_names}[, not {unread_names}][; values of {elsewhere_names} are stored elsewhere and not read]",
        advice: "if the job reads more, name it in `dataset.members` (in parquet `dataset.parquet.columns`)",
    },
    needs_loader: false,
    check: Some(|derived| {
        // Also for members that the user named: the workload of an automatic choice names them as well.
        let members = derived.record.members.as_ref()?;
        let share = members.read_share();
        let is_large = share.is_none_or(|share| share >= READ_SHARE_MIN);
        let escaped = |names: Vec<&str>| -> Option<Vec<String>> {
            let names = names.into_iter().map(|name| escape::one_line(name).to_string());
            Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty())
        };
        let elsewhere = escaped(members.names_of_elsewhere());
        if is_large && elsewhere.is_none() {
            return None;
        }
        Some(
            Facts::new()
                .with_known("read_percent", share.map(|share| 100.0 * share))
                .with("read_names", escaped(members.names(true)).unwrap_or_default())
                .with_known("unread_names", escaped(members.names(false)))
                .with_known("elsewhere_names", elsewhere),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("an epoch reads 70 % of the files: images, not masks; labels", |r| {
            r.members = super::tests::members(700);
        }),
        super::tests::fires(
            "an epoch reads images, not masks; labels; values of masks are stored elsewhere and not read",
            |r| {
                r.members = super::tests::members(900);
                r.members.as_mut().unwrap().members[1].is_elsewhere = true;
            },
        ),
        super::tests::fires("values of images are stored elsewhere and not read", |r| {
            r.members = super::tests::members(900);
            r.members.as_mut().unwrap().members[0].is_elsewhere = true;
        }),
        super::tests::silent(|r| r.members = super::tests::members(900)),
    ],
};
