//! The rules of MLPerf Storage as a table. A row has the official number and name, the editions that contain the rule, and a function from
//! facts to an outcome. Facts come from a run, from the runs of a submission, or from a plan.
//!
//! Source: `Rules.md` of `mlcommons/storage` for 3.0, `Submission_guidelines.md` for 1.0 and 2.0, and `rules/editions.yaml` for the workloads of
//! all editions. Where the sources of an edition do not state a rule of another edition, its outcome is unknown.
//! Long because the rows and their functions are one table.

use super::{CheckpointModel, DATASET_TO_MEMORY_MIN, STEPS_PER_EPOCH_MIN, is_large_enough};
use crate::names;
use crate::units;

names! {
    /// Edition of the rules.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[expect(missing_docs, reason = "the names suffice")]
    pub enum Edition {
        V0_5 = "v0.5",
        V1_0 = "v1.0",
        V2_0 = "v2.0",
        V3_0 = "v3.0",
    }
}

impl Edition {
    /// Finds the edition in the name of a folder, such as `storage_results_v1.0`.
    pub fn in_folder_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edition| name.to_ascii_lowercase().ends_with(edition.name()))
    }

    /// Returns the last edition that accepts an accelerator.
    pub fn last_accepting(accelerator: &str) -> Option<Self> {
        match accelerator {
            "v100" => Some(Edition::V0_5),
            "a100" | "h100" => Some(Edition::V2_0),
            "b200" | "mi355" => Some(Edition::V3_0),
            _ => None,
        }
    }
}

/// A setting that differs from the rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedSetting {
    /// Key in DLIO's notation.
    pub key: String,
    /// Whether submissions of the open division may change it.
    pub is_open: bool,
}

/// Facts about a training run. Unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingFacts {
    /// Bytes of the dataset.
    pub dataset_bytes: Option<f64>,
    /// Memory of all client hosts.
    pub memory_bytes: Option<u64>,
    /// Most memory that all client hosts can have, if their memory is unknown.
    pub memory_max_bytes: Option<u64>,
    /// Source of the memory.
    pub memory_source: MemorySource,
    /// Steps of an epoch.
    pub steps_per_epoch: Option<u64>,
    /// Steps of an epoch with the smallest dataset that the official tools accept.
    pub steps_min: u64,
    /// Utilisation without the first step of each block.
    pub au_percent: Option<f64>,
    /// Required utilisation.
    pub au_min_percent: f64,
    /// Whether the window has so few steps that batches loaded before it may fill it. A high utilisation then proves nothing.
    pub has_short_window: bool,
    /// Changed settings that the rules fix for closed submissions.
    pub changed: Option<Vec<FixedSetting>>,
    /// Whether the run is in the open division.
    pub is_open: bool,
    /// Accelerators of all hosts.
    pub accelerators: Option<u64>,
    /// Client hosts.
    pub hosts: Option<u64>,
}

/// Source of the memory of the client hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemorySource {
    /// A record of feedrate, or the user.
    #[default]
    Known,
    /// `summary.json` of other programs, which has the memory of the machines even if a cgroup limits it.
    Summary,
    /// `summary.json`, while the description of the system mentions a limit.
    SummaryDespiteLimit,
}

/// Facts about the invocations that write and read the checkpoints of one submission. Unknown facts are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointFacts {
    /// The official model.
    pub model: &'static CheckpointModel,
    /// Whether the run is in the open division.
    pub is_open: bool,
    /// Settings that differ from the official class.
    pub changed: Option<Vec<FixedSetting>>,
    /// Whether files are synced before a checkpoint counts as written.
    pub fsync: Option<bool>,
    /// Checkpoints written by all invocations.
    pub writes: Option<u64>,
    /// Checkpoints read by all invocations.
    pub reads: Option<u64>,
    /// Time from the end of the writing invocation to the start of the reading one; `None` for one invocation, or if it is unknown.
    pub gap_s: Option<f64>,
    /// Number of invocations.
    pub invocations: u64,
    /// Ratio of all bytes written to the memory of all client hosts.
    pub written_to_memory: Option<f64>,
    /// Whether reads came from the storage instead of the caches of clients.
    pub reads_storage: Option<bool>,
    /// Processes of all hosts.
    pub processes: Option<u64>,
    /// Whether only some ranks of the model took part (`checkpoint.mode=subset`).
    pub is_subset: Option<bool>,
    /// Client hosts.
    pub hosts: Option<u64>,
    /// Bytes of a checkpoint.
    pub bytes: Option<f64>,
}

