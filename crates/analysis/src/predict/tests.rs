//! Records that the simulated driver made on storages that are known, against what is fitted and predicted from them.

mod client;
mod limits;

use super::*;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_engine::{job::ReadJob, loader};
use feedrate_measure::record::{EpochRecord, HostEpoch, Record, System};
use feedrate_measure::{example, metric::AU_ALL_STEPS};
use feedrate_spec::plan::FileAccess;
use feedrate_spec::workload::{Shuffle, TimeSpec};

const MS: f64 = 1e-3;

/// Batches of four samples of a million bytes, each a file and a read; a step computes for 20 ms.
fn plan(change: impl Fn(&mut Plan)) -> Plan {
    let mut plan = example::plan(1, 60);
    plan.loader.kind = "native".into();
    plan.loader.batch_size = 4;
    plan.train.compute = TimeSpec::Constant { mean: 20.0 * MS };
    change(&mut plan);
    let in_flight = loader::find(&plan.loader.kind).unwrap().entry().batches_in_flight;
    let loader = &mut plan.loader;
    loader.batches_in_flight = in_flight(loader.workers, loader.prefetch_size, loader.batch_size);
    plan.dataset.files_train =
        plan.train.steps_per_epoch * loader.batch_size * u64::from(plan.accelerators);
    plan
}

fn threads(threads: u32) -> impl Fn(&mut Plan) {
    move |plan| plan.loader.workers = threads
}

fn constant(mean: f64) -> TimeSpec {
    TimeSpec::Constant { mean }
}

/// Latency in milliseconds, MB/s, places.
fn storage(
    latency_ms: f64,
    megabytes_per_second: Option<f64>,
    concurrency: Option<u32>,
) -> SimulatedStorage {
    SimulatedStorage {
        latency: constant(latency_ms * MS),
        bytes_per_second: megabytes_per_second.map(|rate| rate * 1e6),
        concurrency,
        ..SimulatedStorage::default()
    }
}

fn run(plan: &Plan, storage: SimulatedStorage) -> Record {
    let mut driver = SimulatedDriver::new(ReadJob::without_files(plan).unwrap(), storage);
    let accelerators = driver.epoch(plan.train.steps_per_epoch).unwrap();
    let end_ns = accelerators[0].blocks[0].end_ns;
    let epoch = EpochRecord {
        number: 1,
        end_ns,
        accelerators,
        causes: Some(driver.take_causes()),
        host: HostEpoch::default(),
        ..EpochRecord::default()
    };
    let system = System { cpus: 16, ..System::default() };
    Record { system, ..example::record(plan.clone(), vec![epoch]) }
}

fn au(record: &Record) -> f64 {
    AU_ALL_STEPS.run_value(record).unwrap()
}

fn fitted(workers: u32, storage: SimulatedStorage) -> Vec<StorageModel> {
    Pipeline::new(&run(&plan(threads(workers)), storage)).unwrap().storage
}

/// Whether a model among those that explain the record is about this one.
fn holds(fit: &[StorageModel], latency_ms: f64, rate: Option<f64>, places: Option<u32>) -> bool {
    let about = |a: f64, b: f64| (a - b).abs() <= 0.05 * b.max(0.1 * MS);
    fit.iter().any(|model| {
        let rates = model.bytes_per_second.map(|is| is / 1e6).zip(rate);
        about(model.latency_s, latency_ms * MS)
            && model.bytes_per_second.is_some() == rate.is_some()
            && rates.is_none_or(|(is, was)| about(is, was))
            && model.concurrency == places
    })
}

#[test]
fn a_storage_is_found_in_what_its_reads_took() {
    for (workers, latency_ms, rate, places) in [
        (4, 10.0, None, None),
        (4, 0.0, Some(100.0), None),
        (8, 10.0, None, Some(2)),
        (4, 5.0, Some(200.0), None),
        (1, 10.0, None, None),
        (1, 0.0, Some(100.0), None),
    ] {
        let fit = fitted(workers, storage(latency_ms, rate, places));
        assert!(holds(&fit, latency_ms, rate, places), "{workers} × {latency_ms} ms: {fit:#?}");
    }
}

/// Four readers that each wait as long as one wait for no one; four that wait for one another wait four times as long as the first did.
#[test]
fn who_found_the_storage_empty_tells_latency_from_bandwidth() {
    let latency = fitted(4, storage(10.0, None, None));
    assert!(
        latency.iter().all(|model| model.bytes_per_second.is_none() && model.concurrency.is_none())
    );
    let pipe = fitted(4, storage(0.0, Some(100.0), None));
    assert!(pipe.iter().all(|model| model.is_shared() || model.concurrency.is_some()));
}

