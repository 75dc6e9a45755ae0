//! Facts of runs for the rules of MLPerf Storage, which are in [`feedrate_spec::mlperf::rules`], and the outcomes.

use super::{Activity, CheckpointSchedule, Run};
use crate::import::RunOrigin;
use feedrate_measure::checkpoints::{CheckpointMedium, CheckpointSummary};
use feedrate_measure::dlio::micros;
use feedrate_measure::doubt::{CONFIG_DISAGREES, SHORT_WINDOW};
use feedrate_measure::metric::AU_WINDOWED;
use feedrate_measure::record::CheckpointKind;
use feedrate_spec::mlperf::rules::{
    CheckpointFacts, Edition, FixedSetting, Judged, Judgement, MemorySource, TrainingFacts,
    judge_checkpoints, judge_training, keeps_all,
};
use feedrate_spec::mlperf::{
    CheckpointModel, CoreConfig, Division, Rule, RuleStep, STEPS_PER_EPOCH_MIN, division_for_key,
    find_rule, is_set_by_official_tools, matches_rule, steps_of_smallest_dataset,
};
use feedrate_spec::plan::Plan;
use feedrate_spec::units::GIB;
use feedrate_spec::workload::overridden_key;
use schemars::JsonSchema;
use serde::Serialize;

/// Name of the doubt that the reported utilisation does not follow from the steps.
pub(crate) const AU_MISREPORTED: &str = "au_misreported";
/// Name of the doubt that a reported mean does not follow from the reported values.
pub(crate) const MEAN_MISREPORTED: &str = "mean_misreported";
/// Bytes of a GB since 3.0.
const GB: f64 = 1e9;
/// Maximum relative difference between a GB and the bytes that follow from reported figures. GB and GiB differ by 7 %.
const GB_TOLERANCE: f64 = 0.03;
/// Maximum standard deviation of durations ÷ their mean. If they vary more, the mean of rates exceeds the rate of the mean duration by 1 % or more.
const STEADY_VARIATION_MAX: f64 = 0.1;

/// Compliance of a run with the rules of MLPerf Storage.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MlperfCheck {
    /// Edition whose rules apply, such as `v3.0`.
    pub edition: &'static str,
    /// Whether the run complies with all rules; `None` if it violates none but some could not be checked.
    pub keeps: Option<bool>,
    /// The outcome of each rule.
    pub rules: Vec<RuleOutcome>,
}

/// The outcome of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleOutcome {
    /// Official number and name of the rule.
    pub rule: &'static str,
    /// What the rule judges.
    pub name: &'static str,
    /// Whether the rule is kept; `None` if the results or the rules of the edition do not show it.
    pub keeps: Option<bool>,
    /// The judged number; `None` if it is unknown or not a number.
    pub number: Option<f64>,
    /// The judged value as text; `None` if it is unknown.
    pub value: Option<String>,
    /// The judged names, such as those of changed settings.
    pub names: Vec<String>,
    /// What the rule requires.
    pub requires: String,
    /// The quantities from which the number was computed, if they say more than it does.
    #[serde(skip)]
    pub terms: Option<String>,
    /// The judged submission; `None` if the rule judges a single result.
    pub submission: Option<String>,
}

impl From<Judgement> for RuleOutcome {
    fn from(Judgement { rule, outcome }: Judgement) -> Self {
        let unknown = RuleOutcome {
            rule: rule.id,
            name: rule.name,
            keeps: outcome.keeps,
            number: None,
            value: None,
            names: Vec::new(),
            requires: outcome.requires,
            terms: None,
            submission: None,
        };
        match outcome.judged {
            None => unknown,
            Some(Judged::Number { number, text, terms }) => {
                RuleOutcome { number: Some(number), value: Some(text), terms, ..unknown }
            }
            Some(Judged::Names(names)) => {
                let value = if names.is_empty() { "none".into() } else { names.join(", ") };
                RuleOutcome { value: Some(value), names, ..unknown }
            }
        }
    }
}