/// Facts about all training runs of a submission to one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubmissionFacts {
    /// Number of runs, the warm-up included.
    pub runs: u64,
    /// Longest time from the start of a run to the start of the next one ÷ duration of the shortest run; `None` if it is unknown.
    pub start_gap_ratio: Option<f64>,
}

/// The value that a rule judges.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// A number, and its text.
    Number {
        /// The number, to find the smallest and the largest of several runs.
        number: f64,
        /// The number with its unit.
        text: String,
        /// The quantities from which the number was computed; `None` if it was not computed from others.
        terms: Option<String>,
    },
    /// Names, such as those of changed settings.
    Names(Vec<String>),
}

/// Whether a rule is kept, and the value that decides it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `None` if the facts or the rules of the edition do not decide it.
    pub keeps: Option<bool>,
    /// The judged value; `None` if unknown.
    pub judged: Option<Judged>,
    /// What the rule requires, such as `at least 5`.
    pub requires: String,
}

/// The function of a rule.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Judges a training run; `None` if the rule does not apply to it.
    Training(fn(&TrainingFacts) -> Option<Outcome>),
    /// Judges the checkpoints of a submission.
    Checkpoints(fn(&CheckpointFacts) -> Outcome),
    /// Judges the training runs of a submission together. The edition determines the requirement; `None` for editions without it.
    Submission(fn(&SubmissionFacts, Edition) -> Option<Outcome>),
}

/// A rule.
#[derive(Debug)]
pub struct OfficialRule {
    /// Number and name in `Rules.md` of 3.0.
    pub id: &'static str,
    /// The judged quantity in a few words.
    pub name: &'static str,
    /// What to do if it is broken.
    pub advice: &'static str,
    /// Editions whose rules contain it. For other editions in which its workloads existed, the outcome is unknown.
    pub editions: &'static [Edition],
    /// The function that judges it.
    pub check: Check,
}

use Edition::{V0_5, V1_0, V2_0, V3_0};

const WINDOWED_AU: &str = "windowed AU";

