//! The trace of a process of a run, in the form of DFTracer: Chrome's trace events, one in a line, compressed. An epoch is written when it
//! is over, so that nothing is formatted while one is measured.
//!
//! An accelerator is a process of the trace, as in the job that is emulated, and each of its workers a thread.

#[cfg(test)]
mod tests;

use crate::new_file::NewFile;
use crate::op_log::{LoggedOp, OpKind, OpLog};
use feedrate_measure::record::{Block, CheckpointKind, CheckpointRecord, EpochRecord, Record};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Threads of an accelerator that the trace can tell apart, its own among them.
const THREADS_EACH: u64 = 10_000;
/// Lines are compressed in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// The start and the names of a trace; all of a run agree on the start.
pub struct TraceOrigin {
    /// Start of the run since 1970, by the wall clock of rank 0.
    pub wall_ns: u64,
    /// First accelerator of this process.
    pub first_accelerator: u32,
    /// This machine.
    pub hostname: String,
    /// The file of a path of the storage.
    pub name_of: Box<dyn Fn(&str) -> PathBuf>,
}

/// A trace that is being written.
pub struct TraceFile {
    place: NewFile,
    /// An error of writing is told at the end.
    lines: RefCell<io::Result<TraceLines>>,
}

/// Numbers of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCounts {
    /// Events.
    pub events: u64,
    /// Operations that found no room until their epoch was over.
    pub dropped: u64,
}

impl TraceFile {
    /// Begin the trace at `place`.
    pub fn begin(place: NewFile, origin: TraceOrigin) -> Self {
        let output = place.output.try_clone();
        let lines = RefCell::new(output.and_then(|output| TraceLines::begin(output, origin)));
        TraceFile { place, lines }
    }

    /// The name that it is to have.
    pub fn file(&self) -> &Path {
        &self.place.file
    }

    /// Write an epoch of this process's accelerators, or an evaluation, and its operations. `path_of` tells the path of a part.
    pub fn epoch(
        &self,
        name: &str,
        epoch: &EpochRecord,
        ops: &[OpLog],
        path_of: &dyn Fn(u64) -> String,
    ) {
        self.write(|lines| lines.epoch(name, epoch, ops, path_of));
    }

    fn write(&self, act: impl FnOnce(&mut TraceLines) -> io::Result<()>) {
        let mut lines = self.lines.borrow_mut();
        if let Ok(open) = &mut *lines
            && let Err(error) = act(open)
        {
            *lines = Err(error);
        }
    }

    /// End the file: it has its name now, and the checkpoints of `record`.
    ///
    /// # Errors
    /// It could not be written; then it is gone.
    pub fn finish(self, record: &Record) -> io::Result<TraceCounts> {
        let lines = self.lines.replace(Err(io::ErrorKind::Other.into()))?;
        let counts = lines.end(record)?;
        self.place.name()?;
        Ok(counts)
    }
}

struct TraceLines {
    output: GzEncoder<File>,
    piece: String,
    origin: TraceOrigin,
    host_hash: String,
    /// Hash of file 0; those of the others follow it.
    first_file_hash: u64,
    named_files: HashSet<u64>,
    named_threads: HashSet<u64>,
    /// From the first block to the last.
    extent_ns: Option<(u64, u64)>,
    accelerators: u64,
    counts: TraceCounts,
}

/// A complete event; times are from the start of the run.
struct TraceEvent<'a> {
    category: &'a str,
    name: &'a str,
    thread: u64,
    start_ns: u64,
    end_ns: u64,
    /// Depth among events that enclose each other, from the outermost.
    level: u32,
    /// Fields behind the others.
    args: &'a str,
}

impl TraceLines {
    fn begin(output: File, origin: TraceOrigin) -> io::Result<Self> {
        let host_hash = format!("{:016x}", hash_of(&origin.hostname));
        let host = json!({"hhash": host_hash, "name": origin.hostname, "value": host_hash});
        let mut lines = TraceLines {
            output: GzEncoder::new(output, Compression::fast()),
            piece: "[\n".into(),
            first_file_hash: hash_of(&(origin.name_of)("")),
            host_hash,
            named_files: HashSet::new(),
            named_threads: HashSet::new(),
            extent_ns: None,
            accelerators: 0,
            counts: TraceCounts { events: 0, dropped: 0 },
            origin,
        };
        let thread = lines.thread_of(0, None);
        lines.metadata("HH", thread, &host)?;
        lines.flush()?;
        Ok(lines)
    }

