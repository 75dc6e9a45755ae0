//! Predictions from several records of one plan, which differ by noise.

use super::{NotPredictable, Pipeline, PipelineChange, Prediction, interval_of_all};
use feedrate_measure::metric::Metric;
use feedrate_measure::noise::{Noise, is_too_wide};
use feedrate_measure::record::Record;
use feedrate_measure::stats::Interval;
use feedrate_spec::plan::Plan;

/// The pipelines of one or more records of one plan.
#[derive(Clone, Debug)]
pub struct PipelinePool {
    first: Pipeline,
    others: Vec<Pipeline>,
}

impl PipelinePool {
    /// A pool with the pipeline of one record.
    pub fn new(first: Pipeline) -> Self {
        PipelinePool { first, others: Vec::new() }
    }

    /// Fits the pipelines of a record and of other records of the same plan.
    ///
    /// # Errors
    /// The first record does not allow predictions.
    pub fn from_records(first: &Record, others: &[Record]) -> Result<Self, NotPredictable> {
        Ok(PipelinePool::new(Pipeline::new(first)?).with_records(others))
    }

    /// Adds further records of the same plan, except for those that do not allow predictions.
    #[must_use]
    pub fn with_records(mut self, others: &[Record]) -> Self {
        self.others.extend(others.iter().filter_map(|record| Pipeline::new(record).ok()));
        self
    }

    /// The pipeline of the first record.
    pub fn first(&self) -> &Pipeline {
        &self.first
    }

    /// Predicts a run by each pipeline, in terms of au_all_steps or au_sustained. The result is the prediction with the median utilisation, the
    /// lower one of two; its interval contains the intervals of all.
    ///
    /// # Errors
    /// A record does not allow the prediction, or the predictions of the records differ too much.
    pub fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
        metric: &'static Metric,
    ) -> Result<Prediction, NotPredictable> {
        let mut all = vec![self.first.predict_metric(plan, changes, metric)?];
        for other in &self.others {
            all.push(other.predict_metric(plan, changes, metric)?);
        }
        let [low, high] = interval_of_all(&all);
        all.sort_by(|a, b| a.au_percent.total_cmp(&b.au_percent));
        let median = all[(all.len() - 1) / 2];
        let interval = Interval { estimate: median.au_percent, low, high };
        if 1 < all.len() && is_too_wide(&interval) {
            return Err(NotPredictable::TooNoisy { noise: Noise::WideInterval });
        }
        Ok(Prediction { interval: [low, high], ..median })
    }
}
