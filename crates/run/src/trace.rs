//! Writes the trace of one process in DFTracer's format: Chrome trace events, one on each line, compressed. An epoch is written
//! after its end, so that nothing is formatted while steps are measured.
//!
//! In the trace each accelerator is a process, as in the emulated job, and each of its workers is a thread.

#[cfg(test)]
mod tests;

use crate::new_file::NewFile;
use crate::op_log::{LoggedOp, OpKind, OpLog};
use feedrate_measure::record::{Block, CheckpointKind, CheckpointRecord, EpochRecord, Record};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Thread numbers reserved for each accelerator.
const THREADS_EACH: u64 = 10_000;
/// Size of the pieces in which lines are compressed.
const PIECE_BYTES: usize = 64 << 10;

/// Start time and names used in a trace.
pub struct TraceOrigin {
    /// Start of the run since 1970, by the wall clock of rank 0; the same in all processes of a run.
    pub wall_ns: u64,
    /// First accelerator of this process.
    pub first_accelerator: u32,
    /// Name of this machine.
    pub hostname: String,
    /// Maps a path in the storage to the path of its file.
    pub real_path: Box<dyn Fn(&str) -> PathBuf>,
}

/// A trace being written.
pub struct TraceFile {
    new_file: NewFile,
    /// The open trace, or the first error, which is reported when the trace is finished.
    lines: RefCell<io::Result<TraceLines>>,
}

/// Counts of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCounts {
    /// Events written.
    pub events: u64,
    /// Operations that were not logged because the log of their worker was full.
    pub dropped: u64,
}

impl TraceFile {
    /// Begins a trace in `new_file`.
    pub fn begin(new_file: NewFile, origin: TraceOrigin) -> Self {
        let output = new_file.output.try_clone();
        let lines = RefCell::new(output.and_then(|output| TraceLines::begin(output, origin)));
        TraceFile { new_file, lines }
    }

    /// Returns the final path of the trace.
    pub fn file(&self) -> &Path {
        &self.new_file.file
    }

    /// Writes an epoch or evaluation of this process's accelerators with its operations. `path_of` returns the path of a part.
    pub fn write_epoch(
        &self,
        name: &str,
        epoch: &EpochRecord,
        ops: &[OpLog],
        path_of: &dyn Fn(u64) -> String,
    ) {
        self.write(|lines| lines.write_epoch(name, epoch, ops, path_of));
    }

    fn write(&self, append: impl FnOnce(&mut TraceLines) -> io::Result<()>) {
        let mut lines = self.lines.borrow_mut();
        if let Ok(open) = &mut *lines
            && let Err(error) = append(open)
        {
            *lines = Err(error);
        }
    }

    /// Writes the checkpoints of `record`, ends the trace and renames the file to its final name.
    ///
    /// # Errors
    /// The trace could not be written; the file is then removed.
    pub fn finish(self, record: &Record) -> io::Result<TraceCounts> {
        let lines = self.lines.replace(Err(io::ErrorKind::Other.into()))?;
        let counts = lines.finish(record)?;
        self.new_file.persist()?;
        Ok(counts)
    }
}

struct TraceLines {
    output: GzEncoder<File>,
    piece: String,
    origin: TraceOrigin,
    host_hash: String,
    /// Hash of file 0; the hash of file `n` is this plus `n`.
    first_file_hash: u64,
    named_files: HashSet<u64>,
    named_threads: HashSet<u64>,
    /// Start of the first block and end of the last.
    extent_ns: Option<(u64, u64)>,
    accelerators: u64,
    counts: TraceCounts,
}

/// A complete event. Times count from the start of the run.
struct TraceEvent<'a> {
    category: &'a str,
    name: &'a str,
    thread: u64,
    start_ns: u64,
    end_ns: u64,
    /// Nesting depth; 0 is outermost.
    level: u32,
    /// Further fields of the event's `args`, each with a leading comma.
    args: &'a str,
}

/// Arguments of an event that names a host, a file, a process or a thread.
#[derive(Serialize)]
struct NameArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    hhash: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

impl TraceLines {
    fn begin(output: File, origin: TraceOrigin) -> io::Result<Self> {
        let host_hash = format!("{:016x}", hash_of(&origin.hostname));
        let hostname = origin.hostname.clone();
        let mut lines = TraceLines {
            output: GzEncoder::new(output, Compression::fast()),
            piece: "[\n".into(),
            first_file_hash: hash_of(&(origin.real_path)("")),
            host_hash: host_hash.clone(),
            named_files: HashSet::new(),
            named_threads: HashSet::new(),
            extent_ns: None,
            accelerators: 0,
            counts: TraceCounts { events: 0, dropped: 0 },
            origin,
        };
        let thread = lines.thread_of(0, None);
        lines.write_metadata("HH", thread, &hostname, Some(&host_hash))?;
        lines.flush()?;
        Ok(lines)
    }

