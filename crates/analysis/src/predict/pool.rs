//! Predictions from several records of one plan, which differ by noise.

use super::{NotPredictable, Pipeline, PipelineChange, Prediction};
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};
use feedrate_measure::noise::{Noise, is_too_wide};
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

    /// Adds the pipelines of further records of the same plan.
    #[must_use]
    pub fn with_others(mut self, others: impl IntoIterator<Item = Pipeline>) -> Self {
        self.others.extend(others);
        self
    }

    /// The pipeline of the first record.
    pub fn first(&self) -> &Pipeline {
        &self.first
    }

    /// Predicts the utilisation over all steps of a run by each pipeline. The result is the prediction with the median utilisation, the lower one of
    /// two; its interval contains the intervals of all.
    ///
    /// # Errors
    /// A record does not allow the prediction, or the predictions of the records differ too much.
    pub fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
    ) -> Result<Prediction, NotPredictable> {
        self.predict_metric(plan, changes, &AU_ALL_STEPS)
    }

    /// Predicts a run by each pipeline. The result is the prediction with the median utilisation, the lower one of two; its interval contains the intervals of all.
    ///
    /// # Errors
    /// A record does not allow the prediction, or the predictions of the records differ too much.
    pub(crate) fn predict_metric(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
        metric: &'static Metric,
    ) -> Result<Prediction, NotPredictable> {
        let mut all = vec![self.first.predict_metric(plan, changes, metric)?];
        for other in &self.others {
            all.push(other.predict_metric(plan, changes, metric)?);
        }
        let low = all.iter().map(|prediction| prediction.interval[0]).fold(f64::INFINITY, f64::min);
        let high =
            all.iter().map(|prediction| prediction.interval[1]).fold(f64::NEG_INFINITY, f64::max);
        all.sort_by(|a, b| a.au_percent.total_cmp(&b.au_percent));
        let median = all[(all.len() - 1) / 2];
        let interval = Interval { estimate: median.au_percent, low, high };
        if 1 < all.len() && is_too_wide(&interval) {
            return Err(NotPredictable::TooNoisy { noise: Noise::WideInterval });
        }
        Ok(Prediction { interval: [low, high], ..median })
    }
}
