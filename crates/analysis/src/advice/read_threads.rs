//! The threads of an accelerator wait for the storage, one request each: the smallest number of threads that feeds it.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::IN_FLIGHT;
use feedrate_measure::waits::WaitCause;

pub(super) static RULE: Rule = Rule {
    name: "read_threads",
    source: "Little's law; Chien et al. (2018), threads 2.3 to 7.8 times; I/O analyses of frnn and cosmoflow",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::latency,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read, WaitCause::Open])?;
    let sample = case.sample()?;
    let (threads, needed) = (case.plan().loader.workers, case.threads_needed()?);
    let is_shared = sample.open_s < sample.read_s && !case.has_more();
    (threads < needed && !is_shared).then(|| {
        let evidence = Facts::new()
            .with("threads", threads)
            .with("sample_s", sample.all_s())
            .with_known("compute_s", case.compute_of_sample_s())
            // Where opens are waited for there are hardly any.
            .with_known("in_flight", case.derived.value(&IN_FLIGHT).filter(|reads| 0.1 <= *reads));
        let overrides = [format!("reader.read_threads={needed}")];
        Proposal { risk: Risk::Memory, ..RULE.proposal(&overrides, lost_s, evidence) }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{advised, latency};
    use feedrate_measure::record::Record;

    #[test]
    fn threads_beyond_the_places_of_a_storage_wait_like_the_others() {
        let with_places = |places| {
            let change = |record: &mut Record| {
                latency(record);
                record.plan.storage.throttle_concurrency = Some(places);
            };
            advised(change).contains(&"read_threads")
        };
        assert_eq!([with_places(1), with_places(1000)], [false, true]);
    }
}
