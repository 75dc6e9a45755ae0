//! Advises more threads if accelerators wait for decoding or for the client's work and cores are free for threads. Otherwise advises
//! more cores.

use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use crate::predict::{PipelineChange, Scale};
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "decode_threads",
    source: "tf.data and Plumber: parallelism by the cost of each stage",
    sees: "training waits for decoding",
    proposes: "more threads if cores are free, otherwise more cores",
    change: "{lacks_cores} more, [for {for_client}|to decode]",
    why: "[the client's work on a sample takes {client_s} of a processor|decoding a sample takes {decode_s}]: each accelerator needs {needed_threads} threads and has {threads}, on {cores}[; more threads would only share the cores: {lacks_cores} more would suffice, or less work per sample]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::slow_decode,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_to_client_s = case.lost_to_client_s();
    if lost_to_client_s.is_some() && case.client_limit().is_some() {
        return None;
    }
    let lost_s = lost_to_client_s.or(case.lost_s(&[WaitCause::Decode]))?;
    let sample = case.sample()?;
    let loader = &case.plan().loader;
    let threads = loader.decode_threads.unwrap_or(loader.workers);
    let needed = case.threads_needed()?;
    let accelerators = case.plan().accelerators.max(1);
    let threads_max = needed.min((case.cores() / accelerators).max(1));
    // The client's work can be distributed over more cores, but not made faster.
    let client_s = lost_to_client_s.map(|_| sample.client_cpu_s + sample.loader_cpu_s);
    let (needed_cores, is_short) = match lost_to_client_s {
        Some(_) => (case.client_cores()?, true),
        None => (needed * accelerators, threads.max(1) < needed),
    };
    let evidence = |needed_threads: u32| {
        Facts::new()
            .with_known("client_s", client_s)
            .with("decode_s", sample.decode_s)
            .with("threads", threads)
            .with("needed_threads", needed_threads)
            .with("cores", case.cores())
    };
    if threads_max > threads.max(1) {
        let mut overrides =
            vec![format!("reader.read_threads={}", threads_max.max(loader.workers))];
        if loader.decode_threads.is_some() {
            overrides.push(format!("reader.computation_threads={threads_max}"));
        }
        let proposal = RULE.proposal(&overrides, lost_s, evidence(needed));
        return Some(Proposal { cost: Cost::Processors, risk: Risk::Memory, ..proposal });
    }
    let missing_cores = needed_cores.saturating_sub(case.cores());
    (is_short && missing_cores > 0).then(|| {
        let decode_factor = f64::from(threads.max(1)) / f64::from(needed);
        let needed_samples_per_second =
            1.0 / case.compute_per_sample_s().unwrap_or(f64::INFINITY) * f64::from(accelerators);
        // More cores only help the work that takes processor time.
        let needed_threads = client_s.map_or(needed, |_| needed_cores.div_ceil(accelerators));
        let cores_evidence = evidence(needed_threads)
            .with("lacks_cores", missing_cores)
            .with_known("for_client", client_s.map(|_| "the client"))
            .with("needed_samples_per_second", needed_samples_per_second);
        let changes = match client_s {
            Some(_) => Vec::new(),
            None => vec![PipelineChange::DecodeTime(Scale::Times(decode_factor))],
        };
        let proposal = RULE.proposal(&[], lost_s, cores_evidence);
        Proposal { cost: Cost::Hardware, changes, ..proposal }
    })
}
