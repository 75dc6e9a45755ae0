//! Reports other processes that keep the processors busy and thereby delay the loader's work.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::{AnswerKind, UnknownBecause};
use feedrate_measure::facts::Facts;
use feedrate_measure::noise::OtherUse;
use feedrate_measure::waits::WaitCause;

/// Share of busy processors above which work waits for a processor.
const BUSY_SHARE_MIN: f64 = 0.9;

/// Ratio of actual to configured decode time up to which decoding is not short of CPU time.
const NOT_STARVED_RATIO_MAX: f64 = 1.1;
/// Ratio of elapsed to processor time above which work counts as delayed.
const DELAYED_RATIO_MIN: f64 = 1.25;

pub(super) static RULE: Rule = Rule {
    name: "other_processes",
    source: "tf.data and Plumber: CPU saturation of the client",
    sees: "all processors are busy, a quarter of them with other programs, and that costs time",
    proposes: "stop the busiest process, which is named",
    change: "[stop {process} (process {process_id}), or ]use a machine with more cores, or fewer decoding threads",
    why: "{all_cores} were {busy_percent:.0} % busy, other programs used {others:.1} of them[, mostly {process} (process {process_id})]",
    answers: &[AnswerKind::No, AnswerKind::Unknown],
    propose,
    #[cfg(test)]
    fires: super::tests::busy_other_processes,
};

fn propose(case: &Case) -> Option<Proposal> {
    let derived = case.derived;
    let is_cached = derived.is_memory_served();
    let is_starved = case.answer.au_percent? < case.answer.required_percent;
    let is_about_this_machine = matches!(
        case.answer.unknown_because,
        Some(UnknownBecause::CacheFed | UnknownBecause::CpuSaturated)
    );
    if case.answer.kind == AnswerKind::Unknown && !(is_about_this_machine && is_starved) {
        return None;
    }
    // Waiting for storage needs no processor, but copying out of the page cache does.
    let causes = [WaitCause::Decode, WaitCause::Client, WaitCause::Skew, WaitCause::Read];
    let lost_s = case.lost_s(if is_cached { &causes } else { &causes[..3] })?;
    // The configured preprocessing takes as long on an idle machine.
    let sample = case.sample()?;
    let configured_s = case.plan().loader.preprocess.mean_s();
    if 0.0 < configured_s && sample.decode_s <= NOT_STARVED_RATIO_MAX * configured_s {
        return None;
    }
    let run_cpu_s = derived.sum_over_epochs(|host| host.process_cpu_ns)? as f64 / 1e9;
    let copied_s = if is_cached { sample.read_s } else { 0.0 };
    let work_s =
        (sample.decode_s + sample.client_s - configured_s + copied_s) * derived.io.samples as f64;
    // The run's own threads would share the processors even without other processes.
    let threads = f64::from(case.plan().readers() * case.plan().loader.streams());
    let undisturbed_s = run_cpu_s * (threads / f64::from(case.cores().max(1))).max(1.0);
    // Other processes of lower priority only use idle processors and do not delay the run.
    if work_s < DELAYED_RATIO_MIN * undisturbed_s {
        return None;
    }
    let delay_s = (work_s - undisturbed_s) / derived.io.samples as f64;
    let saved_s = lost_s * avoidable_share(case, sample.total_s(), delay_s);
    let others = OtherUse::new(derived)?;
    let are_others_busy = BUSY_SHARE_MIN <= others.busy_share && others.is_large();
    are_others_busy.then(|| {
        let evidence = Facts::new()
            .with("all_cores", others.all_cores)
            .with("busy_percent", 100.0 * others.busy_share)
            .with("own", others.own_cores)
            .with("others", others.cores)
            .with_known("process", others.busiest_name())
            .with_known("process_id", others.busiest.map(|other| other.id.to_string()));
        Proposal { cost: Cost::Processors, ..RULE.proposal(&[], saved_s, evidence) }
    })
}

/// Share of the wait for samples that would be saved if each sample took `delay_s` less.
fn avoidable_share(case: &Case, sample_s: f64, delay_s: f64) -> f64 {
    let threads = f64::from(case.plan().loader.streams());
    let compute_s = case.compute_per_sample_s().unwrap_or(0.0);
    let wait_s = |sample_s: f64| (sample_s / threads - compute_s).max(0.0);
    match wait_s(sample_s) {
        0.0 => 1.0,
        waited_s => 1.0 - wait_s(sample_s - delay_s) / waited_s,
    }
}
