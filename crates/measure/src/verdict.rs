//! The verdict: the bottleneck of a run, with evidence in bytes and seconds. It contains no advice. Long because every bottleneck has its words here.

use crate::checkpoints::{CheckpointSummary, Checkpoints};
use crate::derived::Derived;
use crate::doubt::{CPU_SATURATED, Doubt, Severity, elsewhere_names};
use crate::facts::Facts;
use crate::metric::{AU_ALL_STEPS, AU_SUSTAINED, COMPUTE_S, LOAD_S, STALL_SKEW};
use crate::noise;
use crate::record::Record;
use crate::slow_accelerators::SlowAccelerators;
use crate::waits::{WaitCause, Waits};
use feedrate_spec::{names, units};
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Bottleneck of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Bound {
        /// Reading from the storage held the accelerators up.
        StorageBound = "storage-bound",
        /// Opening and closing files and querying their lengths held the accelerators up.
        MetadataBound = "metadata-bound",
        /// Checking, decoding and handing over samples on this machine held the accelerators up.
        DecodeBound = "decode-bound",
        /// The job's own code, whose cost the workload gives, held the accelerators up.
        ClientBound = "client-bound",
        /// The accelerators were fed: compute takes the time.
        ComputeBound = "compute-bound",
        /// An unknown part of the loader held the accelerators up.
        InputBound = "input-bound",
        /// The accelerators waited for each other.
        BarrierBound = "barrier-bound",
        /// Most bytes came from memory, or may have, so nothing is known about the storage.
        CacheFed = "cache-fed",
        /// The cores of this machine were busy: reading may have waited for them, so nothing is known about the storage.
        CpuSaturated = "cpu-saturated",
        /// Values that samples could include are stored elsewhere and were not read, so nothing is known about a job that reads them.
        DataUnread = "data-unread",
        /// The run only wrote or read checkpoints and trained nothing.
        CheckpointsOnly = "checkpoints-only",
        /// The run has no valid result.
        Invalid = "invalid",
    }
}

/// A bottleneck with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The bottleneck.
    pub name: Bound,
    /// The evidence, in sentences.
    pub evidence: String,
}

impl Bound {
    /// Template of the sentence with the reason; see [`Facts::render`].
    fn reason(self) -> &'static str {
        match self {
            Bound::StorageBound => {
                "Reading was {part_percent:.0} % of the wait for data ({part_s}): {read_bytes} were read{origin}."
            }
            Bound::MetadataBound => {
                "Opening and closing was {part_percent:.0} % of the wait for data ({part_s}): {opened_files} were opened for {read_bytes}."
            }
            Bound::DecodeBound => {
                "Checking and decoding was {part_percent:.0} % of the wait for data ({part_s}), reading {reading_s}: {read_bytes} were read{origin}."
            }
            Bound::ClientBound => {
                "The client's own work was {part_percent:.0} % of the wait for data ({part_s}), reading {reading_s}: {read_bytes} were read{origin}."
            }
            Bound::ComputeBound => {
                "The storage kept up with the target of {target_percent:.0} %: {read_bytes} were read{origin}."
            }
            Bound::InputBound => {
                "The training loop was only watched, so its reads are unknown[: its processes got {read_call_bytes} from read calls, and {device_bytes} came from a device|]."
            }
            Bound::BarrierBound => {
                "Accelerators waited longer for the slowest one than for data[: accelerators {accelerators} came last in {last_percent:.0} % of the steps|: accelerator {accelerator} came last in {last_percent:.0} % of the steps|]."
            }
            Bound::CacheFed => {
                "{read_bytes} were read[, {device_bytes} of them from the device. Memory served the rest, so|. It is unknown how many of them came from the device; memory may have served them, so] the run shows nothing about the storage."
            }
            Bound::CpuSaturated => {
                "But [{saturated}|the cores were busy]: these waits may have been for a core, so the run shows nothing about the storage."
            }
            Bound::DataUnread => {
                "Values of {elsewhere_names} are stored elsewhere and were not read, so the run does not show whether the storage feeds a job that reads them."
            }
            Bound::CheckpointsOnly | Bound::Invalid => "",
        }
    }
}