    fn write_epoch(
        &mut self,
        name: &str,
        epoch: &EpochRecord,
        ops: &[OpLog],
        path_of: &dyn Fn(u64) -> String,
    ) -> io::Result<()> {
        self.accelerators = self.accelerators.max(epoch.accelerators.len() as u64);
        for (number, accelerator) in (0..).zip(&epoch.accelerators) {
            let thread = self.thread_of(number, None);
            self.name_thread(thread, "steps")?;
            let blocks = &accelerator.blocks;
            let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
                continue;
            };
            let start_ns = first.start_ns;
            let end_ns = last.end_ns.max(start_ns);
            let args = format!(",\"epoch\":{}", epoch.number);
            self.write_event(TraceEvent {
                category: "pipeline",
                name,
                thread,
                start_ns,
                end_ns,
                level: 2,
                args: &args,
            })?;
            let (from_ns, to_ns) = self.extent_ns.unwrap_or((start_ns, end_ns));
            self.extent_ns = Some((from_ns.min(start_ns), to_ns.max(end_ns)));
            let mut step = 0;
            for block in blocks {
                self.write_block(thread, epoch.number, &mut step, block)?;
            }
        }
        for log in ops {
            self.counts.dropped += log.dropped;
            let thread = self.thread_of(log.accelerator.into(), Some(log.worker));
            self.name_thread(thread, &format!("worker {}", log.worker))?;
            for op in &log.ops {
                self.write_op(thread, op, path_of)?;
            }
        }
        self.flush()
    }

    /// Writes the steps of a block, which follow each other without gaps.
    fn write_block(
        &mut self,
        thread: u64,
        epoch: u32,
        step: &mut u64,
        block: &Block,
    ) -> io::Result<()> {
        let mut start_ns = block.start_ns;
        let names = [("dataloader", "fetch.iter"), ("compute", "compute"), ("comm", "barrier")];
        for index in 0..block.load_ns.len() {
            *step += 1;
            let args = format!(",\"epoch\":{epoch},\"step\":{step}");
            let parts = [&block.load_ns, &block.compute_ns, &block.barrier_ns];
            for (part, (category, name)) in parts.into_iter().zip(names) {
                // An interrupted step has no later parts.
                let Some(ns) = part.get(index) else { break };
                let end_ns = start_ns + ns;
                self.write_event(TraceEvent {
                    category,
                    name,
                    thread,
                    start_ns,
                    end_ns,
                    level: 3,
                    args: &args,
                })?;
                start_ns = end_ns;
            }
        }
        Ok(())
    }

    fn write_op(
        &mut self,
        thread: u64,
        op: &LoggedOp,
        path_of: &dyn Fn(u64) -> String,
    ) -> io::Result<()> {
        let file = format!("{:016x}", self.first_file_hash.wrapping_add(op.part));
        if self.named_files.insert(op.part) {
            let path = (self.origin.real_path)(&path_of(op.part));
            self.write_metadata("FH", thread, &path.to_string_lossy(), Some(&file))?;
        }
        let name = match op.kind {
            OpKind::Open => "open",
            OpKind::Length => "fstat",
            OpKind::Read => "pread",
            OpKind::Close => "close",
        };
        let returned = op.bytes.map_or(-1, |bytes| bytes as i64);
        let offset = match op.kind {
            OpKind::Read => format!(",\"offset\":{}", op.offset),
            _ => String::new(),
        };
        let args = format!(",\"fhash\":\"{file}\",\"ret\":{returned}{offset}");
        self.write_event(TraceEvent {
            category: "POSIX",
            name,
            thread,
            start_ns: op.start_ns,
            end_ns: op.end_ns,
            level: 1,
            args: &args,
        })
    }

    fn write_checkpoint(&mut self, epoch: u32, checkpoint: &CheckpointRecord) -> io::Result<()> {
        let name = match checkpoint.kind {
            CheckpointKind::Save => "capture",
            CheckpointKind::Load => "restart",
        };
        for rank in &checkpoint.ranks {
            // A separate thread, since steps continue while a checkpoint is written in the background.
            let thread = (rank.rank + 1) * THREADS_EACH + THREADS_EACH - 1;
            self.name_thread(thread, "checkpoints")?;
            let args = format!(
                ",\"epoch\":{epoch},\"step\":{},\"image_size\":{}",
                checkpoint.after_step, rank.bytes
            );
            self.write_event(TraceEvent {
                category: "checkpoint",
                name,
                thread,
                start_ns: rank.start_ns,
                end_ns: rank.end_ns.max(rank.start_ns),
                level: 1,
                args: &args,
            })?;
        }
        Ok(())
    }

    fn finish(mut self, record: &Record) -> io::Result<TraceCounts> {
        for epoch in &record.epochs {
            for checkpoint in &epoch.checkpoints {
                self.write_checkpoint(epoch.number, checkpoint)?;
            }
        }
        if let Some((start_ns, end_ns)) = self.extent_ns {
            for accelerator in 0..self.accelerators {
                let thread = self.thread_of(accelerator, None);
                for (level, category, name) in [(0, "ai_root", "ai_root"), (1, "pipeline", "train")]
                {
                    self.write_event(TraceEvent {
                        category,
                        name,
                        thread,
                        start_ns,
                        end_ns,
                        level,
                        args: "",
                    })?;
                }
            }
        }
        let TraceCounts { events, dropped } = self.counts;
        let args = format!(",\"num_events\":{events},\"dropped_events\":{dropped}");
        let last_ns = self.extent_ns.map_or(0, |(_, end_ns)| end_ns);
        self.write_event(TraceEvent {
            category: "dftracer",
            name: "end",
            thread: self.thread_of(0, None),
            start_ns: last_ns,
            end_ns: last_ns,
            level: 0,
            args: &args,
        })?;
        self.piece.push_str("]\n");
        self.output.write_all(self.piece.as_bytes())?;
        self.output.finish()?.sync_all()?;
        Ok(self.counts)
    }

    /// Returns the thread number of a worker, or of an accelerator's steps if `worker` is `None`. It is unique within the run.
    fn thread_of(&self, accelerator: u64, worker: Option<u32>) -> u64 {
        let number = worker.map_or(0, |worker| 1 + u64::from(worker));
        (u64::from(self.origin.first_accelerator) + accelerator + 1) * THREADS_EACH + number
    }

    fn name_thread(&mut self, thread: u64, name: &str) -> io::Result<()> {
        if !self.named_threads.insert(thread) {
            return Ok(());
        }
        let process = thread / THREADS_EACH;
        if self.named_threads.insert(process) {
            let accelerator = format!("accelerator {}", process - 1);
            self.write_metadata("process_name", thread, &accelerator, None)?;
        }
        self.write_metadata("thread_name", thread, name, None)
    }

    /// Writes an event that names a thread, a process, the host or a file. For a host or a file, `value` is its hash.
    fn write_metadata(
        &mut self,
        event: &str,
        thread: u64,
        name: &str,
        value: Option<&str>,
    ) -> io::Result<()> {
        let process = thread / THREADS_EACH;
        let hhash = value.map(|_| self.host_hash.as_str());
        let args = serde_json::to_string(&NameArgs { hhash, name, value })?;
        let _ = writeln!(
            self.piece,
            "{{\"name\":\"{event}\",\"cat\":\"dftracer\",\"pid\":{process},\"tid\":{thread},\"ph\":\"M\",\"args\":{args}}}"
        );
        self.compress_piece()
    }

    fn write_event(&mut self, event: TraceEvent<'_>) -> io::Result<()> {
        let TraceEvent { category, name, thread, level, args, .. } = event;
        // Starts and ends are rounded alike, so that nested events stay nested.
        let wall_us = |ns: u64| (self.origin.wall_ns + ns) / 1000;
        let start_us = wall_us(event.start_ns);
        let end_us = wall_us(event.end_ns);
        let _ = writeln!(
            self.piece,
            "{{\"id\":{},\"name\":\"{name}\",\"cat\":\"{category}\",\"pid\":{},\"tid\":{thread},\"ts\":{start_us},\"dur\":{},\"ph\":\"X\",\"args\":{{\"hhash\":\"{}\",\"level\":{level}{args}}}}}",
            self.counts.events,
            thread / THREADS_EACH,
            end_us - start_us,
            self.host_hash,
        );
        self.counts.events += 1;
        self.compress_piece()
    }

    fn compress_piece(&mut self) -> io::Result<()> {
        if self.piece.len() < PIECE_BYTES {
            return Ok(());
        }
        self.output.write_all(self.piece.as_bytes())?;
        self.piece.clear();
        Ok(())
    }

    /// Compresses and writes all pending lines. They can then be read even if the process is killed later.
    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(self.piece.as_bytes())?;
        self.piece.clear();
        self.output.flush()
    }
}

fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
