//! Example plans and records for tests.

use crate::record::{
    AcceleratorEpoch, Block, CheckpointKind, CheckpointRecord, EpochRecord, HostEpoch, IoCounters,
    RECORD_VERSION, Record, Stall, StepCauses, System,
};
use feedrate_spec::plan::state::{Layers, StatePlan, StateType, Writers};
use feedrate_spec::plan::{
    Barrier, Cache, CheckpointOnlyPlan, CheckpointPlan, DatasetPlan, FileAccess, LoaderPlan,
    MetricPlan, Plan, Shuffle, StoragePlan, TrainPlan, WorkerSplit,
};
use feedrate_spec::shape::{Element, Encoding};
use feedrate_spec::workload::{TimeSpec, WriteInterface};

/// A plan with one sample of 1 MB per file, batches of one sample, one worker, and two batches in flight.
pub fn plan(accelerators: u32, steps: u64) -> Plan {
    Plan {
        workload: "example".into(),
        model: "unet3d".into(),
        framework: "pytorch".into(),
        core_config: None,
        accelerators,
        dataset: DatasetPlan {
            format: "npy".into(),
            extension: "npy".into(),
            files_train: steps * u64::from(accelerators),
            files_eval: 0,
            samples_per_file: 1,
            prefix: "img".into(),
            record_bytes: 1e6,
            record_dims: vec![1000, 1000],
            element: Element::Uint8,
            encoding: Encoding::default(),
            content_seed: 10,
            ..DatasetPlan::default()
        },
        storage: StoragePlan {
            kind: "file".into(),
            engine: Some("psync".into()),
            ..StoragePlan::default()
        },
        stage: None,
        loader: LoaderPlan {
            kind: "pytorch".into(),
            batch_size: 1,
            workers: 1,
            prefetch_size: 2,
            batches_in_flight: 2,
            file_access: FileAccess::Multi,
            split: WorkerSplit::Samples,
            group_accelerators: 1,
            interleaved_files: 1,
            held_batches: 0,
            held_at_start: 0,
            decode_threads: None,
            in_memory: false,
            preprocess: TimeSpec::None,
            preprocess_seed: 123,
            client: None,
            shuffles_in_buffer: false,
            file_shuffle: Shuffle::Off,
            sample_shuffle: Shuffle::Off,
            order_seed: 123,
            seed_change_epoch: true,
            shuffle_block: None,
            reread_share: 0.0,
            head: None,
            requests: None,
            library: None,
            piece_bytes: 1 << 20,
            materialize: false,
            verify: false,
            check_crc: true,
            decodes_members: true,
        },
        train: train(steps),
        checkpoint: None,
        evaluation: None,
        metric: MetricPlan {
            au_target_percent: 90.0,
            exclude_start_steps: 1,
            exclude_end_steps: 0,
            ..MetricPlan::default()
        },
        timeline: false,
        iostat_devices: None,
        log_file: None,
        doubts: vec![],
    }
}

fn train(steps: u64) -> TrainPlan {
    TrainPlan {
        epochs: 1,
        steps_per_epoch: steps,
        total_steps: None,
        compute: TimeSpec::Constant { mean: 0.5 },
        compute_seed: 123,
        slow_accelerators: vec![],
        on_devices: None,
        cache: Cache::AsIs,
        barrier: Barrier::EachStep,
    }
}

/// A block that starts at `start_ms`, with steps of (load, compute, barrier, bytes read), in milliseconds and bytes. Its byte counts start
/// at 0; [`accelerator`] makes the counts of several blocks continuous.
pub fn block(start_ms: u64, steps: &[(u64, u64, u64, u64)]) -> Block {
    let mut block = Block { start_ns: start_ms * 1_000_000, ..Block::default() };
    let mut end_ms = start_ms;
    let mut read_bytes = 0;
    for (load_ms, compute_ms, barrier_ms, bytes) in steps {
        end_ms += load_ms + compute_ms + barrier_ms;
        read_bytes += bytes;
        block.load_ns.push(load_ms * 1_000_000);
        block.compute_ns.push(compute_ms * 1_000_000);
        block.barrier_ns.push(barrier_ms * 1_000_000);
        block.read_bytes.push(read_bytes);
    }
    block.end_ns = end_ms * 1_000_000;
    block
}