/// All rules that feedrate checks.
pub static TABLE: [OfficialRule; 16] = [
    OfficialRule {
        id: "3.1.2 trainingRecalculateDatasetSize",
        name: "dataset ÷ memory",
        advice: "use more files: `feedrate plan WORKLOAD --memory SIZE --hosts H` prints the number",
        editions: &[V0_5, V1_0, V2_0, V3_0],
        check: Check::Training(|facts| Some(dataset_to_memory(facts))),
    },
    OfficialRule {
        id: "3.1.2 trainingRecalculateDatasetSize",
        name: "steps per epoch",
        advice: "use more files: `feedrate plan WORKLOAD` prints the number",
        editions: &[V0_5, V1_0, V2_0, V3_0],
        check: Check::Training(|facts| Some(steps_per_epoch(facts))),
    },
    OfficialRule {
        id: "3.3.2 trainingAcceleratorUtilizationCheck",
        name: WINDOWED_AU,
        advice: "make the storage faster or use fewer accelerators: `feedrate run` says what limits, `feedrate scale` how many accelerators it feeds",
        editions: &[V0_5, V1_0, V2_0, V3_0],
        check: Check::Training(|facts| Some(utilisation(facts))),
    },
    OfficialRule {
        id: "3.3.6 trainingIdenticalAcceleratorsPerNode",
        name: "accelerators per host",
        advice: "use a number of accelerators that the number of hosts divides",
        editions: &[V1_0, V2_0, V3_0],
        check: Check::Training(accelerators_per_host),
    },
    OfficialRule {
        id: "3.6.2 trainingClosedSubmissionParameters",
        name: "changed settings",
        advice: "leave out the named settings; `feedrate list mlperf` lists those that may change",
        editions: &[V0_5, V1_0, V2_0, V3_0],
        check: Check::Training(|facts| {
            Some(changed_settings(facts.changed.as_deref(), facts.is_open))
        }),
    },
    OfficialRule {
        id: "2.1.17 runTimestamps",
        name: "runs",
        advice: "make the missing runs, in a folder of their own: `feedrate run --rehearse` makes as many as required",
        editions: &[V1_0, V3_0],
        check: Check::Submission(|facts, edition| Some(number_of_runs(facts, edition))),
    },
    OfficialRule {
        id: "2.1.18 runTimestampGap",
        name: "gap between starts",
        advice: "make all runs one after another without other work between them: `--rehearse --again` does",
        editions: &[V3_0],
        check: Check::Submission(|facts, edition| (V3_0 <= edition).then(|| start_gap(facts))),
    },
    OfficialRule {
        id: "4.3.1 checkpointDataSizeRatio",
        name: "written ÷ memory",
        advice: "write more, use hosts with less memory, or drop the caches before the reads",
        editions: &[V3_0],
        check: Check::Checkpoints(written_to_memory),
    },
    OfficialRule {
        id: "4.3.2 checkpointFsyncVerification",
        name: "fsync",
        advice: "set `checkpoint.fsync=True`",
        editions: &[V2_0, V3_0],
        check: Check::Checkpoints(fsync),
    },
    OfficialRule {
        id: "4.3.3 checkpointModelConfigurationReq",
        name: "bytes of a checkpoint",
        advice: "leave out settings of the model",
        editions: &[V2_0, V3_0],
        check: Check::Checkpoints(checkpoint_bytes),
    },
    OfficialRule {
        id: "4.3.5 checkpointSubsetRunValidation",
        name: "subset mode",
        advice: "leave out `checkpoint.mode=subset`",
        editions: &[V3_0],
        check: Check::Checkpoints(subset_mode),
    },
    OfficialRule {
        id: "4.6.1 checkpointClosedMpiProcesses",
        name: "processes",
        advice: "start as many processes as required",
        editions: &[V3_0],
        check: Check::Checkpoints(processes),
    },
    OfficialRule {
        id: "4.6.2 checkpointClosedAcceleratorsPerHost",
        name: "processes per host",
        advice: "use fewer hosts, with more than 4 processes each",
        editions: &[V2_0, V3_0],
        check: Check::Checkpoints(processes_per_host),
    },
    OfficialRule {
        id: "4.6.3 checkpointClosedCheckpointParameters",
        name: "changed settings",
        advice: "leave out the named settings; `feedrate list mlperf` lists those that may change",
        editions: &[V2_0, V3_0],
        check: Check::Checkpoints(|facts| {
            changed_settings(facts.changed.as_deref(), facts.is_open)
        }),
    },
    OfficialRule {
        id: "4.7.1 checkpointCacheFlushValidation",
        name: "writes and reads",
        advice: "leave out `checkpoint.num_checkpoints_write` and `checkpoint.num_checkpoints_read`",
        editions: &[V2_0, V3_0],
        check: Check::Checkpoints(writes_and_reads),
    },
    OfficialRule {
        id: "4.7.1 checkpointCacheFlushValidation",
        name: "gap between writes and reads",
        advice: "read right after writing, or in the same invocation",
        editions: &[V3_0],
        check: Check::Checkpoints(gap),
    },
];

/// A rule with its outcome.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The rule.
    pub rule: &'static OfficialRule,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Judges a training run by the rules of an edition.
