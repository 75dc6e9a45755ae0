//! The guard against noise. Where the cores were busy, or where an interval is wider than half of its value, no part is named as the bottleneck
//! and no model is fitted.

use crate::derived::Derived;
use crate::metric::DURATION_S;
use crate::record::{EpochRecord, OtherProcess, Record};
use crate::stats::{Interval, share_interval};
use crate::window::Scope;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::iter;

names! {
    /// Reason why numbers are too noisy to name a bottleneck or to fit a model.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Noise {
        /// The cores of the machine were busy, so waits may be waits for a core.
        BusyCores = "busy_cores",
        /// The 95 % interval is wider than half of the value.
        WideInterval = "wide_interval",
    }
}

/// Confidence level of intervals.
const CONFIDENCE: f64 = 0.95;
/// Largest busy share of all cores at which nothing waits for a core.
const BUSY_SHARE_MAX: f64 = 0.95;
/// Largest width of an interval, as a share of its value.
const WIDTH_SHARE_MAX: f64 = 0.5;
/// Minimum number of groups of steps from which the noise of a run is estimated.
const GROUPS_MIN: usize = 8;

/// Whether all cores of a machine were busy.
pub fn are_cores_busy(busy_share: f64) -> bool {
    BUSY_SHARE_MAX < busy_share
}

/// Whether an interval is wider than half of its value.
pub fn is_too_wide(interval: &Interval) -> bool {
    WIDTH_SHARE_MAX * interval.estimate < interval.high - interval.low
}

impl Noise {
    /// The reason why no model must be fitted to a record; `None` if the record is precise enough. Cores that the run itself kept busy
    /// are no reason, as models include processor time, and emulated waits take the same time on an idle machine.
    pub fn in_record(derived: &Derived) -> Option<Self> {
        let record = derived.record;
        let is_emulated = derived.reads_are_emulated() || derived.opens_are_emulated();
        if !is_emulated && are_mostly_busy(record) && are_used_by_others(derived) {
            return Some(Noise::BusyCores);
        }
        let interval = StepTimes::in_groups(record).interval()?;
        is_too_wide(&interval).then_some(Noise::WideInterval)
    }
}

/// Whether epochs with busy cores account for at least half of the time of all epochs.
pub(crate) fn are_mostly_busy(record: &Record) -> bool {
    let is_busy = |epoch: &&EpochRecord| epoch.host.cpu_busy_share.is_some_and(are_cores_busy);
    let total_ns: u64 = record.epochs.iter().map(duration_ns).sum();
    let busy_ns: u64 = record.epochs.iter().filter(is_busy).map(duration_ns).sum();
    total_ns <= busy_ns.saturating_mul(2)
}

/// Whether other processes used at least half of the busy time of the cores. Unknown use counts as that of others. Both values have one unit.
pub fn is_mostly_used_by_others(own_use: Option<f64>, busy: Option<f64>) -> bool {
    own_use.zip(busy).is_none_or(|(own_use, busy)| 2.0 * own_use <= busy)
}

/// Use of the cores by other processes during a run.
pub struct OtherUse<'r> {
    /// Mean busy share of all cores, 0 to 1.
    pub busy_share: f64,
    /// Number of cores that the run itself used.
    pub own_cores: f64,
    /// Number of cores that other processes used.
    pub cores: f64,
    /// Number of cores.
    pub all_cores: u32,
    /// The process outside of the run with the most CPU time.
    pub busiest: Option<&'r OtherProcess>,
}

/// Smallest share of all cores that counts as a large use by others.
const OTHERS_SHARE_MIN: f64 = 0.25;

impl<'r> OtherUse<'r> {
    /// Name of the busiest process, which may be another feedrate.
    pub fn busiest_name(&self) -> Option<&'r str> {
        let name = self.busiest?.name.as_str();
        Some(if name == "feedrate" { "another feedrate" } else { name })
    }

    /// Sums over the epochs of a run; `None` if the use of the cores is unknown.
    pub fn new(derived: &Derived<'r>) -> Option<Self> {
        let record = derived.record;
        let all_cores = record.all_cpus();
        let shares = record.epochs.iter().map(|epoch| epoch.host.cpu_busy_share);
        let busy_share = shares.sum::<Option<f64>>()? / record.epochs.len() as f64;
        let own_s = derived.sum_over_epochs(|host| host.process_cpu_ns)? as f64 / 1e9;
        let own_cores = own_s / derived.value(&DURATION_S)?;
        let others = record.epochs.iter().filter_map(|epoch| epoch.host.busiest_other.as_ref());
        Some(OtherUse {
            busy_share,
            own_cores,
            cores: busy_share * f64::from(all_cores) - own_cores,
            all_cores,
            busiest: others.max_by_key(|other| other.cpu_ns),
        })
    }

    /// Whether other processes used at least half of the busy time of the cores.
    pub fn is_most(&self) -> bool {
        is_mostly_used_by_others(Some(self.own_cores), Some(self.own_cores + self.cores))
    }

    /// Whether other processes used at least a quarter of the cores.
    pub fn is_large(&self) -> bool {
        OTHERS_SHARE_MIN * f64::from(self.all_cores) <= self.cores
    }
}

/// Whether other processes used at least half of the busy time of a run.
pub(crate) fn are_used_by_others(derived: &Derived) -> bool {
    let record = derived.record;
    let cores = record.all_cpus();
    let busy_ns = |epoch: &EpochRecord| {
        let share = epoch.host.cpu_busy_share?;
        Some(share * f64::from(cores) * duration_ns(epoch) as f64)
    };
    let busy_ns: Option<f64> = record.epochs.iter().map(busy_ns).sum();
    let own_ns = derived.sum_over_epochs(|host| host.process_cpu_ns);
    is_mostly_used_by_others(own_ns.map(|ns| ns as f64), busy_ns)
}

