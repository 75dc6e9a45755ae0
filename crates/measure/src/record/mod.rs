//! The record of a run: what was planned, on what machine, and every step's times. Never edited.
//!
//! Times are integers of nanoseconds on the monotonic clock, counted from the start of the run.
//! Long because it is the form of the record, field by field.

pub mod timeline;
pub mod access;
pub mod ranges;
pub mod common_sizes;
pub mod file;
mod data_request;
mod causes;
mod checkpoint;
mod hosts;
mod mount;
mod staging;
mod study;
mod watched;
#[cfg(test)]
mod tests;

pub use self::causes::{Stall, StepCauses};
pub use self::checkpoint::{CheckpointKind, CheckpointRecord, RankCheckpoint};
pub use self::data_request::DataRequest;
pub use self::mount::{Mount, ReadLimits};
pub use self::staging::{StagingRecord, StagingSpan, StagingSummary};
pub use self::study::StudyRun;
pub use self::watched::Watched;

use self::access::{Access, BINS, FilesRead, add_bins};
use self::causes::is_zero;
use crate::histogram::Histogram;
use feedrate_spec::plan::{DatasetPlan, Plan, PlanDoubt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::Timeline;

/// Raised when a field changes meaning; a reader refuses versions above its own.
pub const RECORD_VERSION: u32 = 1;

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`RECORD_VERSION`] of the writer.
    pub version: u32,
    /// The program and version that wrote it.
    pub program: String,
    /// The plan.
    pub plan: Plan,
    /// The machine; of several the one of rank 0.
    pub system: System,
    /// All machines, in the order of their first ranks; empty where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<System>,
    /// The processes in the order of their ranks; empty where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// Local wall-clock start, DLIO's form `2026-11-21T10:00:00.000000`.
    pub started: String,
    /// Local wall-clock end; empty until then.
    pub ended: String,
    /// Whether the run reached its end.
    pub complete: bool,
    /// Reason why it did not, where it did not.
    pub stopped_because: Option<String>,
    /// Whether compute waits spun over their last stretch.
    pub compute_spins: bool,
    /// Whether time was simulated.
    pub simulated: bool,
    /// The copy that was read instead of the dataset; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<StagingRecord>,
    /// Settings of the dataset that was read, by its manifest, where they are not those of the plan; `None` where they are, and without a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_dataset: Option<DatasetPlan>,
    /// Epochs, in order.
    pub epochs: Vec<EpochRecord>,
    /// Evaluations, in order; each has the number of the epoch that it came after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<EpochRecord>,
    /// Timeline; `None` where it was switched off, and of old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Doubts seen while running or planning that no metric can recompute.
    pub doubts: Vec<PlanDoubt>,
    /// The study that it is a run of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Box<StudyRun>>,
    /// Arguments that decide which data is read; `None` of old records, and of runs in DLIO's place.
    #[serde(rename = "asked", default, skip_serializing_if = "Option::is_none")]
    pub data_request: Option<DataRequest>,
    /// Knowledge of a loop that was watched; `None` of runs of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

impl Record {
    /// A record whose epochs are the evaluations of this one, so metrics can be computed for them. `None` if there are no evaluations.
    pub fn evaluation_record(&self) -> Option<Record> {
        if self.evaluations.is_empty() {
            return None;
        }
        Some(Record {
            plan: self.plan.evaluation_plan()?,
            processes: self.processes.clone(),
            complete: self.complete,
            epochs: self.evaluations.clone(),
            ..Record::default()
        })
    }

    /// The machines of the run.
    pub fn machines(&self) -> &[System] {
        if self.nodes.is_empty() { std::slice::from_ref(&self.system) } else { &self.nodes }
    }

    /// The machine of an accelerator, as an index of [`Record::machines`].
    pub fn machine_of(&self, accelerator: usize) -> usize {
        let mut first = 0;
        for process in &self.processes {
            first += process.accelerators as usize;
            if accelerator < first {
                return process.node as usize;
            }
        }
        0
    }
}

/// A process of a run of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its machine, as an index of [`Record::machines`].
    pub node: u32,
    /// The system's number of it.
    pub id: u32,
    /// How many accelerators it had; they follow those of the process before.
    pub accelerators: u32,
    /// Time added to its clock so that it shows the time of rank 0.
    pub clock_offset_ns: i64,
    /// By which that may be wrong.
    pub clock_error_ns: u64,
}

/// One epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub number: u32,
    /// From the start of the run.
    pub start_ns: u64,
    /// From the start of the run.
    pub end_ns: u64,
    /// Local wall-clock start.
    pub started: String,
    /// Local wall-clock end.
    pub ended: String,
    /// One entry for each accelerator, in their order.
    pub accelerators: Vec<AcceleratorEpoch>,
    /// The waits of all accelerators in each step; `None` of old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<StepCauses>,
    /// Files and bytes read by its end; `None` where knowing would have taken too much memory, and of old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_read: Option<FilesRead>,
    /// The machine meanwhile; of several, all together.
    pub host: HostEpoch,
    /// Each of the machines meanwhile; empty where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<HostEpoch>,
    /// Checkpoints of the epoch, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRecord>,
}

