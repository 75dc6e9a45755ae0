//! Tests fits and predictions with records that the simulated driver makes on known storages. Long because one record is made for all storages.

mod client;
mod interleave;
mod library;
mod limits;
mod requests;

use super::*;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_engine::{job::ReadJob, loader};
use feedrate_measure::example;
use feedrate_measure::metric::AU_SUSTAINED;
use feedrate_measure::record::{EpochRecord, HostEpoch, Record, System};
use feedrate_spec::plan::FileAccess;
use feedrate_spec::workload::{Shuffle, TimeSpec};

const MS: f64 = 1e-3;

/// A plan with batches of four samples of a million bytes. Each sample is one file and one read; a step computes for 20 ms.
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

/// A storage that serves `concurrency` reads at a time.
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
    record_epoch(plan, SimulatedDriver::new(ReadJob::without_files(plan).unwrap(), storage))
}

fn record_epoch(plan: &Plan, mut driver: SimulatedDriver) -> Record {
    let accelerators = driver.run_epoch(plan.train.steps_per_epoch).unwrap();
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

fn fitted_models(workers: u32, storage: SimulatedStorage) -> Vec<StorageModel> {
    Pipeline::new(&run(&plan(threads(workers)), storage)).unwrap().storage
}

/// Whether one of the models is approximately the given storage.
fn contains(
    models: &[StorageModel],
    latency_ms: f64,
    rate: Option<f64>,
    concurrency: Option<u32>,
) -> bool {
    let is_close = |a: f64, b: f64| (a - b).abs() <= 0.05 * b.max(0.1 * MS);
    models.iter().any(|model| {
        let rates = model.bytes_per_second.map(|fitted| fitted / 1e6).zip(rate);
        is_close(model.latency_s, latency_ms * MS)
            && model.bytes_per_second.is_some() == rate.is_some()
            && rates.is_none_or(|(fitted, expected)| is_close(fitted, expected))
            && model.concurrency == concurrency
    })
}

#[test]
fn the_storage_is_recovered_from_the_times_of_its_reads() {
    for (workers, latency_ms, rate, concurrency) in [
        (4, 10.0, None, None),
        (4, 0.0, Some(100.0), None),
        (8, 10.0, None, Some(2)),
        (4, 5.0, Some(200.0), None),
        (1, 10.0, None, None),
        (1, 0.0, Some(100.0), None),
    ] {
        let models = fitted_models(workers, storage(latency_ms, rate, concurrency));
        assert!(
            contains(&models, latency_ms, rate, concurrency),
            "{workers} × {latency_ms} ms: {models:#?}"
        );
    }
}

/// If reads wait for latency, each of four readers waits as long as a single reader. If they share a bandwidth, they wait four times as long
/// as the first read, for which the storage was idle.
#[test]
fn reads_of_an_idle_storage_distinguish_latency_from_bandwidth() {
    let latency = fitted_models(4, storage(10.0, None, None));
    assert!(
        latency.iter().all(|model| model.bytes_per_second.is_none() && model.concurrency.is_none())
    );
    let bandwidth = fitted_models(4, storage(0.0, Some(100.0), None));
    assert!(bandwidth.iter().all(|model| model.is_shared() || model.concurrency.is_some()));
}

/// Requests of 64 KiB and of a million bytes distinguish latency from bandwidth even with one request in flight.
#[test]
fn request_sizes_distinguish_latency_from_bandwidth() {
    let mut record = run(&plan(threads(1)), storage(5.0, Some(200.0), None));
    let io = &mut record.epochs[0].accelerators[0].io;
    let header_bytes = 65_536;
    let header_ns = 5_000_000 + header_bytes * 5;
    for _ in 0..io.reads {
        io.access.count_read(header_bytes, feedrate_measure::record::access::ReadPosition::First);
        io.read_latency.record(header_ns);
    }
    io.size_ns[feedrate_measure::record::access::bin_index(header_bytes)] += io.reads * header_ns;
    io.read_ns += io.reads * header_ns;
    io.read_bytes += io.reads * header_bytes;
    io.reads *= 2;
    let models = Pipeline::new(&record).unwrap().storage;
    assert!(contains(&models, 5.0, Some(200.0), None), "{models:#?}");
    assert!(
        models.iter().all(|model| (model.latency_s + model.request_s - 5.0 * MS).abs() < 0.1 * MS),
        "{models:#?}"
    );
}

#[test]
fn changes_are_written_as_users_write_them() {
    for (change, expected) in [
        (PipelineChange::Latency(Scale::Times(0.5)), "storage.latency=0.5x"),
        (PipelineChange::OpenLatency(Scale::Value(0.012)), "storage.open_latency=0.012s"),
        (PipelineChange::Bandwidth(Scale::Value(4e8)), "storage.bandwidth=400000000B/s"),
        (PipelineChange::Concurrency(Scale::Value(8.0)), "storage.concurrency=8"),
        (PipelineChange::DecodeTime(Scale::Times(2.0)), "decode.time=2x"),
        (PipelineChange::EqualAccelerators, "train.slow_accelerators={}"),
    ] {
        assert_eq!(change.setting(), expected);
    }
}

/// A change whose prediction is compared with a simulation of the changed run.
struct ChangedRun {
    base_plan: Plan,
    base_storage: SimulatedStorage,
    changed_plan: Plan,
    changed_storage: SimulatedStorage,
    changes: Vec<PipelineChange>,
}

impl ChangedRun {
    /// Changes a plan with `workers` threads.
    fn on_plan(workers: u32, storage: SimulatedStorage, change: impl Fn(&mut Plan)) -> Self {
        let changed_plan = plan(|plan| {
            threads(workers)(plan);
            change(plan);
        });
        ChangedRun {
            base_plan: plan(threads(workers)),
            base_storage: storage,
            changed_plan,
            changed_storage: storage,
            changes: vec![],
        }
    }

    /// Changes the storage and keeps the plan.
    fn on_storage(
        workers: u32,
        storage: SimulatedStorage,
        change: PipelineChange,
        changed: SimulatedStorage,
    ) -> Self {
        let unchanged = ChangedRun::on_plan(workers, storage, |_| {});
        ChangedRun { changes: vec![change], changed_storage: changed, ..unchanged }
    }

    fn predict(&self) -> Result<Prediction, NotPredictable> {
        let pipeline = Pipeline::new(&run(&self.base_plan, self.base_storage)).unwrap();
        pipeline.predict(&self.changed_plan, &self.changes)
    }

    #[track_caller]
    fn check(&self) {
        self.check_within(2.0);
    }

    #[track_caller]
    fn check_within(&self, points: f64) {
        let actual = au(&run(&self.changed_plan, self.changed_storage));
        let predicted = self.predict().unwrap();
        let [low, high] = predicted.interval;
        assert!((predicted.au_percent - actual).abs() < points, "{actual}: {predicted:?}");
        assert!(low <= actual && actual <= high, "{actual}: {predicted:?}");
    }
}

#[test]
fn predictions_agree_with_simulations_of_the_changed_run() {
    let latency = storage(10.0, None, None);
    let bandwidth = storage(0.0, Some(100.0), None);
    let two_slots = storage(10.0, None, Some(2));
    for workers in [1, 2, 4] {
        for storage in [latency, bandwidth, two_slots] {
            ChangedRun::on_plan(workers, storage, |_| {}).check();
            ChangedRun::on_plan(workers, storage, |plan| plan.train.compute = constant(0.08))
                .check();
            ChangedRun::on_plan(workers, storage, |plan| plan.train.steps_per_epoch = 1000).check();
        }
    }
    ChangedRun::on_plan(4, latency, threads(1)).check();
    ChangedRun::on_plan(4, latency, threads(8)).check();
    ChangedRun::on_plan(4, bandwidth, threads(16)).check();
    ChangedRun::on_plan(8, two_slots, threads(1)).check();
    ChangedRun::on_plan(4, bandwidth, |plan| plan.accelerators = 4).check();
    ChangedRun::on_plan(4, latency, |plan| plan.accelerators = 4).check();
    ChangedRun::on_plan(4, latency, |plan| plan.loader.batch_size = 64).check();
    ChangedRun::on_plan(4, latency, |plan| plan.loader.kind = "pytorch".into()).check();
    let twice = Scale::Times(2.0);
    let half = Scale::Times(0.5);
    ChangedRun::on_storage(4, latency, PipelineChange::Latency(half), storage(5.0, None, None))
        .check();
    let faster = storage(0.0, Some(200.0), None);
    ChangedRun::on_storage(4, bandwidth, PipelineChange::Bandwidth(Scale::Value(200e6)), faster)
        .check();
    let four_slots = storage(10.0, None, Some(4));
    ChangedRun::on_storage(8, two_slots, PipelineChange::Concurrency(twice), four_slots).check();
}

/// Answers compare the sustained utilisation with the target if a run is long enough to measure it.
#[test]
fn the_metric_that_decides_an_answer_is_predicted() {
    let check = |case: ChangedRun, metric: &'static Metric| {
        let actual = metric.run_value(&run(&case.changed_plan, case.changed_storage)).unwrap();
        let pipeline = Pipeline::new(&run(&case.base_plan, case.base_storage)).unwrap();
        let predicted =
            pipeline.predict_metric(&case.changed_plan, &case.changes, &AU_SUSTAINED).unwrap();
        assert_eq!(predicted.au_kind, metric.id.name());
        assert!((predicted.au_percent - actual).abs() < 2.0, "{actual}: {predicted:?}");
    };
    let latency = storage(10.0, None, None);
    for (storage, faster, change) in [
        (latency, storage(5.0, None, None), PipelineChange::Latency(Scale::Times(0.5))),
        (
            storage(0.0, Some(100.0), None),
            storage(0.0, Some(200.0), None),
            PipelineChange::Bandwidth(Scale::Times(2.0)),
        ),
    ] {
        check(ChangedRun::on_plan(2, storage, |_| {}), &AU_SUSTAINED);
        check(ChangedRun::on_plan(2, storage, threads(1)), &AU_SUSTAINED);
        check(ChangedRun::on_storage(2, storage, change, faster), &AU_SUSTAINED);
    }
    // Too few steps to measure a steady state.
    let short = |plan: &mut Plan| plan.train.steps_per_epoch = 3;
    check(ChangedRun::on_plan(2, latency, short), &AU_ALL_STEPS);
}

