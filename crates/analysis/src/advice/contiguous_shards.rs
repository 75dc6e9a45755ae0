//! Advises separate files for accelerators that share files: an accelerator skips the samples of other accelerators, so its reads
//! are not consecutive.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{CONSECUTIVE, SEQUENTIAL};
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::FileAccess;

/// Largest share of consecutive reads for which the rule applies.
const CONSECUTIVE_SHARE_MAX: f64 = 0.5;
/// Smallest share of reads that go forwards in the file.
const SEQUENTIAL_SHARE_MIN: f64 = 0.9;

pub(super) static RULE: Rule = Rule {
    name: "contiguous_shards",
    source: "I/O analysis of ffn with Darshan; drishti P11 to P14",
    sees: "reads go forwards but do not follow one another",
    proposes: "`reader.file_access=multi`",
    change: "",
    why: "{consecutive_percent:.0} % of the reads start at the end of the previous read: each of {all_accelerators} skips the samples of the others",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::interleaved_samples,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let consecutive = case.derived.value(&CONSECUTIVE)?;
    let sequential = case.derived.value(&SEQUENTIAL)?;
    let plan = case.plan();
    let loader = &plan.loader;
    let share_files = plan.accelerators > 1
        && loader.file_access == FileAccess::Shared
        && loader.group_accelerators <= 1;
    let skips = consecutive <= CONSECUTIVE_SHARE_MAX && SEQUENTIAL_SHARE_MIN <= sequential;
    (share_files && skips).then(|| {
        let evidence = Facts::new()
            .with("all_accelerators", plan.accelerators)
            .with("consecutive_percent", 100.0 * consecutive)
            .with("sequential_percent", 100.0 * sequential);
        let overrides = ["reader.file_access=multi".into()];
        Proposal { risk: Risk::Shuffling, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}
