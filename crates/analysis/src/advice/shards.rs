//! Each sample is a file of its own, and opening them takes the time.

use super::{Case, Cost, Proposal, Risk, Rule, case};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "shards",
    source: "dfanalyzer, metadata at least half of the I/O time; WebDataset",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::tiny_files,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case::lost_to_files_s(case)?;
    let (overrides, evidence) = case::fewer_files(case)?;
    if case.plan().dataset.samples_per_file > 1 {
        return None;
    }
    let overrides = [vec!["dataset.format=tfrecord".into()], overrides].concat();
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::Shuffling, ..proposal })
}
