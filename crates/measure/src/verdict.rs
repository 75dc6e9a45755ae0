//! The verdict: what held the accelerators up, with the evidence in bytes and seconds. No advice here.

use crate::checkpoints::{CheckpointSummary, Checkpoints};
use crate::derived::Derived;
use crate::doubt::{Doubt, Severity};
use crate::facts::Facts;
use crate::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, BARRIER_S, COMPUTE_S, LOAD_S, STALL_DECODE, STALL_OPEN,
    STALL_QUEUE, STALL_READ,
};
use crate::record::Record;
use feedrate_spec::{names, units};
use serde::Serialize;

/// Bottleneck of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Reading held the accelerators up.
    StorageBound,
    /// Opening, asking lengths and closing did.
    MetadataBound,
    /// Checking, decoding and handing over on this machine did.
    DecodeBound,
    /// The accelerators were fed: compute is what takes the time.
    ComputeBound,
    /// They waited for each other.
    BarrierBound,
    /// Most bytes came from memory, so that nothing is known about the storage.
    CacheFed,
    /// Checkpoints were all there was: nothing was trained.
    CheckpointsOnly,
    /// There is no result to judge.
    Invalid,
}

/// A bound and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In a word.
    pub name: Bound,
    /// In sentences.
    pub evidence: String,
}

/// The largest part of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitPart {
    /// What was waited for.
    pub cause: WaitCause,
    /// Its share.
    pub percent: f64,
}

names! {
    /// What accelerators wait for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WaitCause {
        /// Opening, asking lengths and closing.
        Open = "open",
        /// Reading.
        Read = "read",
        /// Checking and decoding.
        Decode = "decode",
        /// Each other.
        Skew = "skew",
    }
}

/// From this share of bytes out of memory on, a statement about the storage would be one about memory.
const CACHED_SHARE_MAX: f64 = 0.5;

impl Bound {
    /// All of them, in their order.
    pub const ALL: [Bound; 8] = [
        Bound::StorageBound,
        Bound::MetadataBound,
        Bound::DecodeBound,
        Bound::ComputeBound,
        Bound::BarrierBound,
        Bound::CacheFed,
        Bound::CheckpointsOnly,
        Bound::Invalid,
    ];

    /// As in JSON.
    pub fn name(self) -> &'static str {
        self.text().0
    }

    /// Name, and template of the reason: see [`Facts::render`].
    fn text(self) -> (&'static str, &'static str) {
        match self {
            Bound::StorageBound => (
                "storage-bound",
                "Reading was {part_percent:.0} % of the wait for data ({part_s}): {read_bytes} were read{from}.",
            ),
            Bound::MetadataBound => (
                "metadata-bound",
                "Opening and closing was {part_percent:.0} % of the wait for data ({part_s}): {opened_files} were opened for {read_bytes}.",
            ),
            Bound::DecodeBound => (
                "decode-bound",
                "Checking and decoding was {part_percent:.0} % of the wait for data ({part_s}), reading {reading_s}: {read_bytes} were read{from}.",
            ),
            Bound::ComputeBound => (
                "compute-bound",
                "The storage kept up with the {target_percent:.0} % asked for: {read_bytes} were read{from}.",
            ),
            Bound::BarrierBound => {
                ("barrier-bound", "They waited longer for the slowest among them than for data.")
            }
            Bound::CacheFed => (
                "cache-fed",
                "{read_bytes} were read{from}: memory served the rest, and nothing is shown about the storage.",
            ),
            Bound::CheckpointsOnly => ("checkpoints-only", ""),
            Bound::Invalid => ("invalid", ""),
        }
    }
}

/// Judge a record whose doubts are known.
pub fn judge(derived: &Derived, doubts: &[Doubt]) -> Verdict {
    if let Some(doubt) = doubts.iter().find(|doubt| doubt.severity == Severity::Invalid) {
        return Verdict { name: Bound::Invalid, evidence: sentence(&doubt.evidence) };
    }
    if derived.record.plan.is_checkpoints_alone() {
        return Verdict { name: Bound::CheckpointsOnly, evidence: checkpoints(derived.record) };
    }
    let Some(times) = Times::new(derived) else {
        return Verdict { name: Bound::Invalid, evidence: "No step was finished.".into() };
    };
    let bound = bound(derived, &times);
    let cached = derived.cached_share().is_some_and(|share| CACHED_SHARE_MAX < share);
    let name = match bound {
        Bound::ComputeBound | Bound::StorageBound if cached => Bound::CacheFed,
        other => other,
    };
    let template = format!(
        "An accelerator computed for {{compute_s}}, waited {{load_s}} for data and {{barrier_s}} for the others. {}",
        name.text().1
    );
    Verdict { name, evidence: facts(name, derived, &times).render(&template) }
}

/// Seconds of an accelerator, in the mean; the load split into its causes.
struct Times {
    load_s: f64,
    compute_s: f64,
    barrier_s: f64,
    open_s: f64,
    read_s: f64,
    decode_s: f64,
}

