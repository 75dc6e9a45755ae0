//! Samples could include values that the files only refer to, such as datasets behind HDF5's external links. They were not read.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::Record;
use feedrate_spec::escape;

/// Name of the doubt.
pub const NAME: &str = "values_elsewhere";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "Samples could include values that are in other files, or that could not be found, and were not read: a job that reads them needs more from the storage.",
        evidence: "values of {elsewhere_names} are stored elsewhere and not read",
        advice: "name what the job reads in `dataset.members` (in parquet `dataset.parquet.columns`, in Arrow not possible), or run on the files that contain the values",
    },
    needs_loader: false,
    check: Some(|derived| Facts::from_list("elsewhere_names", elsewhere_names(derived.record))),
    #[cfg(test)]
    cases: &[
        super::tests::fires("values of masks are stored elsewhere and not read", |r| {
            r.members = super::tests::members(900);
            r.members.as_mut().unwrap().members[1].is_elsewhere = true;
        }),
        super::tests::fires("values of images are stored elsewhere and not read", |r| {
            r.members = super::tests::members(900);
            r.members.as_mut().unwrap().members[0].is_elsewhere = true;
        }),
        super::tests::fires("values of late are stored elsewhere and not read", |r| {
            r.epochs[0].accelerators[0].io.note_elsewhere("late");
        }),
        super::tests::silent(|r| r.members = super::tests::members(900)),
    ],
};

/// The names of members with values that samples could include, but that were not read.
pub(crate) fn elsewhere_names(record: &Record) -> Vec<String> {
    let names = record.names_of_elsewhere().into_iter();
    names.map(|name| escape::one_line(name).to_string()).collect()
}