/// Determines the bottleneck of a record, given its doubts.
pub fn judge(derived: &Derived, doubts: &[Doubt]) -> Verdict {
    if let Some(verdict) = invalid_verdict(doubts) {
        return verdict;
    }
    if derived.record.plan.is_checkpoint_only() {
        let name = Bound::CheckpointsOnly;
        return Verdict { name, evidence: checkpoint_sentences(derived.record) };
    }
    if derived.record.watched.is_some() && derived.steps > 0 {
        return watched_verdict(derived);
    }
    let Some(waits) = Waits::new(derived) else {
        return Verdict { name: Bound::Invalid, evidence: "No step was finished.".into() };
    };
    let name = match find_bound(derived, &waits) {
        // Slow reads are slow wherever the bytes came from, but fast reads show nothing about the storage if hidden caches may have helped.
        Bound::ComputeBound if derived.may_be_memory_served() => Bound::CacheFed,
        Bound::StorageBound if derived.is_memory_served() => Bound::CacheFed,
        // Reading more would only be slower, so other bounds stay.
        Bound::ComputeBound if !elsewhere_names(derived.record).is_empty() => Bound::DataUnread,
        other if may_be_busy_cores(derived, other) => Bound::CpuSaturated,
        other => other,
    };
    let saturated = doubts.iter().find(|doubt| doubt.name == CPU_SATURATED);
    let waits_template = match derived.value(&STALL_SKEW) {
        Some(_) => {
            "for data (its own or that of the slowest accelerator in a step) and {skew_s} for slower accelerators"
        }
        None => "for data and {skew_s} for other accelerators",
    };
    let template = format!(
        "An accelerator computed for {{compute_s}} and waited {{data_s}} {waits_template}. {}",
        name.reason()
    );
    let facts = verdict_facts(name, derived, &waits)
        .with_known("saturated", saturated.map(|doubt| doubt.evidence.as_str()));
    Verdict { name, evidence: facts.render(&template) }
}

/// The verdict on a run that must not be used; `None` if no doubt makes it invalid.
pub fn invalid_verdict(doubts: &[Doubt]) -> Option<Verdict> {
    let doubt = doubts.iter().find(|doubt| doubt.severity == Severity::Invalid)?;
    Some(Verdict { name: Bound::Invalid, evidence: to_sentence(&doubt.evidence) })
}

/// Whether the waits that lead to this bound may have been waits for a core. Emulated times are the same on an idle machine.
fn may_be_busy_cores(derived: &Derived, bound: Bound) -> bool {
    let plan = &derived.record.plan;
    let is_caused_by_cores = match bound {
        Bound::StorageBound => !derived.reads_are_emulated(),
        Bound::MetadataBound => !derived.opens_are_emulated(),
        // This work takes processor time, so the run itself may have kept the cores busy.
        Bound::DecodeBound => !derived.decoding_is_emulated() && noise::are_used_by_others(derived),
        Bound::ClientBound => noise::are_used_by_others(derived),
        Bound::BarrierBound => {
            plan.train.slow_accelerators.is_empty() && noise::are_used_by_others(derived)
        }
        _ => false,
    };
    is_caused_by_cores && noise::are_mostly_busy(derived.record)
}

/// The verdict on a watched training loop, whose compute time includes waits for other accelerators.
fn watched_verdict(derived: &Derived) -> Verdict {
    let name = if is_fed(derived) { Bound::ComputeBound } else { Bound::InputBound };
    let reason = match name {
        Bound::ComputeBound => "The loader kept up with the target of {target_percent:.0} %.",
        other => other.reason(),
    };
    let watched = derived.record.watched.as_ref();
    let facts = Facts::new()
        .with_known("compute_s", derived.value(&COMPUTE_S))
        .with_known("load_s", derived.value(&LOAD_S))
        .with("target_percent", derived.target_percent)
        .with_known("read_call_bytes", watched.and_then(|watched| watched.read_call_bytes))
        .with_known("device_bytes", derived.device_bytes);
    let template = format!(
        "An accelerator waited {{load_s}} for batches and spent {{compute_s}} between them. {reason}"
    );
    Verdict { name, evidence: facts.render(&template) }
}

