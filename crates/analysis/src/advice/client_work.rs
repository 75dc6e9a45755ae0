//! Advises less work of the client if training waits for it, which faster storage does not shorten.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "client_work",
    source: "tf.data and Plumber: caching of decoded samples; FFCV: smaller samples; DALI: decoding on the GPU",
    sees: "training waits for the client's own work",
    proposes: "smaller samples, cheaper transforms, or decoding on the GPU",
    change: "less work per sample in your code: smaller samples, cheaper transforms, or decoding on the GPU",
    why: "[{limit} allows a batch for each accelerator every {interval_s}, which neither more workers nor more cores shorten|the training's process takes {receive_s} for a batch, which more workers do not shorten|a worker of your code takes {worker_s} for a sample; each accelerator trains on one every {sample_s}, with {workers} workers]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_client,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Client])?;
    let sample = case.sample()?;
    let limit = case.client_limit();
    let evidence = Facts::new()
        .with_known("limit", limit.as_ref().map(|limit| limit.name))
        .with_known("interval_s", limit.as_ref().map(|limit| limit.interval_s))
        .with_known("receive_s", case.receive_s())
        .with("worker_s", sample.client_s + sample.decode_s)
        .with("sample_s", case.compute_per_sample_s()?)
        .with("workers", case.plan().loader.workers);
    Some(Proposal { cost: Cost::Attention, ..RULE.proposal(&[], lost_s, evidence) })
}