/// Each reader of a file opens the file once and then reads on from its last position.
#[test]
fn reads_of_shared_files_depend_on_the_number_of_workers() {
    let plan_with = |format: &str, workers: u32| {
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
        let simulate = |plan: &Plan| {
            let mut plan = plan.clone();
            plan.dataset.files_train = plan.train.steps_per_epoch * 4 / 20;
            record_epoch(&plan, SimulatedDriver::new(ReadJob::in_memory(&plan).unwrap(), latency))
        };
        for (workers, changed_workers) in [(4, 1), (1, 4)] {
            let record = simulate(&plan_with(format, workers));
            let changed = simulate(&plan_with(format, changed_workers));
            let predicted = Pipeline::new(&record).unwrap().predict(&changed.plan, &[]).unwrap();
            let actual = au(&changed);
            assert!(
                (predicted.au_percent - actual).abs() < 5.0,
                "{format}: {actual}: {predicted:?}"
            );
        }
    }
}

/// Random latencies, as if a cache served most reads, vary as much as waits for a shared rate.
#[test]
fn random_latencies_are_not_mistaken_for_a_shared_rate() {
    let latency = TimeSpec::Gamma { shape: 0.2, scale: 0.05 };
    let plan = plan(|plan| (plan.loader.workers, plan.train.steps_per_epoch) = (4, 600));
    let storage = SimulatedStorage { latency, ..SimulatedStorage::default() };
    let models = Pipeline::new(&run(&plan, storage)).unwrap().storage;
    assert!(models.iter().any(|model| !model.is_shared()), "{models:#?}");
}