/// Sizes that differ tell latency from bandwidth with one request in flight: 64 KiB and a million bytes.
#[test]
fn sizes_tell_latency_from_bandwidth() {
    let mut record = run(&plan(threads(1)), storage(5.0, Some(200.0), None));
    let io = &mut record.epochs[0].accelerators[0].io;
    let header = 65_536;
    let ns = 5_000_000 + header * 5;
    for _ in 0..io.reads {
        io.access.read(header, feedrate_measure::record::access::Follows::Nothing);
        io.read_latency.record(ns);
    }
    io.size_ns[feedrate_measure::record::access::bin(header)] += io.reads * ns;
    (io.read_ns, io.read_bytes) = (io.read_ns + io.reads * ns, io.read_bytes + io.reads * header);
    io.reads *= 2;
    let fit = Pipeline::new(&record).unwrap().storage;
    assert!(holds(&fit, 5.0, Some(200.0), None), "{fit:#?}");
    assert!(
        fit.iter().all(|model| (model.latency_s + model.request_s - 5.0 * MS).abs() < 0.1 * MS),
        "{fit:#?}"
    );
}

struct WhatIf {
    base: Plan,
    plan: Plan,
    storage: SimulatedStorage,
    changes: Vec<PipelineChange>,
    changed: SimulatedStorage,
}

impl WhatIf {
    /// `change` of a workload of so many threads.
    fn on_plan(workers: u32, storage: SimulatedStorage, change: impl Fn(&mut Plan)) -> Self {
        let of = |plan: &mut Plan| {
            threads(workers)(plan);
            change(plan);
        };
        WhatIf {
            base: plan(threads(workers)),
            plan: plan(of),
            storage,
            changes: vec![],
            changed: storage,
        }
    }

    /// A change of the storage below the same workload.
    fn on_storage(
        workers: u32,
        storage: SimulatedStorage,
        change: PipelineChange,
        changed: SimulatedStorage,
    ) -> Self {
        WhatIf { changes: vec![change], changed, ..WhatIf::on_plan(workers, storage, |_| {}) }
    }

    fn predict(&self) -> Result<Prediction, NotPredictable> {
        let pipeline = Pipeline::new(&run(&self.base, self.storage)).unwrap();
        pipeline.predict(&self.plan, &self.changes)
    }

    #[track_caller]
    fn check(&self) {
        self.check_within(2.0);
    }

    #[track_caller]
    fn check_within(&self, points: f64) {
        let really = au(&run(&self.plan, self.changed));
        let predicted = self.predict().unwrap();
        let [least, most] = predicted.interval;
        assert!((predicted.au_percent - really).abs() < points, "{really} is {predicted:?}");
        assert!(least <= really && really <= most, "{really} is {predicted:?}");
    }
}

/// The baseline is what it was, and what the record decides is what comes of it.
#[test]
fn changed_runs_are_what_was_predicted() {
    let latency = storage(10.0, None, None);
    let pipe = storage(0.0, Some(100.0), None);
    let in_turn = storage(10.0, None, Some(2));
    for workers in [1, 2, 4] {
        for storage in [latency, pipe, in_turn] {
            WhatIf::on_plan(workers, storage, |_| {}).check();
            WhatIf::on_plan(workers, storage, |plan| plan.train.compute = constant(0.08)).check();
            WhatIf::on_plan(workers, storage, |plan| plan.train.steps_per_epoch = 1000).check();
        }
    }
    WhatIf::on_plan(4, latency, threads(1)).check();
    WhatIf::on_plan(4, latency, threads(8)).check();
    WhatIf::on_plan(4, pipe, threads(16)).check();
    WhatIf::on_plan(8, in_turn, threads(1)).check();
    WhatIf::on_plan(4, pipe, |plan| plan.accelerators = 4).check();
    WhatIf::on_plan(4, latency, |plan| plan.accelerators = 4).check();
    WhatIf::on_plan(4, latency, |plan| plan.loader.batch_size = 64).check();
    WhatIf::on_plan(4, latency, |plan| plan.loader.kind = "pytorch".into()).check();
    let twice = Scale::Times(2.0);
    let half = Scale::Times(0.5);
    WhatIf::on_storage(4, latency, PipelineChange::Latency(half), storage(5.0, None, None)).check();
    let faster = storage(0.0, Some(200.0), None);
    WhatIf::on_storage(4, pipe, PipelineChange::Bandwidth(Scale::Value(200e6)), faster).check();
    let wider = storage(10.0, None, Some(4));
    WhatIf::on_storage(8, in_turn, PipelineChange::Concurrency(twice), wider).check();
}

