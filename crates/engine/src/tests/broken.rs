//! Broken files among those that others wrote.

use super::{Case, plan};
use crate::job::ReadJob;
use crate::reader::Op;
use feedrate_data::format::Discard;
use feedrate_measure::record::IoCounters;
use feedrate_spec::plan::order::SampleId;
use std::sync::Arc;

const SAMPLES: u64 = 40;

/// The samples after the broken one cannot be found, but a job whose file is sound reads as many bytes.
#[test]
fn the_rest_of_a_broken_container_is_read() {
    for (format, extension) in [("webdataset", "tar"), ("tfrecord", "tfrecords")] {
        let case =
            Case { loader: "pytorch", accelerators: 1, workers: 1, steps: 1, compute_s: 0.0 };
        let mut plan = plan(case);
        plan.dataset.format = format.into();
        plan.dataset.extension = extension.into();
        plan.dataset.files_train = 1;
        plan.dataset.samples_per_file = SAMPLES;
        plan.dataset.record_dims = vec![100, 100];
        plan.loader.piece_bytes = 4096;
        let storage = ReadJob::in_memory(&plan).unwrap().storage;
        let job = ReadJob::new(&plan, 0..1, Arc::clone(&storage), false).unwrap();
        let mut reader = job.reader();
        let mut counters = IoCounters::new();
        let (mut file_bytes, mut read_bytes) = (0, 0);
        for sample in 0..SAMPLES {
            reader.begin(SampleId { file: 0, sample }, &job.layout);
            loop {
                let bytes = match reader.next_op().unwrap() {
                    Op::Done => break,
                    Op::Open => {
                        reader.set_handle(storage.open(reader.path()).unwrap());
                        continue;
                    }
                    Op::Close(handle) => {
                        storage.close(handle);
                        continue;
                    }
                    Op::Kept => Vec::new(),
                    Op::Length => {
                        file_bytes = storage.len(reader.handle()).unwrap();
                        file_bytes.to_le_bytes().to_vec()
                    }
                    op @ (Op::Read { offset, len, .. } | Op::Again { offset, len }) => {
                        let mut bytes = vec![0; len];
                        let len = storage.read_at(reader.handle(), offset, &mut bytes).unwrap();
                        bytes.truncate(len);
                        if matches!(op, Op::Read { .. }) {
                            read_bytes += len as u64;
                        }
                        // The third sample is broken.
                        if 20_000 < offset && offset < 30_000 {
                            bytes.fill(0xff);
                        }
                        bytes
                    }
                };
                reader.feed(&bytes, &mut Discard).unwrap();
            }
            reader.count_sample(&mut counters, "a");
        }
        let broken = &counters.undecoded[0];
        assert_eq!((&*broken.kind, broken.samples), ("broken file", SAMPLES - 2), "{format}");
        let share = read_bytes as f64 / file_bytes as f64;
        assert!((0.95..1.1).contains(&share), "{format}: {share} of the file");
    }
}
