//! Checks whether a run complies with MLPerf Storage's rules, as far as its results show.

use super::Run;
use feedrate_measure::metric::AU_WINDOWED;
use feedrate_spec::mlperf::{
    Division, Rule, RuleStep, STEPS_PER_EPOCH_MIN, division_for_key, find_rule, is_large_enough,
    is_set_by_official_tools, matches_rule, steps_of_smallest_dataset,
};
use feedrate_spec::workload::overridden_key;
use schemars::JsonSchema;
use serde::Serialize;

/// Compliance of a run with the rules. Unknown values are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MlperfCheck {
    /// Whether the run complies with all rules; `None` if it violates none but some could not be checked.
    pub keeps: Option<bool>,
    /// Ratio of the dataset's size to the memory of all client hosts. The rules require 5.
    pub dataset_to_memory: Option<f64>,
    /// Steps of an epoch. The rules require 500.
    pub steps_per_epoch: Option<u64>,
    /// Windowed accelerator utilisation (au_windowed).
    pub au_percent: Option<f64>,
    /// Required utilisation.
    pub au_min_percent: f64,
    /// Settings that differ from the rules and must not be changed in the closed division.
    pub changed: Option<Vec<ChangedSetting>>,
}

/// A setting that differs from the rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "Changed")]
pub struct ChangedSetting {
    /// Key of the setting in DLIO's notation.
    pub key: String,
    /// Whether submissions of the open division may change it.
    pub is_open: bool,
}

impl Run {
    /// Checks the run against the rules of its workload. `None` if there are no rules for the workload or the run has no result.
    pub fn mlperf(&self) -> Option<MlperfCheck> {
        let compute_s = self.setting("train.compute.mean");
        let (rule, step) = find_rule(&self.workload, compute_s)?;
        if !self.is_result() {
            return None;
        }
        let samples = self.files.zip(self.samples_per_file);
        let dataset_bytes =
            self.record_length_bytes.zip(samples).map(|(bytes, (files, samples_per_file))| {
                bytes * files as f64 * samples_per_file as f64
            });
        let dataset_to_memory = dataset_bytes
            .zip(self.hosts_memory_bytes())
            .map(|(dataset, memory)| dataset / memory as f64);
        let steps_per_epoch = (self.steps > 0).then_some(self.steps);
        let au_percent = self.metric(&AU_WINDOWED).or_else(|| self.reported_au_percent());
        let changed = self.changed_settings(rule, step);
        let is_open =
            self.submission.as_ref().is_some_and(|submission| submission.division == "open");
        let size = self.accelerators.zip(self.batch_size).zip(self.samples_per_file);
        let steps_min = size.map_or(STEPS_PER_EPOCH_MIN, |((accelerators, batch), samples)| {
            steps_of_smallest_dataset(accelerators, batch, samples)
        });
        let checks = [
            dataset_to_memory.map(is_large_enough),
            steps_per_epoch.map(|steps| steps_min <= steps),
            au_percent.map(|au| rule.au_percent <= au),
            changed.as_ref().map(|keys| keys.iter().all(|key| key.is_open && is_open)),
        ];
        let keeps = match () {
            () if checks.contains(&Some(false)) => Some(false),
            () if checks.contains(&None) => None,
            () => Some(true),
        };
        Some(MlperfCheck {
            keeps,
            dataset_to_memory,
            steps_per_epoch,
            au_percent,
            au_min_percent: rule.au_percent,
            changed,
        })
    }

    /// Returns the memory of all hosts. For runs of DLIO, `memory_bytes` is already the sum.
    fn hosts_memory_bytes(&self) -> Option<u64> {
        if self.is_from_feedrate() {
            return self.machines.iter().map(|machine| machine.memory_bytes).sum();
        }
        self.memory_bytes.filter(|bytes| *bytes > 0)
    }

    fn setting(&self, key: &str) -> Option<f64> {
        self.settings.get(key)?.parse().ok()
    }

    /// Returns overrides that the closed division does not allow, and settings that differ from the rules. `None` if the settings are unknown.
    fn changed_settings(&self, rule: &Rule, step: &RuleStep) -> Option<Vec<ChangedSetting>> {
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
        let violated =
            fixed.into_iter().filter(|(_, actual, required)| !matches_rule(*actual, *required));
        let other_format = (!rule.formats.contains(&format)).then_some("dataset.format");
        let overridden =
            self.overrides.iter().filter_map(|text| Some(regulated_key(text)?.to_string()));
        let keys = violated
            .map(|(key, ..)| key.to_string())
            .chain(other_format.map(str::to_string))
            .chain(overridden);
        let changed = keys.filter_map(|key| {
            let division = division_for_key(&key);
            let is_open = division == Division::Open;
            (division != Division::Closed).then_some(ChangedSetting { key, is_open })
        });
        let emulated = self.emulating_keys().map(|key| ChangedSetting { key, is_open: false });
        let mut changed: Vec<ChangedSetting> = changed.chain(emulated).collect();
        changed.sort();
        changed.dedup();
        // Records do not contain every override, so an empty list does not prove compliance.
        (!changed.is_empty() || !self.is_from_feedrate()).then_some(changed)
    }

    /// Returns the keys of settings by which the storage is emulated instead of measured.
    fn emulating_keys(&self) -> impl Iterator<Item = String> {
        let slowing = self.settings.iter().filter(|(key, value)| slows_storage(key, value));
        let kind = self.has_no_device.then(|| "storage.kind".to_string());
        slowing.map(|(key, _)| key.clone()).chain(kind)
    }
}

/// Returns whether a setting makes the storage slower than it is.
fn slows_storage(key: &str, value: &str) -> bool {
    let slows = key.contains("throttle") || key.contains("delay");
    key.starts_with("storage.") && slows && value.parse() != Ok(0.0)
}

/// Returns the key of an override that the rules regulate. They regulate neither the workflow nor settings of the official tools.
fn regulated_key(text: &str) -> Option<&str> {
    let key = overridden_key(text);
    let value = text.split_once('=').map_or("", |(_, value)| value);
    let is_regulated = !["workflow.", "output.", "hydra.", "metric."]
        .iter()
        .any(|section| key.starts_with(section));
    (key.contains('.') && is_regulated && !is_set_by_official_tools(key, value)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::RunOrigin;
    use crate::run::{Activity, Submission};

    /// Returns a run that complies with the rules: 4200 files on a host with 100 GB of memory.
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
        let keys = found.changed.iter().flatten().map(|changed| changed.key.as_str());
        assert_eq!((found.keeps, keys.collect::<Vec<_>>()), (keeps, changed.to_vec()));
    }

    #[test]
    fn each_rule_is_checked_and_unknown_values_are_not_violations() {
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
            run.record_length_bytes = Some(114_660.07);
            run.samples_per_file = Some(1251);
            run.batch_size = Some(400);
            run.accelerators = Some(36);
            run.steps = steps;
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
        let recorded = |run: &mut Run| run.origin = RunOrigin::Feedrate;
        check(recorded, None, &[]);
        let without_device = |run: &mut Run| {
            recorded(run);
            run.has_no_device = true;
        };
        check(without_device, Some(false), &["storage.kind"]);
        let slowed = |run: &mut Run| {
            recorded(run);
            drop(run.settings.insert("storage.throttle_bytes_per_second".into(), "4e8".into()));
        };
        check(slowed, Some(false), &["storage.throttle_bytes_per_second"]);
        assert!(run().mlperf().is_some_and(|check| check.dataset_to_memory > Some(6.1)));
        assert_eq!(Run { workload: "mine".into(), ..run() }.mlperf(), None);
    }
}