pub fn judge_training(facts: &TrainingFacts, edition: Edition) -> Vec<Judgement> {
    judge(edition, |check| match check {
        Check::Training(check) => check(facts),
        Check::Checkpoints(_) | Check::Submission(_) => None,
    })
}

/// Judges checkpoints by the rules of an edition.
pub fn judge_checkpoints(facts: &CheckpointFacts, edition: Edition) -> Vec<Judgement> {
    judge(edition, |check| match check {
        Check::Checkpoints(check) => Some(check(facts)),
        Check::Training(_) | Check::Submission(_) => None,
    })
}

/// Judges the training runs of a submission together.
pub fn judge_submission(facts: SubmissionFacts, edition: Edition) -> Vec<Judgement> {
    judge(edition, |check| match check {
        Check::Submission(check) => check(&facts, edition),
        Check::Training(_) | Check::Checkpoints(_) => None,
    })
}

fn judge(edition: Edition, outcome: impl Fn(Check) -> Option<Outcome>) -> Vec<Judgement> {
    let judged = TABLE.iter().filter_map(|rule| {
        let mut outcome = outcome(rule.check)?;
        outcome.keeps.take_if(|_| !rule.editions.contains(&edition));
        Some(Judgement { rule, outcome })
    });
    judged.collect()
}

impl OfficialRule {
    /// Returns what the rule requires, such as `at least 5`, if that does not depend on the workload.
    pub fn requires(&self) -> Option<String> {
        match self.check {
            // The required utilisation is the workload's.
            Check::Training(_) if self.name == WINDOWED_AU => {
                Some("at least the workload's AU".into())
            }
            Check::Training(check) => Some(check(&TrainingFacts::default())?.requires),
            Check::Submission(check) => Some(check(&SubmissionFacts::default(), V3_0)?.requires),
            Check::Checkpoints(_) => None,
        }
    }
}

/// Returns whether all rules are kept; `None` if none is broken but some are unknown.
pub fn keeps_all(outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let outcomes: Vec<Option<bool>> = outcomes.collect();
    if outcomes.contains(&Some(false)) {
        return Some(false);
    }
    outcomes.iter().all(Option::is_some).then_some(true)
}

/// Number of runs of a submission, the warm-up included; `None` if the sources of the edition do not state it.
pub fn runs_of_submission(edition: Edition) -> Option<u64> {
    match edition {
        V1_0 => Some(5),
        V3_0 => Some(6),
        V0_5 | V2_0 => None,
    }
}

/// Number of runs of a submission that count.
pub const SCORED_RUNS: u64 = 5;

/// Limit of the time between the starts of consecutive runs, as a multiple of the shortest run.
pub const START_GAP_LIMIT: f64 = 2.0;

/// Number of checkpoints to write and to read.
pub const CHECKPOINTS_EACH: u64 = 10;

/// Minimum ratio of the bytes written to the memory of all clients, unless their caches are dropped between writing and reading.
pub const WRITTEN_TO_MEMORY_MIN: f64 = 3.0;

/// Minimum number of processes on each host. Rule 4.6.2 and the official checker require more than 4, a table of the rules "minimal 4".
pub const HOST_PROCESSES_MIN: u64 = 5;

/// Maximum time from the end of writing to the start of reading.
pub const GAP_MAX_S: f64 = 30.0;

/// Relative difference up to which a checkpoint has the planned bytes. Summaries round them.
const BYTES_TOLERANCE: f64 = 0.01;

fn number(number: f64, text: impl Into<String>) -> Option<Judged> {
    Some(Judged::Number { number, text: text.into(), terms: None })
}

fn count(number_of: u64) -> Option<Judged> {
    number(number_of as f64, units::count(number_of))
}

