//! MLPerf Storage's rules applied to a request: the size of the dataset that they require. The rules are those of [`feedrate_spec::mlperf`].

use crate::request::Request;
use crate::resolve::{Resolved, resolve_named};
use feedrate_run::system;
use feedrate_spec::escape::bash_word;
use feedrate_spec::mlperf::{DatasetRequirement, MEMORY_TIMES_MIN, STEPS_PER_EPOCH_MIN, find_rule};
use feedrate_spec::plan::Plan;
use feedrate_spec::workload::overridden_key;
use schemars::JsonSchema;
use serde::Serialize;

/// The key that the size of a dataset is set by.
const FILES_KEY: &str = "dataset.num_files_train";

/// The hosts that the accelerators are to run on.
#[derive(Clone, Copy, Debug)]
pub struct Hosts {
    /// Memory of each; `None` is this machine's.
    pub memory_bytes: Option<u64>,
    /// Number of hosts.
    pub count: u32,
}

/// What the rules require of a plan.
pub struct Requirement {
    /// Least utilisation.
    pub au_percent: f64,
    /// The dataset that they require.
    pub dataset: DatasetRequirement,
    /// The hosts that the accelerators are to run on.
    pub hosts: Hosts,
    /// Memory of a host.
    pub memory_bytes: u64,
    /// Files of the workload.
    pub files: u64,
    /// The plan has more files than the workload, whose own are too few for one step.
    pub is_enlarged: bool,
    /// Steps of an epoch of the plan.
    pub steps_per_epoch: u64,
    /// The command that runs the workload with enough files.
    pub command: String,
}

/// MLPerf Storage's rules for a workload, and whether a plan keeps them.
#[derive(Serialize, JsonSchema)]
pub struct MlperfOutput {
    /// Fewest files that the rules allow.
    pub files_min: u64,
    /// Their bytes.
    pub bytes_min: f64,
    /// Fewest files for the steps of an epoch.
    pub files_for_steps: u64,
    /// Fewest files for the memory of the hosts.
    pub files_for_memory: u64,
    /// The larger of both: `steps` or `memory`.
    pub binds: &'static str,
    /// Fewest steps of an epoch.
    pub steps_per_epoch_min: u64,
    /// Size of the dataset in memories of all hosts, at least.
    pub memory_times_min: u64,
    /// Memory of a host.
    pub host_memory_bytes: u64,
    /// Whether that is this machine's, for lack of `--memory`.
    pub host_memory_is_assumed: bool,
    /// Hosts.
    pub hosts: u32,
    /// Least utilisation.
    pub au_min_percent: f64,
    /// Whether the plan has enough files and steps.
    pub dataset_is_large_enough: bool,
    /// The command that runs the workload with enough files.
    pub command: String,
}

impl Requirement {
    /// Applies the rules; `None` for a workload without rules, or a machine whose memory is not known. `own_files` is the workload's number of files
    /// where the plan has another one.
    pub fn new(
        plan: &Plan,
        request: &Request,
        hosts: Hosts,
        own_files: Option<u64>,
    ) -> Option<Self> {
        let (rule, _) = find_rule(&plan.workload, Some(plan.train.compute.mean_s()))?;
        if plan.is_checkpoint_only() {
            return None;
        }
        let is_whole = request.scale == 1.0;
        let memory_bytes = hosts.memory_bytes.or_else(system::memory_bytes)?;
        let dataset = DatasetRequirement {
            memory_bytes: memory_bytes.saturating_mul(hosts.count.into()),
            accelerators: plan.accelerators,
            batch_size: plan.loader.batch_size,
            // A shrunk plan has other files than the command makes.
            samples_per_file: if is_whole {
                plan.dataset.samples_per_file
            } else {
                rule.samples_per_file
            },
            record_bytes: if is_whole { plan.dataset.record_bytes } else { rule.record_bytes },
        };
        Some(Requirement {
            au_percent: rule.au_percent,
            dataset,
            hosts,
            memory_bytes,
            files: own_files.unwrap_or(plan.dataset.files_train),
            is_enlarged: own_files.is_some(),
            steps_per_epoch: plan.train.steps_per_epoch,
            command: command(request, dataset.files()),
        })
    }

