//! Advises shards of many samples if each sample has a separate file and accelerators wait for opens.

use super::{Case, Cost, Proposal, Risk, Rule, case};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "shards",
    source: "dfanalyzer, metadata at least half of the I/O time; WebDataset",
    sees: "training waits for opening files of one sample",
    proposes: "`dataset.format=tfrecord`, fewer files",
    change: "",
    why: "each sample is a file, of {file_bytes}, and an open takes {open_s}: {shards} files instead of {files}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::tiny_files,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case::lost_to_files_s(case)?;
    let (fewer_files, evidence) = case::fewer_files(case)?;
    if case.plan().dataset.samples_per_file > 1 {
        return None;
    }
    let overrides = [vec!["dataset.format=tfrecord".into()], fewer_files].concat();
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::Shuffling, ..proposal })
}