/// Formats a ratio in hundredths, or with two digits if it is smaller. A value below the limit is not rounded up to it.
fn ratio_text(value: f64, limit: f64) -> String {
    if 0.0 < value && value < 0.01 {
        let digits = 1 - value.log10().floor() as i32;
        return format!("{value:.*}", digits.unsigned_abs() as usize);
    }
    let hundredths = units::round_noise(value * 100.0);
    let rounded = hundredths.round() / 100.0;
    let is_misleading = value < limit && limit <= rounded;
    let shown = if is_misleading { hundredths.floor() / 100.0 } else { rounded };
    shown.to_string()
}

fn dataset_to_memory(facts: &TrainingFacts) -> Outcome {
    let known = facts.dataset_bytes.zip(facts.memory_bytes.filter(|bytes| 0 < *bytes));
    if known.is_none()
        && let Some(outcome) = least_dataset_to_memory(facts)
    {
        return outcome;
    }
    let is_enough = known.map(|(dataset, memory)| is_large_enough(dataset / memory as f64));
    let is_reported = facts.memory_source != MemorySource::Known;
    let judged = known.map(|(dataset, memory)| {
        let value = dataset / memory as f64;
        let sizes = [dataset as u64, memory].map(units::bytes_binary).join(" ÷ ");
        Judged::Number {
            number: value,
            text: ratio_text(value, DATASET_TO_MEMORY_MIN as f64),
            terms: is_reported.then_some(sizes),
        }
    });
    let note = match (facts.memory_source, is_enough) {
        (MemorySource::Known, _) | (_, Some(true)) => "",
        (_, None) if facts.dataset_bytes.is_none() => "",
        (_, None) => "; the results do not state the memory of all hosts",
        (MemorySource::Summary, Some(false)) => {
            "; the memory is that in `summary.json`, which shows no limit of a cgroup"
        }
        (MemorySource::SummaryDespiteLimit, Some(false)) => {
            "; `systems/` mentions a cgroup, which may limit the memory in `summary.json`"
        }
    };
    let is_limited = facts.memory_source == MemorySource::SummaryDespiteLimit;
    Outcome {
        keeps: is_enough.filter(|keeps| *keeps || !is_limited),
        judged,
        requires: format!("at least {DATASET_TO_MEMORY_MIN}{note}"),
    }
}

/// Even the most memory that the hosts can have may suffice to keep the rule. `None` if it does not.
fn least_dataset_to_memory(facts: &TrainingFacts) -> Option<Outcome> {
    let memory_bytes = facts.memory_max_bytes.filter(|bytes| 0 < *bytes)?;
    let least = facts.dataset_bytes? / memory_bytes as f64;
    let text = ratio_text(least, DATASET_TO_MEMORY_MIN as f64);
    is_large_enough(least).then(|| Outcome {
        keeps: Some(true),
        judged: number(least, format!("at least {text}")),
        requires: format!("at least {DATASET_TO_MEMORY_MIN}"),
    })
}

/// Only the number of hosts is known, so an uneven distribution is found only if there is no even one. A single host has nothing to compare.
fn accelerators_per_host(facts: &TrainingFacts) -> Option<Outcome> {
    let hosts = facts.hosts.filter(|hosts| 1 < *hosts)?;
    let accelerators = facts.accelerators?;
    Some(Outcome {
        keeps: Some(accelerators.is_multiple_of(hosts)),
        judged: per_host(accelerators, hosts),
        requires: "equal on all hosts".into(),
    })
}

/// The mean number per host, in hundredths.
fn per_host(total: u64, hosts: u64) -> Option<Judged> {
    let mean = total as f64 / hosts as f64;
    number(mean, format!("{}", (mean * 100.0).round() / 100.0))
}

fn steps_per_epoch(facts: &TrainingFacts) -> Outcome {
    Outcome {
        keeps: facts.steps_per_epoch.map(|steps| facts.steps_min <= steps),
        judged: facts.steps_per_epoch.and_then(count),
        requires: format!("at least {STEPS_PER_EPOCH_MIN}"),
    }
}

