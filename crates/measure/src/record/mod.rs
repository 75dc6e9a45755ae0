//! The record of a run: its plan, its machines, and the times of every step. A record is never edited.
//!
//! Times are integers of nanoseconds from the start of the run, by the monotonic clock.
//!
//! Long because it lists all fields of the record.

pub mod timeline;
pub mod access;
pub mod ranges;
pub mod common_sizes;
pub mod file;
mod data_request;
mod causes;
mod checkpoint;
mod contradiction;
mod hosts;
mod members;
mod mount;
mod staging;
mod study;
mod watched;
#[cfg(test)]
mod tests;

pub use self::causes::{Stall, StepCauses};
pub use self::checkpoint::{CheckpointKind, CheckpointRecord, RankCheckpoint};
pub use self::contradiction::Contradiction;
pub use self::data_request::DataRequest;
pub use self::hosts::CombinedHosts;
pub use self::members::{AlikeMembers, FileMembers, NamedMember, READ_SHARE_MIN};
pub use self::mount::{Mount, ReadLimits};
pub use self::staging::{StagingRecord, StagingSpan, StagingSummary};
pub use self::study::StudyRun;
pub use self::watched::Watched;

use self::access::{Access, BINS, FilesRead, add_bins};
use self::causes::is_zero;
use crate::histogram::Histogram;
use feedrate_spec::plan::{DatasetPlan, Plan, PlanDoubt};
use feedrate_spec::transfers::TransferCounts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::Timeline;

/// Version of the format. It is raised when a field changes its meaning; newer versions are refused.
pub const RECORD_VERSION: u32 = 1;

/// The record of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`RECORD_VERSION`] of the writer.
    pub version: u32,
    /// Program and version that wrote the record.
    pub program: String,
    /// The plan.
    pub plan: Plan,
    /// The machine of rank 0.
    pub system: System,
    /// All machines, in the order of their first ranks; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<System>,
    /// The processes in the order of their ranks; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
    /// Local wall-clock start in DLIO's format, such as `2026-11-21T10:00:00.000000`.
    pub started: String,
    /// Local wall-clock end; empty while the run is in progress.
    pub ended: String,
    /// Whether the run reached its end.
    pub complete: bool,
    /// Reason why the run stopped early, if it is known.
    pub stopped_because: Option<String>,
    /// Whether compute waits ended in a busy loop for precision.
    pub compute_spins: bool,
    /// Whether time was simulated.
    pub simulated: bool,
    /// The copy that was read instead of the dataset; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<StagingRecord>,
    /// Settings of the dataset, from its manifest or its files, if they differ from the plan; `None` if they agree or are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_dataset: Option<DatasetPlan>,
    /// Datasets, arrays or columns in foreign files, and which of them are read; `None` if the format has none, and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<FileMembers>,
    /// Epochs, in order.
    pub epochs: Vec<EpochRecord>,
    /// Evaluations, in order; each has the number of the epoch before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<EpochRecord>,
    /// Timeline; `None` if it was disabled and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Doubts reported while planning or running, which cannot be found from the record.
    pub doubts: Vec<PlanDoubt>,
    /// The run's place in a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Box<StudyRun>>,
    /// Arguments that determine which data is read; `None` in old records and in runs that replace DLIO.
    #[serde(rename = "asked", default, skip_serializing_if = "Option::is_none")]
    pub data_request: Option<DataRequest>,
    /// Facts about a watched training loop; `None` in runs of feedrate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// Settings that the files of the run state differently. They are found when the record is read, and not stored.
    #[serde(skip)]
    pub contradictions: Vec<Contradiction>,
}

impl Record {
    /// Returns a record whose epochs are the evaluations of this record, to compute metrics of evaluations. `None` if there are no evaluations.
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

    /// Number of cores of all machines.
    pub fn all_cpus(&self) -> u32 {
        self.machines().iter().map(System::all_cpus).sum()
    }

    /// Index of the machine of an accelerator in [`Record::machines`].
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

/// A process of a run with several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Index of its machine in [`Record::machines`].
    pub node: u32,
    /// Process id.
    pub id: u32,
    /// Number of its accelerators. They are numbered after the accelerators of the previous process.
    pub accelerators: u32,
    /// Offset that converts its clock to the clock of rank 0.
    pub clock_offset_ns: i64,
    /// Maximum error of that offset.
    pub clock_error_ns: u64,
}