/// Each reader of a file opens it, and reads on from where it was.
#[test]
fn who_reads_which_samples_of_a_file_decides_what_is_read() {
    let of = |format: &str, workers: u32| {
        plan(|plan| {
            (plan.dataset.format, plan.dataset.extension) = (format.into(), format.into());
            plan.dataset.samples_per_file = 20;
            (plan.dataset.record_bytes, plan.dataset.record_dims) = (1e5, Vec::new());
            (plan.loader.piece_bytes, plan.loader.workers) = (1 << 18, workers);
            (plan.storage.throttle_latency_s, plan.storage.open_delay_s) = (0.02, 0.04);
        })
    };
    let latency = SimulatedStorage { open: constant(0.04), ..storage(20.0, None, None) };
    for format in ["tfrecord", "hdf5", "parquet"] {
        let really = |plan: &Plan| {
            let mut plan = plan.clone();
            plan.dataset.files_train = plan.train.steps_per_epoch * 4 / 20;
            let mut driver = SimulatedDriver::new(ReadJob::in_memory(&plan).unwrap(), latency);
            let accelerators = driver.epoch(plan.train.steps_per_epoch).unwrap();
            let end_ns = accelerators[0].blocks[0].end_ns;
            let causes = Some(driver.take_causes());
            let epoch =
                EpochRecord { number: 1, end_ns, accelerators, causes, ..EpochRecord::default() };
            let system = System { cpus: 16, ..System::default() };
            Record { system, ..example::record(plan, vec![epoch]) }
        };
        for (was, is) in [(4, 1), (1, 4)] {
            let [was, is] = [was, is].map(|workers| of(format, workers));
            let [record, changed] = [&was, &is].map(really);
            let predicted = Pipeline::new(&record).unwrap().predict(&changed.plan, &[]).unwrap();
            let really = au(&changed);
            assert!(
                (predicted.au_percent - really).abs() < 5.0,
                "{format}: {really} is {predicted:?}"
            );
        }
    }
}

/// Two of three reads from a cache, one from a disk: bimodal too, but nobody waits for anybody else.
#[test]
fn waits_that_are_drawn_are_no_rate_that_is_shared() {
    let latency = TimeSpec::Gamma { shape: 0.2, scale: 0.05 };
    let fit = fitted(4, SimulatedStorage { latency, ..SimulatedStorage::default() });
    assert!(fit.iter().any(|model| !model.is_shared()), "{fit:#?}");
}

/// Few are simulated in place of many, on as much less of a storage.
#[test]
fn many_accelerators_are_as_few_on_less() {
    let many = |plan: &mut Plan| (plan.loader.workers, plan.accelerators) = (2, 96);
    for storage in
        [storage(10.0, None, None), storage(0.0, Some(4800.0), None), storage(10.0, None, Some(48))]
    {
        let base = plan(|plan| {
            many(plan);
            plan.train.steps_per_epoch = 20;
        });
        let pipeline = Pipeline::new(&run(&base, storage)).unwrap();
        for workers in [2, 4] {
            let of = plan(|plan| {
                many(plan);
                plan.train.steps_per_epoch = 20;
                plan.loader.workers = workers;
            });
            let predicted = pipeline.predict(&of, &[]).unwrap();
            let really = au(&run(&of, storage));
            assert!((predicted.au_percent - really).abs() < 4.0, "{really} is {predicted:?}");
        }
    }
}

/// One reader that waits 10 ms: four wait as long, side by side or one after another.
#[test]
fn where_the_record_leaves_it_open_the_run_that_tells_is_named() {
    let told = WhatIf::on_plan(1, storage(10.0, None, None), threads(4)).predict();
    let Err(NotPredictable::LatencyOrBandwidth { least_percent, most_percent, deciding_run }) =
        told
    else {
        panic!("{told:?}")
    };
    assert!(least_percent < 55.0 && most_percent > 95.0, "{least_percent} {most_percent}");
    assert_eq!(deciding_run, DecidingRun::MoreReadingThreads);
    let unseen = PipelineChange::Concurrency(Scale::Times(2.0));
    let latency = storage(10.0, None, None);
    let told = WhatIf::on_storage(4, latency, unseen, latency).predict();
    assert_eq!(told, Err(NotPredictable::NotSeen { key: "storage.concurrency" }));
}

