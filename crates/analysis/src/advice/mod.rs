//! Advice: changes that would help a run, found from its record. Each rule is a file with a row in [`RULES`].
//!
//! To add a rule, write its file with a `pub(super) static RULE`, which includes its texts and a function that makes a record for which
//! the rule fires, and add its `mod` line and its row here. Texts are templates that `Facts::render` fills in with the evidence.

mod case;
mod run_again;
mod slow_accelerator;
mod other_processes;
mod asynchronous_checkpoints;
mod rank_local_checkpoints;
mod broadcast;
mod transfer_size;
mod library_requests;
mod chunk_is_sample;
mod contiguous_shards;
mod shards;
mod samples_per_file;
mod header_once;
mod whole_file;
mod binary_format;
mod decode_threads;
mod client_work;
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
pub use library_requests::SampleRequests;

use crate::answer::AnswerKind;
use crate::predict::{NotPredictable, PipelineChange, Prediction};
use feedrate_measure::facts::Facts;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// All rules. Of changes that save about the same time, the change of the first rule is preferred. The order is: reasons to distrust or
/// repeat the run, changes that cost nothing, changes of files, and changes that need hardware or memory.
pub static RULES: &[&Rule] = &[
    &run_again::RULE,
    &slow_accelerator::RULE,
    &other_processes::RULE,
    &asynchronous_checkpoints::RULE,
    &rank_local_checkpoints::RULE,
    &broadcast::RULE,
    &transfer_size::RULE,
    &library_requests::RULE,
    &chunk_is_sample::RULE,
    &contiguous_shards::RULE,
    &shards::RULE,
    &samples_per_file::RULE,
    &header_once::RULE,
    &whole_file::RULE,
    &binary_format::RULE,
    &decode_threads::RULE,
    &client_work::RULE,
    &read_threads::RULE,
    &prefetch::RULE,
    &engine::RULE,
    &storage::RULE,
    &fewer_accelerators::RULE,
    &striping::RULE,
    &read_at_start::RULE,
    &stage::RULE,
];

/// Maximum number of changes that are advised.
pub const ADVICE_MAX: usize = 5;
/// Shortfall of a predicted utilisation, in points, within which a change is close to sufficient.
const CLOSE_POINTS: f64 = 5.0;
/// Share of the largest saving above which other changes count as equally good.
const AS_GOOD_SHARE: f64 = 0.85;

/// A row of the table.
pub struct Rule {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// The paper, program or measurement that the rule is based on.
    pub source: &'static str,
    /// The evidence that the rule looks for.
    pub sees: &'static str,
    /// The proposed change in general.
    pub proposes: &'static str,
    /// Template of instructions for a change that settings cannot make; empty if settings can.
    pub change: &'static str,
    /// Template of the reason for a proposal.
    pub why: &'static str,
    /// Kinds of answers for which the rule is evaluated.
    pub answers: &'static [AnswerKind],
    /// Proposes a change with its evidence; `None` if the rule does not apply.
    pub propose: fn(&Case) -> Option<Proposal>,
    /// Changes a record of waiting accelerators to make the rule fire.
    #[cfg(test)]
    fires: fn(&mut feedrate_measure::record::Record),
}

/// A proposed change with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proposal {
    /// The rule's name.
    #[serde(rename = "name")]
    pub rule: &'static str,
    /// Keys of the workload with their new values; empty if the change does not concern the workload.
    pub overrides: Vec<String>,
    /// Changes that no key of the workload makes, as `feedrate advise --set` predicts them, such as `storage.latency=0.5x`.
    #[schemars(with = "Vec<String>")]
    pub changes: Vec<PipelineChange>,
    /// Mean time in seconds that an accelerator lost and that the change could save.
    pub lost_s: Option<f64>,
    /// Figures of the record and of the change.
    pub evidence: Facts,
    /// The cost of the change.
    pub cost: Cost,
    /// The side effect of the change.
    pub risk: Risk,
}

names! {
    /// The cost of a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Cost {
        /// A setting is changed.
        Setting = "setting",
        /// Processor time.
        Processors = "processors",
        /// Memory.
        Memory = "memory",
        /// Space on a local disk.
        LocalDisk = "local_disk",
        /// The dataset must be written again.
        Dataset = "dataset",
        /// Fewer accelerators train at the same time.
        Accelerators = "accelerators",
        /// Other hardware.
        Hardware = "hardware",
        /// Another run.
        Run = "run",
        /// A person has to investigate.
        Attention = "attention",
    }
}