/// An accelerator with these blocks and matching counters. Its last read starts at the end of the last step.
pub fn accelerator(mut blocks: Vec<Block>) -> AcceleratorEpoch {
    let mut read_bytes = 0;
    for block in &mut blocks {
        block.read_bytes.iter_mut().for_each(|bytes| *bytes += read_bytes);
        read_bytes = block.read_bytes.last().copied().unwrap_or(read_bytes);
    }
    let steps = blocks.iter().map(|block| block.steps() as u64).sum();
    let mut accelerator = AcceleratorEpoch {
        last_read_start_ns: blocks.last().map(|block| block.end_ns),
        last_read_start_bytes: read_bytes,
        io: IoCounters {
            opens: steps,
            reads: steps,
            read_bytes,
            samples: steps,
            ..IoCounters::default()
        },
        blocks,
        ..AcceleratorEpoch::default()
    };
    let load_ns = accelerator.blocks.iter().flat_map(|block| &block.load_ns).sum();
    accelerator.stall.read_ns = load_ns;
    accelerator.io.read_ns = load_ns;
    accelerator
}

/// An epoch of accelerators with these blocks. It lasts from the first start to the last end of a block.
pub fn epoch(number: u32, accelerators: Vec<Vec<Block>>) -> EpochRecord {
    let accelerators: Vec<_> = accelerators.into_iter().map(accelerator).collect();
    let blocks = accelerators.iter().flat_map(|a| &a.blocks);
    EpochRecord {
        number,
        start_ns: blocks.clone().map(|block| block.start_ns).min().unwrap_or(0),
        end_ns: blocks.map(|block| block.end_ns).max().unwrap_or(0),
        started: "2026-11-21T23:59:59.500000".into(),
        ended: "2026-11-22T00:00:09.500000".into(),
        host: HostEpoch::default(),
        nodes: Vec::new(),
        checkpoints: vec![],
        causes: Some(causes(&accelerators)),
        files_read: None,
        transfers: None,
        accelerators,
    }
}

/// Sets the waits of a record with one epoch and one accelerator to `stall`.
pub fn set_stall(record: &mut Record, stall: Stall) {
    let mut causes = StepCauses::default();
    causes.push(0, stall, std::iter::once(stall.total_ns()));
    record.epochs[0].causes = Some(causes);
}

/// Causes of waits if all waits for data are for reads. The last accelerator of a step is the one with the shortest barrier.
pub fn causes(accelerators: &[AcceleratorEpoch]) -> StepCauses {
    let waits = |accelerator: &AcceleratorEpoch, step: usize| {
        let blocks = accelerator.blocks.iter();
        let mut waits = blocks.flat_map(|block| block.load_ns.iter().zip(&block.barrier_ns));
        waits.nth(step).map_or([0, 0], |(load_ns, barrier_ns)| [*load_ns, *barrier_ns])
    };
    let steps = accelerators.iter().map(AcceleratorEpoch::steps).min().unwrap_or(0) as usize;
    let mut causes = StepCauses::with_capacity(steps);
    for step in 0..steps {
        let all_waits = accelerators.iter().map(|accelerator| waits(accelerator, step));
        let last = all_waits.clone().enumerate().min_by_key(|(_, [_, barrier_ns])| *barrier_ns);
        let Some((last, [read_ns, _])) = last else { continue };
        let stall = Stall { read_ns, ..Stall::default() };
        causes.push(last as u32, stall, all_waits.map(|waits_ns| waits_ns.iter().sum()));
    }
    causes
}

