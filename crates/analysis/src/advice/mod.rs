//! Advice: what would help a run, from its record. One file a rule, one row in [`RULES`].
//!
//! To add one: write its file with a `pub(super) static RULE`, which holds a record where it fires; add its `mod` line and row here, its
//! words in `crates/report/src/words/advice.rs`, and its line in docs/guide/advice.md. Data out: a rule has no sentence.

mod case;
mod run_again;
mod slow_accelerator;
mod other_processes;
mod asynchronous_checkpoints;
mod rank_local_checkpoints;
mod broadcast;
mod transfer_size;
mod chunk_is_sample;
mod contiguous_shards;
mod shards;
mod samples_per_file;
mod header_once;
mod whole_file;
mod binary_format;
mod decode_threads;
mod read_threads;
mod prefetch;
mod engine;
mod fewer_accelerators;
mod storage;
mod striping;
mod read_at_start;
mod stage;
#[cfg(test)]
mod tests;

pub use case::Case;

use crate::answer::AnswerKind;
use crate::predict::{PipelineChange, Prediction, Untold};
use feedrate_measure::facts::Facts;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// All rules. Of changes that save about as much, the first is the first choice: before what costs nothing comes what the run itself
/// is worth, behind it what needs other files, then more hardware or memory.
pub static RULES: &[&Rule] = &[
    &run_again::RULE,
    &slow_accelerator::RULE,
    &other_processes::RULE,
    &asynchronous_checkpoints::RULE,
    &rank_local_checkpoints::RULE,
    &broadcast::RULE,
    &transfer_size::RULE,
    &chunk_is_sample::RULE,
    &contiguous_shards::RULE,
    &shards::RULE,
    &samples_per_file::RULE,
    &header_once::RULE,
    &whole_file::RULE,
    &binary_format::RULE,
    &decode_threads::RULE,
    &read_threads::RULE,
    &prefetch::RULE,
    &engine::RULE,
    &fewer_accelerators::RULE,
    &storage::RULE,
    &striping::RULE,
    &read_at_start::RULE,
    &stage::RULE,
];

/// So much is advised at most.
pub const ADVICE_MAX: usize = 5;
/// Points of utilisation that a prediction must bring.
const GAIN_MIN_POINTS: f64 = 1.0;
/// Whatever saves this share of what the best saves is as good.
const AS_GOOD_SHARE: f64 = 0.85;

/// A row of the table.
pub struct Rule {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// Paper, program or measurement that it is from.
    pub source: &'static str,
    /// Answers of runs that it has something to say to.
    pub answers: &'static [AnswerKind],
    /// Its proposal, with the evidence for it; `None` where it finds none.
    pub propose: fn(&Case) -> Option<Proposal>,
    /// Makes of a starving record one that it fires on.
    #[cfg(test)]
    fires: fn(&mut feedrate_measure::record::Record),
}

/// A change, and why.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proposal {
    /// The rule's name.
    #[serde(rename = "name")]
    pub rule: &'static str,
    /// Keys of the workload with their values; empty where it is no change of the workload.
    pub overrides: Vec<String>,
    /// Changes below the workload, for the prediction.
    #[serde(skip)]
    pub changes: Vec<PipelineChange>,
    /// Seconds that an accelerator waited over the run for what the change is about, in the mean.
    pub lost_s: Option<f64>,
    /// Figures of the record, and of the change.
    pub evidence: Facts,
    /// Its price.
    pub cost: Cost,
    /// Its side effect.
    pub risk: Risk,
}

names! {
    /// The price of a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Cost {
        /// A setting.
        Setting = "setting",
        /// Processors.
        Processors = "processors",
        /// Memory.
        Memory = "memory",
        /// Room on a disk of the machine.
        LocalDisk = "local_disk",
        /// The dataset is written anew.
        Dataset = "dataset",
        /// Less is trained at a time.
        Accelerators = "accelerators",
        /// Other hardware.
        Hardware = "hardware",
        /// Another run.
        Run = "run",
        /// Somebody has to look.
        Attention = "attention",
    }
}

names! {
    /// The side effect of a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Risk {
        /// Nothing that is known.
        None = "none",
        /// Each reading thread and each request takes memory.
        Memory = "memory",
        /// Samples come in another order, shuffled less.
        Shuffling = "shuffling",
        /// Who reads parts of samples, or few of many, reads more than it wants.
        Amplification = "amplification",
        /// A checkpoint is whole later, so that a crash loses more.
        LaterCheckpoint = "later_checkpoint",
        /// A machine that breaks takes it along.
        LostWithMachine = "lost_with_machine",
        /// Who reads for others holds them up.
        OneReader = "one_reader",
        /// The first step waits for all that is read at start.
        LateStart = "late_start",
        /// The page cache serves nobody any more.
        NoPageCache = "no_page_cache",
    }
}

/// A proposal and what it would bring.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// The proposal.
    #[serde(flatten)]
    pub proposal: Proposal,
    /// `None` where the record does not tell.
    pub prediction: Option<Prediction>,
}

/// Advice, and the seconds by which it is ranked.
struct Ranked {
    advice: Advice,
    saved_s: f64,
}

