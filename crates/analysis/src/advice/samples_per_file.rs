//! Advises more samples per file, if files hold few samples and accelerators wait for opens.

use super::{Case, Cost, Proposal, Risk, Rule, case};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "samples_per_file",
    source: "dfanalyzer, metadata at least half of the I/O time; I/O analysis of imagenet_cnn",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::small_files,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case::lost_to_files_s(case)?;
    let (overrides, evidence) = case::fewer_files(case)?;
    if case.plan().dataset.samples_per_file <= 1 {
        return None;
    }
    let proposal = RULE.proposal(&overrides, lost_s, evidence);
    Some(Proposal { cost: Cost::Dataset, risk: Risk::Shuffling, ..proposal })
}
