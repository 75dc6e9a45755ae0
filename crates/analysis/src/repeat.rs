//! The answer of several runs of one plan: means with intervals, and outliers. A single run is a set of one.

use crate::answer::{Answer, AnswerKind, AnsweredSummary};
use crate::precision::CONFIDENCE;
use feedrate_measure::checkpoints::Checkpoints;
use feedrate_measure::metric::{
    AU_ALL_STEPS, DELIVERED_WHOLE, METRICS, Metric, SAMPLES_WHOLE, Unit,
};
use feedrate_measure::stats::{self, Interval, OUTLIER_SCORE, modified_z_scores};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names of the rates of checkpoints, which are no metrics.
pub const CHECKPOINT_RATES: [&str; 2] = ["written_bytes_per_second", "read_bytes_per_second"];

/// The answer of several runs of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedAnswer {
    /// Number of runs that count.
    pub runs: u64,
    /// Name of the answer: `yes` or `no` by the mean utilisation; `unknown` if one of the runs is.
    pub kind: String,
    /// Whether the accelerators were fed on average; `null` if the runs do not show or test this.
    pub fed: Option<bool>,
    /// Whether the interval of the utilisation leaves open if it reaches the required one, or there is no interval.
    pub is_open: bool,
    /// The utilisation that is required.
    pub required_percent: f64,
    /// The metric that decides: a utilisation, or a rate if no accelerator computed.
    pub decides: Option<String>,
    /// Mean rate at which no accelerator would wait; `null` if unknown.
    pub needed_bytes_per_second: Option<f64>,
    /// Whether memory served, or may have served, most of the bytes of a run.
    pub is_memory_served: bool,
    /// The metrics that are known for every run, and rates of checkpoints.
    pub values: Vec<RepeatedValue>,
    /// Runs whose deciding metric is far from that of the others; empty for fewer than ten runs.
    pub outliers: Vec<Outlier>,
}

/// A metric of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedValue {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// The mean, or the geometric mean of rates and durations.
    pub mean: f64,
    /// Lower end of the 95 % interval of the mean; `null` for one run.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The value of each run.
    pub values: Vec<f64>,
}

/// A run that is far from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Number of the run, from 1.
    pub run: u64,
    /// Its value of the deciding metric.
    pub value: f64,
    /// Its modified z-score.
    pub score: f64,
}

impl RepeatedAnswer {
    /// The answer of runs of one plan.
    pub fn new(runs: &[AnsweredSummary]) -> Self {
        let answers: Vec<&Answer> = runs.iter().map(|run| &run.answer).collect();
        let required_percent = answers.first().map_or(0.0, |answer| answer.required_percent);
        let values = values(runs);
        let find = |name: &str| values.iter().find(|value| value.metric == name);
        let utilisation = deciding_utilisation(&answers).and_then(find);
        let kind = kind(&answers, utilisation.map(|au| required_percent <= au.mean));
        let rates = [DELIVERED_WHOLE.id.name(), SAMPLES_WHOLE.id.name()];
        let rates = CHECKPOINT_RATES
            .into_iter()
            .chain(rates)
            .filter(|name| CHECKPOINT_RATES.contains(name) == (kind == AnswerKind::Checkpoints));
        let decides = utilisation.or_else(|| rates.into_iter().find_map(find));
        let excludes_required = |au: &RepeatedValue| {
            au.low.zip(au.high).is_some_and(|(low, high)| {
                required_percent < low || high < required_percent || low == high
            })
        };
        let fed = match kind {
            AnswerKind::Yes => Some(true),
            AnswerKind::No => Some(false),
            _ => None,
        };
        let could_miss = utilisation
            .and_then(|au| at_configured_compute(au, runs))
            .is_some_and(|au| au.low.unwrap_or(au.mean) < required_percent);
        let needed = answers.iter().map(|answer| answer.needed_bytes_per_second);
        RepeatedAnswer {
            runs: runs.len() as u64,
            kind: kind.name().into(),
            fed,
            is_open: fed.is_some() && !utilisation.is_some_and(excludes_required)
                || fed == Some(false) && answers.iter().any(|answer| answer.shares_device)
                || fed == Some(true) && could_miss,
            required_percent,
            decides: decides.map(|value| value.metric.clone()),
            needed_bytes_per_second: needed
                .collect::<Option<Vec<f64>>>()
                .and_then(|needed| stats::mean(&needed)),
            is_memory_served: answers.iter().any(|answer| answer.is_memory_served),
            outliers: decides.map_or_else(Vec::new, outliers),
            values,
        }
    }