/// One accelerator's epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcceleratorEpoch {
    /// Steps between checkpoints; one block where there is none.
    pub blocks: Vec<Block>,
    /// When the loader started its last read, from the start of the run; `None` if it read nothing.
    pub last_read_start_ns: Option<u64>,
    /// Bytes of the epoch read by then.
    #[serde(default)]
    pub last_read_start_bytes: u64,
    /// Where its own waits for batches went.
    #[serde(default)]
    pub stall: Stall,
    /// Counters of the workers of this accelerator.
    #[serde(default)]
    pub io: IoCounters,
}

/// The steps between two checkpoints, contiguous: each step is load, compute, barrier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// From the start of the run.
    pub start_ns: u64,
    /// From the start of the run; the end of the last barrier.
    pub end_ns: u64,
    /// From asking for the batch to having it.
    pub load_ns: Vec<u64>,
    /// The wait as it really lasted.
    pub compute_ns: Vec<u64>,
    /// From the end of compute to the opening of the barrier.
    pub barrier_ns: Vec<u64>,
    /// Bytes this accelerator's loader had read since the epoch began, at the end of each step.
    pub read_bytes: Vec<u64>,
}

impl Block {
    /// Steps that every accelerator finished.
    pub fn steps(&self) -> usize {
        self.barrier_ns.len()
    }
}

/// Counters of the workers of one accelerator over an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoCounters {
    /// Files opened.
    pub opens: u64,
    /// Files that were opened for no read of this epoch: before it to probe the dataset, to empty or fill the page cache, and before and
    /// after it to see what is in it; told by the first accelerator of the process that did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation_opens: Option<u64>,
    /// Read calls.
    pub reads: u64,
    /// Bytes that read calls returned: the logical bytes.
    pub read_bytes: u64,
    /// Bytes of samples that were read before and came from this process's memory.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Samples finished.
    pub samples: u64,
    /// From the start of the first call on a file to the end of the last, since the start of the run; `None` without one, and of old
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<[u64; 2]>,
    /// Time in open, length and close calls.
    pub open_ns: u64,
    /// Time in read calls.
    pub read_ns: u64,
    /// Time decoding and checking.
    pub decode_ns: u64,
    /// Time of workers in the client's work, beside what they did for it themselves.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_ns: u64,
    /// Processor time that they burnt in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_burnt_ns: u64,
    /// Processor time of their own that counted as the client's: of reading and decoding.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_own_ns: u64,
    /// Time in which the training's process started workers and took batches over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receive_ns: u64,
    /// Time with nothing to do.
    pub idle_ns: u64,
    /// Sizes and order of the reads.
    #[serde(default)]
    pub access: Access,
    /// Time in read calls by the bin of what they returned; all 0 in records of versions that did not count.
    #[serde(default)]
    pub size_ns: [u64; BINS],
    /// Samples read that should have been decoded and could not, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecoded: Vec<UndecodedKind>,
    /// Latency of open calls.
    pub open_latency: Histogram,
    /// Latency of read calls.
    pub read_latency: Histogram,
    /// Latency of whole samples.
    pub sample_latency: Histogram,
}

/// Samples of a kind of file that is not decoded, or of which some are broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndecodedKind {
    /// `webp`.
    pub kind: String,
    /// How many.
    pub samples: u64,
}

impl IoCounters {
    /// Zeros, with the memory of the histograms (12 KiB), so that counting latencies never allocates.
    pub fn new() -> Self {
        IoCounters {
            open_latency: Histogram::new(),
            read_latency: Histogram::new(),
            sample_latency: Histogram::new(),
            ..IoCounters::default()
        }
    }

    /// Remove the counts. The histograms keep their memory; those of the counts are compact.
    pub fn take(&mut self) -> IoCounters {
        let mut counts = std::mem::take(self);
        self.open_latency = counts.open_latency.compact();
        self.read_latency = counts.read_latency.compact();
        self.sample_latency = counts.sample_latency.compact();
        counts
    }

    /// Count a sample of a kind that could not be decoded, where it is one. Allocates for the first of a kind.
    pub fn count_undecoded(&mut self, kind: Option<&str>) {
        if let Some(kind) = kind {
            self.add_undecoded(kind, 1);
        }
    }

