//! Estimates the cost of the loader of a watched training from its steps.
//!
//! If files are cached, steps wait only for the workers of the loader.

use feedrate_measure::derived::Derived;
use feedrate_measure::noise;
use feedrate_measure::record::{EpochRecord, Record};

/// Minimum share of waiting time for which the loader limits the training.
const WAITING_SHARE_MIN: f64 = 0.2;
/// Largest share of bytes from a device for which files count as cached.
const DEVICE_SHARE_MAX: f64 = 0.01;

/// The estimated cost of a loader, including the transfer of batches to the training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchedClient {
    /// Time of a worker for a sample.
    pub per_sample_s: f64,
    /// Time of a worker from the beginning of an epoch until it starts its first batch.
    pub start_per_epoch_s: f64,
}

/// The reason why the cost cannot be estimated from a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWatchedClient {
    /// The record is not of a watched training.
    NotWatched,
    /// The number of workers or the batch size is unknown, or the loader has no workers.
    NoWorkers,
    /// There are more workers than cores.
    TooManyWorkers,
    /// Other programs kept the cores busy.
    BusyCores,
    /// No epoch read only from memory.
    NotCached,
    /// In the epochs that read only from memory, steps hardly wait.
    NotWaiting,
}

/// Estimates the cost of the loader: the median over the suitable epochs.
///
/// # Errors
/// No epoch is suitable.
pub fn watched_client(record: &Record) -> Result<WatchedClient, NoWatchedClient> {
    let watched = record.watched.as_ref().ok_or(NoWatchedClient::NotWatched)?;
    let batch = record.plan.loader.batch_size;
    let workers = watched.workers.filter(|&workers| workers > 0 && batch > 0);
    let workers = workers.ok_or(NoWatchedClient::NoWorkers)?;
    if workers > record.system.cpus {
        return Err(NoWatchedClient::TooManyWorkers);
    }
    if noise::are_kept_busy_by_others(&Derived::new(record)) {
        return Err(NoWatchedClient::BusyCores);
    }
    let epochs = record.epochs.len() as f64;
    let epoch_bytes = watched.read_call_bytes.map(|bytes| bytes as f64 / epochs);
    let is_cached = |epoch: &&EpochRecord| {
        let device_bytes = epoch.host.process_device_read_bytes.map(|bytes| bytes as f64);
        device_bytes
            .zip(epoch_bytes)
            .is_some_and(|(device_bytes, bytes)| device_bytes <= DEVICE_SHARE_MAX * bytes)
    };
    let mut cached_epochs = record.epochs.iter().filter(is_cached).peekable();
    cached_epochs.peek().ok_or(NoWatchedClient::NotCached)?;
    let mut costs: Vec<WatchedClient> = cached_epochs
        .filter_map(|epoch| estimate_from_epoch(epoch, workers, batch as f64))
        .collect();
    costs.sort_by(|a, b| a.per_sample_s.total_cmp(&b.per_sample_s));
    costs.get(costs.len() / 2).copied().ok_or(NoWatchedClient::NotWaiting)
}

/// Estimates from the first accelerator, since each has its own loader; `None` if its steps hardly wait.
fn estimate_from_epoch(
    epoch: &EpochRecord,
    workers: u32,
    batch_size: f64,
) -> Option<WatchedClient> {
    let blocks = &epoch.accelerators.first()?.blocks;
    let load_ns: Vec<u64> = blocks.iter().flat_map(|block| &block.load_ns).copied().collect();
    let steps = blocks.iter().flat_map(|block| block.load_ns.iter().zip(&block.compute_ns));
    let step_ns: Vec<u64> = steps.map(|(load, compute)| load + compute).collect();
    // The first steps use batches that were read in advance and do not wait.
    let skipped = 3 * workers as usize;
    let steady_load_ns = load_ns.get(skipped..)?;
    let steady_step_ns = step_ns.get(skipped..)?;
    let waiting_ns = steady_load_ns.iter().sum::<u64>() as f64;
    let total_ns = steady_step_ns.iter().sum::<u64>() as f64;
    if waiting_ns < WAITING_SHARE_MIN * total_ns {
        return None;
    }
    let batch_s = total_ns / 1e9 / steady_step_ns.len() as f64 * f64::from(workers);
    let first_load_s = *blocks.first()?.load_ns.first()? as f64 / 1e9;
    Some(WatchedClient {
        per_sample_s: batch_s / batch_size,
        start_per_epoch_s: (first_load_s - batch_s).max(0.0) / f64::from(workers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example;
    use feedrate_measure::record::{AcceleratorEpoch, Block, Watched};

    /// A record with two workers, batches of 4, a first load of 140 ms and 19 further steps of 10 ms.
    fn record(load_ns: u64) -> Record {
        let mut record = example::record(example::plan(1, 20), Vec::new());
        record.plan.loader.batch_size = 4;
        record.system.cpus = 2;
        record.watched = Some(Watched {
            workers: Some(2),
            read_call_bytes: Some(1 << 30),
            ..Watched::default()
        });
        let mut loads = vec![load_ns; 20];
        loads[0] = 140_000_000;
        let block = Block {
            load_ns: loads,
            compute_ns: vec![10_000_000 - load_ns; 20],
            ..Block::default()
        };
        let accelerator = AcceleratorEpoch { blocks: vec![block], ..AcceleratorEpoch::default() };
        let mut epoch = EpochRecord {
            accelerators: vec![accelerator],
            end_ns: 340_000_000,
            ..EpochRecord::default()
        };
        epoch.host.process_device_read_bytes = Some(4096);
        record.epochs = vec![epoch];
        record
    }

    #[test]
    fn the_cost_of_a_sample_is_estimated_from_steps_that_wait() {
        let client = watched_client(&record(6_000_000)).unwrap();
        assert!((client.per_sample_s - 0.005).abs() < 1e-12, "{client:?}");
        assert!((client.start_per_epoch_s - 0.06).abs() < 1e-12, "{client:?}");
    }

    #[test]
    fn unsuitable_records_are_refused_with_the_reason() {
        let check = |record: &Record, reason| assert_eq!(watched_client(record), Err(reason));
        check(&record(1_000_000), NoWatchedClient::NotWaiting);
        let waiting = || record(6_000_000);
        let mut cold = waiting();
        cold.epochs[0].host.process_device_read_bytes = Some(1 << 29);
        check(&cold, NoWatchedClient::NotCached);
        let mut unknown = waiting();
        unknown.epochs[0].host.process_device_read_bytes = None;
        check(&unknown, NoWatchedClient::NotCached);
        let mut crowded = waiting();
        crowded.system.cpus = 1;
        check(&crowded, NoWatchedClient::TooManyWorkers);
        let mut busy = waiting();
        let host = &mut busy.epochs[0].host;
        (host.cpu_busy_share, host.process_cpu_ns) = (Some(0.99), Some(100_000_000));
        check(&busy, NoWatchedClient::BusyCores);
        busy.epochs[0].host.process_cpu_ns = Some(600_000_000);
        assert!(watched_client(&busy).is_ok(), "the loop itself uses the cores");
        let mut without_workers = waiting();
        without_workers.watched.as_mut().unwrap().workers = Some(0);
        check(&without_workers, NoWatchedClient::NoWorkers);
        let mut not_watched = waiting();
        not_watched.watched = None;
        check(&not_watched, NoWatchedClient::NotWatched);
    }
}
