//! Decoding, or the client's work, takes the time: more threads, as far as there are cores for them.

use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use crate::predict::{PipelineChange, Scale};
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "decode_threads",
    source: "tf.data and Plumber: parallelism by the cost of each stage",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_decode,
};

fn propose(case: &Case) -> Option<Proposal> {
    let of_client_s = case.lost_to_client_s();
    let lost_s = of_client_s.or(case.lost_s(&[WaitCause::Decode]))?;
    let (loader, sample) = (&case.plan().loader, case.sample()?);
    let threads = loader.decode_threads.unwrap_or(loader.workers);
    let needed = case.threads_needed()?;
    let accelerators = case.plan().accelerators.max(1);
    let fit = needed.min((case.cores() / accelerators).max(1));
    // What the client takes is as long as it is: it can be shared out, and not be made faster.
    let client_s = of_client_s.map(|_| sample.burnt_s + sample.own_s);
    let (needed_cores, is_short) = match of_client_s {
        Some(_) => (case.cores_of_client()?, true),
        None => (needed * accelerators, threads.max(1) < needed),
    };
    let evidence = Facts::new()
        .with_known("client_s", client_s)
        .with("decode_s", sample.decode_s)
        .with("threads", threads)
        .with("needed_threads", needed)
        .with("cores", case.cores());
    if fit > threads.max(1) {
        let mut overrides = vec![format!("reader.read_threads={}", fit.max(loader.workers))];
        overrides
            .extend(loader.decode_threads.map(|_| format!("reader.computation_threads={fit}")));
        let proposal = RULE.proposal(&overrides, lost_s, evidence);
        return Some(Proposal { cost: Cost::Processors, risk: Risk::Memory, ..proposal });
    }
    let lacks_cores = needed_cores.saturating_sub(case.cores());
    (is_short && lacks_cores > 0).then(|| {
        let faster = f64::from(threads.max(1)) / f64::from(needed);
        let lacks =
            1.0 / case.compute_of_sample_s().unwrap_or(f64::INFINITY) * f64::from(accelerators);
        let evidence = evidence
            .with("lacks_cores", lacks_cores)
            .with_known("for_client", client_s.map(|_| "the client"))
            .with("needed_samples_per_second", lacks);
        Proposal {
            cost: Cost::Hardware,
            changes: client_s.map_or_else(
                || vec![PipelineChange::DecodeTime(Scale::Times(faster))],
                |_| Vec::new(),
            ),
            ..RULE.proposal(&[], lost_s, evidence)
        }
    })
}
