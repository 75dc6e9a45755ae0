//! Whether a run keeps MLPerf Storage's rules, as far as it tells.

use super::Run;
use feedrate_measure::metric::AU_WINDOWED;
use feedrate_spec::mlperf::{
    Division, Rule, RuleStep, STEPS_PER_EPOCH_MIN, division_for_key, find_rule, is_large_enough,
    is_set_by_official_tools, matches_rule, steps_of_smallest_dataset,
};
use feedrate_spec::workload::overridden_key;
use schemars::JsonSchema;
use serde::Serialize;

/// A run held to the rules; `None` is what it does not tell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MlperfCheck {
    /// Whether it keeps all; `None` where it breaks none that is known.
    pub keeps: Option<bool>,
    /// Dataset to the memory of all client hosts, of which five are asked.
    pub dataset_to_memory: Option<f64>,
    /// Steps of an epoch, of which 500 are asked.
    pub steps_per_epoch: Option<u64>,
    /// au_windowed.
    pub au_percent: Option<f64>,
    /// The least that is asked.
    pub au_min_percent: f64,
    /// Settings that are not those of the rules and that the closed division may not change.
    pub changed: Option<Vec<Changed>>,
}

/// A setting that is not that of the rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Changed {
    /// As DLIO calls it.
    pub key: String,
    /// Whether submissions of the open division may change it.
    pub is_open: bool,
}

impl Run {
    /// Held to the rules of its workload; `None` of one that has none, or where nothing was trained.
    pub fn mlperf(&self) -> Option<MlperfCheck> {
        let compute_s = self.setting("train.compute.mean");
        let (rule, step) = find_rule(&self.workload, compute_s)?;
        if !self.is_result() {
            return None;
        }
        let dataset_bytes = self.record_length_bytes.zip(self.files).zip(self.samples_per_file);
        let dataset_bytes =
            dataset_bytes.map(|((bytes, files), samples)| bytes * files as f64 * samples as f64);
        let dataset_to_memory =
            dataset_bytes.zip(self.hosts_memory_bytes()).map(|(all, memory)| all / memory as f64);
        let steps_per_epoch = (self.steps > 0).then_some(self.steps);
        let au_percent = self.metric(&AU_WINDOWED).or_else(|| self.reported_au_percent());
        let changed = self.changed(rule, step);
        let is_open =
            self.submission.as_ref().is_some_and(|submission| submission.division == "open");
        let size = self.accelerators.zip(self.batch_size).zip(self.samples_per_file);
        let steps_min = size.map_or(STEPS_PER_EPOCH_MIN, |((accelerators, batch), samples)| {
            steps_of_smallest_dataset(accelerators, batch, samples)
        });
        let kept = [
            dataset_to_memory.map(is_large_enough),
            steps_per_epoch.map(|steps| steps_min <= steps),
            au_percent.map(|au| rule.au_percent <= au),
            changed.as_ref().map(|keys| keys.iter().all(|key| key.is_open && is_open)),
        ];
        let keeps = match () {
            () if kept.contains(&Some(false)) => Some(false),
            () if kept.contains(&None) => None,
            () => Some(true),
        };
        let au_min_percent = rule.au_percent;
        Some(MlperfCheck {
            keeps,
            dataset_to_memory,
            steps_per_epoch,
            au_percent,
            au_min_percent,
            changed,
        })
    }

    /// Memory of all hosts: of each machine of ours, of DLIO's runs as they sum it up.
    fn hosts_memory_bytes(&self) -> Option<u64> {
        if self.is_own() {
            return self.machines.iter().map(|machine| machine.memory_bytes).sum();
        }
        self.memory_bytes.filter(|bytes| *bytes > 0)
    }

    fn setting(&self, key: &str) -> Option<f64> {
        self.settings.get(key)?.parse().ok()
    }

    /// Overrides that the closed division does not allow, and what is another than the rules have it; `None` without a config.
    fn changed(&self, rule: &Rule, step: &RuleStep) -> Option<Vec<Changed>> {
        let format = self.format.as_deref()?;
        let fixed = [
            (
                "dataset.num_samples_per_file",
                self.samples_per_file? as f64,
                rule.samples_per_file as f64,
            ),
            ("dataset.record_length_bytes", self.record_length_bytes?, rule.record_bytes),
            ("reader.batch_size", self.batch_size? as f64, step.batch_size as f64),
            ("train.computation_time", self.setting("train.compute.mean")?, step.compute_s),
        ];
        let fixed = fixed.into_iter().filter(|(_, own, asked)| !matches_rule(*own, *asked));
        let format = (!rule.formats.contains(&format)).then_some("dataset.format");
        let given = self.overrides.iter().filter_map(|text| Some(key_of(text)?.to_string()));
        let keys = fixed.map(|(key, ..)| key.to_string()).chain(format.map(str::to_string));
        let changed = keys.chain(given).filter_map(|key| {
            let division = division_for_key(&key);
            let is_open = division == Division::Open;
            (division != Division::Closed).then_some(Changed { key, is_open })
        });
        let emulated = self.emulated_storage().map(|key| Changed { key, is_open: false });
        let mut changed: Vec<Changed> = changed.chain(emulated).collect();
        changed.sort();
        changed.dedup();
        // Records of ours do not tell every setting that was given.
        (!changed.is_empty() || !self.is_own()).then_some(changed)
    }

    /// Settings by which storage was slower than it is, or none.
    fn emulated_storage(&self) -> impl Iterator<Item = String> {
        let emulated = self.settings.iter().filter(|(key, value)| emulates(key, value));
        emulated.map(|(key, _)| key.clone())
    }
}