/// Whether the sustained utilisation reaches the workload's target. Uses the utilisation over all steps if the sustained one is unknown.
pub(crate) fn is_fed(derived: &Derived) -> bool {
    let target = derived.target_percent;
    let au = derived.value(&AU_SUSTAINED).or(derived.value(&AU_ALL_STEPS));
    let reached = au.is_some_and(|au| target <= au);
    derived.value(&COMPUTE_S).is_some_and(|compute_s| compute_s > 0.0) && reached
}

/// Returns compute if the accelerators were fed, otherwise the main cause of waiting.
fn find_bound(derived: &Derived, waits: &Waits) -> Bound {
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

fn verdict_facts(name: Bound, derived: &Derived, waits: &Waits) -> Facts {
    let part_s = match name {
        Bound::MetadataBound => waits.open_s,
        Bound::DecodeBound => waits.decode_s,
        Bound::ClientBound => waits.client_s,
        _ => waits.read_s,
    };
    let origin = match derived.device_bytes {
        _ if derived.reads_are_emulated() => " through the configured throttle or delay".into(),
        // The kernel reads ahead, and reads metadata.
        Some(device) if derived.io.read_bytes < device => {
            format!("; the device read {}, with read-ahead and metadata", units::bytes(device))
        }
        Some(device) => format!(", {} of them from the device", units::bytes(device)),
        None => String::new(),
    };
    let data_s = waits.data_s();
    let slow =
        if name == Bound::BarrierBound { SlowAccelerators::new(derived.record) } else { None };
    slow.map_or_else(Facts::new, |slow| slow.facts())
        .with("compute_s", derived.value(&COMPUTE_S).unwrap_or(0.0))
        .with("data_s", data_s)
        .with("skew_s", waits.skew_s)
        .with("part_s", part_s)
        .with("part_percent", if data_s > 0.0 { part_s / data_s * 100.0 } else { 0.0 })
        .with("reading_s", waits.read_s)
        .with("opened_files", derived.io.opens)
        .with("read_bytes", derived.io.read_bytes)
        .with_known("device_bytes", derived.device_bytes)
        .with("origin", origin)
        .with("elsewhere_names", elsewhere_names(derived.record))
        .with("target_percent", derived.target_percent)
}

/// Sentences with the number, size, total time and rate of the checkpoints that were written and read.
fn checkpoint_sentences(record: &Record) -> String {
    let Some(summary) = CheckpointSummary::new(record) else { return String::new() };
    let written = summary.save.and_then(|save| checkpoint_sentence(&save, "written"));
    let read = summary.load.and_then(|load| checkpoint_sentence(&load, "read"));
    [written, read].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn checkpoint_sentence(checkpoints: &Checkpoints, verb: &str) -> Option<String> {
    let mean_s = checkpoints.duration_s?;
    let rate = if mean_s > 0.0 {
        units::bytes_per_second_rounded(checkpoints.bytes as f64 / mean_s)
    } else {
        "too short to measure a rate".into()
    };
    let count = units::counted(checkpoints.count, "checkpoint");
    let bytes = units::bytes(checkpoints.bytes);
    let total_s = units::seconds(mean_s * checkpoints.count as f64);
    Some(format!("{count} of {bytes} {verb} in {total_s}, {rate}."))
}

/// Capitalises a clause and adds a full stop.
fn to_sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt;
    use crate::example::{block, checkpoint, epoch, set_stall, simple};
    use crate::metric::{STALL_CLIENT, STALL_DECODE};
    use crate::record::{FileMembers, NamedMember, Record, Stall};
    use feedrate_spec::plan::ClientPlan;
    use feedrate_spec::workload::TimeSpec;

    fn check(expected: Bound, evidence: &str, change: impl Fn(&mut Record)) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        change(&mut record);
        let derived = Derived::new(&record);
        let verdict = judge(&derived, &doubt::doubts(&derived));
        assert_eq!(verdict.name, expected, "{}", verdict.evidence);
        assert!(verdict.evidence.contains(evidence), "{}", verdict.evidence);
        assert_eq!(serde_json::to_value(verdict.name).unwrap(), verdict.name.name());
    }

    /// Divides the 10 seconds of waiting for data by cause.
    fn set_waits(record: &mut Record, open_s: u64, read_s: u64, decode_s: u64, queue_s: u64) {
        let ns = |s: u64| s * 1_000_000_000;
        let stall = Stall {
            open_ns: ns(open_s),
            read_ns: ns(read_s),
            decode_ns: ns(decode_s),
            queue_ns: ns(queue_s),
            ..Stall::default()
        };
        set_stall(record, stall);
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
            |r| set_waits(r, 6, 3, 1, 0),
        );
        check(Bound::DecodeBound, "Checking and decoding was 70 %", |r| set_waits(r, 1, 2, 7, 0));
        check(
            Bound::ClientBound,
            "The client's own work was 60 % of the wait for data (6 s)",
            |r| {
                set_client_waits(
                    r,
                    Stall { read_ns: 4_000_000_000, client_ns: 6_000_000_000, ..Stall::default() },
                );
            },
        );
    }

    /// Decoding took 8 s of processor time. The client would have decoded for 20 s, 4 s or 1 s.
    #[test]
    fn decoding_counts_as_the_clients_work_up_to_the_time_it_would_have_taken() {
        let set_decoding = |record: &mut Record, per_sample_s: f64| {
            let ns = |s: u64| s * 1_000_000_000;
            set_client_waits(
                record,
                Stall { decode_ns: ns(8), client_ns: ns(2), ..Stall::default() },
            );
            record.plan.loader.client = Some(ClientPlan { per_sample_s, ..ClientPlan::default() });
            let io = &mut record.epochs[0].accelerators[0].io;
            (io.samples, io.decode_ns, io.client_own_ns) = (20, ns(8), ns(8));
        };
        check(Bound::ClientBound, "was 100 % of the wait", |r| set_decoding(r, 1.0));
        check(Bound::ClientBound, "was 60 % of the wait", |r| set_decoding(r, 0.2));
        // If the client is faster than the loader, most of the decoding counts as the loader's.
        check(Bound::DecodeBound, "was 70 % of the wait", |r| set_decoding(r, 0.05));
        // Figures and tables show the metrics, which divide decoding in the same way.
        for (per_sample_s, decode_s, client_s) in
            [(1.0, 0.0, 10.0), (0.2, 4.0, 6.0), (0.05, 7.0, 3.0)]
        {
            let mut record = simple(&[(0, 0, 0, 1); 20]);
            set_decoding(&mut record, per_sample_s);
            let derived = Derived::new(&record);
            let parts = [derived.value(&STALL_DECODE), derived.value(&STALL_CLIENT)];
            assert_eq!(parts, [Some(decode_s), Some(client_s)], "{per_sample_s}");
        }
    }

    /// Replaces the epoch by an epoch of two accelerators with 20 equal steps each.
    fn set_two_accelerators(
        record: &mut Record,
        first: (u64, u64, u64, u64),
        second: (u64, u64, u64, u64),
    ) {
        record.plan.accelerators = 2;
        let blocks = [first, second].map(|steps| vec![block(0, &vec![steps; 20])]);
        record.epochs = vec![epoch(1, blocks.to_vec())];
    }

    #[test]
    fn waiting_for_an_accelerator_that_waits_for_data_counts_as_waiting_for_data() {
        let late_read =
            |r: &mut Record| set_two_accelerators(r, (100, 500, 900, 1), (1000, 500, 0, 1));
        check(
            Bound::StorageBound,
            "waited 20 s for data (its own or that of the slowest accelerator in a step) and 0 s for slower accelerators. \
             Reading was 100 % of the wait for data (20 s)",
            late_read,
        );
        check(
            Bound::BarrierBound,
            "waited 2 s for data (its own or that of the slowest accelerator in a step) and 9 s for slower accelerators. \
             Accelerators waited longer for the slowest one than for data: accelerator 1 came last in 100 % of the steps.",
            |r| set_two_accelerators(r, (100, 500, 900, 1), (100, 1400, 0, 1)),
        );
        // Two of four accelerators take turns.
        let several = "for data: accelerators 0 and 1 came last in 100 % of the steps.";
        check(Bound::BarrierBound, several, |r| {
            let turns = |steps: [(u64, u64, u64, u64); 2]| vec![block(0, &steps.repeat(5))];
            let (slow, fast) = ((100, 1400, 0, 1), (100, 500, 900, 1));
            let blocks =
                vec![turns([slow, fast]), turns([fast, slow]), turns([fast; 2]), turns([fast; 2])];
            r.plan.accelerators = 4;
            r.epochs = vec![epoch(1, blocks)];
        });
        // An older record does not show that the last accelerator waited for data.
        let without_causes = "waited 4 s for data and 6 s for other accelerators. Accelerators waited longer for the slowest one than for data.";
        check(Bound::BarrierBound, without_causes, |r| {
            set_two_accelerators(r, (0, 500, 600, 1), (400, 700, 0, 1));
            r.epochs[0].causes = None;
        });
    }

    fn set_client_waits(record: &mut Record, stall: Stall) {
        record.plan.loader.client = Some(ClientPlan { per_sample_s: 1.0, ..ClientPlan::default() });
        set_stall(record, stall);
    }

    #[test]
    fn queueing_counts_as_the_work_of_the_workers() {
        check(Bound::ClientBound, "90 %", |r| {
            set_client_waits(r, Stall { queue_ns: 10_000_000_000, ..Stall::default() });
            let io = &mut r.epochs[0].accelerators[0].io;
            (io.open_ns, io.read_ns, io.client_ns) = (0, 1, 9);
        });
        check(Bound::DecodeBound, "70 %", |r| {
            set_waits(r, 0, 0, 0, 10);
            let io = &mut r.epochs[0].accelerators[0].io;
            (io.open_ns, io.read_ns, io.decode_ns) = (1, 2, 7);
        });
    }

    #[test]
    fn accelerators_that_reach_the_target_are_fed() {
        check(Bound::ComputeBound, "kept up with the target of 50 %", |r| {
            r.plan.metric.au_target_percent = 50.0
        });
        check(Bound::StorageBound, "", |r| {
            r.plan.metric.au_target_percent = 0.0;
            r.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        });
    }

    #[test]
    fn devices_that_read_ahead_are_no_origin_of_all_bytes() {
        let reading = "20 MB were read; the device read 24 MB, with read-ahead and metadata.";
        check(Bound::StorageBound, reading, |r| {
            r.epochs[0].host.process_device_read_bytes = Some(24_000_000);
        });
    }

    #[test]
    fn bytes_from_memory_show_nothing_about_the_storage() {
        let cached = |r: &mut Record| {
            r.epochs[0].host.process_device_read_bytes = Some(4_000_000);
            r.epochs[0].host.resident_before_bytes = Some(16_000_000);
        };
        check(Bound::CacheFed, "20 MB were read, 4 MB of them from the device", cached);
        check(Bound::CacheFed, "It is unknown how many of them came from the device", |r| {
            cached(r);
            r.epochs[0].host.process_device_read_bytes = None;
        });
        check(Bound::CacheFed, "", |r| {
            cached(r);
            r.plan.metric.au_target_percent = 10.0;
        });
        check(Bound::StorageBound, "20 MB were read through the configured throttle", |r| {
            cached(r);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        });
        check(Bound::DecodeBound, "", |r| {
            cached(r);
            set_waits(r, 0, 1, 9, 0);
        });
    }

    #[test]
    fn values_that_were_not_read_show_nothing_about_storage_that_keeps_up() {
        let has_link = |r: &mut Record| {
            let link =
                NamedMember { name: "images".into(), bytes: 0, is_read: false, is_elsewhere: true };
            r.members = Some(FileMembers { members: vec![link], ..FileMembers::default() });
        };
        // A job that reads them is slower still.
        check(Bound::StorageBound, "", has_link);
        check(Bound::DataUnread, "Values of images are stored elsewhere and were not read", |r| {
            r.plan.metric.au_target_percent = 50.0;
            has_link(r);
        });
    }

    #[test]
    fn with_busy_cores_reads_may_have_waited_for_a_core() {
        let busy = |r: &mut Record, share| r.epochs[0].host.cpu_busy_share = Some(share);
        check(Bound::StorageBound, "", |r| busy(r, 0.95));
        let reason = "the 8 cores were 97 % busy in an epoch";
        check(Bound::CpuSaturated, reason, |r| busy(r, 0.97));
        check(Bound::CpuSaturated, reason, |r| {
            busy(r, 0.97);
            set_waits(r, 6, 3, 1, 0);
        });
        // Decoding is slow because of the cores, and a fed run has no bottleneck.
        let decodes = |r: &mut Record, own_ns| {
            busy(r, 0.97);
            set_waits(r, 1, 2, 7, 0);
            r.epochs[0].host.process_cpu_ns = Some(own_ns);
        };
        check(Bound::DecodeBound, "", |r| decodes(r, 100_000_000_000));
        check(Bound::CpuSaturated, reason, |r| decodes(r, 0));
        check(Bound::DecodeBound, "", |r| {
            decodes(r, 0);
            r.plan.loader.preprocess = TimeSpec::Constant { mean: 10.0 };
        });
        // The work of a client takes processor time, as the programs that disturb it do.
        let has_client = |r: &mut Record, own_ns| {
            busy(r, 0.97);
            set_client_waits(r, Stall { client_ns: 10_000_000_000, ..Stall::default() });
            r.epochs[0].host.process_cpu_ns = Some(own_ns);
        };
        check(Bound::ClientBound, "", |r| has_client(r, 100_000_000_000));
        check(Bound::CpuSaturated, reason, |r| has_client(r, 0));
        check(Bound::ComputeBound, "", |r| {
            busy(r, 0.97);
            r.plan.metric.au_target_percent = 50.0;
        });
        // The cores were idle most of the time.
        check(Bound::StorageBound, "", |r| {
            busy(r, 0.97);
            let mut idle = r.epochs[0].clone();
            idle.host.cpu_busy_share = Some(0.2);
            (idle.start_ns, idle.end_ns) = (idle.end_ns, 3 * idle.end_ns);
            r.epochs.push(idle);
        });
        // The throttle takes 10 s for 20 MB.
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
        assert_eq!(checkpoint_sentences(&record), "");
        record.epochs[0].checkpoints = vec![checkpoint(0, 1000, 1 << 30, 0); 2];
        assert_eq!(
            checkpoint_sentences(&record),
            "2 checkpoints of 1.1 GB written in 2 s, 1.07 GB/s."
        );
        record.epochs[0].checkpoints = vec![checkpoint(7, 7, 1 << 30, 0)];
        let without_rate = "1 checkpoint of 1.1 GB written in 0 s, too short to measure a rate.";
        assert_eq!(checkpoint_sentences(&record), without_rate);
    }

    #[test]
    fn runs_without_a_result_are_invalid() {
        check(Bound::Invalid, "1 of 1 epochs are complete: interrupted.", |r| {
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
