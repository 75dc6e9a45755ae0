//! Formats numbers, intervals and lists for sentences, with as many digits as the interval supports. Judges nothing.

pub use crate::number::with_interval;
use feedrate_analysis::finding::{EffectSize, EffectUnit};

/// Decimal places that an interval of this width supports.
pub(super) fn digits(width: f64) -> usize {
    let known = width > 0.0 && width.is_finite();
    if known { (-(width / 2.5).log10()).ceil().clamp(0.0, 3.0) as usize } else { 2 }
}

/// A number with a minus sign if it is negative, and without a plus sign.
pub(super) fn plain(value: f64, digits: usize) -> String {
    signed(value, digits).replacen('+', "", 1)
}

/// A number with its sign; 0 has none.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    match value {
        _ if is_zero(&text) => text,
        value if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// Whether a number is 0 as it is written.
fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// A number with two significant digits and no trailing zeros: `2`, `0.5`, `0.043`.
pub(super) fn two_digits(value: f64) -> String {
    let integer_digits = if value > 0.0 { value.log10().floor() as i32 + 1 } else { 1 };
    let digits = usize::try_from(2 - integer_digits).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
}

/// Joins items for a sentence: `a, b and c`.
pub fn list<Item: Into<String>>(items: impl IntoIterator<Item = Item>) -> String {
    let mut items: Vec<String> = items.into_iter().map(Into::into).collect();
    match items.pop() {
        Some(last) if !items.is_empty() => format!("{} and {last}", items.join(", ")),
        only => only.unwrap_or_default(),
    }
}

/// A name in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// The p value, and the number of tests for which it is corrected.
pub fn chance(p: f64, tests: usize) -> String {
    let p = if p < 1e-4 { "p < 0.0001".to_string() } else { format!("p = {p:.4}") };
    if tests == 1 { p } else { format!("{p}, corrected for {tests} tests") }
}