impl Times {
    fn new(derived: &Derived) -> Option<Self> {
        let io = &derived.io;
        // Queueing is for what the workers were busy with.
        let busy_ns = io.open_ns + io.read_ns + io.decode_ns;
        let queue_s = derived.value(&STALL_QUEUE).unwrap_or(0.0);
        let queued = if busy_ns == 0 { 0.0 } else { queue_s / busy_ns as f64 };
        if derived.steps == 0 {
            return None;
        }
        Some(Times {
            load_s: derived.value(&LOAD_S)?,
            compute_s: derived.value(&COMPUTE_S).unwrap_or(0.0),
            barrier_s: derived.value(&BARRIER_S).unwrap_or(0.0),
            open_s: derived.value(&STALL_OPEN)? + queued * io.open_ns as f64,
            read_s: derived.value(&STALL_READ)? + queued * io.read_ns as f64,
            decode_s: derived.value(&STALL_DECODE)? + queued * io.decode_ns as f64,
        })
    }
}

/// Fed if the sustained utilisation, or without one that of all steps, reaches what the workload asks for. Otherwise the longest wait.
fn bound(derived: &Derived, times: &Times) -> Bound {
    let target = derived.record.plan.metric.au_target_percent;
    let au = derived.value(&AU_SUSTAINED).or(derived.value(&AU_ALL_STEPS));
    let reached = au.is_some_and(|au| target <= au);
    if times.compute_s > 0.0 && reached {
        return Bound::ComputeBound;
    }
    if times.load_s < times.barrier_s {
        return Bound::BarrierBound;
    }
    if times.load_s == 0.0 {
        return Bound::ComputeBound;
    }
    if times.open_s.max(times.decode_s) < times.read_s {
        Bound::StorageBound
    } else if times.decode_s < times.open_s {
        Bound::MetadataBound
    } else {
        Bound::DecodeBound
    }
}

/// The cause of most of the wait; `None` where nothing was waited for.
pub(crate) fn largest_wait(derived: &Derived) -> Option<WaitPart> {
    let times = Times::new(derived)?;
    let part = |cause, part_s: f64, all_s: f64| {
        (part_s > 0.0).then(|| WaitPart { cause, percent: 100.0 * part_s / all_s })
    };
    if times.load_s < times.barrier_s {
        return part(WaitCause::Skew, times.barrier_s, times.load_s + times.barrier_s);
    }
    let parts = [
        part(WaitCause::Read, times.read_s, times.load_s),
        part(WaitCause::Open, times.open_s, times.load_s),
        part(WaitCause::Decode, times.decode_s, times.load_s),
    ];
    parts.into_iter().flatten().max_by(|a, b| a.percent.total_cmp(&b.percent))
}

fn facts(name: Bound, derived: &Derived, times: &Times) -> Facts {
    let part_s = match name {
        Bound::MetadataBound => times.open_s,
        Bound::DecodeBound => times.decode_s,
        _ => times.read_s,
    };
    let from = match derived.device_bytes {
        _ if derived.storage_is_emulated() => " through the throttle or delay asked for".into(),
        Some(device) => format!(", {} of them from the device", units::bytes(device)),
        None => String::new(),
    };
    Facts::new()
        .with("compute_s", times.compute_s)
        .with("load_s", times.load_s)
        .with("barrier_s", times.barrier_s)
        .with("part_s", part_s)
        .with("part_percent", if times.load_s > 0.0 { part_s / times.load_s * 100.0 } else { 0.0 })
        .with("reading_s", times.read_s)
        .with("opened_files", derived.io.opens)
        .with("read_bytes", derived.io.read_bytes)
        .with("from", from)
        .with("target_percent", derived.record.plan.metric.au_target_percent)
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
    use crate::example::{checkpoint, simple};
    use crate::record::{Record, Stall};

    fn check(expected: Bound, evidence: &str, change: impl Fn(&mut Record)) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        change(&mut record);
        let derived = Derived::new(&record);
        let verdict = judge(&derived, &doubt::doubts(&derived));
        assert_eq!(verdict.name, expected, "{}", verdict.evidence);
        assert!(verdict.evidence.contains(evidence), "{}", verdict.evidence);
        assert_eq!(serde_json::to_value(verdict.name).unwrap(), verdict.name.name());
    }

    fn stall(record: &mut Record, open_s: u64, read_s: u64, decode_s: u64, queue_s: u64) {
        let ns = |s: u64| s * 1_000_000_000;
        record.epochs[0].accelerators[0].stall = Stall {
            open_ns: ns(open_s),
            read_ns: ns(read_s),
            decode_ns: ns(decode_s),
            queue_ns: ns(queue_s),
        };
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
        check(Bound::BarrierBound, "and 20 s for the others.", |r| {
            let block = &mut r.epochs[0].accelerators[0].blocks[0];
            block.barrier_ns.iter_mut().for_each(|ns| *ns += 1_000_000_000);
            block.end_ns += 20_000_000_000;
        });
    }

    #[test]
    fn queueing_is_for_what_workers_do() {
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
