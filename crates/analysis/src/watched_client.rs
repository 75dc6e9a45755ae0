//! Cost of the loader of a watched training, estimated from its steps: where they wait for a loader that has its files in memory, its
//! workers are all that they wait for.

use feedrate_measure::record::{EpochRecord, Record};

/// From this share of the time on that is waiting, the loader sets the pace.
const WAITING_SHARE_MIN: f64 = 0.2;
/// Up to this share of the bytes from a device, files count as cached.
const DEVICE_SHARE_MAX: f64 = 0.01;

/// An estimate: of all that a worker does for a sample, hand-over included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchedClient {
    /// A worker's.
    pub per_sample_s: f64,
    /// A worker's, from the beginning of an epoch to its first batch.
    pub start_per_epoch_s: f64,
}

/// The reason why a record does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWatchedClient {
    /// Nobody watched it.
    NotWatched,
    /// The loader does not tell its workers, or nothing the samples of a batch.
    NoWorkers,
    /// More workers than cores to run on.
    TooManyWorkers,
    /// No epoch read from memory alone.
    NotCached,
    /// The steps of those epochs hardly wait.
    NotWaiting,
}

/// The median over epochs that are fit for it.
///
/// # Errors
/// There is none.
pub fn watched_client(record: &Record) -> Result<WatchedClient, NoWatchedClient> {
    let watched = record.watched.as_ref().ok_or(NoWatchedClient::NotWatched)?;
    let batch = record.plan.loader.batch_size;
    let workers = watched.workers.filter(|&workers| workers > 0 && batch > 0);
    let workers = workers.ok_or(NoWatchedClient::NoWorkers)?;
    if workers > record.system.cpus {
        return Err(NoWatchedClient::TooManyWorkers);
    }
    let epoch_bytes = watched.read_call_bytes.map(|all| all as f64 / record.epochs.len() as f64);
    let cached = record.epochs.iter().filter(|epoch| {
        let from_device = epoch.host.process_device_read_bytes.map(|bytes| bytes as f64);
        from_device.zip(epoch_bytes).is_some_and(|(device, all)| device <= DEVICE_SHARE_MAX * all)
    });
    let mut epochs = cached.peekable();
    epochs.peek().ok_or(NoWatchedClient::NotCached)?;
    let mut costs: Vec<WatchedClient> =
        epochs.filter_map(|epoch| of_epoch(epoch, workers, batch as f64)).collect();
    costs.sort_by(|a, b| a.per_sample_s.total_cmp(&b.per_sample_s));
    costs.get(costs.len() / 2).copied().ok_or(NoWatchedClient::NotWaiting)
}

/// The first accelerator's: all have loaders of their own.
fn of_epoch(epoch: &EpochRecord, workers: u32, batch: f64) -> Option<WatchedClient> {
    let blocks = &epoch.accelerators.first()?.blocks;
    let load_ns: Vec<u64> = blocks.iter().flat_map(|block| &block.load_ns).copied().collect();
    let steps = blocks.iter().flat_map(|block| block.load_ns.iter().zip(&block.compute_ns));
    let step_ns: Vec<u64> = steps.map(|(load, compute)| load + compute).collect();
    // What the workers had read ahead by the first step is taken without waiting.
    let first = 3 * workers as usize;
    let (load_ns, rest_ns) = (load_ns.get(first..)?, step_ns.get(first..)?);
    let (waited, all) = (load_ns.iter().sum::<u64>() as f64, rest_ns.iter().sum::<u64>() as f64);
    if waited < WAITING_SHARE_MIN * all {
        return None;
    }
    let batch_s = all / 1e9 / rest_ns.len() as f64 * f64::from(workers);
    let first_load_s = *blocks.first()?.load_ns.first()? as f64 / 1e9;
    Some(WatchedClient {
        per_sample_s: batch_s / batch,
        start_per_epoch_s: (first_load_s - batch_s).max(0.0) / f64::from(workers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example;
    use feedrate_measure::record::{AcceleratorEpoch, Block, Watched};

    /// 20 steps of 10 ms after a first load of 140 ms, with two workers; batches of 4.
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
        let mut epoch = EpochRecord { accelerators: vec![accelerator], ..EpochRecord::default() };
        epoch.host.process_device_read_bytes = Some(4096);
        record.epochs = vec![epoch];
        record
    }

    #[test]
    fn steps_that_wait_tell_what_a_sample_costs() {
        let told = watched_client(&record(6_000_000)).unwrap();
        assert!((told.per_sample_s - 0.005).abs() < 1e-12, "{told:?}");
        assert!((told.start_per_epoch_s - 0.06).abs() < 1e-12, "{told:?}");
    }

    #[test]
    fn others_do_not() {
        let check = |record: &Record, why| assert_eq!(watched_client(record), Err(why));
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
        let mut alone = waiting();
        alone.watched.as_mut().unwrap().workers = Some(0);
        check(&alone, NoWatchedClient::NoWorkers);
        let mut ours = waiting();
        ours.watched = None;
        check(&ours, NoWatchedClient::NotWatched);
    }
}
