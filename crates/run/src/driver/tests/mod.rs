//! Tests the real driver with epochs that do not fail.

mod settings;

use super::{DriverOptions, Epoch, RealDriver};
use crate::clock::Clock;
use crate::comm::tests::ThreadRank;
use crate::comm::{Comm, Solo};
use crate::layers::GroupStorages;
use crate::live::Signals;
use feedrate_data::storage::{self, Handle, ReadStorage, Storage, StorageError};
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::example;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{ClientPlan, Plan, ReadAhead, RequestPlan, RequestUnit, WorkerSplit};
use feedrate_spec::transfers::TransferCounts;
use feedrate_spec::workload::TimeSpec;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SAMPLE_BYTES: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Case {
    loader: &'static str,
    accelerators: u32,
    workers: u32,
    steps: u64,
    compute_s: f64,
}

/// A plan with samples of a million bytes, each read in one operation that takes no time.
fn plan(case: Case) -> Plan {
    let mut plan = example::plan(case.accelerators, case.steps);
    plan.dataset.format = "null".into();
    plan.storage.kind = "null".into();
    plan.storage.engine = None;
    plan.loader.kind = case.loader.into();
    plan.loader.workers = case.workers;
    let in_flight = loader::find(case.loader).unwrap().entry().batches_in_flight;
    plan.loader.batches_in_flight = in_flight(case.workers, 2, 1);
    plan.loader.piece_bytes = 4 << 20;
    plan.train.compute = TimeSpec::Constant { mean: case.compute_s };
    plan
}

fn job(plan: &Plan) -> ReadJob {
    let storage = storage::open("null", Path::new("/")).unwrap();
    ReadJob::new(plan, 0..plan.accelerators, Arc::<dyn Storage>::from(storage), true).unwrap()
}

fn driver(plan: &Plan) -> RealDriver {
    driver_with_comm(plan, Arc::new(Solo))
}

fn driver_with_comm(plan: &Plan, comm: Arc<dyn Comm>) -> RealDriver {
    driver_with_signals(plan, comm, Signals::default())
}

fn driver_with_signals(plan: &Plan, comm: Arc<dyn Comm>, signals: Signals) -> RealDriver {
    driver_with_job(job(plan), comm, signals)
}

fn driver_with_job(job: ReadJob, comm: Arc<dyn Comm>, signals: Signals) -> RealDriver {
    let groups = GroupStorages::default();
    let options = DriverOptions::default();
    RealDriver::new(job, groups, Clock::new(), comm, signals, options).unwrap()
}

/// Returns the records of an epoch, which must not have failed.
fn check_unfailed(epoch: Epoch) -> Vec<AcceleratorEpoch> {
    assert!(epoch.failure.is_none(), "{:?}", epoch.failure);
    epoch.accelerators
}

#[test]
fn threads_read_as_much_as_the_simulation() {
    for (loader, workers) in [("pytorch", 0), ("pytorch", 1), ("pytorch", 4), ("native", 3)] {
        let case = Case { loader, accelerators: 3, workers, steps: 200, compute_s: 0.0 };
        let plan = plan(case);
        let mut simulated = SimulatedDriver::new(job(&plan), SimulatedStorage::default());
        let simulated = simulated.run_epoch(200).unwrap();
        let real = check_unfailed(driver(&plan).run_epoch(200, &mut |_| Ok(())));
        for (real, simulated) in real.iter().zip(simulated) {
            assert_eq!(real.io.samples, simulated.io.samples);
            assert_eq!(real.io.read_bytes, simulated.io.read_bytes);
            assert_eq!(real.io.opens, simulated.io.opens);
            assert_eq!(real.blocks[0].load_ns.len(), 200);
            assert!(real.last_read_start_ns.is_some());
        }
    }
}

/// A storage that counts each read as a request of two attempts.
struct CountingStorage(Box<dyn Storage>, AtomicU64);

impl ReadStorage for CountingStorage {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.0.open(path)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.0.len(file)
    }

    fn read_piece(
        &self,
        file: &Handle,
        at: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        self.1.fetch_add(1, Relaxed);
        self.0.read_piece(file, at, buffer, end)
    }

    fn close(&self, file: Handle) {
        self.0.close(file);
    }

    fn transfers(&self) -> Option<TransferCounts> {
        let requests = self.1.load(Relaxed);
        let (attempts, retried_reset) = (2 * requests, requests);
        Some(TransferCounts { requests, attempts, retried_reset, ..TransferCounts::default() })
    }
}

