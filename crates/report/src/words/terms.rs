//! Words that sentences of several kinds share: responses and levels.

use super::number::against;
use feedrate_analysis::finding::{EffectSize, Quantity};
use feedrate_measure::metric::{Metric, Unit};

/// The name of a response in sentences.
pub(super) fn title(response: &str) -> &'static str {
    Metric::find(response).map_or("", |response| response.title)
}

/// Whether differences of a response are points.
pub(super) fn is_percent(response: &str) -> bool {
    Metric::find(response).is_ok_and(|response| response.unit == Unit::Percent)
}

/// A level against another. `8 is 2 × 1` would be a sum.
pub(super) fn level(of: &EffectSize) -> String {
    let Quantity::Level { level, base } = &of.quantity else { return String::new() };
    let are_numbers = [level, base].iter().all(|level| level.parse::<f64>().is_ok());
    if are_numbers {
        format!("at {level} it is {}", against(&format!("that at {base}"), of))
    } else {
        format!("{level} is {}", against(base, of))
    }
}