    /// The kind of the answer.
    pub fn kind(&self) -> AnswerKind {
        AnswerKind::from_name(&self.kind).unwrap_or(AnswerKind::Unknown)
    }

    /// A metric; `None` if it is unknown for a run.
    pub fn value(&self, name: &str) -> Option<&RepeatedValue> {
        self.values.iter().find(|value| value.metric == name)
    }

    /// The deciding utilisation; `None` if there is none.
    pub fn utilisation(&self) -> Option<&RepeatedValue> {
        let decides = self.decides.as_deref().filter(|name| name.starts_with("au_"));
        decides.and_then(|name| self.value(name))
    }
}

impl RepeatedValue {
    /// The mean of the values of runs with its interval; `None` without values.
    pub fn new(metric: &str, unit: Unit, values: Vec<f64>) -> Option<Self> {
        // There is no geometric mean with a value of 0.
        let interval = unit
            .average_interval(&values, CONFIDENCE)
            .or_else(|| stats::mean_interval(&values, CONFIDENCE));
        let mean = interval.map(|interval| interval.estimate).or_else(|| stats::mean(&values))?;
        let ends = interval.map(|Interval { low, high, .. }| (low, high));
        Some(RepeatedValue {
            metric: metric.into(),
            unit: unit.name().into(),
            mean,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
            values,
        })
    }

    /// Half of the interval's width; `None` for one run.
    pub fn half_width(&self) -> Option<f64> {
        self.low.zip(self.high).map(|(low, high)| (high - low) / 2.0)
    }

    /// Whether another sample of runs could have its mean on the other side of `limit`; false for one run, which has no interval.
    pub fn leaves_open(&self, limit: f64) -> bool {
        let ends = self.low.zip(self.high);
        ends.is_some_and(|(low, high)| low < high && low <= limit && limit <= high)
    }

    /// The unit.
    pub fn unit(&self) -> Unit {
        Unit::from_name(&self.unit).unwrap_or(Unit::Ratio)
    }
}

/// The bound of a utilisation or rate of `runs` if no step had taken longer than configured: the utilisation would be at least this, and the
/// rate at most this. `None` for other metrics, and if no step took longer.
pub fn at_configured_compute(
    value: &RepeatedValue,
    runs: &[AnsweredSummary],
) -> Option<RepeatedValue> {
    let metric = Metric::find(&value.metric).ok()?;
    let stretches = runs.iter().map(|run| run.answer.compute_stretch);
    let is_stretched = stretches.clone().any(|stretch| stretch.is_some());
    if !is_stretched || !(metric.is_utilisation() || metric.unit.is_rate()) {
        return None;
    }
    let values = value.values.iter().zip(stretches).map(|(value, stretch)| {
        let stretch = stretch.unwrap_or(1.0);
        if metric.is_utilisation() { value / stretch } else { value * stretch }
    });
    RepeatedValue::new(&value.metric, metric.unit, values.collect())
}

/// Name of the metric by which all runs are judged, or of the utilisation over all steps if the runs are judged by different ones. `None` if a
/// run has no utilisation.
fn deciding_utilisation(answers: &[&Answer]) -> Option<&'static str> {
    let kinds: Vec<&'static str> =
        answers.iter().map(|answer| answer.au_kind).collect::<Option<_>>()?;
    let first = *kinds.first()?;
    let is_common = kinds.iter().all(|kind| *kind == first);
    Some(if is_common { first } else { AU_ALL_STEPS.id.name() })
}

fn kind(answers: &[&Answer], is_reached: Option<bool>) -> AnswerKind {
    let are_all = |kinds: &[AnswerKind]| answers.iter().all(|answer| kinds.contains(&answer.kind));
    match is_reached {
        _ if answers.is_empty() => AnswerKind::Unknown,
        Some(true) if are_all(&[AnswerKind::Yes, AnswerKind::No]) => AnswerKind::Yes,
        Some(false) if are_all(&[AnswerKind::Yes, AnswerKind::No]) => AnswerKind::No,
        _ if are_all(&[AnswerKind::Rate]) => AnswerKind::Rate,
        _ if are_all(&[AnswerKind::Checkpoints]) => AnswerKind::Checkpoints,
        _ => AnswerKind::Unknown,
    }
}