/// A few simulated accelerators represent many real accelerators, on a correspondingly slower storage.
#[test]
fn many_accelerators_are_predicted_by_simulating_few() {
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
            let changed = plan(|plan| {
                many(plan);
                plan.train.steps_per_epoch = 20;
                plan.loader.workers = workers;
            });
            let predicted = pipeline.predict(&changed, &[]).unwrap();
            let actual = au(&run(&changed, storage));
            assert!((predicted.au_percent - actual).abs() < 4.0, "{actual}: {predicted:?}");
        }
    }
}

/// One reader waits 10 ms per read. It is unknown whether four readers would wait in parallel or one after another.
#[test]
fn an_ambiguous_record_is_reported_with_the_run_that_would_decide() {
    let ambiguous = ChangedRun::on_plan(1, storage(10.0, None, None), threads(4)).predict();
    let Err(NotPredictable::LatencyOrBandwidth { least_percent, most_percent, deciding_run }) =
        ambiguous
    else {
        panic!("{ambiguous:?}")
    };
    assert!(least_percent < 55.0 && most_percent > 95.0, "{least_percent} {most_percent}");
    assert_eq!(deciding_run, DecidingRun::MoreReadingThreads);
    let inapplicable = PipelineChange::Concurrency(Scale::Times(2.0));
    let latency = storage(10.0, None, None);
    let without_limit = ChangedRun::on_storage(4, latency, inapplicable, latency).predict();
    assert_eq!(without_limit, Err(NotPredictable::NotSeen { key: "storage.concurrency" }));
}

