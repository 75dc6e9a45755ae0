//! The verdict: what held the accelerators up, with the evidence in bytes and seconds. No advice here.

use crate::checkpoints::{CheckpointSummary, Checkpoints};
use crate::derived::Derived;
use crate::doubt::{CPU_SATURATED, Doubt, Severity, is_saturated};
use crate::facts::Facts;
use crate::metric::{AU_ALL_STEPS, AU_SUSTAINED, COMPUTE_S, LOAD_S, STALL_SKEW};
use crate::record::{EpochRecord, Record};
use crate::waits::{WaitCause, Waits};
use feedrate_spec::{names, units};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

names! {
    /// Bottleneck of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Bound {
        /// Reading from the storage held the accelerators up.
        StorageBound = "storage-bound",
        /// Opening files, asking for their lengths and closing them held the accelerators up.
        MetadataBound = "metadata-bound",
        /// Checking, decoding and handing over samples on this machine held the accelerators up.
        DecodeBound = "decode-bound",
        /// The job's own code, whose cost the workload gives, held the accelerators up.
        ClientBound = "client-bound",
        /// The accelerators were fed: compute takes the time.
        ComputeBound = "compute-bound",
        /// The loader held the accelerators up; a loop that was watched does not tell what it waited for.
        InputBound = "input-bound",
        /// The accelerators waited for each other.
        BarrierBound = "barrier-bound",
        /// Most bytes came from memory, or may have, so nothing is known about the storage.
        CacheFed = "cache-fed",
        /// The cores of this machine were busy: reading may have waited for them, so nothing is known about the storage.
        CpuSaturated = "cpu-saturated",
        /// Only checkpoints were written or read: nothing was trained.
        CheckpointsOnly = "checkpoints-only",
        /// There is no result that may be judged.
        Invalid = "invalid",
    }
}

/// A bound and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// In a word.
    pub name: Bound,
    /// In sentences.
    pub evidence: String,
}

impl Bound {
    /// Template of the reason: see [`Facts::render`].
    fn reason(self) -> &'static str {
        match self {
            Bound::StorageBound => {
                "Reading was {part_percent:.0} % of the wait for data ({part_s}): {read_bytes} were read{from}."
            }
            Bound::MetadataBound => {
                "Opening and closing was {part_percent:.0} % of the wait for data ({part_s}): {opened_files} were opened for {read_bytes}."
            }
            Bound::DecodeBound => {
                "Checking and decoding was {part_percent:.0} % of the wait for data ({part_s}), reading {reading_s}: {read_bytes} were read{from}."
            }
            Bound::ClientBound => {
                "The client's own work was {part_percent:.0} % of the wait for data ({part_s}), reading {reading_s}: {read_bytes} were read{from}."
            }
            Bound::ComputeBound => {
                "The storage kept up with the {target_percent:.0} % asked for: {read_bytes} were read{from}."
            }
            Bound::InputBound => {
                "What the loader was busy with is not known: the loop was watched.[ Its processes got {read_call_bytes} from read calls, and {device_bytes} came from a device.|]"
            }
            Bound::BarrierBound => {
                "They waited longer for the slowest among them than for data{slowest}."
            }
            Bound::CacheFed => {
                "{read_bytes} were read[, {device_bytes} of them from the device: memory served the rest, and|: how many of them came from the device is unknown, memory may have served them, and] nothing is shown about the storage."
            }
            Bound::CpuSaturated => {
                "Most of the wait was opening and reading, but {saturated}: these may have waited for a core, and nothing is shown about the storage."
            }
            Bound::CheckpointsOnly | Bound::Invalid => "",
        }
    }
}