impl MlperfCheck {
    /// Creates the check. No rule counts as kept if the files of a run contradict each other.
    fn new(edition: Edition, judged: Vec<Judgement>, is_contradicted: bool) -> Self {
        let mut rules: Vec<RuleOutcome> = judged.into_iter().map(RuleOutcome::from).collect();
        for rule in &mut rules {
            rule.keeps.take_if(|keeps| *keeps && is_contradicted);
        }
        let keeps = keeps_all(rules.iter().map(|rule| rule.keeps));
        MlperfCheck { edition: edition.name(), keeps, rules }
    }

    /// Judges the runs that wrote and read the checkpoints of one submission. `None` if they have no model of MLPerf Storage.
    pub fn for_checkpoints(runs: &[&Run]) -> Option<Self> {
        let first = runs.first()?;
        let model = CheckpointModel::find(&first.workload)?;
        let edition = first.rules_edition.unwrap_or(Edition::V3_0);
        let facts = checkpoint_facts(runs, model, edition);
        let is_contradicted = runs.iter().any(|run| run.is_contradicted());
        Some(MlperfCheck::new(edition, judge_checkpoints(&facts, edition), is_contradicted))
    }

    /// Judges a plan that was not run: its utilisation is unknown. `overrides` are those of the user, and `memory_bytes` is the memory of all
    /// `hosts`.
    pub fn for_plan(
        plan: &Plan,
        overrides: &[String],
        memory_bytes: u64,
        hosts: u64,
    ) -> Option<Self> {
        let settings = super::settings(plan);
        let is_alone = plan.is_checkpoint_only();
        let dataset = &plan.dataset;
        let planned = Run {
            // The origin of a run whose overrides are all known.
            origin: RunOrigin::Dlio,
            activity: if is_alone { Activity::Checkpoints } else { Activity::Training },
            workload: plan.workload.clone(),
            core_config: plan.core_config.clone(),
            accelerators: Some(plan.accelerators),
            overrides: overrides.to_vec(),
            hosts: Some(hosts),
            memory_bytes: Some(memory_bytes),
            settings,
            has_no_device: plan.storage.has_no_device,
            steps: plan.train.steps_per_epoch,
            format: Some(dataset.format.clone()),
            record_length_bytes: Some(dataset.record_bytes),
            files: Some(dataset.files_train),
            samples_per_file: Some(dataset.samples_per_file),
            batch_size: Some(plan.loader.batch_size),
            checkpoints: plan.checkpoint.as_ref().map(CheckpointSchedule::from_plan),
            ..Run::default()
        };
        planned.mlperf()
    }
}

impl Run {
    /// Checks the run against the rules of its workload. `None` if there are no rules for the workload or the run has no result.
    pub fn mlperf(&self) -> Option<MlperfCheck> {
        if self.activity == Activity::Checkpoints {
            return if self.put_aside.is_none() {
                MlperfCheck::for_checkpoints(&[self])
            } else {
                None
            };
        }
        let compute_s = self.setting("train.compute.mean");
        let (rule, step) = find_rule(&self.workload, compute_s)?;
        if !self.is_result() {
            return None;
        }
        let edition = self.training_edition(step);
        let judged = judge_training(&self.training_facts(rule, step), edition);
        Some(MlperfCheck::new(edition, judged, self.is_contradicted()))
    }

    /// Whether the run trained for a submission, but left no result, so that no rule can judge it.
    pub(crate) fn lacks_result(&self) -> bool {
        let is_submitted = self.submission.is_some() && self.put_aside.is_none();
        is_submitted
            && self.activity == Activity::Training
            && !self.is_result()
            && self.mlperf_edition().is_some()
    }

    /// Returns the edition whose rules apply: that of the results, or the last one that accepts the accelerator.
    fn training_edition(&self, step: &RuleStep) -> Edition {
        let last = || Edition::last_accepting(step.accelerator);
        self.rules_edition.or_else(last).unwrap_or(Edition::V3_0)
    }

