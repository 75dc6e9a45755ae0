//! Advises the smallest number of reading threads that feeds an accelerator, if its threads wait for the latency of the
//! storage, each with one request in flight.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::IN_FLIGHT;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "read_threads",
    source: "Little's law; Chien et al. (2018), threads 2.3 to 7.8 times; I/O analyses of frnn and cosmoflow",
    sees: "threads wait for latency, one request each",
    proposes: "the smallest `reader.read_threads` that feeds",
    change: "",
    why: "a sample takes a thread {sample_s}[, its compute {compute_s}][; {in_flight:.1} reads are in flight]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::latency,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let sample = case.sample()?;
    let threads = case.plan().loader.workers;
    let needed = case.threads_needed()?;
    let is_saturated = sample.open_s < sample.read_s && !case.gains_by_more_reads();
    (threads < needed && !is_saturated).then(|| {
        // If the threads wait for opens, hardly any reads are in flight, and the figure explains nothing.
        let in_flight = case.derived.value(&IN_FLIGHT).filter(|reads| 0.1 <= *reads);
        let evidence = Facts::new()
            .with("threads", threads)
            .with("sample_s", sample.total_s())
            .with_known("compute_s", case.compute_per_sample_s())
            .with_known("in_flight", in_flight);
        let overrides = [format!("reader.read_threads={needed}")];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{advised, latency};
    use feedrate_measure::record::Record;

    #[test]
    fn no_more_threads_are_advised_than_the_storage_serves_at_a_time() {
        let is_advised = |concurrency| {
            let change = |record: &mut Record| {
                latency(record);
                record.plan.storage.throttle_concurrency = Some(concurrency);
            };
            advised(change).contains(&"read_threads")
        };
        assert_eq!([is_advised(1), is_advised(1000)], [false, true]);
    }
}
