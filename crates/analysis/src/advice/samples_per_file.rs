//! Advises more samples per file if files hold few samples and accelerators wait for opens.

use super::{Case, Cost, Proposal, Risk, Rule, case};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "samples_per_file",
    source: "dfanalyzer, metadata at least half of the I/O time; I/O analysis of imagenet_cnn",
    sees: "training waits for opening small files",
    proposes: "fewer files with more samples",
    change: "",
    why: "a file has {file_bytes}, and an open takes {open_s}: {shards} files instead of {files}",
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