/// The plan defines the emulated storage, so one request in flight and one request size suffice.
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
        let case = ChangedRun::on_plan(1, storage(10.0, None, None), change);
        let base_plan = emulates(case.base_plan);
        let changed_plan = emulates(case.changed_plan);
        ChangedRun { base_plan, changed_plan, ..case }.check();
    }
}

/// A buffer that is filled before the first step, and an entire epoch that is read at the start.
#[test]
fn initial_waits_for_many_batches_are_predicted() {
    for held in [10, 59] {
        let holds = |plan: &mut Plan| {
            plan.loader.held_batches = held;
            plan.loader.held_at_start = held;
        };
        let bandwidth = storage(0.0, Some(300.0), None);
        let mut case = ChangedRun::on_plan(4, bandwidth, holds);
        case.changed_plan.loader.batches_in_flight += held;
        case.check();
    }
}

#[test]
fn decoding_competes_for_the_cores() {
    let decodes = |cores| SimulatedStorage {
        decode_bytes_per_second: Some(100e6),
        cores: Some(cores),
        ..SimulatedStorage::default()
    };
    ChangedRun::on_plan(2, decodes(16), threads(8)).check();
    ChangedRun::on_plan(2, decodes(16), |plan| {
        threads(8)(plan);
        plan.accelerators = 8;
    })
    .check();
    let half = PipelineChange::DecodeTime(Scale::Times(0.5));
    let faster = SimulatedStorage { decode_bytes_per_second: Some(200e6), ..decodes(16) };
    ChangedRun::on_storage(1, decodes(16), half, faster).check();
}

#[test]
fn records_without_the_needed_figures_are_refused() {
    let fit = |change: fn(&mut Record)| {
        let mut record = run(&plan(threads(2)), storage(10.0, None, None));
        change(&mut record);
        Pipeline::new(&record).map(|_| ())
    };
    assert_eq!(fit(|_| {}), Ok(()));
    assert_eq!(fit(|record| record.epochs.clear()), Err(NotPredictable::NothingTrained));
    let uncounted = |record: &mut Record| record.epochs[0].accelerators[0].io = Default::default();
    assert_eq!(fit(uncounted), Err(NotPredictable::NotCounted));
    let cached = |record: &mut Record| {
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(1 << 30);
    };
    assert_eq!(fit(cached), Err(NotPredictable::ServedFromMemory));
    let busy = |record: &mut Record| {
        record.epochs[0].host.cpu_busy_share = Some(0.99);
        record.epochs[0].host.process_cpu_ns = Some(0);
    };
    assert_eq!(fit(busy), Err(NotPredictable::TooNoisy { noise: Noise::BusyCores }));
    let saturated = |record: &mut Record| {
        *record = run(&plan(threads(2)), storage(20.0, None, None));
        record.epochs[0].host.cpu_busy_share = Some(0.99);
    };
    assert_eq!(fit(saturated), Err(NotPredictable::TooNoisy { noise: Noise::BusyCores }));
    let irregular = |record: &mut Record| {
        for block in &mut record.epochs[0].accelerators[0].blocks {
            for load_ns in block.load_ns.iter_mut().step_by(16).take(2) {
                *load_ns = 60_000_000_000;
            }
        }
    };
    assert_eq!(fit(irregular), Err(NotPredictable::TooNoisy { noise: Noise::WideInterval }));
}