/// The record of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Number of the epoch, starting at 1.
    pub number: u32,
    /// Start of the epoch, counted from the start of the run.
    pub start_ns: u64,
    /// End of the epoch, counted from the start of the run.
    pub end_ns: u64,
    /// Local wall-clock start.
    pub started: String,
    /// Local wall-clock end.
    pub ended: String,
    /// One entry for each accelerator, in their order.
    pub accelerators: Vec<AcceleratorEpoch>,
    /// Causes of the waits of all accelerators in each step; `None` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<StepCauses>,
    /// Files and bytes read from the start of the run to the end of the epoch; `None` if counting them would have taken too much memory,
    /// and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_read: Option<FilesRead>,
    /// Requests to an object store, of all processes; `None` for other storages and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferCounts>,
    /// Figures of the machine during the epoch, or of all machines together.
    pub host: HostEpoch,
    /// Figures of each machine; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<HostEpoch>,
    /// Checkpoints of the epoch, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRecord>,
}

/// One accelerator during an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcceleratorEpoch {
    /// Steps between checkpoints; a single block if there are no checkpoints.
    pub blocks: Vec<Block>,
    /// Start of the loader's last read, from the start of the run; `None` if it read nothing.
    pub last_read_start_ns: Option<u64>,
    /// Bytes read in the epoch before the last read.
    #[serde(default)]
    pub last_read_start_bytes: u64,
    /// Causes of the accelerator's waits for batches.
    #[serde(default)]
    pub stall: Stall,
    /// Counters of the accelerator's workers.
    #[serde(default)]
    pub io: IoCounters,
}

/// The contiguous steps between two checkpoints. Each step consists of load, compute and barrier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Start of the block, counted from the start of the run.
    pub start_ns: u64,
    /// End of the last barrier, counted from the start of the run.
    pub end_ns: u64,
    /// Time from requesting the batch to receiving it.
    pub load_ns: Vec<u64>,
    /// Actual duration of the emulated compute.
    pub compute_ns: Vec<u64>,
    /// Time from the end of compute to the opening of the barrier.
    pub barrier_ns: Vec<u64>,
    /// Bytes that the accelerator's loader had read at the end of each step, from the start of the epoch.
    pub read_bytes: Vec<u64>,
}

impl Block {
    /// Number of steps that every accelerator finished.
    pub fn steps(&self) -> usize {
        self.barrier_ns.len()
    }
}

/// Counters of an accelerator's workers over an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoCounters {
    /// Number of opened files.
    pub opens: u64,
    /// Number of files opened outside of training: to probe the dataset, to empty or fill the page cache, and to check its contents before
    /// and after the epoch. They are counted for the first accelerator of the process that opened them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation_opens: Option<u64>,
    /// Number of read calls.
    pub reads: u64,
    /// Bytes that read calls returned: the logical bytes.
    pub read_bytes: u64,
    /// Bytes of samples that had been read before and came from this process's memory.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Number of finished samples.
    pub samples: u64,
    /// Start of the first and end of the last call on a file, from the start of the run; `None` without calls and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<[u64; 2]>,
    /// Time in open, length and close calls.
    pub open_ns: u64,
    /// Time in read calls.
    pub read_ns: u64,
    /// Time for decoding and checking.
    pub decode_ns: u64,
    /// Time that workers spent in emulated work of the client. It excludes their reading and decoding, even where that counts as the
    /// client's work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_ns: u64,
    /// Processor time that workers spent in emulated work of the client.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_burnt_ns: u64,
    /// Processor time of the workers' own reading and decoding that counted as the client's work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_own_ns: u64,
    /// Time that the training process spent starting workers and receiving batches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receive_ns: u64,
    /// Time that workers were idle.
    pub idle_ns: u64,
    /// Sizes and order of reads.
    #[serde(default)]
    pub access: Access,
    /// Time in read calls by the size bin of the returned bytes; all 0 in records of older versions.
    #[serde(default)]
    pub size_ns: [u64; BINS],
    /// Stored bytes of the samples that were read from foreign files with named members; `None` for other files and in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredBytes>,
    /// Names of members of foreign files whose values samples could include although they are elsewhere; at most [`ELSEWHERE_MAX`], and none
    /// in old records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
    /// Samples that should have been decoded but could not be, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecoded: Vec<UndecodedKind>,
    /// Latency of open calls.
    pub open_latency: Histogram,
    /// Latency of read calls.
    pub read_latency: Histogram,
    /// Latency of whole samples.
    pub sample_latency: Histogram,
}

