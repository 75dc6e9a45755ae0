//! Advises more stripes if large files are located on one storage target of a Lustre file system.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

/// Smallest file that gains from several targets.
const FILE_BYTES_MIN: f64 = (64 << 20) as f64;

pub(super) static RULE: Rule = Rule {
    name: "striping",
    source: "drishti, Lustre stripes against the length of files",
    sees: "long files are stored on one Lustre target",
    proposes: "more stripes",
    change: "stripe the files over more targets (lfs setstripe -c -1)",
    why: "files of {file_bytes} have {stripes} stripe: {layout}",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::one_stripe,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let record = case.derived.record;
    let striping = record.system.data_mount.as_ref()?.striping.as_deref()?;
    let mut words = striping.split_whitespace().skip_while(|word| *word != "stripe_count:");
    let stripes: u32 = words.nth(1)?.parse().ok()?;
    let file_bytes = case.sample_bytes() * record.plan.dataset.samples_per_file as f64;
    (stripes == 1 && FILE_BYTES_MIN <= file_bytes).then(|| {
        let evidence = Facts::new()
            .with("stripes", stripes)
            .with("file_bytes", file_bytes as u64)
            .with("layout", striping);
        Proposal { cost: Cost::Dataset, ..RULE.proposal(&[], lost_s, evidence) }
    })
}