#[test]
fn a_prediction_needs_sixteen_steps_over_all_epochs() {
    let fit = |steps: u64, epochs: usize| {
        let mut plan = plan(threads(2));
        plan.train.steps_per_epoch = steps;
        let mut record = run(&plan, storage(10.0, None, None));
        record.epochs = vec![record.epochs[0].clone(); epochs];
        Pipeline::new(&record).map(|_| ())
    };
    let too_few = |steps| Err(NotPredictable::TooFewSteps { steps, needed: 16 });
    assert_eq!(fit(15, 1), too_few(15));
    assert_eq!(fit(5, 3), too_few(15));
    assert_eq!(fit(16, 1), Ok(()));
    assert_eq!(fit(6, 3), Ok(()));
}

/// One of four records of a plan was slowed down by something.
#[test]
fn predictions_from_several_records_are_pooled() {
    let plan = plan(threads(2));
    let record = |latency_ms: &f64| run(&plan, storage(*latency_ms, None, None));
    let predict = |first: f64, others: &[f64]| {
        let others: Vec<Record> = others.iter().map(record).collect();
        let pool = PipelinePool::from_records(&record(&first), &others).unwrap();
        pool.predict(&plan, &[], &AU_ALL_STEPS)
    };
    let slow = predict(14.0, &[]).unwrap();
    let usual = predict(10.5, &[]).unwrap();
    assert!(slow.au_percent < 80.0 && 90.0 < usual.au_percent, "{slow:?} {usual:?}");
    let pooled = predict(14.0, &[10.5, 10.5, 10.4]).unwrap();
    assert!(90.0 < pooled.au_percent, "{pooled:?}");
    let [low, high] = pooled.interval;
    assert!(low <= slow.interval[0] && usual.interval[1] <= high, "{pooled:?}");
    let too_noisy = Err(NotPredictable::TooNoisy { noise: Noise::WideInterval });
    assert_eq!(predict(40.0, &[10.5, 10.5, 10.4]), too_noisy);
}

#[test]
fn changes_with_unknown_cost_are_refused() {
    let changed = |change: &dyn Fn(&mut Plan)| {
        ChangedRun::on_plan(2, storage(10.0, None, None), |plan| change(plan))
    };
    let mut case = changed(&|plan| plan.dataset.format = "csv".into());
    case.base_plan.dataset.format = "npy".into();
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles), "another format");
    let case = changed(&|plan| plan.storage.engine = Some("mmap".into()));
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles), "another engine");
    let case = changed(&|plan| {
        plan.loader.file_access = FileAccess::Same;
        plan.loader.group_accelerators = 2;
        plan.accelerators = 2;
    });
    assert_eq!(case.predict(), Err(NotPredictable::CollectiveReads));
    let mut case = changed(&|plan| {
        plan.dataset.samples_per_file = 8;
        plan.loader.sample_shuffle = Shuffle::Seed;
    });
    case.base_plan.loader.sample_shuffle = Shuffle::Off;
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "shuffled");
    case.base_plan.loader.sample_shuffle = Shuffle::Seed;
    case.base_plan.loader.shuffle_block = Some(4);
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "shuffled in blocks");
    case.base_plan.storage.throttle_bytes_per_second = Some(5e6);
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "with an emulated storage");
    case.base_plan.storage.throttle_bytes_per_second = None;
    case.base_plan.loader.shuffle_block = None;
    case.base_plan.loader.reread_share = 0.5;
    assert_eq!(case.predict(), Err(NotPredictable::OtherOrder), "memory may serve repeated reads");
    case.base_plan.loader.head = Some(feedrate_spec::plan::HeadReads { reads: 50, bytes: 13_312 });
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles), "other headers");
    let mut case = changed(&|plan| plan.stage = Some(feedrate_spec::plan::StagePlan::default()));
    case.base_plan.stage = None;
    assert_eq!(case.predict(), Err(NotPredictable::OtherFiles), "another copy of the dataset");
}
