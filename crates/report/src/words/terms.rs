//! Names of responses and levels, shared by several kinds of sentences.

use super::number::relative_to;
use feedrate_analysis::finding::{EffectSize, Quantity};
use feedrate_measure::metric::{Metric, Unit};
use feedrate_results::setting::compare_levels;
use feedrate_spec::units::counted;
use std::cmp::Ordering;

/// The name of a response for use in sentences.
pub(super) fn title(response: &str) -> &'static str {
    Metric::find(response).map_or("", |response| response.title)
}

/// Whether a response is a percentage. Its differences are then in points.
pub(super) fn is_percent(response: &str) -> bool {
    Metric::find(response).is_ok_and(|response| response.unit == Unit::Percent)
}

/// Maximum number of levels that a sentence names.
const LEVELS_MAX: usize = 4;

/// Compares levels with another. If there are many, the first are named and the others counted.
pub(super) fn levels(effects: &[EffectSize]) -> String {
    // The effects are in the order of their size.
    let named = if LEVELS_MAX < effects.len() { LEVELS_MAX - 1 } else { effects.len() };
    let mut shown: Vec<&EffectSize> = effects[..named].iter().collect();
    shown.sort_by(|a, b| match (&a.quantity, &b.quantity) {
        (Quantity::Level { level: a, .. }, Quantity::Level { level: b, .. }) => {
            compare_levels(a, b)
        }
        _ => Ordering::Equal,
    });
    let texts: Vec<String> = shown.into_iter().map(level).collect();
    match effects.len() - named {
        0 => texts.join("; "),
        others => format!("{}; and {}", texts.join("; "), counted(others as u64, "other level")),
    }
}

/// All levels, or the first levels and the number of the others: `56 other levels`.
pub(super) fn shorten_levels(mut items: Vec<String>) -> Vec<String> {
    if LEVELS_MAX < items.len() {
        let others = items.split_off(LEVELS_MAX - 1).len();
        items.push(counted(others as u64, "other level"));
    }
    items
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

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_analysis::finding::EffectUnit;

    #[test]
    fn many_levels_are_counted() {
        let effects = |count: usize| -> Vec<EffectSize> {
            let effect = |level: usize| {
                let quantity = Quantity::Level { level: level.to_string(), base: "1".into() };
                EffectSize::new(quantity, EffectUnit::Ratio, level as f64, None, 3)
            };
            (2..2 + count).map(effect).collect()
        };
        let few = "at 2 it is 2.00 × that at 1; at 3 it is 3.00 × that at 1";
        assert_eq!(levels(&effects(2)), few);
        let many = format!("{few}; at 4 it is 4.00 × that at 1; and 56 other levels");
        assert_eq!(levels(&effects(59)), many);
    }
}