#[test]
fn each_epoch_has_its_own_requests_to_an_object_store() {
    let case = Case { loader: "pytorch", accelerators: 2, workers: 2, steps: 20, compute_s: 0.0 };
    let mut plan = plan(case);
    plan.train.epochs = 2;
    let storage = storage::open("null", Path::new("/")).unwrap();
    let storage: Arc<dyn ReadStorage> = Arc::new(CountingStorage(storage, AtomicU64::new(0)));
    let job = ReadJob::new(&plan, 0..2, storage, true).unwrap();
    let mut driver = driver_with_job(job, Arc::new(Solo), Signals::default());
    for _ in 0..2 {
        let epoch = driver.run_epoch(20, &mut |_| Ok(()));
        let counts = epoch.transfers.clone().unwrap();
        let reads: u64 = check_unfailed(epoch).iter().map(|reader| reader.io.reads).sum();
        assert_eq!((counts.requests, counts.attempts, counts.retries()), (reads, 2 * reads, reads));
        assert!(reads >= 40);
    }
}

#[test]
fn threads_of_requests_read_as_much_as_the_simulation() {
    for (unit, in_flight, ahead) in [
        (RequestUnit::File, 1, ReadAhead::None),
        (RequestUnit::File, 8, ReadAhead::Windows(16)),
        (RequestUnit::File, 64, ReadAhead::Windows(7)),
        (RequestUnit::RowGroup, 4, ReadAhead::Sliding(4)),
        (RequestUnit::RowGroup, 9, ReadAhead::Sliding(2)),
    ] {
        let case =
            Case { loader: "pytorch", accelerators: 2, workers: 2, steps: 200, compute_s: 0.0 };
        let mut plan = plan(case);
        plan.loader.requests = Some(RequestPlan { in_flight, unit, ahead });
        if unit == RequestUnit::RowGroup {
            plan.loader.split = WorkerSplit::Shards;
            plan.dataset.files_train = 40;
            plan.dataset.samples_per_file = 10;
            plan.dataset.encoding.row_group_samples = 4;
        }
        plan.train.epochs = 2;
        let mut simulated = SimulatedDriver::new(job(&plan), SimulatedStorage::default());
        let mut real = driver(&plan);
        for _ in 0..2 {
            let simulated = simulated.run_epoch(200).unwrap();
            let real = check_unfailed(real.run_epoch(200, &mut |_| Ok(())));
            for (real, simulated) in real.iter().zip(simulated) {
                let name = format!("{in_flight} in flight, {ahead:?}");
                assert_eq!(real.io.samples, 200, "{name}");
                assert_eq!(simulated.io.samples, 200, "{name}");
                assert_eq!(real.io.read_bytes, simulated.io.read_bytes, "{name}");
                assert_eq!(real.io.opens, simulated.io.opens, "{name}");
                assert_eq!(real.io.access.samples_read, 200, "{name}");
                assert!(real.last_read_start_ns.is_some());
            }
        }
    }
}

/// A barrier opens when the slowest process has arrived, so the fast one cannot finish earlier.
#[test]
fn processes_wait_for_each_other_at_every_step() {
    let case =
        |compute_s| Case { loader: "native", accelerators: 2, workers: 1, steps: 20, compute_s };
    let lengths_ns: Vec<u64> = std::thread::scope(|scope| {
        let runs = ThreadRank::group(2).into_iter().map(|rank| {
            scope.spawn(move || {
                let plan = plan(case(if rank.rank() == 0 { 0.0 } else { 0.002 }));
                let mut driver = driver_with_comm(&plan, Arc::new(rank));
                let epochs = check_unfailed(driver.run_epoch(20, &mut |_| Ok(())));
                epochs[0].blocks[0].end_ns - epochs[0].blocks[0].start_ns
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    // The fast process leaves its first barrier after the slow one's first step, so its epoch spans 19 slow steps.
    assert!(lengths_ns[0] >= 19 * 2_000_000, "{lengths_ns:?}");
}

/// An interrupt does not wait for workers that take an hour to start.
#[test]
fn an_interrupt_ends_the_start_of_workers() {
    let case = Case { loader: "pytorch", accelerators: 1, workers: 1, steps: 40, compute_s: 0.0 };
    let mut plan = plan(case);
    plan.loader.client = Some(ClientPlan { start_per_epoch_s: 3600.0, ..ClientPlan::default() });
    let signals = Signals::default();
    let mut driver = driver_with_signals(&plan, Arc::new(Solo), signals.clone());
    let epoch = std::thread::scope(|scope| {
        scope.spawn(|| {
            while signals.live.epoch.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            signals.interrupted.store(true, Relaxed);
        });
        driver.run_epoch(40, &mut |_| Ok(()))
    });
    assert!(epoch.failure.is_none() && epoch.accelerators[0].steps() < 40);
}