/// Judge a record whose doubts are known.
pub fn judge(derived: &Derived, doubts: &[Doubt]) -> Verdict {
    if let Some(verdict) = invalid(doubts) {
        return verdict;
    }
    if derived.record.plan.is_checkpoint_only() {
        return Verdict { name: Bound::CheckpointsOnly, evidence: checkpoints(derived.record) };
    }
    if derived.record.watched.is_some() && derived.steps > 0 {
        return of_watched(derived);
    }
    let Some(waits) = Waits::new(derived) else {
        return Verdict { name: Bound::Invalid, evidence: "No step was finished.".into() };
    };
    let saturated = if is_mostly_saturated(derived.record) {
        doubts.iter().find(|doubt| doubt.name == CPU_SATURATED)
    } else {
        None
    };
    let bound = bound(derived, &waits);
    let name = match bound {
        Bound::ComputeBound | Bound::StorageBound if derived.is_memory_served() => Bound::CacheFed,
        // A throttle or delay takes as long on an idle machine.
        Bound::StorageBound if saturated.is_some() && !derived.reads_are_emulated() => {
            Bound::CpuSaturated
        }
        Bound::MetadataBound if saturated.is_some() && !derived.opens_are_emulated() => {
            Bound::CpuSaturated
        }
        other => other,
    };
    let for_what = match derived.value(&STALL_SKEW) {
        Some(_) => "for data, its own or that of the last in a step, and {skew_s} for slower ones",
        None => "for data and {skew_s} for the others",
    };
    let template = format!(
        "An accelerator computed for {{compute_s}}, waited {{data_s}} {for_what}. {}",
        name.reason()
    );
    let facts = facts(name, derived, &waits);
    let facts = facts.with_known("saturated", saturated.map(|doubt| doubt.evidence.as_str()));
    Verdict { name, evidence: facts.render(&template) }
}

/// The verdict on a run that must not be used; `None` if no doubt says so.
pub fn invalid(doubts: &[Doubt]) -> Option<Verdict> {
    let doubt = doubts.iter().find(|doubt| doubt.severity == Severity::Invalid)?;
    Some(Verdict { name: Bound::Invalid, evidence: sentence(&doubt.evidence) })
}

/// Whether the epochs of busy cores took half of the time of all, or more.
fn is_mostly_saturated(record: &Record) -> bool {
    let all: u64 = record.epochs.iter().map(duration_ns).sum();
    let busy = record.epochs.iter().filter(|epoch| is_saturated(epoch));
    let busy: u64 = busy.map(duration_ns).sum();
    all <= busy.saturating_mul(2)
}

fn duration_ns(epoch: &EpochRecord) -> u64 {
    epoch.end_ns.saturating_sub(epoch.start_ns)
}

/// Waits for others are in the compute time.
fn of_watched(derived: &Derived) -> Verdict {
    let name = if is_fed(derived) { Bound::ComputeBound } else { Bound::InputBound };
    let reason = match name {
        Bound::ComputeBound => "The loader kept up with the {target_percent:.0} % asked for.",
        other => other.reason(),
    };
    let watched = derived.record.watched.as_ref();
    let facts = Facts::new()
        .with_known("compute_s", derived.value(&COMPUTE_S))
        .with_known("load_s", derived.value(&LOAD_S))
        .with("target_percent", derived.record.plan.metric.au_target_percent)
        .with_known("read_call_bytes", watched.and_then(|watched| watched.read_call_bytes))
        .with_known("device_bytes", derived.device_bytes);
    let template = format!(
        "An accelerator waited {{load_s}} for batches, and {{compute_s}} lay between them. {reason}"
    );
    Verdict { name, evidence: facts.render(&template) }
}

/// Whether the sustained utilisation, or without one that of all steps, reaches what the workload asks for.
fn is_fed(derived: &Derived) -> bool {
    let target = derived.record.plan.metric.au_target_percent;
    let au = derived.value(&AU_SUSTAINED).or(derived.value(&AU_ALL_STEPS));
    let reached = au.is_some_and(|au| target <= au);
    derived.value(&COMPUTE_S).is_some_and(|compute_s| compute_s > 0.0) && reached
}

/// Compute where the accelerators were fed, otherwise what was waited for.
fn bound(derived: &Derived, waits: &Waits) -> Bound {
    if is_fed(derived) {
        return Bound::ComputeBound;
    }
    match waits.main_part().map(|part| part.cause) {
        None => Bound::ComputeBound,
        Some(WaitCause::Open) => Bound::MetadataBound,
        Some(WaitCause::Read) => Bound::StorageBound,
        Some(WaitCause::Decode) => Bound::DecodeBound,
        Some(WaitCause::Client) => Bound::ClientBound,
        Some(WaitCause::Skew) => Bound::BarrierBound,
    }
}