/// Formats a utilisation in tenths of a percent. A value below `target` is not rounded up to it, so that 89.96 % does not look like 90 %.
pub fn tenths(percent: f64, target: f64) -> String {
    let tenths = units::round_noise(percent * 10.0);
    let is_misleading = percent < target && target <= tenths.round() / 10.0;
    if is_misleading { format!("{:.1}", tenths.floor() / 10.0) } else { format!("{percent:.1}") }
}

fn utilisation(facts: &TrainingFacts) -> Outcome {
    let text = |au: f64| format!("{} %", tenths(au, facts.au_min_percent));
    Outcome {
        keeps: facts
            .au_percent
            .map(|au| facts.au_min_percent <= au)
            .filter(|keeps| !(*keeps && facts.has_short_window)),
        judged: facts.au_percent.and_then(|au| number(au, text(au))),
        requires: format!(
            "at least {} %{}",
            facts.au_min_percent,
            if facts.has_short_window { " over more steps than are loaded in advance" } else { "" }
        ),
    }
}

fn changed_settings(changed: Option<&[FixedSetting]>, is_open: bool) -> Outcome {
    let names = changed.map(|changed| {
        let names = changed.iter().map(|setting| {
            let open = if setting.is_open { " (open only)" } else { "" };
            format!("`{}`{open}", setting.key)
        });
        Judged::Names(names.collect())
    });
    let is_allowed = |setting: &FixedSetting| setting.is_open && is_open;
    Outcome {
        keeps: changed.map(|changed| changed.iter().all(is_allowed)),
        judged: names,
        requires: "none that the rules fix".into(),
    }
}

fn number_of_runs(facts: &SubmissionFacts, edition: Edition) -> Outcome {
    let required = runs_of_submission(edition);
    let requires = match required {
        Some(runs) if SCORED_RUNS < runs => format!("a warm-up and {SCORED_RUNS}"),
        _ => SCORED_RUNS.to_string(),
    };
    Outcome {
        keeps: required.map(|required| facts.runs == required),
        judged: count(facts.runs),
        requires,
    }
}

/// Between consecutive runs there is no time for another run. The official checker compares starts, since it reads them from names of folders.
fn start_gap(facts: &SubmissionFacts) -> Outcome {
    Outcome {
        keeps: facts.start_gap_ratio.map(|value| value < START_GAP_LIMIT),
        judged: facts.start_gap_ratio.and_then(|value| {
            number(value, format!("{} × the shortest run", ratio_text(value, START_GAP_LIMIT)))
        }),
        requires: format!("less than {START_GAP_LIMIT} ×"),
    }
}

fn written_to_memory(facts: &CheckpointFacts) -> Outcome {
    let is_enough = facts.written_to_memory.map(|ratio| WRITTEN_TO_MEMORY_MIN <= ratio);
    let keeps =
        if is_enough == Some(true) { is_enough } else { is_enough.and(facts.reads_storage) };
    let reads =
        if is_enough != keeps && keeps == Some(true) { ", read from the storage" } else { "" };
    Outcome {
        keeps,
        judged: facts
            .written_to_memory
            .and_then(|value| number(value, ratio_text(value, WRITTEN_TO_MEMORY_MIN) + reads)),
        requires: format!("at least {WRITTEN_TO_MEMORY_MIN}, or caches dropped before the reads"),
    }
}

fn yes_or_no(fact: Option<bool>) -> Option<Judged> {
    fact.map(|is_true| Judged::Names(vec![if is_true { "yes" } else { "no" }.into()]))
}

fn fsync(facts: &CheckpointFacts) -> Outcome {
    Outcome { keeps: facts.fsync, judged: yes_or_no(facts.fsync), requires: "yes".into() }
}

