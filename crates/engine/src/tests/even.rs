//! In formats with the ability `EvenReads`, all accelerators make the same calls, whichever samples they read. Collective reads rely on
//! this.

use super::{Case, plan};
use crate::job::{ClaimedTask, ReadJob, Shard};
use crate::loader::{Queue, Task};
use crate::reader::{Op, SampleReader};
use feedrate_data::format::{FORMATS, FormatError, PayloadSink};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{FileAccess, Plan, Shuffle};
use feedrate_spec::shape::Element;

/// A sink that drops payload.
struct NullSink;

impl PayloadSink for NullSink {
    fn payload(&mut self, _: u64, _: &[u8]) -> Result<(), FormatError> {
        Ok(())
    }
}

/// Returns a plan of three accelerators with batches of four samples. The sizes of samples and files are odd numbers.
fn format_plan(name: &str, extension: &str, files: u64) -> Plan {
    let case = Case { loader: "pytorch", accelerators: 3, workers: 1, steps: 1, compute_s: 0.0 };
    let mut plan = plan(case);
    plan.dataset.format = name.into();
    plan.dataset.extension = extension.into();
    plan.dataset.files_train = files;
    plan.dataset.samples_per_file = if files > 1 { 24 } else { 37 };
    plan.dataset.record_dims = vec![37, 53];
    plan.dataset.element = Element::Uint8;
    plan.storage.kind = "memory".into();
    plan.loader.file_access = FileAccess::Mpio;
    plan.loader.batch_size = 4;
    plan.loader.file_shuffle = Shuffle::Seed;
    plan.train.steps_per_epoch = files * plan.dataset.samples_per_file / 12;
    plan.train.epochs = 2;
    plan
}

/// Adds the collective calls for one sample to `calls`.
fn add_sample_calls(job: &ReadJob, reader: &mut SampleReader, calls: &mut Vec<String>) {
    let storage = &job.storage;
    let mut buffered: std::ops::Range<u64> = 0..0;
    loop {
        let op = reader.next_op().unwrap();
        let (offset, len) = match op {
            Op::Done => return,
            Op::Open => {
                calls.push(format!("open {}", reader.path()));
                reader.set_handle(storage.open(reader.path()).unwrap());
                continue;
            }
            Op::Length => {
                let length = storage.len(reader.handle()).unwrap();
                reader.feed(&length.to_le_bytes(), &mut NullSink).unwrap();
                continue;
            }
            Op::Kept => {
                reader.feed(&[], &mut NullSink).unwrap();
                continue;
            }
            Op::Close(handle) => {
                calls.push("close".into());
                storage.close(handle);
                continue;
            }
            Op::Read { offset, len, .. } | Op::Again { offset, len } => (offset, len),
        };
        let mut bytes = vec![0; len];
        let read_bytes = storage.read_at(reader.handle(), offset, &mut bytes).unwrap();
        let range = offset..offset + read_bytes as u64;
        let is_buffered = matches!(op, Op::Again { .. })
            && buffered.start <= range.start
            && range.end <= buffered.end;
        if !is_buffered {
            calls.push("read".into());
            buffered = range;
        }
        reader.feed(&bytes[..read_bytes], &mut NullSink).unwrap();
    }
}

/// Returns the collective calls of an accelerator in a run.
fn accelerator_calls(job: &ReadJob, accelerator: u32, queue: &Queue) -> Vec<String> {
    let mut reader = job.reader();
    let mut shard = Shard::new(job, accelerator);
    let mut calls = Vec::new();
    for batch in 0..job.plan.train.steps() {
        shard.select_epoch(&job.plan, queue.epoch_of(batch));
        let samples = 0..job.plan.loader.batch_size;
        let task = Task { batch, samples: samples.clone(), position: None };
        let claimed_task = ClaimedTask::new(task, queue);
        for sample in samples {
            reader.begin(shard.sample(&claimed_task, sample), &job.layout);
            add_sample_calls(job, &mut reader, &mut calls);
        }
    }
    calls
}

#[test]
fn in_formats_with_even_reads_all_accelerators_make_the_same_calls() {
    let mut checked = 0;
    for format in FORMATS {
        let entry = format.entry;
        if !entry.member.has(Ability::EvenReads) {
            continue;
        }
        for files in [1, 3] {
            let mut plan = format_plan(entry.member.name, entry.extension, files);
            let bytes = plan.dataset.file_bytes(&entry, &Layout::new(&plan.dataset).shape(0));
            plan.loader.piece_bytes = bytes.next_power_of_two();
            let job = ReadJob::in_memory(&plan).unwrap();
            let queue = &job.queues()[0];
            let first_calls = accelerator_calls(&job, 0, queue);
            assert!(first_calls.iter().filter(|call| *call == "read").count() >= 24);
            for accelerator in 1..3 {
                let calls = accelerator_calls(&job, accelerator, queue);
                assert_eq!(calls, first_calls, "{}: {accelerator} of {files}", entry.member.name);
            }
            checked += 1;
        }
    }
    assert!(10 <= checked, "raw, npy, npz, hdf5, indexed_binary");
}