fn facts(name: Bound, derived: &Derived, waits: &Waits) -> Facts {
    let part_s = match name {
        Bound::MetadataBound => waits.open_s,
        Bound::DecodeBound => waits.decode_s,
        Bound::ClientBound => waits.client_s,
        _ => waits.read_s,
    };
    let from = match derived.device_bytes {
        _ if derived.reads_are_emulated() => " through the throttle or delay asked for".into(),
        Some(device) => format!(", {} of them from the device", units::bytes(device)),
        None => String::new(),
    };
    let data_s = waits.data_s();
    Facts::new()
        .with("compute_s", derived.value(&COMPUTE_S).unwrap_or(0.0))
        .with("data_s", data_s)
        .with("skew_s", waits.skew_s)
        .with("part_s", part_s)
        .with("part_percent", if data_s > 0.0 { part_s / data_s * 100.0 } else { 0.0 })
        .with("reading_s", waits.read_s)
        .with("opened_files", derived.io.opens)
        .with("read_bytes", derived.io.read_bytes)
        .with_known("device_bytes", derived.device_bytes)
        .with("from", from)
        .with("slowest", slowest(derived.record).unwrap_or_default())
        .with("target_percent", derived.record.plan.metric.au_target_percent)
}

/// Who came last in most steps, where the record tells.
fn slowest(record: &Record) -> Option<String> {
    let causes = record.epochs.iter().filter_map(|epoch| epoch.causes.as_ref());
    let mut steps_last = BTreeMap::new();
    for last in causes.flat_map(|causes| &causes.last) {
        *steps_last.entry(last).or_insert(0_u64) += 1;
    }
    let steps: u64 = steps_last.values().sum();
    let (last, count) = steps_last.into_iter().max_by_key(|(_, count)| *count)?;
    let percent = 100.0 * count as f64 / steps as f64;
    Some(format!(": accelerator {last} came last in {percent:.0} % of the steps"))
}