    /// Whether the plan has enough files and steps.
    fn is_met(&self) -> bool {
        self.dataset.files() <= self.files && STEPS_PER_EPOCH_MIN <= self.steps_per_epoch
    }

    /// The requirement with the larger dataset: `steps` or `memory`.
    pub fn binds(&self) -> &'static str {
        if self.dataset.files_by_memory() <= self.dataset.files_by_steps() {
            "steps"
        } else {
            "memory"
        }
    }

    /// For `plan --json`.
    pub fn output(&self) -> MlperfOutput {
        MlperfOutput {
            files_min: self.dataset.files(),
            bytes_min: self.dataset.bytes(self.dataset.files()),
            files_for_steps: self.dataset.files_by_steps(),
            files_for_memory: self.dataset.files_by_memory(),
            binds: self.binds(),
            steps_per_epoch_min: STEPS_PER_EPOCH_MIN,
            memory_times_min: MEMORY_TIMES_MIN,
            host_memory_bytes: self.memory_bytes,
            host_memory_is_assumed: self.hosts.memory_bytes.is_none(),
            hosts: self.hosts.count,
            au_min_percent: self.au_percent,
            dataset_is_large_enough: self.is_met(),
            command: self.command.clone(),
        }
    }
}

/// The arguments with as many files as the rules require, and the workload's own number of files, where these are too few for one step of
/// all accelerators. `None` where the user gave the size of the dataset, or another reason stops the plan.
pub fn with_enough_files(request: &Request, hosts: Hosts) -> Option<(Request, u64)> {
    let is_given = request.overrides.iter().any(|given| overridden_key(given) == FILES_KEY);
    if is_given || request.scale != 1.0 {
        return None;
    }
    // Generating a dataset needs no step.
    let unread = Request { generate_only: true, ..request.clone() };
    let Resolved { workload, plan, .. } = resolve_named(&unread).ok()?;
    if workload.dataset_foreign || 0 < plan.train.steps_per_epoch {
        return None;
    }
    let files = Requirement::new(&plan, request, hosts, None)?.dataset.files();
    let mut enough = request.clone();
    enough.overrides.push(format!("{FILES_KEY}={files}"));
    Some((enough, plan.dataset.files_train))
}

/// The command that runs `request` with a dataset of `files` files.
fn command(request: &Request, files: u64) -> String {
    let mut changed = Request { scale: 1.0, ..request.clone() };
    changed.overrides.retain(|given| overridden_key(given) != FILES_KEY);
    changed.overrides.push(format!("{FILES_KEY}={files}"));
    let count = request.accelerators.map(|count| ["-n".to_string(), count.to_string()]);
    let folder = request.data.is_none().then(|| ["--data".to_string(), "DIR".to_string()]);
    let words = changed.data_arguments().into_iter().chain(count.into_iter().flatten());
    let words = words.chain(folder.into_iter().flatten());
    let words: Vec<String> = words.map(|word| bash_word(&word)).collect();
    format!("feedrate run {} --cold", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::WORKLOADS;
    use feedrate_spec::workload::{Strictness, parse};

    /// The workloads that are bundled are those of the rules.
    #[test]
    fn bundled_workloads_of_mlperf_are_as_its_rules_have_them() {
        let mut found = 0;
        for bundled in WORKLOADS.iter().filter(|of| of.summary().starts_with("MLPerf Storage's")) {
            let (workload, _) = parse(bundled.name, bundled.yaml, &[], Strictness::Error).unwrap();
            let compute_s = Some(workload.train_computation_time.mean_s());
            let Some((rule, step)) = find_rule(bundled.name, compute_s) else {
                assert!(bundled.name.starts_with("llama3"), "{}", bundled.name);
                continue;
            };
            found += 1;
            let own = (workload.dataset_num_samples_per_file, workload.reader_batch_size);
            let asked = (rule.samples_per_file, step.batch_size);
            assert!(rule.formats.contains(&&*workload.dataset_format), "{}", bundled.name);
            assert_eq!(own, asked, "{}", bundled.name);
            assert_eq!(compute_s, Some(step.compute_s), "{}", bundled.name);
            assert_eq!(workload.dataset_record_length_bytes, rule.record_bytes, "{}", bundled.name);
        }
        assert_eq!(found, 14);
    }
}
