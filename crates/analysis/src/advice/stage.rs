//! Advises a copy of the dataset on a local disk if several epochs read the same bytes from slow storage and memory cannot hold
//! the dataset.

use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::UNIQUE_BYTES;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "stage",
    source: "CoorDL (VLDB'21), caches of a machine; I/O analyses of climate_segmentation and imagenet_cnn",
    sees: "the dataset does not fit into memory and is read in enough epochs",
    proposes: "`reader.stage=DIR` on a local disk",
    change: "reader.stage=DIR, a folder of a local disk",
    why: "each epoch reads the {dataset_bytes} again; copying them takes {copy_s}, which is worth it from {break_even:.1} epochs on",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::larger_than_memory,
};

fn propose(case: &Case) -> Option<Proposal> {
    let stall_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let plan = case.plan();
    let io = &case.derived.io;
    let epochs = case.derived.record.epochs.len() as f64;
    let threads = f64::from(plan.readers() * plan.loader.streams());
    let busy_s = (io.open_ns + io.read_ns) as f64 / 1e9 / threads;
    let bytes = case.derived.value(&UNIQUE_BYTES).unwrap_or(case.derived.dataset_bytes as f64);
    // The copy reads each byte once, as fast as the run read.
    let copy_s = busy_s * bytes / io.read_bytes as f64;
    let break_even = copy_s / (stall_s / epochs);
    let is_possible = plan.stage.is_none() && !case.fits_into_memory()?;
    (is_possible && break_even < epochs).then(|| {
        let evidence = Facts::new()
            .with("dataset_bytes", bytes as u64)
            .with("copy_s", copy_s)
            .with("break_even", break_even);
        let proposal = RULE.proposal(&[], stall_s - copy_s, evidence);
        Proposal { cost: Cost::LocalDisk, risk: Risk::LateStart, ..proposal }
    })
}