/// How many were written and read, and how fast: all bytes over all the time.
fn checkpoints(record: &Record) -> String {
    let all = CheckpointSummary::new(record);
    let written = all.and_then(|all| checkpoints_done(&all.save?, "written"));
    let read = all.and_then(|all| checkpoints_done(&all.load?, "read"));
    [written, read].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn checkpoints_done(all: &Checkpoints, done: &str) -> Option<String> {
    let took_s = all.duration_s?;
    let rate = if took_s > 0.0 {
        units::bytes_per_second_binary(all.bytes as f64 / took_s)
    } else {
        "too short to tell a rate".into()
    };
    let count = units::counted(all.count, "checkpoint");
    let (bytes, all_s) = (units::bytes_binary(all.bytes), took_s * all.count as f64);
    Some(format!("{count} of {bytes} {done} in {}, {rate}.", units::seconds(all_s)))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt;
    use crate::example::{block, checkpoint, epoch, simple, wait_alone};
    use crate::record::{Record, Stall};
    use feedrate_spec::plan::ClientPlan;

    fn check(expected: Bound, evidence: &str, change: impl Fn(&mut Record)) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        change(&mut record);
        let derived = Derived::new(&record);
        let verdict = judge(&derived, &doubt::doubts(&derived));
        assert_eq!(verdict.name, expected, "{}", verdict.evidence);
        assert!(verdict.evidence.contains(evidence), "{}", verdict.evidence);
        assert_eq!(serde_json::to_value(verdict.name).unwrap(), verdict.name.name());
    }

    /// All 10 seconds that were waited for data.
    fn stall(record: &mut Record, open_s: u64, read_s: u64, decode_s: u64, queue_s: u64) {
        let ns = |s: u64| s * 1_000_000_000;
        let stall = Stall {
            open_ns: ns(open_s),
            read_ns: ns(read_s),
            decode_ns: ns(decode_s),
            queue_ns: ns(queue_s),
            ..Stall::default()
        };
        wait_alone(record, stall);
    }

    #[test]
    fn the_longest_wait_is_the_bound() {
        check(
            Bound::StorageBound,
            "Reading was 100 % of the wait for data (10 s): 20 MB were read.",
            |_| {},
        );
        check(
            Bound::MetadataBound,
            "Opening and closing was 60 % of the wait for data (6 s): 20 files",
            |r| stall(r, 6, 3, 1, 0),
        );
        check(Bound::DecodeBound, "Checking and decoding was 70 %", |r| stall(r, 1, 2, 7, 0));
        check(
            Bound::ClientBound,
            "The client's own work was 60 % of the wait for data (6 s)",
            |r| {
                client(
                    r,
                    Stall { read_ns: 4_000_000_000, client_ns: 6_000_000_000, ..Stall::default() },
                );
            },
        );
    }

    /// 8 s of decoding on a processor, for which the client owes 20 s, or 4.
    #[test]
    fn decoding_that_the_client_owes_is_the_clients() {
        let with = |record: &mut Record, per_sample_s: f64| {
            let ns = |s: u64| s * 1_000_000_000;
            client(record, Stall { decode_ns: ns(8), client_ns: ns(2), ..Stall::default() });
            record.plan.loader.client = Some(ClientPlan { per_sample_s, ..ClientPlan::default() });
            let io = &mut record.epochs[0].accelerators[0].io;
            (io.samples, io.decode_ns, io.client_own_ns) = (20, ns(8), ns(8));
        };
        check(Bound::ClientBound, "was 100 % of the wait", |r| with(r, 1.0));
        check(Bound::ClientBound, "was 60 % of the wait", |r| with(r, 0.2));
        // A client that decodes faster than the loader does has no part in most of it.
        check(Bound::DecodeBound, "was 70 % of the wait", |r| with(r, 0.05));
    }

    /// Two accelerators of 20 steps; the first loads for half a second, and in the barrier is as long as its steps say.
    fn two(record: &mut Record, first: (u64, u64, u64, u64), second: (u64, u64, u64, u64)) {
        record.plan.accelerators = 2;
        let blocks = [first, second].map(|steps| vec![block(0, &vec![steps; 20])]);
        record.epochs = vec![epoch(1, blocks.to_vec())];
    }

    #[test]
    fn who_waits_for_one_that_waits_for_data_waits_for_data() {
        let late_read = |r: &mut Record| two(r, (100, 500, 900, 1), (1000, 500, 0, 1));
        check(
            Bound::StorageBound,
            "waited 20 s for data, its own or that of the last in a step, and 0 s for slower ones. \
             Reading was 100 % of the wait for data (20 s)",
            late_read,
        );
        check(
            Bound::BarrierBound,
            "waited 2 s for data, its own or that of the last in a step, and 9 s for slower ones. They waited longer \
             for the slowest among them than for data: accelerator 1 came last in 100 % of the steps.",
            |r| two(r, (100, 500, 900, 1), (100, 1400, 0, 1)),
        );
        // Nothing tells that the last waited for data.
        let told_by_old = "waited 4 s for data and 6 s for the others. They waited longer for the slowest among them than for data.";
        check(Bound::BarrierBound, told_by_old, |r| {
            two(r, (0, 500, 600, 1), (400, 700, 0, 1));
            r.epochs[0].causes = None;
        });
    }

    fn client(record: &mut Record, stall: Stall) {
        record.plan.loader.client = Some(ClientPlan { per_sample_s: 1.0, ..ClientPlan::default() });
        wait_alone(record, stall);
    }

    #[test]
    fn queueing_is_for_what_workers_do() {
        check(Bound::ClientBound, "90 %", |r| {
            client(r, Stall { queue_ns: 10_000_000_000, ..Stall::default() });
            let io = &mut r.epochs[0].accelerators[0].io;
            (io.open_ns, io.read_ns, io.client_ns) = (0, 1, 9);
        });
        check(Bound::DecodeBound, "70 %", |r| {
            stall(r, 0, 0, 0, 10);
            let io = &mut r.epochs[0].accelerators[0].io;
            (io.open_ns, io.read_ns, io.decode_ns) = (1, 2, 7);
        });
    }

    #[test]
    fn who_reaches_the_target_is_fed() {
        check(Bound::ComputeBound, "kept up with the 50 % asked for", |r| {
            r.plan.metric.au_target_percent = 50.0
        });
        check(Bound::StorageBound, "", |r| {
            r.plan.metric.au_target_percent = 0.0;
            r.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        });
    }

    #[test]
    fn memory_proves_nothing_about_storage() {
        let cached = |r: &mut Record| {
            r.epochs[0].host.process_device_read_bytes = Some(4_000_000);
            r.epochs[0].host.resident_before_bytes = Some(16_000_000);
        };
        check(Bound::CacheFed, "20 MB were read, 4 MB of them from the device", cached);
        check(Bound::CacheFed, "how many of them came from the device is unknown", |r| {
            cached(r);
            r.epochs[0].host.process_device_read_bytes = None;
        });
        check(Bound::CacheFed, "", |r| {
            cached(r);
            r.plan.metric.au_target_percent = 10.0;
        });
        check(Bound::StorageBound, "20 MB were read through the throttle", |r| {
            cached(r);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        });
        check(Bound::DecodeBound, "", |r| {
            cached(r);
            stall(r, 0, 1, 9, 0);
        });
    }

    #[test]
    fn busy_cores_leave_open_what_a_read_waited_for() {
        let busy = |r: &mut Record, share| r.epochs[0].host.cpu_busy_share = Some(share);
        check(Bound::StorageBound, "", |r| busy(r, 0.95));
        let why = "the 8 cores were 97 % busy in an epoch: these may have waited for a core";
        check(Bound::CpuSaturated, why, |r| busy(r, 0.97));
        check(Bound::CpuSaturated, why, |r| {
            busy(r, 0.97);
            stall(r, 6, 3, 1, 0);
        });
        // Of these the cores are the part that is slow, or nothing is.
        check(Bound::DecodeBound, "", |r| {
            busy(r, 0.97);
            stall(r, 1, 2, 7, 0);
        });
        check(Bound::ComputeBound, "", |r| {
            busy(r, 0.97);
            r.plan.metric.au_target_percent = 50.0;
        });
        // Most of the time they were idle.
        check(Bound::StorageBound, "", |r| {
            busy(r, 0.97);
            let mut idle = r.epochs[0].clone();
            idle.host.cpu_busy_share = Some(0.2);
            (idle.start_ns, idle.end_ns) = (idle.end_ns, 3 * idle.end_ns);
            r.epochs.push(idle);
        });
        // 20 MB take 10 s of the throttle.
        check(Bound::StorageBound, "", |r| {
            busy(r, 0.97);
            r.plan.storage.throttle_bytes_per_second = Some(2e6);
        });
        check(Bound::CacheFed, "", |r| {
            busy(r, 0.97);
            r.epochs[0].host.process_device_read_bytes = Some(0);
            r.epochs[0].host.resident_before_bytes = Some(20_000_000);
        });
    }

    #[test]
    fn checkpoints_without_a_duration_have_no_rate() {
        let mut record = simple(&[(10, 5, 1, 100)]);
        assert_eq!(checkpoints(&record), "");
        record.epochs[0].checkpoints = vec![checkpoint(0, 1000, 1 << 30, 0); 2];
        assert_eq!(checkpoints(&record), "2 checkpoints of 1 GiB written in 2 s, 1 GiB/s.");
        record.epochs[0].checkpoints = vec![checkpoint(7, 7, 1 << 30, 0)];
        let none = "1 checkpoint of 1 GiB written in 0 s, too short to tell a rate.";
        assert_eq!(checkpoints(&record), none);
    }

    #[test]
    fn without_a_result_there_is_no_bound() {
        check(Bound::Invalid, "1 of 1 epochs are there: interrupted.", |r| {
            (r.complete, r.stopped_because) = (false, Some("interrupted".into()));
        });
        check(Bound::Invalid, "No step was finished.", |r| r.epochs.clear());
    }

    #[test]
    fn each_bound_has_its_name_in_json() {
        for bound in Bound::ALL {
            assert_eq!(serde_json::to_value(bound).unwrap(), bound.name());
        }
    }
}