/// A saved checkpoint without figures of ranks.
pub fn checkpoint(start_ms: u64, end_ms: u64, bytes: u64, after_step: u64) -> CheckpointRecord {
    CheckpointRecord {
        kind: CheckpointKind::Save,
        start_ns: start_ms * 1_000_000,
        end_ns: end_ms * 1_000_000,
        bytes,
        after_step,
        stall_ns: None,
        folder_sync_ns: None,
        process_device_read_bytes: None,
        optimizer_ns: None,
        ranks: vec![],
    }
}

/// A complete record of one machine.
pub fn record(plan: Plan, epochs: Vec<EpochRecord>) -> Record {
    Record {
        version: RECORD_VERSION,
        program: "feedrate 0.1.0".into(),
        plan: Plan { train: TrainPlan { epochs: epochs.len() as u32, ..plan.train }, ..plan },
        system: System {
            hostname: "node1".into(),
            cpus: 8,
            memory_bytes: Some(16 << 30),
            processor: "x86_64".into(),
            cpuinfo: vec![("model name".into(), "Example".into())],
            meminfo: vec![("MemTotal".into(), "16777216 kB".into())],
            ..System::default()
        },
        started: "2026-11-21T23:59:59.000000".into(),
        ended: "2026-11-22T00:00:10.000000".into(),
        complete: true,
        nodes: Vec::new(),
        processes: Vec::new(),
        stopped_because: None,
        compute_spins: false,
        simulated: false,
        staging: None,
        found_dataset: None,
        members: None,
        epochs,
        evaluations: vec![],
        timeline: None,
        study: None,
        data_request: None,
        watched: None,
        contradictions: Vec::new(),
        doubts: vec![],
    }
}

/// A record with one epoch of one accelerator with one block. The steps are as in [`block`].
pub fn simple(steps: &[(u64, u64, u64, u64)]) -> Record {
    let mut plan = plan(1, steps.len() as u64);
    let compute_ms: u64 = steps.iter().map(|step| step.1).sum();
    let mean = compute_ms as f64 / 1000.0 / steps.len().max(1) as f64;
    plan.train.compute = TimeSpec::Constant { mean };
    record(plan, vec![epoch(1, vec![vec![block(0, steps)]])])
}

/// An incomplete record of a run that should write two checkpoints and read one, and trains nothing. The first `done` checkpoints are recorded.
pub fn checkpoint_only_record(done: usize) -> Record {
    let saves = [checkpoint(0, 2000, 1 << 30, 1), checkpoint(3000, 4000, 1 << 30, 2)];
    let load =
        CheckpointRecord { kind: CheckpointKind::Load, ..checkpoint(5000, 5500, 1 << 30, 1) };
    let mut epoch = epoch(1, vec![vec![]]);
    epoch.checkpoints = saves.into_iter().chain([load]).take(done).collect();
    let mut plan = plan(1, 0);
    plan.checkpoint = Some(checkpoint_plan());
    Record { complete: false, ..record(plan, vec![epoch]) }
}

fn checkpoint_plan() -> CheckpointPlan {
    let state = StatePlan {
        model_bytes: 1 << 29,
        layers: Layers::None,
        optimization_groups: vec![1 << 27],
        file_sizes: vec![],
        model_element: StateType::Fp16,
        optimizer_element: StateType::Int8,
        tensor: 1,
        pipeline: 1,
        data: 1,
        zero_stage: 0,
        writers: Writers::Holders,
        ranks: 1,
        scale: 1.0,
    };
    CheckpointPlan {
        ones: false,
        alone: Some(CheckpointOnlyPlan { writes: 2, reads: 1, wait_s: 0.0 }),
        read_rank_shift: 0,
        folder: "checkpoints".into(),
        object: None,
        after_epoch: 1,
        epochs_between: 1,
        steps_between: None,
        format: "raw".into(),
        total_bytes: state.total_bytes(),
        total_files: state.total_files(),
        rank_bytes_max: state.rank_bytes_max(),
        state,
        fsync: false,
        interface: WriteInterface::Posix,
        asynchronous: false,
        keep_last: None,
    }
}
