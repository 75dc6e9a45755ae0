//! Advises the smallest number of reading threads that feeds an accelerator if each thread has one request in flight and waits for
//! the latency of the storage.

use super::{Case, EXCEEDED_CORES, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::IN_FLIGHT;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "read_threads",
    source: "Little's law; Chien et al. (2018), threads 2.3 to 7.8 times; I/O analyses of frnn and cosmoflow",
    sees: "threads wait for the latency of one request each",
    proposes: "the smallest `reader.read_threads` that feeds the accelerators",
    change: "",
    why: "a thread needs {sample_s} for a sample[, which is computed in {compute_s}][; {in_flight:.1} reads are in flight][; {workers} workers on {exceeded_cores} hold {memory_bytes} of samples]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::latency_bound,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let sample = case.sample()?;
    let threads = case.plan().loader.workers;
    let needed = case.threads_needed()?;
    let is_saturated = sample.open_s < sample.read_s && !case.gains_from_more_reads();
    (threads < needed && !is_saturated).then(|| {
        // If the threads wait for opens, hardly any reads are in flight, and the figure explains nothing.
        let in_flight = case.derived.value(&IN_FLIGHT).filter(|reads| 0.1 <= *reads);
        let evidence = Facts::new()
            .with("threads", threads)
            .with("sample_s", sample.total_s())
            .with_known("compute_s", case.compute_per_sample_s())
            .with_known("in_flight", in_flight);
        let evidence = with_exceeded_cores(case, needed, evidence);
        let overrides = [format!("reader.read_threads={needed}")];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}

/// Adds the number of workers and the memory that their batches take if there are more workers than cores.
fn with_exceeded_cores(case: &Case, threads: u32, evidence: Facts) -> Facts {
    let plan = case.plan();
    let workers = u64::from(threads) * u64::from(plan.accelerators);
    let cores = u64::from(case.cores());
    if workers <= cores || cores == 0 {
        return evidence;
    }
    let batch_bytes = plan.loader.batch_size as f64 * case.sample_bytes();
    let batches = workers.saturating_mul(u64::from(plan.loader.prefetch_size).max(1));
    evidence
        .with("workers", workers)
        .with(EXCEEDED_CORES, cores)
        .with("memory_bytes", (batches as f64 * batch_bytes) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{advised_rules, latency_bound};
    use feedrate_measure::record::Record;
    use feedrate_spec::plan::{ReadAhead, RequestPlan, RequestUnit};

    /// A worker with several requests in flight stands for as many workers.
    #[test]
    fn workers_with_requests_in_flight_need_fewer_threads() {
        let needed = |in_flight| {
            let change = |record: &mut Record| {
                latency_bound(record);
                record.plan.loader.requests = Some(RequestPlan {
                    in_flight,
                    unit: RequestUnit::File,
                    ahead: ReadAhead::None,
                });
            };
            advised_rules(change).contains(&"read_threads")
        };
        assert_eq!([needed(1), needed(1000)], [true, false]);
    }

    #[test]
    fn threads_are_not_advised_beyond_the_concurrency_of_the_storage() {
        let is_advised = |concurrency| {
            let change = |record: &mut Record| {
                latency_bound(record);
                record.plan.storage.throttle_concurrency = Some(concurrency);
            };
            advised_rules(change).contains(&"read_threads")
        };
        assert_eq!([is_advised(1), is_advised(1000)], [false, true]);
    }
}
