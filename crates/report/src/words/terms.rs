//! Names of responses and levels, shared by several kinds of sentences.

use super::number::relative_to;
use feedrate_analysis::finding::{EffectSize, Quantity};
use feedrate_measure::metric::{Metric, Unit};

/// The name of a response for use in sentences.
pub(super) fn title(response: &str) -> &'static str {
    Metric::find(response).map_or("", |response| response.title)
}

/// Whether a response is a percentage. Its differences are then in points.
pub(super) fn is_percent(response: &str) -> bool {
    Metric::find(response).is_ok_and(|response| response.unit == Unit::Percent)
}

/// Compares a level with another. Numbers need more words than names: `8 is 2 × 1` would look like arithmetic.
pub(super) fn level(effect: &EffectSize) -> String {
    let Quantity::Level { level, base } = &effect.quantity else { return String::new() };
    let are_numbers = [level, base].iter().all(|level| level.parse::<f64>().is_ok());
    if are_numbers {
        format!("at {level} it is {}", relative_to(&format!("that at {base}"), effect))
    } else {
        format!("{level} is {}", relative_to(base, effect))
    }
}