/// Maximum number of names of members with values that are elsewhere.
pub const ELSEWHERE_MAX: usize = 8;

/// Bytes of samples in files that also contain other bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredBytes {
    /// Bytes of the samples as they are stored.
    pub sample_bytes: f64,
    /// Bytes of their files that belong to samples or are left unread, of which each sample has an equal share.
    pub file_bytes: f64,
}

/// Samples of one kind of file that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndecodedKind {
    /// Kind of file, such as `webp`.
    pub kind: String,
    /// Number of samples.
    pub samples: u64,
    /// The file of the first of these samples, below the folder of the data; empty in old records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

impl IoCounters {
    /// Zero counters with allocated histograms (12 KiB), so counting latencies does not allocate.
    pub fn new() -> Self {
        IoCounters {
            open_latency: Histogram::new(),
            read_latency: Histogram::new(),
            sample_latency: Histogram::new(),
            ..IoCounters::default()
        }
    }

    /// Returns the counts, with compact histograms, and resets the counters. The histograms of the counters keep their memory.
    pub fn take(&mut self) -> IoCounters {
        let mut counts = std::mem::take(self);
        self.open_latency = counts.open_latency.compact();
        self.read_latency = counts.read_latency.compact();
        self.sample_latency = counts.sample_latency.compact();
        counts
    }

    /// Counts samples of `file` that could not be decoded, if `kind` is given. Allocates for the first sample of a kind.
    pub fn count_undecoded(&mut self, kind: Option<&str>, samples: u64, file: &str) {
        if let Some(kind) = kind {
            self.add_undecoded(kind, samples, file);
        }
    }

    /// Counts the stored bytes of samples, and their share of the bytes of their file.
    pub fn count_stored(&mut self, sample_bytes: f64, file_bytes: f64) {
        let stored = self.stored.get_or_insert_default();
        stored.sample_bytes += sample_bytes;
        stored.file_bytes += file_bytes;
    }

    /// Notes a member of foreign files with values that are elsewhere. Allocates for the first file with this name.
    pub fn note_elsewhere(&mut self, name: &str) {
        let is_known = self.elsewhere.iter().any(|known| known == name);
        if !is_known && self.elsewhere.len() < ELSEWHERE_MAX {
            self.elsewhere.push(name.to_string());
        }
    }

    fn add_undecoded(&mut self, kind: &str, samples: u64, file: &str) {
        match self.undecoded.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.samples += samples,
            None => {
                let kind = kind.to_string();
                self.undecoded.push(UndecodedKind { kind, samples, file: file.to_string() });
            }
        }
    }

    /// Extends the time span of calls by a call from `start_ns` to `end_ns`.
    pub fn extend_span(&mut self, [start_ns, end_ns]: [u64; 2]) {
        let [first_ns, last_ns] = self.span_ns.unwrap_or([start_ns, end_ns]);
        self.span_ns = Some([first_ns.min(start_ns), last_ns.max(end_ns)]);
    }

    /// Frees the memory that is needed only for counting.
    pub fn compact(&mut self) {
        self.open_latency.compact();
        self.read_latency.compact();
        self.sample_latency.compact();
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &IoCounters) {
        self.opens += other.opens;
        let known_opens = [self.preparation_opens, other.preparation_opens].into_iter().flatten();
        self.preparation_opens = known_opens.reduce(std::ops::Add::add);
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.memory_bytes += other.memory_bytes;
        self.samples += other.samples;
        other.span_ns.into_iter().for_each(|span_ns| self.extend_span(span_ns));
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
        if let Some(stored) = other.stored {
            self.count_stored(stored.sample_bytes, stored.file_bytes);
        }
        other.elsewhere.iter().for_each(|name| self.note_elsewhere(name));
        for row in &other.undecoded {
            self.add_undecoded(&row.kind, row.samples, &row.file);
        }
        self.open_latency.merge(&other.open_latency);
        self.read_latency.merge(&other.read_latency);
        self.sample_latency.merge(&other.sample_latency);
    }
}