impl Rule {
    fn proposal(&self, overrides: &[String], lost_s: f64, evidence: Facts) -> Proposal {
        Proposal {
            rule: self.name,
            overrides: overrides.to_vec(),
            changes: Vec::new(),
            lost_s: Some(lost_s),
            evidence,
            cost: Cost::Setting,
            risk: Risk::None,
        }
    }
}

/// Find changes that would help, the best first, at most [`ADVICE_MAX`]; nothing where the accelerators were fed and waited for no checkpoint.
/// `plan_of` is the plan of the workload with these overrides: `None` where there can be none, and such a change is not proposed.
pub fn advise(case: &Case, plan_of: &dyn Fn(&[String]) -> Option<Plan>) -> Vec<Advice> {
    let unchanged = case.predict(&case.derived.record.plan, &[]).and_then(Result::ok);
    let found = proposals(case)
        .filter_map(|proposal| {
            let plan = plan_of(&proposal.overrides)?;
            if !case.plan().client_applies_to(&plan) {
                return None;
            }
            let is_change = !proposal.overrides.is_empty() || !proposal.changes.is_empty();
            // Waits outside of steps, of which fed runs are told too, count in no utilisation.
            let is_change = is_change && !is_outside_steps(&proposal);
            let told = is_change.then(|| case.predict(&plan, &proposal.changes)).flatten();
            let least_percent = told.as_ref().and_then(least_percent);
            let prediction = told.and_then(Result::ok);
            let both = prediction.zip(unchanged);
            let is_vain =
                both.is_some_and(|(is, was)| is.interval[1] < was.interval[1] + GAIN_MIN_POINTS);
            // What the storage lacks it lacks, whatever of it a prediction tells.
            let is_kept = !is_vain || proposal.overrides.is_empty();
            let (prediction, least_percent) =
                if is_vain { (None, None) } else { (prediction, least_percent) };
            let saved = least_percent.zip(unchanged).map(|(is_percent, was)| {
                case.compute_s() * 100.0 * (1.0 / was.au_percent - 1.0 / is_percent).max(0.0)
            });
            // More than was waited for what a change is about it does not save, however far off a prediction is.
            let saved_s = saved.into_iter().chain(proposal.lost_s).reduce(f64::min).unwrap_or(0.0);
            is_kept.then_some(Ranked { advice: Advice { proposal, prediction }, saved_s })
        })
        .collect();
    rank(found)
}

/// Utilisation that a change brings in any case: the least that fits a record which leaves open what reads wait for.
fn least_percent(told: &Result<Prediction, Untold>) -> Option<f64> {
    match told {
        Ok(prediction) => Some(prediction.au_percent),
        Err(Untold::LatencyOrBandwidth { least_percent, .. }) => Some(*least_percent),
        Err(_) => None,
    }
}

fn is_outside_steps(proposal: &Proposal) -> bool {
    let rule = RULES.iter().find(|rule| rule.name == proposal.rule);
    rule.is_some_and(|rule| rule.answers.contains(&AnswerKind::Yes))
}

/// The same without plans, so that nothing is predicted. With a client no other dataset is proposed, as nobody knows whether it is of another format.
pub fn would_help(case: &Case) -> Vec<Proposal> {
    let knows_client =
        |of: &Proposal| case.plan().loader.client.is_none() || of.cost != Cost::Dataset;
    let found = proposals(case).filter(knows_client).map(|proposal| {
        let saved_s = proposal.lost_s.unwrap_or(0.0);
        Ranked { advice: Advice { proposal, prediction: None }, saved_s }
    });
    rank(found.collect()).into_iter().map(|advice| advice.proposal).collect()
}

fn proposals(case: &Case) -> impl Iterator<Item = Proposal> {
    // Rules rest on files and reads, of which a loop that was watched tells nothing.
    let rules = if case.derived.record.watched.is_none() { RULES } else { &[] };
    let rules = rules.iter().filter(|rule| rule.answers.contains(&case.answer.kind));
    let proposals = rules.filter_map(|rule| (rule.propose)(case));
    proposals.filter(|proposal| changes_format(case.plan(), &proposal.overrides))
}

/// False where `overrides` only name the format that the dataset has already.
fn changes_format(plan: &Plan, overrides: &[String]) -> bool {
    overrides != [format!("dataset.format={}", plan.dataset.format)]
}

/// Those that save about as much as the best come first, in the order of their rules, then what saves less, by how much it does.
/// Hardware is never before a setting.
fn rank(mut found: Vec<Ranked>) -> Vec<Advice> {
    let cost = |one: &Ranked| one.advice.proposal.cost;
    let settings = found.iter().filter(|one| cost(one) == Cost::Setting).map(|one| one.saved_s);
    let by_setting_s = settings.reduce(f64::max).unwrap_or(f64::INFINITY);
    let counts = |one: &Ranked| match cost(one) {
        Cost::Hardware => one.saved_s.min(by_setting_s),
        _ => one.saved_s,
    };
    let best_s = found.iter().map(counts).fold(0.0, f64::max);
    let less_s = |one: &Ranked| match counts(one) {
        as_good if best_s * AS_GOOD_SHARE <= as_good => 0.0,
        less => best_s - less,
    };
    found.sort_by(|a, b| less_s(a).total_cmp(&less_s(b)));
    found.into_iter().take(ADVICE_MAX).map(|one| one.advice).collect()
}