    /// Returns the edition of a training run; `None` for a workload without rules.
    pub(crate) fn mlperf_edition(&self) -> Option<Edition> {
        let (_, step) = find_rule(&self.workload, self.setting("train.compute.mean"))?;
        Some(self.training_edition(step))
    }

    fn training_facts(&self, rule: &Rule, step: &RuleStep) -> TrainingFacts {
        let samples = self.files.zip(self.samples_per_file);
        let dataset_bytes =
            self.record_length_bytes.zip(samples).map(|(bytes, (files, samples_per_file))| {
                bytes * files as f64 * samples_per_file as f64
            });
        let size = self.accelerators.zip(self.batch_size).zip(self.samples_per_file);
        TrainingFacts {
            dataset_bytes,
            memory_bytes: self.hosts_memory_bytes(),
            memory_max_bytes: self.memory_bytes_max,
            memory_source: match &self.machines[..] {
                // A plan has no machines.
                [] => MemorySource::Known,
                _ if self.is_from_feedrate() => MemorySource::Known,
                _ if self.may_limit_memory => MemorySource::SummaryDespiteLimit,
                _ => MemorySource::Summary,
            },
            steps_per_epoch: (self.steps > 0).then_some(self.steps),
            steps_min: size.map_or(STEPS_PER_EPOCH_MIN, |((accelerators, batch), samples)| {
                steps_of_smallest_dataset(accelerators, batch, samples)
            }),
            au_percent: self.metric(&AU_WINDOWED).or_else(|| {
                self.reported_au_percent().filter(|_| !self.is_reported_au_contradicted())
            }),
            au_min_percent: rule.au_percent,
            has_short_window: self.doubts.iter().any(|doubt| doubt.name == SHORT_WINDOW),
            changed: self.changed_settings(rule, step),
            is_open: self.is_open(),
            accelerators: self.accelerators.map(u64::from),
            hosts: self.hosts,
        }
    }

    /// Returns whether the reported utilisation contradicts the rest of the run's files, so that no property of the measurement explains it.
    pub fn is_reported_au_contradicted(&self) -> bool {
        self.doubts.iter().any(|doubt| [AU_MISREPORTED, MEAN_MISREPORTED].contains(&&*doubt.name))
    }