/// Figures of the machine during an epoch. `None` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostEpoch {
    /// Bytes that this process caused to be fetched from storage: `read_bytes` of `/proc/self/io`.
    pub process_device_read_bytes: Option<u64>,
    /// Bytes read from the block device under the dataset, by all processes.
    pub device_read_bytes: Option<u64>,
    /// Number of reads requested from the block device, by all processes, including those that the kernel merged. With the page cache,
    /// these are not the read calls of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_reads: Option<u64>,
    /// Bytes written to the block device, by all processes.
    pub device_write_bytes: Option<u64>,
    /// Dataset bytes in the page cache before the epoch.
    pub resident_before_bytes: Option<u64>,
    /// Dataset bytes in the page cache after the epoch.
    pub resident_after_bytes: Option<u64>,
    /// Share of the dataset's files that were sampled for residency, 0 to 1.
    pub resident_sampled_share: f64,
    /// Number of training files that, at the start of the epoch, were known to have been opened or created on this machine since its
    /// dentries and inodes were last dropped. It is a lower bound, as other processes may have opened files. Files sampled for residency do
    /// not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_opened_files: Option<u64>,
    /// Whether dentries and inodes could be dropped before the epoch; `None` if that was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_dropped: Option<bool>,
    /// CPU time of this process.
    pub process_cpu_ns: Option<u64>,
    /// Page faults of this process that waited for I/O: `majflt` of `/proc/self/stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_page_faults: Option<u64>,
    /// These page faults of each rank; empty if there is only one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rank_major_page_faults: Vec<Option<u64>>,
    /// Busy share of all cores, 0 to 1.
    pub cpu_busy_share: Option<f64>,
    /// The process outside the run with the most CPU time. `None` in old records, in epochs of less than 0.2 s, and if the CPUs were busy
    /// for less than half of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_other: Option<OtherProcess>,
    /// Change of the wall clock relative to the monotonic clock.
    pub clock_step_ns: Option<i64>,
    /// Lines of `/proc/meminfo` at the start of the epoch, with values as the kernel prints them; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meminfo: Vec<(String, String)>,
}

/// A process outside the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Process id.
    pub id: u32,
    /// Name of the process.
    pub name: String,
    /// CPU time during the epoch.
    pub cpu_ns: u64,
}

/// A machine of a run. Texts are empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Host name.
    pub hostname: String,
    /// Hardware components with their specifications.
    pub components: Vec<(String, String)>,
    /// Logical CPUs that this process may use. A launcher may bind the process to some of them.
    pub cpus: u32,
    /// Logical CPUs of the machine.
    #[serde(default)]
    pub cpus_online: Option<u32>,
    /// Sockets of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u32>,
    /// Cores of the machine. A core has one or more logical CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// `MemTotal`.
    pub memory_bytes: Option<u64>,
    /// `uname -m`, DLIO's `host_processor_name`.
    pub processor: String,
    /// `uname -r`.
    pub kernel: String,
    /// Entries of the last CPU in `/proc/cpuinfo`, without `processor`.
    pub cpuinfo: Vec<(String, String)>,
    /// Lines of `/proc/meminfo` at the start of the run, with values as the kernel prints them.
    pub meminfo: Vec<(String, String)>,
    /// Network interfaces that are up, without the loopback.
    #[serde(default)]
    pub networks: Vec<Network>,
    /// Mount of the dataset folder.
    pub data_mount: Option<Mount>,
    /// Mount of the results folder.
    pub results_mount: Option<Mount>,
}

impl System {
    /// CPUs of the machine, or those usable by the process if that number is unknown.
    pub fn all_cpus(&self) -> u32 {
        self.cpus_online.unwrap_or(self.cpus)
    }
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Name of the interface, such as `eth0` or `ib0`.
    pub name: String,
    /// Speed in megabits per second, if the driver reports it.
    pub speed_mbit_per_second: Option<u64>,
    /// Driver; `None` for an interface without a device.
    pub driver: Option<String>,
    /// Largest packet.
    pub mtu_bytes: Option<u64>,
}