names! {
    /// The side effect of a change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Risk {
        /// No known side effect.
        None = "none",
        /// More memory, for more reading threads or larger requests.
        Memory = "memory",
        /// Samples are shuffled less.
        Shuffling = "shuffling",
        /// Reading a part of a sample reads the entire sample.
        Amplification = "amplification",
        /// A checkpoint is complete later, so a crash loses more work.
        LaterCheckpoint = "later_checkpoint",
        /// Checkpoints are lost if the machine fails.
        LostWithMachine = "lost_with_machine",
        /// One slow reader delays all accelerators.
        OneReader = "one_reader",
        /// The first step waits until the dataset is loaded or copied.
        LateStart = "late_start",
        /// Reads are not served from the page cache any more.
        NoPageCache = "no_page_cache",
    }
}

/// A proposal with its predicted effect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Proposal")]
pub struct Advice {
    /// The proposal.
    #[serde(flatten)]
    pub proposal: Proposal,
    /// The predicted run; `None` if the record does not allow a prediction.
    pub prediction: Option<Prediction>,
}

impl Advice {
    /// Whether the change is predicted to reach a utilisation; `None` without a prediction.
    pub fn reaches(&self, required_percent: f64) -> Option<bool> {
        self.prediction.map(|prediction| required_percent <= prediction.au_percent)
    }

    /// Whether the change starts more workers than there are cores.
    fn exceeds_cores(&self) -> bool {
        self.proposal.evidence.get(EXCEEDED_CORES).is_some()
    }
}

/// Name of the fact that a change starts more workers than this number of cores.
const EXCEEDED_CORES: &str = "exceeded_cores";