    /// Returns whether the files of the run contradict each other, so that it is unknown what was run.
    fn is_contradicted(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.name == CONFIG_DISAGREES)
    }

    fn is_open(&self) -> bool {
        self.submission.as_ref().is_some_and(|submission| submission.division == "open")
    }

    /// Returns the bytes of a checkpoint: as written, as reported, or as planned.
    pub(crate) fn checkpoint_bytes(&self) -> Option<f64> {
        let measured = self.checkpoint_summary().and_then(|all| all.save.or(all.load));
        let reported = || self.reported.get("checkpoint_size_GB").filter(|gib| 0.0 < **gib);
        measured
            .map(|checkpoints| checkpoints.bytes as f64)
            .or_else(|| reported().map(|gib| gib * GIB))
            .or_else(|| Some(self.checkpoints?.bytes? as f64))
    }

    /// Returns the rate at which checkpoints were written: bytes ÷ the duration until the slowest rank is done.
    pub fn written_bytes_per_second(&self) -> Option<f64> {
        let measured = self.checkpoint_summary().and_then(|all| all.save?.bytes_per_second);
        measured.or_else(|| self.reported_checkpoint_rate(CheckpointKind::Save))
    }

    /// Returns the rate at which checkpoints were read, likewise.
    pub fn read_bytes_per_second(&self) -> Option<f64> {
        let measured = self.checkpoint_summary().and_then(|all| all.load?.bytes_per_second);
        measured.or_else(|| self.reported_checkpoint_rate(CheckpointKind::Load))
    }

    fn reported_checkpoint_rate(&self, kind: CheckpointKind) -> Option<f64> {
        let key = format!("{}_checkpoint_io_mean_GB_per_second", kind.name());
        let rate = self.reported.get(&key).filter(|rate| 0.0 < **rate)?;
        Some(rate * self.reported_gb_bytes(kind))
    }

    /// Returns the bytes of a GB in a reported rate: 10^9 or 2^30, whichever fits the reported size and mean duration. If neither does, or if durations
    /// vary too much to tell, it is 10^9 since 3.0, before 2^30.
    pub(super) fn reported_gb_bytes(&self, kind: CheckpointKind) -> f64 {
        let reported = |name: String| self.reported.get(&name).copied();
        let duration = |statistic| {
            reported(format!("{}_checkpoint_duration_{statistic}_seconds", kind.name()))
        };
        let is_steady = duration("stdev")
            .zip(duration("mean"))
            .is_some_and(|(stdev_s, mean_s)| stdev_s <= STEADY_VARIATION_MAX * mean_s);
        let fitting = || {
            let rate = reported(format!("{}_checkpoint_io_mean_GB_per_second", kind.name()))?;
            let bytes = reported("checkpoint_size_GB".into())? * GIB;
            let bytes_per_gb = bytes / duration("mean")? / rate;
            [GB, GIB].into_iter().find(|gb| (bytes_per_gb / gb - 1.0).abs() <= GB_TOLERANCE)
        };
        let is_since_3 = self.rules_edition == Some(Edition::V3_0);
        let usual = if is_since_3 { GB } else { GIB };
        if is_steady { fitting().unwrap_or(usual) } else { usual }
    }

    fn checkpoint_summary(&self) -> Option<&CheckpointSummary> {
        self.supply.as_ref()?.checkpoints.as_ref()
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

    /// Returns overrides that the closed division does not allow, and settings that differ from the official class, or from the rules if the class
    /// is unknown. `None` if the settings are unknown.
    fn changed_settings(&self, rule: &Rule, step: &RuleStep) -> Option<Vec<FixedSetting>> {
        let by_class = self.keys_outside_class();
        // A class covers all fixed settings. Records do not contain every override, so without a class an empty list does not prove compliance.
        let is_complete = by_class.is_some() || !self.is_from_feedrate();
        let fixed = by_class.or_else(|| self.keys_outside_rule(rule, step))?;
        let overridden =
            self.overrides.iter().filter_map(|text| Some(regulated_key(text)?.to_string()));
        let contradicted = self.contradicted_keys();
        let options = self.core_config.iter().flat_map(CoreConfig::options).cloned();
        let changed = fixed.into_iter().chain(overridden).chain(contradicted).chain(options);
        let changed = fixed_settings(changed);
        let emulated = self.emulating_keys().map(|key| FixedSetting { key, is_open: false });
        let mut changed: Vec<FixedSetting> = changed.chain(emulated).collect();
        changed.sort();
        changed.dedup();
        (is_complete || !changed.is_empty()).then_some(changed)
    }

    /// Returns the keys that differ from a rule, for configurations that are in no official class. `None` if the settings are unknown.
    fn keys_outside_rule(&self, rule: &Rule, step: &RuleStep) -> Option<Vec<String>> {
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
        let keys = violated.map(|(key, ..)| key).chain(other_format);
        Some(keys.map(str::to_string).collect())
    }

    /// Returns the keys of settings by which the storage is emulated instead of measured.
    fn emulating_keys(&self) -> impl Iterator<Item = String> {
        let slowing = self.settings.iter().filter(|(key, value)| slows_storage(key, value));
        let kind = self.has_no_device.then(|| "storage.kind".to_string());
        slowing.map(|(key, _)| key.clone()).chain(kind)
    }
}

/// Selects the keys that the closed division fixes.
fn fixed_settings(keys: impl Iterator<Item = String>) -> impl Iterator<Item = FixedSetting> {
    keys.filter_map(|key| {
        let division = division_for_key(&key);
        let is_open = division == Division::Open;
        (division != Division::Closed).then_some(FixedSetting { key, is_open })
    })
}

