//! Text and JSON on the precision of a study's metric, and the number of runs needed to improve it.

use crate::text;
use feedrate_analysis::precision::{CONFIDENCE, NextStep, POWER, PrecisionTarget, parse_share};
use feedrate_report::document::Block;
use feedrate_report::table::ReportTable;
use feedrate_report::words::comparison::percent;
use feedrate_spec::units;
use feedrate_study::precision::Precision;
use schemars::JsonSchema;
use serde::Serialize;

/// Parses `ci=2%`.
pub(super) fn parse_until(text: &str) -> Result<PrecisionTarget, &'static str> {
    const HINT: &str =
        "write the precision as `ci=2%`: half of the 95 % interval is 2 % of the mean";
    PrecisionTarget::parse(text).ok_or(HINT)
}

/// Parses `5%`.
pub(super) fn parse_difference(text: &str) -> Result<f64, &'static str> {
    parse_share(text).ok_or("write a difference as `5%`")
}

/// The precision as a table. Names of experiments are without the model if there is only one.
pub(super) fn table(precision: &Precision) -> Block {
    let unit = precision.response.unit;
    let model = |name: &str| name.split_once('/').map(|(model, _)| format!("{model}/"));
    let first = precision.experiments.first().and_then(|(name, _)| model(name));
    let is_shared = precision.experiments.iter().all(|(name, _)| model(name) == first);
    let shared = first.filter(|_| is_shared).unwrap_or_default();
    let rows = precision.experiments.iter().map(|(name, status)| {
        [
            name.strip_prefix(&*shared).unwrap_or(name).to_string(),
            status.replicates.to_string(),
            text::known(status.middle, |interval| unit.text(interval.estimate)),
            text::known(status.half_width, |share| format!("{:.1} %", 100.0 * share)),
            match status.next {
                NextStep::Enough => "enough".into(),
                _ => text::known(status.replicates_expected, units::count),
            },
        ]
    });
    let header = ["Experiment", "Runs", precision.response.title, "± of it", "Runs needed"];
    Block::Table(ReportTable::from_text("", header, rows))
}

/// The number of runs that the precision and the difference need.
pub(super) fn runs_needed(precision: &Precision) -> String {
    let Some(estimate) = precision.estimate else {
        return "The number of runs needed is unknown until an experiment has two.".into();
    };
    let runs = |number: Option<u64>| {
        number.map_or("more runs than can be made".into(), |number| units::counted(number, "run"))
    };
    format!(
        "Noise of a run: {:.2} %. A {:.0} % interval of ± {} needs {} of each experiment. Detecting a difference of {} between two \
         experiments with a probability of {:.0} % needs {} of each.",
        100.0 * estimate.variation,
        100.0 * CONFIDENCE,
        percent(precision.target.half_width),
        runs(estimate.replicates_for_interval),
        percent(precision.difference),
        100.0 * POWER,
        runs(estimate.replicates_to_detect),
    )
}

/// Precision of a metric in the experiments of a study.
#[derive(Serialize, JsonSchema)]
pub(super) struct PrecisionOutput<'a> {
    /// Name of the metric.
    response: &'static str,
    /// Requested precision: half of the 95 % interval as a fraction of the mean.
    half_width_share: f64,
    /// Precision of each experiment.
    experiments: Vec<ExperimentPrecision<'a>>,
    /// Standard deviation of a run as a fraction of the mean.
    noise_share: Option<f64>,
    /// Number of runs per experiment that reach the precision.
    runs_for_interval: Option<u64>,
    /// Difference between two experiments to detect, as a fraction.
    difference_share: f64,
    /// Number of runs per experiment that detect this difference.
    #[serde(rename = "runs_to_tell")]
    runs_to_detect: Option<u64>,
}

/// Precision of one experiment.
#[derive(Serialize, JsonSchema)]
struct ExperimentPrecision<'a> {
    /// Name of the experiment.
    label: &'a str,
    /// Number of runs so far.
    runs: u64,
    /// Mean of the metric.
    mean: Option<f64>,
    /// Lower end of the mean's 95 % interval.
    low: Option<f64>,
    /// Upper end of the mean's 95 % interval.
    high: Option<f64>,
    /// Half of the interval as a fraction of the mean.
    half_width_share: Option<f64>,
    /// Whether the requested precision is reached.
    is_enough: bool,
    /// Total number of runs that are expected to be needed.
    runs_expected: Option<u64>,
}

impl<'a> PrecisionOutput<'a> {
    pub(super) fn new(precision: &'a Precision) -> Self {
        let experiments = precision.experiments.iter().map(|(name, status)| ExperimentPrecision {
            label: name,
            runs: status.replicates,
            mean: status.middle.map(|interval| interval.estimate),
            low: status.middle.map(|interval| interval.low),
            high: status.middle.map(|interval| interval.high),
            half_width_share: status.half_width,
            is_enough: status.next == NextStep::Enough,
            runs_expected: status.replicates_expected,
        });
        PrecisionOutput {
            response: precision.response.id.name(),
            half_width_share: precision.target.half_width,
            experiments: experiments.collect(),
            noise_share: precision.estimate.map(|estimate| estimate.variation),
            runs_for_interval: precision
                .estimate
                .and_then(|estimate| estimate.replicates_for_interval),
            difference_share: precision.difference,
            runs_to_detect: precision.estimate.and_then(|estimate| estimate.replicates_to_detect),
        }
    }
}