    fn add_undecoded(&mut self, kind: &str, samples: u64) {
        match self.undecoded.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.samples += samples,
            None => self.undecoded.push(UndecodedKind { kind: kind.to_string(), samples }),
        }
    }

    /// A call on a file was made from one time to another.
    pub fn lasted(&mut self, [start_ns, end_ns]: [u64; 2]) {
        let [first_ns, last_ns] = self.span_ns.unwrap_or([start_ns, end_ns]);
        self.span_ns = Some([first_ns.min(start_ns), last_ns.max(end_ns)]);
    }

    /// Give back the memory that counting needs and keeping does not.
    pub fn compact(&mut self) {
        self.open_latency.compact();
        self.read_latency.compact();
        self.sample_latency.compact();
    }

    /// Count what `other` counted too.
    pub fn add(&mut self, other: &IoCounters) {
        self.opens += other.opens;
        let told = [self.preparation_opens, other.preparation_opens].into_iter().flatten();
        self.preparation_opens = told.reduce(std::ops::Add::add);
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.memory_bytes += other.memory_bytes;
        self.samples += other.samples;
        other.span_ns.into_iter().for_each(|span_ns| self.lasted(span_ns));
        self.open_ns += other.open_ns;
        self.read_ns += other.read_ns;
        self.decode_ns += other.decode_ns;
        self.client_ns += other.client_ns;
        self.client_burnt_ns += other.client_burnt_ns;
        self.client_own_ns += other.client_own_ns;
        self.receive_ns += other.receive_ns;
        self.idle_ns += other.idle_ns;
        self.access.add(&other.access);
        add_bins(&mut self.size_ns, &other.size_ns);
        for other in &other.undecoded {
            self.add_undecoded(&other.kind, other.samples);
        }
        self.open_latency.merge(&other.open_latency);
        self.read_latency.merge(&other.read_latency);
        self.sample_latency.merge(&other.sample_latency);
    }
}

/// The machine during an epoch. `None` is "not known".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostEpoch {
    /// `read_bytes` of `/proc/self/io`: what this process caused to be fetched from storage.
    pub process_device_read_bytes: Option<u64>,
    /// Bytes read from the block device under the dataset, by anybody.
    pub device_read_bytes: Option<u64>,
    /// Reads of it that the kernel was asked for, by anybody; it may have merged some. Of the page cache they are others than the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_reads: Option<u64>,
    /// Bytes written to it.
    pub device_write_bytes: Option<u64>,
    /// Dataset bytes in the page cache before the epoch.
    pub resident_before_bytes: Option<u64>,
    /// Dataset bytes in the page cache after the epoch.
    pub resident_after_bytes: Option<u64>,
    /// Share of the dataset's files looked at for residency, 0 to 1.
    pub resident_sampled_share: f64,
    /// Training files that are known to have been opened or made on this machine since its dentries and inodes were last dropped,
    /// when the epoch began, but for the few that were looked at; others may have opened more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_opened_files: Option<u64>,
    /// Whether they could be dropped right before the epoch; `None` where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_dropped: Option<bool>,
    /// CPU time of this process.
    pub process_cpu_ns: Option<u64>,
    /// Busy share of all cores, 0 to 1.
    pub cpu_busy_share: Option<f64>,
    /// The process outside the run that used most CPU time. `None` in old records, in epochs of less than 0.2 s, and where the CPUs were
    /// busy for less than half the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_other: Option<OtherProcess>,
    /// Nanoseconds the wall clock moved against the monotonic clock.
    pub clock_step_ns: Option<i64>,
    /// `/proc/meminfo` lines, values as printed, when the epoch began; empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meminfo: Vec<(String, String)>,
}

/// A process that is none of the run's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// The system's number of it.
    pub id: u32,
    /// As the system calls it.
    pub name: String,
    /// CPU time that it used meanwhile.
    pub cpu_ns: u64,
}

/// The machine a run ran on. Values as found; empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Host name.
    pub hostname: String,
    /// The seeds' table: (Component, Specification).
    pub components: Vec<(String, String)>,
    /// Logical CPUs usable by this process: a launcher may have bound it to a few.
    pub cpus: u32,
    /// Logical CPUs of the machine.
    #[serde(default)]
    pub cpus_online: Option<u32>,
    /// Sockets of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u32>,
    /// Cores of the machine, each with one logical CPU or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// `MemTotal`.
    pub memory_bytes: Option<u64>,
    /// `uname -m`, DLIO's `host_processor_name`.
    pub processor: String,
    /// `uname -r`.
    pub kernel: String,
    /// Last CPU of `/proc/cpuinfo`, without `processor`.
    pub cpuinfo: Vec<(String, String)>,
    /// `/proc/meminfo` lines, values as printed, at the start of the run.
    pub meminfo: Vec<(String, String)>,
    /// Network interfaces that are up, but for the loopback.
    #[serde(default)]
    pub networks: Vec<Network>,
    /// Dataset folder: file system type, mount options, device.
    pub data_mount: Option<Mount>,
    /// Results folder, likewise.
    pub results_mount: Option<Mount>,
}

impl System {
    /// CPUs of the machine, as far as is known.
    pub fn all_cpus(&self) -> u32 {
        self.cpus_online.unwrap_or(self.cpus)
    }
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// `eth0`, `ib0`.
    pub name: String,
    /// Megabits per second, where its driver tells.
    pub speed_mbit_per_second: Option<u64>,
    /// Its driver; none where it is not of a device.
    pub driver: Option<String>,
    /// Largest packet.
    pub mtu_bytes: Option<u64>,
}
