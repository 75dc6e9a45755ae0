//! The processors are busy with something else.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::{AnswerKind, UnknownBecause};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::DURATION_S;
use feedrate_measure::record::System;
use feedrate_measure::waits::WaitCause;

/// Less than this share of all processors is no reason.
const OTHERS_SHARE_MIN: f64 = 0.25;
/// From here on whoever needs a processor waits for one.
const BUSY_SHARE_MIN: f64 = 0.9;

/// Decoding that lasts no longer than so many times what was asked for waits for no processor.
const AS_ASKED_TIMES: f64 = 1.1;
/// Work that has a processor lasts about as long as the processor time it takes.
const DELAYED_TIMES: f64 = 1.25;

pub(super) static RULE: Rule = Rule {
    name: "other_processes",
    source: "tf.data and Plumber: CPU saturation of the client",
    answers: &[AnswerKind::No, AnswerKind::Unknown],
    propose,
    #[cfg(test)]
    fires: super::tests::others_compute,
};

fn propose(case: &Case) -> Option<Proposal> {
    let (derived, is_cached) = (case.derived, case.derived.is_memory_served());
    let is_starved = case.answer.au_percent? < case.answer.asked_percent;
    let is_of_memory = case.answer.unknown_because == Some(UnknownBecause::CacheFed) && is_starved;
    if case.answer.kind == AnswerKind::Unknown && !is_of_memory {
        return None;
    }
    // Whoever waits for a storage waits without a processor; what memory serves is copied by one.
    let causes = [WaitCause::Decode, WaitCause::Client, WaitCause::Skew, WaitCause::Read];
    let lost_s = case.lost_s(if is_cached { &causes } else { &causes[..3] })?;
    // What was asked for takes as long on an idle machine.
    let sample = case.sample()?;
    let asked_s = case.plan().loader.preprocess.mean_s();
    if 0.0 < asked_s && sample.decode_s <= AS_ASKED_TIMES * asked_s {
        return None;
    }
    let record = derived.record;
    let cpus: u32 = record.machines().iter().map(System::all_cpus).sum();
    let busy_share = record.epochs.iter().map(|epoch| epoch.host.cpu_busy_share);
    let busy_share = busy_share.sum::<Option<f64>>()? / record.epochs.len() as f64;
    let own_s = derived.sum_of_host(|host| host.process_cpu_ns)? as f64 / 1e9;
    let copied_s = if is_cached { sample.read_s } else { 0.0 };
    let work_s =
        (sample.decode_s + sample.client_s - asked_s + copied_s) * derived.io.samples as f64;
    // With nobody else there, its threads would share the processors among themselves.
    let threads = f64::from(case.plan().readers() * case.plan().loader.workers.max(1));
    let alone_s = own_s * (threads / f64::from(case.cores().max(1))).max(1.0);
    // Others of a lower priority take what nobody else wants.
    if work_s < DELAYED_TIMES * alone_s {
        return None;
    }
    let delay_s = (work_s - alone_s) / derived.io.samples as f64;
    let lost_s = lost_s * share_of_wait(case, sample.all_s(), delay_s);
    let own = own_s / derived.value(&DURATION_S)?;
    let others = busy_share * f64::from(cpus) - own;
    let is_burnt = BUSY_SHARE_MIN <= busy_share && OTHERS_SHARE_MIN * f64::from(cpus) <= others;
    let busiest = record.epochs.iter().filter_map(|epoch| epoch.host.busiest_other.as_ref());
    let busiest = busiest.max_by_key(|other| other.cpu_ns);
    is_burnt.then(|| {
        let evidence = Facts::new()
            .with("all_cores", cpus)
            .with("busy_percent", 100.0 * busy_share)
            .with("own", own)
            .with("others", others)
            .with_known("process", busiest.map(|other| other.name.as_str()))
            .with_known("process_id", busiest.map(|other| other.id.to_string()));
        Proposal { cost: Cost::Processors, ..RULE.proposal(&[], lost_s, evidence) }
    })
}

/// Share of the wait for samples that there would not be if each took so much less.
fn share_of_wait(case: &Case, sample_s: f64, delay_s: f64) -> f64 {
    let threads = f64::from(case.plan().loader.workers.max(1));
    let compute_s = case.compute_of_sample_s().unwrap_or(0.0);
    let wait_s = |sample_s: f64| (sample_s / threads - compute_s).max(0.0);
    match wait_s(sample_s) {
        0.0 => 1.0,
        waited_s => 1.0 - wait_s(sample_s - delay_s) / waited_s,
    }
}