/// Returns the settings in which any run differs from a class of the edition. `None` if that is unknown.
fn changed_checkpoint_settings(runs: &[&Run], edition: Edition) -> Option<Vec<FixedSetting>> {
    let mut changed = Vec::new();
    for run in runs {
        let class = run.mlperf_class()?;
        let is_of_edition =
            class.comparable_with.iter().any(|number| edition.name().ends_with(number));
        if class.class.is_some() && !is_of_edition {
            return None;
        }
        let contradicted = run.contradicted_keys();
        changed.extend(fixed_settings(run.keys_outside_class()?.into_iter().chain(contradicted)));
    }
    changed.sort();
    changed.dedup();
    Some(changed)
}

/// Collects the facts of the invocations that wrote and read the checkpoints of one submission.
fn checkpoint_facts(
    runs: &[&Run],
    model: &'static CheckpointModel,
    edition: Edition,
) -> CheckpointFacts {
    let schedules: Option<Vec<CheckpointSchedule>> =
        runs.iter().map(|run| run.checkpoints).collect();
    let schedules = schedules.unwrap_or_default();
    let sum = |count: fn(&CheckpointSchedule) -> Option<u64>| {
        (!schedules.is_empty()).then(|| schedules.iter().map(count).sum::<Option<u64>>()).flatten()
    };
    let writes = sum(|schedule| schedule.alone);
    let bytes = runs.iter().find_map(|run| run.checkpoint_bytes());
    let memory_bytes = runs.iter().find_map(|run| run.hosts_memory_bytes());
    let written = bytes.zip(writes.filter(|writes| 0 < *writes));
    let media = runs.iter().filter_map(|run| Some(run.checkpoint_summary()?.load?.medium));
    let media: Vec<CheckpointMedium> = media.collect();
    let mut writers = schedules.iter().filter(|schedule| schedule.alone != Some(0)).peekable();
    CheckpointFacts {
        model,
        is_open: runs.iter().any(|run| run.is_open()),
        changed: changed_checkpoint_settings(runs, edition),
        fsync: writers.peek().is_some().then(|| writers.all(|schedule| schedule.fsync)),
        writes,
        reads: sum(|schedule| schedule.reads),
        gap_s: gap_s(runs),
        invocations: runs.len() as u64,
        written_to_memory: written
            .zip(memory_bytes)
            .map(|((bytes, writes), memory)| bytes * writes as f64 / memory as f64),
        reads_storage: match &media[..] {
            [] => None,
            media if media.contains(&CheckpointMedium::Unknown) => None,
            media => Some(media.iter().all(|medium| medium.is_storage())),
        },
        processes: runs.iter().find_map(|run| run.accelerators).map(u64::from),
        is_subset: (!schedules.is_empty())
            .then(|| schedules.iter().any(|schedule| schedule.is_subset)),
        hosts: runs.iter().find_map(|run| run.hosts),
        bytes,
    }
}

/// Returns the time from the end of the run that wrote to the start of the run that read. `None` unless there are two such runs.
fn gap_s(runs: &[&Run]) -> Option<f64> {
    let [one, other] = runs else { return None };
    let writes = |run: &Run| run.checkpoints.is_some_and(|schedule| schedule.alone != Some(0));
    let (writer, reader) = match (writes(one), writes(other)) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return None,
    };
    let end_us = micros(writer.ended.as_ref()?)?;
    let start_us = micros(reader.started.as_ref()?)?;
    Some((start_us - end_us) as f64 / 1e6)
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
    let is_regulated = !["workflow.", "output.", "hydra.", "metric.", "expect."]
        .iter()
        .any(|section| key.starts_with(section));
    (key.contains('.') && is_regulated && !is_set_by_official_tools(key, value)).then_some(key)
}

#[cfg(test)]
mod tests;