fn values(runs: &[AnsweredSummary]) -> Vec<RepeatedValue> {
    let metric_values = |metric: &'static Metric| {
        let values = runs.iter().map(|run| run.summary.figures.value(metric));
        RepeatedValue::new(metric.id.name(), metric.unit, values.collect::<Option<Vec<f64>>>()?)
    };
    let checkpoint_values = |name: &str, rate: fn(&AnsweredSummary) -> Option<Checkpoints>| {
        let rates = runs.iter().map(|run| rate(run)?.bytes_per_second);
        RepeatedValue::new(name, Unit::BytesPerSecond, rates.collect::<Option<Vec<f64>>>()?)
    };
    let [written, read] = CHECKPOINT_RATES;
    let metrics = METRICS.iter().filter_map(|metric| metric_values(metric));
    let written = checkpoint_values(written, |run| run.summary.checkpoint?.save);
    let read = checkpoint_values(read, |run| run.summary.checkpoint?.load);
    metrics.chain(written).chain(read).collect()
}

fn outliers(decides: &RepeatedValue) -> Vec<Outlier> {
    let scores = modified_z_scores(&decides.values).unwrap_or_default();
    let runs = decides.values.iter().zip(scores).zip(1..);
    let outliers = runs.filter(|((_, score), _)| OUTLIER_SCORE < score.abs());
    outliers.map(|((&value, score), run)| Outlier { run, value, score }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::simple;

    /// A run with steps of 500 ns compute that each wait so long.
    fn run(load_ns: u64) -> AnsweredSummary {
        AnsweredSummary::new(&simple(&[(load_ns, 500, 0, 1_000_000); 20]))
    }

    #[test]
    fn the_mean_decides_and_its_interval_tells_whether_it_is_certain() {
        // 50 % and 100 % of 90 %: the mean misses it, and the interval of two runs is wide.
        let answer = RepeatedAnswer::new(&[run(500), run(0)]);
        let au = answer.utilisation().unwrap();
        assert_eq!((au.mean, answer.kind(), answer.fed), (75.0, AnswerKind::No, Some(false)));
        assert!(answer.is_open && au.low.unwrap() < 75.0, "{au:?}");
        let answer = RepeatedAnswer::new(&[run(500), run(510), run(490)]);
        assert_eq!((answer.kind(), answer.is_open), (AnswerKind::No, false));
        assert_eq!(answer.utilisation().unwrap().values.len(), 3);
        let single = RepeatedAnswer::new(&[run(500)]);
        let au = single.utilisation().unwrap();
        assert_eq!((au.mean, au.low, single.is_open), (50.0, None, true));
    }

    #[test]
    fn accelerators_that_share_their_device_are_probably_not_fed() {
        let mut shared = simple(&[(500, 500, 0, 1_000_000); 20]);
        shared.epochs[0].host.process_device_read_bytes = Some(20_000_000);
        shared.epochs[0].host.device_read_bytes = Some(400_000_000);
        let shared = AnsweredSummary::new(&shared);
        assert!(shared.answer.is_only_probable(), "{:?}", shared.summary.doubts);
        let answer = RepeatedAnswer::new(&[run(500), run(500), shared]);
        assert_eq!((answer.kind(), answer.is_open), (AnswerKind::No, true));
    }

    #[test]
    fn one_unknown_run_makes_the_answer_unknown() {
        let mut stopped = simple(&[(500, 500, 0, 1_000_000); 20]);
        stopped.complete = false;
        let answer = RepeatedAnswer::new(&[run(500), AnsweredSummary::new(&stopped)]);
        assert_eq!((answer.kind(), answer.fed), (AnswerKind::Unknown, None));
        assert_eq!(RepeatedAnswer::new(&[]).kind(), AnswerKind::Unknown);
    }

    #[test]
    fn outliers_are_named_from_ten_runs_on() {
        let mut runs: Vec<AnsweredSummary> = (0..8).map(|n| run(500 + n)).collect();
        runs.push(run(2000));
        assert!(RepeatedAnswer::new(&runs).outliers.is_empty());
        runs.push(run(500));
        let outliers = RepeatedAnswer::new(&runs).outliers;
        assert_eq!(outliers.iter().map(|outlier| outlier.run).collect::<Vec<_>>(), [9]);
        assert_eq!(outliers[0].value, 20.0);
    }
}