/// A percentage without decimals: `71 %`, `less than 1 %`.
pub(super) fn share(percent: f64) -> String {
    match percent {
        percent if percent < 1.0 => "less than 1 %".into(),
        percent if percent > 99.0 => "more than 99 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

/// An effect relative to `other`: `2.7 × npz [2.5, 2.9]`, `12 % below npz [10 %, 14 %]`, `3.1 points below npz [2.9, 3.3]`.
pub(super) fn relative_to(other: &str, effect: &EffectSize) -> String {
    if effect.unit == EffectUnit::Points || (2.0 / 3.0..=1.5).contains(&effect.estimate) {
        return distance_from(other, effect);
    }
    match effect.low.zip(effect.high) {
        None => format!("{} × {other}", plain(effect.estimate, 2)),
        Some((low, high)) => {
            let digits = digits(high - low);
            let text = |value| plain(value, digits);
            format!("{} × {other} [{}, {}]", text(effect.estimate), text(low), text(high))
        }
    }
}

/// An effect as a distance above or below `other`. The ends of the interval are distances in the same direction; an end in the opposite direction is negative.
fn distance_from(other: &str, effect: &EffectSize) -> String {
    let distance = change(effect, effect.estimate);
    let (sign, word) = if distance < 0.0 { (-1.0, "below") } else { (1.0, "above") };
    let unit = unit(effect);
    let Some((low, high)) = effect.low.zip(effect.high) else {
        return match plain(distance.abs(), 1) {
            zero if is_zero(&zero) => format!("about equal to {other}"),
            distance => format!("{distance} {unit} {word} {other}"),
        };
    };
    let ends = [sign * change(effect, low), sign * change(effect, high)];
    let low = ends[0].min(ends[1]);
    let high = ends[0].max(ends[1]);
    let digits = digits(high - low);
    let distance = plain(distance.abs(), digits);
    let low = plain(low, digits);
    let high = plain(high, digits);
    // The singular is `1 point`.
    let unit = if distance == "1" { unit.trim_end_matches('s') } else { unit };
    let unit_of_end = if unit == "%" { " %" } else { "" };
    let relation = match distance {
        zero if is_zero(&zero) => "about equal to".into(),
        distance => format!("{distance} {unit} {word}"),
    };
    format!("{relation} {other} [{low}{unit_of_end}, {high}{unit_of_end}]")
}

/// A value of an effect as a change: percent for ratios, unchanged for points.
pub(super) fn change(effect: &EffectSize, value: f64) -> f64 {
    if effect.unit == EffectUnit::Points { value } else { 100.0 * (value - 1.0) }
}

/// The unit of [`change`].
pub(super) fn unit(effect: &EffectSize) -> &'static str {
    if effect.unit == EffectUnit::Points { "points" } else { "%" }
}

/// The ends of an interval as changes.
pub(super) fn ends(effect: &EffectSize) -> Option<[f64; 2]> {
    Some([change(effect, effect.low?), change(effect, effect.high?)])
}

/// The interval of a difference, without its estimate: `−0.1 to +0.4 %`.
pub(super) fn range(effect: &EffectSize) -> String {
    let Some([low, high]) = ends(effect) else { return String::new() };
    let digits = digits(high - low);
    format!("{} to {} {}", signed(low, digits), signed(high, digits), unit(effect))
}

/// A share of linear growth: `73.8 % [73.1 %, 74.5 %]`.
pub(super) fn efficiency(effect: &EffectSize) -> String {
    let Some((low, high)) = effect.low.zip(effect.high) else {
        return format!("{:.0} %", 100.0 * effect.estimate);
    };
    let digits = digits(100.0 * (high - low));
    let percent = |share: f64| format!("{:.digits$} %", 100.0 * share);
    format!("{} [{}, {}]", percent(effect.estimate), percent(low), percent(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_analysis::finding::Quantity;
    use feedrate_measure::stats::Interval;

    fn effect(unit: EffectUnit, estimate: f64, ends: Option<(f64, f64)>) -> EffectSize {
        let interval = ends.map(|(low, high)| Interval { estimate, low, high });
        EffectSize::new(Quantity::Median, unit, estimate, interval, 5)
    }

    #[test]
    fn decimal_places_follow_from_the_width_of_the_interval() {
        for (width, expected) in
            [(40.0, 0), (4.0, 0), (2.0, 1), (0.4, 1), (0.04, 2), (1e-9, 3), (0.0, 2)]
        {
            assert_eq!(digits(width), expected, "{width}");
        }
    }

    #[test]
    fn a_margin_has_two_significant_digits() {
        for (value, expected) in
            [(2.0, "2"), (0.5, "0.5"), (1.96, "2"), (0.04321, "0.043"), (20.0, "20"), (0.0, "0")]
        {
            assert_eq!(two_digits(value), expected);
        }
    }

    #[test]
    fn an_effect_is_written_relative_to_the_other_level() {
        let (ratio, points) = (EffectUnit::Ratio, EffectUnit::Points);
        for (effect, expected) in [
            (effect(ratio, 2.7, Some((2.5, 2.9))), "2.7 × npz [2.5, 2.9]"),
            (effect(ratio, 2.7, None), "2.70 × npz"),
            (effect(ratio, 0.88, Some((0.86, 0.90))), "12 % below npz [10 %, 14 %]"),
            (effect(ratio, 1.01, Some((0.998, 1.022))), "1.0 % above npz [−0.2 %, 2.2 %]"),
            (effect(points, -3.1, Some((-3.3, -2.9))), "3.1 points below npz [2.9, 3.3]"),
            (effect(points, 3.0, None), "3.0 points above npz"),
            (effect(ratio, 0.9998, None), "about equal to npz"),
            (effect(points, -0.002, Some((-0.102, 0.098))), "about equal to npz [−0.10, 0.10]"),
        ] {
            assert_eq!(relative_to("npz", &effect), expected);
        }
        assert_eq!(range(&effect(ratio, 1.0, Some((0.999, 1.004)))), "−0.1 to +0.4 %");
    }
}