/// The plan says how the storage is emulated, so that nothing is left open: neither by one request in flight, nor by one size.
#[test]
fn an_emulated_storage_is_known() {
    for change in [
        (|plan| plan.loader.workers = 4) as fn(&mut Plan),
        |plan| plan.loader.piece_bytes = 250_000,
        |plan| (plan.loader.workers, plan.loader.piece_bytes) = (8, 125_000),
    ] {
        let emulates = |mut plan: Plan| {
            plan.storage.throttle_latency_s = 10.0 * MS;
            plan
        };
        let case = WhatIf::on_plan(1, storage(10.0, None, None), change);
        WhatIf { base: emulates(case.base), plan: emulates(case.plan), ..case }.check();
    }
}

/// A buffer that is filled before the first step, and an epoch that is read at start.
#[test]
fn steps_that_wait_for_many_batches_are_predicted() {
    for held in [10, 59] {
        let holds = |plan: &mut Plan| {
            (plan.loader.held_batches, plan.loader.held_at_start) = (held, held);
        };
        let pipe = storage(0.0, Some(300.0), None);
        let mut case = WhatIf::on_plan(4, pipe, holds);
        case.plan.loader.batches_in_flight += held;
        case.check();
    }
}

#[test]
fn decoding_shares_the_cores() {
    let decodes = |cores| SimulatedStorage {
        decode_bytes_per_second: Some(100e6),
        cores: Some(cores),
        ..SimulatedStorage::default()
    };
    WhatIf::on_plan(2, decodes(16), threads(8)).check();
    WhatIf::on_plan(2, decodes(16), |plan| {
        threads(8)(plan);
        plan.accelerators = 8;
    })
    .check();
    let half = PipelineChange::DecodeTime(Scale::Times(0.5));
    let faster = SimulatedStorage { decode_bytes_per_second: Some(200e6), ..decodes(16) };
    WhatIf::on_storage(1, decodes(16), half, faster).check();
}

#[test]
fn records_that_tell_nothing_are_refused() {
    let told = |change: fn(&mut Record)| {
        let mut record = run(&plan(threads(2)), storage(10.0, None, None));
        change(&mut record);
        Pipeline::new(&record).map(|_| ())
    };
    assert_eq!(told(|_| {}), Ok(()));
    assert_eq!(told(|record| record.epochs.clear()), Err(NotPredictable::NothingTrained));
    let uncounted = |record: &mut Record| record.epochs[0].accelerators[0].io = Default::default();
    assert_eq!(told(uncounted), Err(NotPredictable::NotCounted));
    let cached = |record: &mut Record| {
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(1 << 30);
    };
    assert_eq!(told(cached), Err(NotPredictable::ServedFromMemory));
    let csv = |plan: &mut Plan| plan.dataset.format = "csv".into();
    let mut case = WhatIf::on_plan(2, storage(10.0, None, None), csv);
    case.base.dataset.format = "npy".into();
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles));
    let elsewhere = |plan: &mut Plan| plan.storage.engine = Some("mmap".into());
    let case = WhatIf::on_plan(2, storage(10.0, None, None), elsewhere);
    assert_eq!(
        case.predict(),
        Err(NotPredictable::OtherFiles),
        "nobody knows what another engine takes"
    );
    let one_for_all = |plan: &mut Plan| {
        (plan.loader.file_access, plan.loader.group_accelerators) = (FileAccess::Same, 2);
        plan.accelerators = 2;
    };
    let case = WhatIf::on_plan(2, storage(10.0, None, None), one_for_all);
    assert_eq!(case.predict(), Err(NotPredictable::CollectiveReads));
    let shuffled = |plan: &mut Plan| {
        (plan.dataset.samples_per_file, plan.loader.sample_shuffle) = (8, Shuffle::Seed);
    };
    let mut case = WhatIf::on_plan(2, storage(10.0, None, None), shuffled);
    case.base.loader.sample_shuffle = Shuffle::Off;
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder));
    (case.base.loader.sample_shuffle, case.base.loader.shuffle_block) = (Shuffle::Seed, Some(4));
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "in blocks");
    case.base.storage.throttle_bytes_per_second = Some(5e6);
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "whatever the storage");
    case.base.storage.throttle_bytes_per_second = None;
    (case.base.loader.shuffle_block, case.base.loader.reread_share) = (None, 0.5);
    assert_eq!(
        case.predict(),
        Err(NotPredictable::OtherOrder),
        "memory may serve what is read again"
    );
    case.base.loader.head = Some(feedrate_spec::plan::HeadReads { reads: 50, bytes: 13_312 });
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles), "nobody knows what a head takes");
    let staged = |plan: &mut Plan| {
        plan.stage = Some(feedrate_spec::plan::StagePlan::default());
    };
    let mut case = WhatIf::on_plan(2, storage(10.0, None, None), staged);
    case.base.stage = None;
    assert_eq!(
        case.predict(),
        Err(NotPredictable::OtherFiles),
        "nobody knows where the copy would lie"
    );
}
