//! The files have many datasets or arrays that are named alike. What a sample is was guessed.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use feedrate_spec::escape;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "samples_guessed",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "A file has many datasets or arrays whose names differ only in numbers: each of them could be a sample or an episode, but samples were taken to be a part of each.",
        evidence: "each of {alike_members} parts like `{first_member}` could be a sample, but a sample was taken from all that are read",
        advice: "write one dataset with a row for each sample, or name what a sample is read from in `dataset.members`",
    },
    needs_loader: false,
    check: Some(|derived| {
        let alike = derived.record.members.as_ref()?.alike.as_ref()?;
        let name = escape::one_line(&alike.name).to_string();
        Some(Facts::new().with("alike_members", alike.members).with("first_member", name))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("each of 200 parts like `demo_0/images` could be a sample", |r| {
            r.members = super::tests::members(900);
            let name = "demo_0/images".into();
            let alike = crate::record::AlikeMembers { name, members: 200 };
            r.members.as_mut().unwrap().alike = Some(alike);
        }),
        super::tests::silent(|r| r.members = super::tests::members(900)),
    ],
};