/// Advice with the saved time by which it is ranked.
struct RankedAdvice {
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

/// Finds the changes that would help, best first, at most [`ADVICE_MAX`]. Empty if the accelerators were fed and did not wait
/// for checkpoints.
///
/// `plan_with` returns the plan of the workload with the given overrides, or `None` if the overrides are not possible. Impossible changes
/// are not proposed.
pub fn advise(case: &Case, plan_with: &dyn Fn(&[String]) -> Option<Plan>) -> Vec<Advice> {
    let unchanged = case.predict(&case.derived.record.plan, &[]).and_then(Result::ok);
    let found = proposals(case)
        .filter_map(|proposal| advise_one(case, proposal, unchanged, plan_with))
        .collect();
    rank(found, case.answer.required_percent)
}

/// Predicts the effect of one proposal; `None` if the change is not possible or would not help.
fn advise_one(
    case: &Case,
    proposal: Proposal,
    unchanged: Option<Prediction>,
    plan_with: &dyn Fn(&[String]) -> Option<Plan>,
) -> Option<RankedAdvice> {
    let plan = plan_with(&proposal.overrides)?;
    if !case.plan().client_applies_to(&plan) {
        return None;
    }
    let has_change = !proposal.overrides.is_empty() || !proposal.changes.is_empty();
    // Utilisation does not include waits outside of steps, so it cannot predict their effect.
    let outcome = if has_change && !concerns_fed_runs(&proposal) {
        case.predict(&plan, &proposal.changes)
    } else {
        None
    };
    let least_percent = outcome.as_ref().and_then(least_percent);
    let prediction = outcome.and_then(Result::ok);
    // A gain within the uncertainty of the prediction may be none.
    let may_gain_nothing = prediction
        .zip(unchanged)
        .is_some_and(|(changed, unchanged)| changed.interval[0] <= unchanged.au_percent);
    if may_gain_nothing {
        return None;
    }
    let predicted_s = least_percent.zip(unchanged).map(|(percent, unchanged)| {
        case.compute_s() * 100.0 * (1.0 / unchanged.au_percent - 1.0 / percent).max(0.0)
    });
    // A change cannot save more time than was lost, even if the prediction says so.
    let saved_s = predicted_s.into_iter().chain(proposal.lost_s).reduce(f64::min).unwrap_or(0.0);
    Some(RankedAdvice { advice: Advice { proposal, prediction }, saved_s })
}

/// The predicted utilisation, or the lowest possible utilisation if the prediction is ambiguous.
fn least_percent(outcome: &Result<Prediction, NotPredictable>) -> Option<f64> {
    match outcome {
        Ok(prediction) => Some(prediction.au_percent),
        Err(NotPredictable::LatencyOrBandwidth { least_percent, .. }) => Some(*least_percent),
        Err(_) => None,
    }
}

/// Whether the rule also applies if accelerators were fed. Such rules are about waits outside of steps.
fn concerns_fed_runs(proposal: &Proposal) -> bool {
    let rule = RULES.iter().find(|rule| rule.name == proposal.rule);
    rule.is_some_and(|rule| rule.answers.contains(&AnswerKind::Yes))
}

/// Finds the changes that would help, as [`advise`] does, but without plans and predictions. If the run has a client, no other dataset is
/// proposed, because the client's cost with another format is unknown.
pub fn advise_without_plans(case: &Case) -> Vec<Advice> {
    let has_known_client =
        |proposal: &Proposal| case.plan().loader.client.is_none() || proposal.cost != Cost::Dataset;
    let found = proposals(case).filter(has_known_client).map(|proposal| {
        let saved_s = proposal.lost_s.unwrap_or(0.0);
        RankedAdvice { advice: Advice { proposal, prediction: None }, saved_s }
    });
    rank(found.collect(), case.answer.required_percent)
}

fn proposals(case: &Case) -> impl Iterator<Item = Proposal> {
    // Rules need files and reads, which the record of a watched loop does not have.
    let rules = if case.derived.record.watched.is_none() { RULES } else { &[] };
    rules
        .iter()
        .filter(|rule| rule.answers.contains(&case.answer.kind))
        .filter_map(|rule| Some((rule, (rule.propose)(case)?)))
        // With noise, only rules that need no bottleneck apply, or that are about waits outside of steps.
        .filter(|(rule, proposal)| {
            case.answer.noise.is_none()
                || rule.answers.contains(&AnswerKind::Unknown)
                || concerns_fed_runs(proposal)
        })
        .map(|(_, proposal)| proposal)
        .filter(|proposal| has_effect(case.plan(), &proposal.overrides))
}

/// Whether the overrides change something: `false` if they only set the format that the dataset already has.
fn has_effect(plan: &Plan, overrides: &[String]) -> bool {
    overrides != [format!("dataset.format={}", plan.dataset.format)]
}

/// Class of a change, best first. A change that is predicted to reach the required utilisation precedes one with an unknown effect. If it needs
/// other hardware, leaves accelerators idle, or needs more workers than there are cores, it follows those that come close without: waiting
/// workers need no core, but memory.
fn rank_class(advice: &Advice, required_percent: f64) -> u8 {
    let is_close = advice.reaches(required_percent - CLOSE_POINTS) == Some(true);
    let has_price = matches!(advice.proposal.cost, Cost::Hardware | Cost::Accelerators);
    let is_costly = advice.exceeds_cores() || has_price;
    match (advice.reaches(required_percent) == Some(true), is_costly) {
        (true, false) => 0,
        (false, false) if is_close => 1,
        (true, true) => 2,
        _ => 3,
    }
}

/// Sorts advice by its class and keeps the first [`ADVICE_MAX`]. Within a class, changes that save about as much as the best change come first,
/// in the order of their rules, and the rest follows by the time saved. Neither hardware nor fewer accelerators come before a setting.
fn rank(mut found: Vec<RankedAdvice>, required_percent: f64) -> Vec<Advice> {
    let cost = |ranked: &RankedAdvice| ranked.advice.proposal.cost;
    let settings = found.iter().filter(|ranked| cost(ranked) == Cost::Setting);
    let best_setting_s =
        settings.map(|ranked| ranked.saved_s).reduce(f64::max).unwrap_or(f64::INFINITY);
    let counted_s = |ranked: &RankedAdvice| match cost(ranked) {
        Cost::Hardware | Cost::Accelerators => ranked.saved_s.min(best_setting_s),
        _ => ranked.saved_s,
    };
    let best_s = found.iter().map(counted_s).fold(0.0, f64::max);
    let shortfall_s = |ranked: &RankedAdvice| match counted_s(ranked) {
        saved_s if best_s * AS_GOOD_SHARE <= saved_s => 0.0,
        saved_s => best_s - saved_s,
    };
    found.sort_by(|a, b| {
        rank_class(&a.advice, required_percent)
            .cmp(&rank_class(&b.advice, required_percent))
            .then(shortfall_s(a).total_cmp(&shortfall_s(b)))
    });
    found.into_iter().take(ADVICE_MAX).map(|ranked| ranked.advice).collect()
}