fn checkpoint_bytes(facts: &CheckpointFacts) -> Outcome {
    let planned = facts.model.bytes as f64;
    // The bytes of a subset depend on its ranks.
    let is_known = facts.is_subset == Some(false) || facts.model.is_whole_in_subset();
    let keeps = |bytes: f64| is_known.then_some((bytes / planned - 1.0).abs() <= BYTES_TOLERANCE);
    Outcome {
        keeps: facts.bytes.and_then(keeps),
        judged: facts.bytes.and_then(|bytes| number(bytes, units::bytes(bytes as u64))),
        requires: units::bytes(facts.model.bytes),
    }
}

fn subset_mode(facts: &CheckpointFacts) -> Outcome {
    let is_allowed = facts.model.is_whole_in_subset();
    Outcome {
        keeps: facts.is_subset.map(|is_subset| !is_subset || is_allowed),
        judged: yes_or_no(facts.is_subset),
        requires: "no, except for 8b".into(),
    }
}

fn processes(facts: &CheckpointFacts) -> Outcome {
    let CheckpointModel { tensor, pipeline, data, .. } = *facts.model;
    let required = facts.model.processes();
    let keeps = |processes: u64| {
        let is_multiple = 0 < processes && processes.is_multiple_of(tensor * pipeline);
        processes == required || facts.is_open && is_multiple
    };
    Outcome {
        keeps: facts.processes.map(keeps),
        judged: facts.processes.and_then(count),
        requires: format!(
            "{} = tensor {tensor} × pipeline {pipeline} × data {data}",
            units::count(required)
        ),
    }
}

fn processes_per_host(facts: &CheckpointFacts) -> Outcome {
    let known = facts.processes.zip(facts.hosts.filter(|hosts| 0 < *hosts));
    let disputed = HOST_PROCESSES_MIN - 1;
    // The rules do not require equal numbers on all hosts. At best, the host with the fewest has the mean, rounded down.
    let fewest = known.map(|(processes, hosts)| processes / hosts);
    let keeps = match fewest {
        Some(fewest) if facts.is_open => Some(disputed <= fewest),
        Some(fewest) if fewest == disputed => None,
        fewest => fewest.map(|fewest| HOST_PROCESSES_MIN <= fewest),
    };
    let requires = match fewest {
        _ if facts.is_open => format!("at least {disputed}"),
        Some(fewest) if fewest == disputed => format!(
            "more than {disputed}; exactly {disputed} is disputed: the official checker rejects it, a table of the rules allows it"
        ),
        _ => format!("more than {disputed}"),
    };
    Outcome {
        keeps,
        judged: known.and_then(|(processes, hosts)| per_host(processes, hosts)),
        requires,
    }
}

fn writes_and_reads(facts: &CheckpointFacts) -> Outcome {
    let known = facts.writes.zip(facts.reads);
    let keeps = known.and_then(|counts| match counts {
        (CHECKPOINTS_EACH, CHECKPOINTS_EACH) => Some(true),
        // The other half may be another invocation, which is not among these runs.
        (CHECKPOINTS_EACH, 0) | (0, CHECKPOINTS_EACH) => None,
        _ => Some(false),
    });
    let text = |(writes, reads): (u64, u64)| Judged::Names(vec![format!("{writes} and {reads}")]);
    Outcome {
        keeps,
        judged: known.map(text),
        requires: format!("{CHECKPOINTS_EACH} and {CHECKPOINTS_EACH}"),
    }
}

fn gap(facts: &CheckpointFacts) -> Outcome {
    let counts = [facts.writes, facts.reads];
    let is_one = facts.invocations == 1 && counts.iter().all(|count| Some(0) < *count);
    let keeps = match facts.gap_s {
        Some(gap_s) => Some((0.0..=GAP_MAX_S).contains(&gap_s)),
        None => is_one.then_some(true),
    };
    Outcome {
        keeps,
        judged: match facts.gap_s {
            Some(gap_s) => number(gap_s, format!("{gap_s:.0} s")),
            None => is_one.then(|| Judged::Names(vec!["one invocation".into()])),
        },
        requires: format!("at most {GAP_MAX_S} s, or one invocation"),
    }
}

#[cfg(test)]
mod tests;