/// Whether other processes kept the cores busy for most of a run.
pub fn are_kept_busy_by_others(derived: &Derived) -> bool {
    are_mostly_busy(derived.record) && are_used_by_others(derived)
}

fn duration_ns(epoch: &EpochRecord) -> u64 {
    epoch.end_ns.saturating_sub(epoch.start_ns)
}

/// Compute times and lengths of steps or groups of steps, each summed over the accelerators.
pub(crate) struct StepTimes {
    compute_ns: Vec<f64>,
    length_ns: Vec<f64>,
}

impl StepTimes {
    /// The times of each step of a run.
    pub(crate) fn new(record: &Record) -> Self {
        let mut times = StepTimes { compute_ns: Vec::new(), length_ns: Vec::new() };
        for scope in Scope::whole_epochs(record) {
            times.append(StepTimes::in_epoch(scope));
        }
        times
    }

    /// The times of groups of as many steps as an accelerator has workers, since every worker delivers one batch in turn. The first group of an
    /// epoch contains the start-up and is left out, as is an incomplete group.
    fn in_groups(record: &Record) -> Self {
        let steps = record.plan.loader.workers.max(1) as usize;
        let sums = |times: &[f64]| -> Vec<f64> {
            times.chunks_exact(steps).skip(1).map(|group| group.iter().sum()).collect()
        };
        let mut groups = StepTimes { compute_ns: Vec::new(), length_ns: Vec::new() };
        for scope in Scope::whole_epochs(record) {
            let StepTimes { compute_ns, length_ns } = StepTimes::in_epoch(scope);
            groups.append(StepTimes { compute_ns: sums(&compute_ns), length_ns: sums(&length_ns) });
        }
        if groups.length_ns.len() < GROUPS_MIN {
            return StepTimes { compute_ns: Vec::new(), length_ns: Vec::new() };
        }
        groups
    }

    fn in_epoch(scope: Scope) -> Self {
        let mut times = StepTimes { compute_ns: Vec::new(), length_ns: Vec::new() };
        for accelerator in &scope.epoch.accelerators {
            let steps = accelerator.blocks.iter().flat_map(|block| {
                let barriers = block.barrier_ns.iter().chain(iter::repeat(&0));
                let times = block.load_ns.iter().zip(&block.compute_ns).zip(barriers);
                times.map(|((load, compute), barrier)| (*compute, load + compute + barrier))
            });
            for (index, (compute, length)) in steps.enumerate() {
                if times.compute_ns.len() == index {
                    times.compute_ns.push(0.0);
                    times.length_ns.push(0.0);
                }
                times.compute_ns[index] += compute as f64;
                times.length_ns[index] += length as f64;
            }
        }
        times
    }

    fn append(&mut self, mut later: StepTimes) {
        self.compute_ns.append(&mut later.compute_ns);
        self.length_ns.append(&mut later.length_ns);
    }

    /// The confidence interval of the utilisation. It assumes independent times; `None` for fewer than two.
    pub(crate) fn interval(&self) -> Option<Interval> {
        share_interval(&self.compute_ns, &self.length_ns, CONFIDENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;

    #[test]
    fn an_interval_is_too_wide_above_half_of_its_value() {
        let is_wide = |low, high| is_too_wide(&Interval { estimate: 100.0, low, high });
        assert!(!is_wide(75.0, 125.0));
        assert!(is_wide(74.0, 125.0));
    }

    /// Steps of 100 ms of compute after these waits; two workers.
    fn noise(waits_ms: &[u64], change: impl Fn(&mut Record)) -> Option<Noise> {
        let steps: Vec<_> = waits_ms.iter().map(|wait| (*wait, 100, 0, 1_000_000)).collect();
        let mut record = simple(&steps);
        record.plan.loader.workers = 2;
        change(&mut record);
        Noise::in_record(&Derived::new(&record))
    }

    #[test]
    fn a_record_is_noisy_if_groups_of_steps_differ_much() {
        // The workers deliver in turn, so each group takes as long as the others; the start-up does not count.
        let in_turn: Vec<u64> = [900, 0].into_iter().chain([200, 0].repeat(8)).collect();
        assert_eq!(noise(&in_turn, |_| {}), None);
        let irregular: Vec<u64> = [[100, 0], [3000, 2000], [50, 0]].concat().repeat(6);
        assert_eq!(noise(&irregular, |_| {}), Some(Noise::WideInterval));
        // Fewer than eight groups after the first show no noise.
        assert_eq!(noise(&irregular[..17], |_| {}), None);
    }

    #[test]
    fn busy_cores_are_noise_unless_the_run_itself_used_them() {
        let busy = |share: f64, own_ns: Option<u64>| {
            noise(&[100; 20], |record| {
                record.epochs[0].host.cpu_busy_share = Some(share);
                record.epochs[0].host.process_cpu_ns = own_ns;
            })
        };
        let all_ns = {
            let record = simple(&[(100, 100, 0, 1_000_000); 20]);
            8 * duration_ns(&record.epochs[0])
        };
        assert_eq!(busy(0.97, Some(0)), Some(Noise::BusyCores));
        assert_eq!(busy(0.95, Some(0)), None);
        assert_eq!(busy(0.97, Some(all_ns * 9 / 10)), None);
        assert_eq!(busy(0.97, None), Some(Noise::BusyCores), "others may have used the cores");
        let emulated = noise(&[100; 20], |record| {
            record.epochs[0].host.cpu_busy_share = Some(0.97);
            record.epochs[0].host.process_cpu_ns = Some(0);
            record.plan.storage.throttle_bytes_per_second = Some(10e6);
        });
        assert_eq!(emulated, None);
    }
}
