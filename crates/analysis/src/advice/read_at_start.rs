//! Advises reading the dataset into memory at the start if several epochs read the same bytes and memory can hold the dataset.

use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "read_at_start",
    source: "I/O analyses of candle_nt3 and mma_adsp; CoorDL (VLDB'21)",
    sees: "the dataset fits into half of the memory and is read in enough epochs",
    proposes: "`reader.read_type`, `reader.read_at_start`",
    change: "",
    why: "the {dataset_bytes} of decoded samples fit into {memory_bytes} of memory; reading them takes {load_s}, which is worth it from {break_even:.1} epochs on",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::many_epochs,
};

fn propose(case: &Case) -> Option<Proposal> {
    case.lost_s(&[WaitCause::Read, WaitCause::Open, WaitCause::Decode])?;
    let record = case.derived.record;
    let plan = case.plan();
    let memory_bytes = record.system.memory_bytes?;
    let epochs = record.epochs.len() as f64;
    let threads = f64::from(plan.readers() * plan.loader.streams());
    let io = &case.derived.io;
    let load_s = (io.open_ns + io.read_ns + io.decode_ns) as f64 / 1e9 / threads / epochs;
    let stall_s = case.data_wait_s()? / epochs;
    let break_even = load_s / stall_s;
    let is_possible =
        case.fits_into_memory()? && !plan.loader.in_memory && !plan.loader.is_broadcast();
    (is_possible && stall_s > 0.0 && break_even < epochs).then(|| {
        let evidence = Facts::new()
            .with("dataset_bytes", case.derived.dataset_bytes)
            .with("memory_bytes", memory_bytes)
            .with("load_s", load_s)
            .with("break_even", break_even)
            .with("epochs", record.epochs.len());
        let overrides = ["reader.read_type=memory".into(), "reader.read_at_start=true".into()];
        let proposal = RULE.proposal(&overrides, stall_s * epochs - load_s, evidence);
        Proposal { cost: Cost::Memory, risk: Risk::LateStart, ..proposal }
    })
}