    fn epoch(
        &mut self,
        name: &str,
        epoch: &EpochRecord,
        ops: &[OpLog],
        path_of: &dyn Fn(u64) -> String,
    ) -> io::Result<()> {
        self.accelerators = self.accelerators.max(epoch.accelerators.len() as u64);
        for (accelerator, own) in (0..).zip(&epoch.accelerators) {
            let thread = self.thread_of(accelerator, None);
            self.name_thread(thread, "steps")?;
            let (Some(first), Some(last)) = (own.blocks.first(), own.blocks.last()) else {
                continue;
            };
            let (start_ns, end_ns) = (first.start_ns, last.end_ns.max(first.start_ns));
            let args = format!(",\"epoch\":{}", epoch.number);
            let (category, level, args) = ("pipeline", 2, &*args);
            self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })?;
            let (from_ns, to_ns) = self.extent_ns.unwrap_or((start_ns, end_ns));
            self.extent_ns = Some((from_ns.min(start_ns), to_ns.max(end_ns)));
            let mut step = 0;
            for block in &own.blocks {
                self.block(thread, epoch.number, &mut step, block)?;
            }
        }
        for log in ops {
            self.counts.dropped += log.dropped;
            let thread = self.thread_of(log.accelerator.into(), Some(log.worker));
            self.name_thread(thread, &format!("worker {}", log.worker))?;
            for op in &log.ops {
                self.op(thread, op, path_of)?;
            }
        }
        self.flush()
    }

    /// Steps follow each other without a gap.
    fn block(&mut self, thread: u64, epoch: u32, step: &mut u64, block: &Block) -> io::Result<()> {
        let mut start_ns = block.start_ns;
        let names = [("dataloader", "fetch.iter"), ("compute", "compute"), ("comm", "barrier")];
        for at in 0..block.load_ns.len() {
            *step += 1;
            let args = format!(",\"epoch\":{epoch},\"step\":{step}");
            let (level, args) = (3, &*args);
            let parts = [&block.load_ns, &block.compute_ns, &block.barrier_ns];
            for (part, (category, name)) in parts.into_iter().zip(names) {
                // Of a step that was broken off the rest is unknown.
                let Some(ns) = part.get(at) else { break };
                let end_ns = start_ns + ns;
                self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })?;
                start_ns = end_ns;
            }
        }
        Ok(())
    }

    fn op(
        &mut self,
        thread: u64,
        op: &LoggedOp,
        path_of: &dyn Fn(u64) -> String,
    ) -> io::Result<()> {
        let file = format!("{:016x}", self.first_file_hash.wrapping_add(op.part));
        if self.named_files.insert(op.part) {
            let path = (self.origin.name_of)(&path_of(op.part));
            let args =
                json!({"hhash": self.host_hash, "name": path.to_string_lossy(), "value": file});
            self.metadata("FH", thread, &args)?;
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
        let (category, level, args) = ("POSIX", 1, &*args);
        let LoggedOp { start_ns, end_ns, .. } = *op;
        self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })
    }

    fn checkpoint(&mut self, epoch: u32, checkpoint: &CheckpointRecord) -> io::Result<()> {
        let name = match checkpoint.kind {
            CheckpointKind::Save => "capture",
            CheckpointKind::Load => "restart",
        };
        for rank in &checkpoint.ranks {
            // Steps go on while it is written in the background.
            let thread = (rank.rank + 1) * THREADS_EACH + THREADS_EACH - 1;
            self.name_thread(thread, "checkpoints")?;
            let (step, bytes) = (checkpoint.after_step, rank.bytes);
            let args = format!(",\"epoch\":{epoch},\"step\":{step},\"image_size\":{bytes}");
            let (start_ns, end_ns) = (rank.start_ns, rank.end_ns.max(rank.start_ns));
            let (category, level, args) = ("checkpoint", 1, &*args);
            self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })?;
        }
        Ok(())
    }

    fn end(mut self, record: &Record) -> io::Result<TraceCounts> {
        for epoch in &record.epochs {
            for checkpoint in &epoch.checkpoints {
                self.checkpoint(epoch.number, checkpoint)?;
            }
        }
        if let Some((start_ns, end_ns)) = self.extent_ns {
            let args = "";
            for accelerator in 0..self.accelerators {
                let thread = self.thread_of(accelerator, None);
                let (category, name, level) = ("ai_root", "ai_root", 0);
                self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })?;
                let (category, name, level) = ("pipeline", "train", 1);
                self.event(TraceEvent { category, name, thread, start_ns, end_ns, level, args })?;
            }
        }
        let TraceCounts { events, dropped } = self.counts;
        let args = format!(",\"num_events\":{events},\"dropped_events\":{dropped}");
        let (thread, at_ns) = (self.thread_of(0, None), self.extent_ns.map_or(0, |of| of.1));
        self.event(TraceEvent {
            category: "dftracer",
            name: "end",
            thread,
            start_ns: at_ns,
            end_ns: at_ns,
            level: 0,
            args: &args,
        })?;
        self.piece.push_str("]\n");
        self.output.write_all(self.piece.as_bytes())?;
        self.output.finish()?.sync_all()?;
        Ok(self.counts)
    }

    /// The number of a worker's thread, or of that whose steps are an accelerator's, unlike all others of the run.
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
            self.metadata("process_name", thread, &json!({"name": accelerator}))?;
        }
        self.metadata("thread_name", thread, &json!({"name": name}))
    }

    fn metadata(&mut self, name: &str, thread: u64, args: &Value) -> io::Result<()> {
        let process = thread / THREADS_EACH;
        let _ = writeln!(
            self.piece,
            "{{\"name\":\"{name}\",\"cat\":\"dftracer\",\"pid\":{process},\"tid\":{thread},\"ph\":\"M\",\"args\":{args}}}"
        );
        self.compress_piece()
    }

    fn event(&mut self, event: TraceEvent<'_>) -> io::Result<()> {
        let TraceEvent { category, name, thread, level, args, .. } = event;
        // Ends are rounded as beginnings are: what lies within something still does.
        let [start_us, end_us] =
            [event.start_ns, event.end_ns].map(|ns| (self.origin.wall_ns + ns) / 1000);
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

    /// From here on all that was written can be read, whatever happens.
    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(self.piece.as_bytes())?;
        self.piece.clear();
        self.output.flush()
    }
}

fn hash_of(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