/// Whether storage of this setting is slower than it is, or none.
fn emulates(key: &str, value: &str) -> bool {
    if key == "storage.kind" {
        return ["memory", "null"].contains(&value);
    }
    let slows = key.contains("throttle") || key.contains("delay");
    key.starts_with("storage.") && slows && value.parse() != Ok(0.0)
}

/// The key of an override of a workload's setting. The rules fix nothing of the workflow, and nothing that the official tools set.
fn key_of(given: &str) -> Option<&str> {
    let key = overridden_key(given);
    let value = given.split_once('=').map_or("", |(_, value)| value);
    let is_fixed =
        !["workflow.", "output.", "hydra.", "metric."].iter().any(|of| key.starts_with(of));
    (key.contains('.') && is_fixed && !is_set_by_official_tools(key, value)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::RunOrigin;
    use crate::run::{Activity, Submission};

    /// 4200 files on a host of 100 GB, in steps of 4 accelerators.
    fn run() -> Run {
        let settings = [("train.compute.mean", "0.323")];
        Run {
            origin: RunOrigin::MlperfStorage,
            activity: Activity::Training,
            workload: "unet3d_h100".into(),
            record_length_bytes: Some(146_600_628.0),
            files: Some(4200),
            samples_per_file: Some(1),
            batch_size: Some(7),
            steps: 600,
            format: Some("npz".into()),
            memory_bytes: Some(100_000_000_000),
            reported: [("train_au_mean_percentage".into(), 91.0)].into(),
            settings: settings.map(|(key, value)| (key.into(), value.into())).into(),
            overrides: vec!["++workload.reader.read_threads=8".into()],
            ..Run::default()
        }
    }

    #[track_caller]
    fn check(change: impl Fn(&mut Run), keeps: Option<bool>, changed: &[&str]) {
        let mut run = run();
        change(&mut run);
        let found = run.mlperf().unwrap();
        let keys = found.changed.iter().flatten().map(|of| of.key.as_str());
        assert_eq!((found.keeps, keys.collect::<Vec<_>>()), (keeps, changed.to_vec()));
    }

    #[test]
    fn a_run_is_held_to_each_rule_and_what_it_does_not_tell_is_unknown() {
        check(|_| {}, Some(true), &[]);
        check(|run| run.steps = 499, Some(false), &[]);
        let memory_of = |times: f64| Some((146_600_628.0 * 4200.0 / times) as u64);
        check(|run| run.memory_bytes = memory_of(4.95), Some(true), &[]);
        check(|run| run.memory_bytes = memory_of(4.94), Some(false), &[]);
        let profiler = |run: &mut Run, name| {
            run.overrides.push(format!("++workload.profiling.profiler={name}"));
        };
        check(|run| profiler(run, "none"), Some(true), &[]);
        check(|run| profiler(run, "iostat"), Some(false), &["profiling.profiler"]);
        let smallest_resnet50 = |run: &mut Run, steps| {
            run.workload = "resnet50_h100".into();
            run.format = Some("tfrecord".into());
            (run.record_length_bytes, run.samples_per_file) = (Some(114_660.07), Some(1251));
            (run.batch_size, run.accelerators, run.steps) = (Some(400), Some(36), steps);
            drop(run.settings.insert("train.compute.mean".into(), "0.224".into()));
        };
        check(|run| smallest_resnet50(run, 499), Some(true), &[]);
        check(|run| smallest_resnet50(run, 498), Some(false), &[]);
        check(|run| run.memory_bytes = Some(200_000_000_000), Some(false), &[]);
        check(|run| run.memory_bytes = None, None, &[]);
        check(
            |run| run.reported = [("train_au_mean_percentage".into(), 89.9)].into(),
            Some(false),
            &[],
        );
        check(|run| run.reported.clear(), None, &[]);
        check(|run| run.format = None, None, &[]);
        check(|run| run.batch_size = Some(8), Some(false), &["reader.batch_size"]);
        let slow =
            |run: &mut Run| drop(run.settings.insert("train.compute.mean".into(), "0.4".into()));
        check(slow, Some(false), &["train.computation_time"]);
        let png = |run: &mut Run| {
            run.format = Some("png".into());
            run.overrides = vec!["++workload.dataset.format=png".into()];
        };
        check(png, Some(false), &["dataset.format"]);
        let submission = Submission {
            round: None,
            division: "open".into(),
            submitter: "X".into(),
            system: "fast-1".into(),
        };
        let open = |run: &mut Run| run.submission = Some(submission.clone());
        let open_png = |run: &mut Run| {
            png(run);
            open(run);
        };
        check(open_png, Some(true), &["dataset.format"]);
        let open_batch = |run: &mut Run| {
            open(run);
            run.batch_size = Some(8);
        };
        check(open_batch, Some(false), &["reader.batch_size"]);
        let own = |run: &mut Run| run.origin = RunOrigin::Feedrate;
        check(own, None, &[]);
        let slowed = |run: &mut Run| {
            own(run);
            drop(run.settings.insert("storage.throttle_bytes_per_second".into(), "4e8".into()));
        };
        check(slowed, Some(false), &["storage.throttle_bytes_per_second"]);
        assert!(run().mlperf().is_some_and(|of| of.dataset_to_memory > Some(6.1)));
        assert_eq!(Run { workload: "mine".into(), ..run() }.mlperf(), None);
    }
}
