//! Numbers and lists as sentences have them: as many digits as the interval bears out. Judges nothing.

pub use crate::number::with_ends;
use feedrate_analysis::finding::{EffectSize, EffectUnit};

/// Figures after the point that an interval of this width bears out.
pub(super) fn digits(width: f64) -> usize {
    let known = width > 0.0 && width.is_finite();
    if known { (-(width / 2.5).log10()).ceil().clamp(0.0, 3.0) as usize } else { 2 }
}

/// A minus is a minus, and nothing has none.
pub(super) fn plain(value: f64, digits: usize) -> String {
    signed(value, digits).replacen('+', "", 1)
}

/// With its sign.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    match value {
        _ if is_zero => text,
        value if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// With two digits that count, and no zeros at the end: `2`, `0.5`, `0.043`.
pub(super) fn two_digits(value: f64) -> String {
    let whole = if value > 0.0 { value.log10().floor() as i32 + 1 } else { 1 };
    let digits = usize::try_from(2 - whole).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
}

/// `a`, `b` and `c`.
pub(crate) fn list<Item: Into<String>>(items: impl IntoIterator<Item = Item>) -> String {
    let mut items: Vec<String> = items.into_iter().map(Into::into).collect();
    match items.pop() {
        Some(last) if !items.is_empty() => format!("{} and {last}", items.join(", ")),
        only => only.unwrap_or_default(),
    }
}

pub(crate) fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// p, and how many tests it is corrected for.
pub fn chance(p: f64, tests: usize) -> String {
    let p = if p < 1e-4 { "p < 0.0001".to_string() } else { format!("p = {p:.4}") };
    if tests == 1 { p } else { format!("{p}, corrected for {tests} tests") }
}

/// `71 %`, `less than 1 %`.
pub(super) fn share(percent: f64) -> String {
    match percent {
        percent if percent < 1.0 => "less than 1 %".into(),
        percent if percent > 99.0 => "more than 99 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

/// An effect beside what it is against: `2.7 × npz [2.5, 2.9]`, `12 % below npz [10 %, 14 %]`, `3.1 points below npz [2.9, 3.3]`.
pub(super) fn against(other: &str, of: &EffectSize) -> String {
    if of.unit == EffectUnit::Points || (2.0 / 3.0..=1.5).contains(&of.estimate) {
        return moved(other, of);
    }
    match of.low.zip(of.high) {
        None => format!("{} × {other}", plain(of.estimate, 2)),
        Some((low, high)) => {
            let digits = digits(high - low);
            let [middle, low, high] = [of.estimate, low, high].map(|value| plain(value, digits));
            format!("{middle} × {other} [{low}, {high}]")
        }
    }
}

/// By how much it is above or below. Both ends count in its direction; one on the other side has a minus.
fn moved(other: &str, of: &EffectSize) -> String {
    let by = change(of, of.estimate);
    let (sign, word) = if by < 0.0 { (-1.0, "below") } else { (1.0, "above") };
    let unit = unit(of);
    let Some((low, high)) = of.low.zip(of.high) else {
        return format!("{} {unit} {word} {other}", plain(by.abs(), 1));
    };
    let ends = [sign * change(of, low), sign * change(of, high)];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let digits = digits(high - low);
    let [by, low, high] = [by.abs(), low, high].map(|value| plain(value, digits));
    // `1 point`, as it is written.
    let unit = if by == "1" { unit.trim_end_matches('s') } else { unit };
    let unit_of_end = if unit == "%" { " %" } else { "" };
    format!("{by} {unit} {word} {other} [{low}{unit_of_end}, {high}{unit_of_end}]")
}

/// A value of an effect as a change: a ratio in percent, points as they are.
pub(super) fn change(of: &EffectSize, value: f64) -> f64 {
    if of.unit == EffectUnit::Points { value } else { 100.0 * (value - 1.0) }
}

/// The unit of [`change`].
pub(super) fn unit(of: &EffectSize) -> &'static str {
    if of.unit == EffectUnit::Points { "points" } else { "%" }
}

/// The ends of an interval as changes.
pub(super) fn ends(of: &EffectSize) -> Option<[f64; 2]> {
    Some([change(of, of.low?), change(of, of.high?)])
}

/// `−0.1 to +0.4 %`: a difference without its middle.
pub(super) fn range(of: &EffectSize) -> String {
    let Some([low, high]) = ends(of) else { return String::new() };
    let digits = digits(high - low);
    format!("{} to {} {}", signed(low, digits), signed(high, digits), unit(of))
}

/// A share of linear growth: `73.8 % [73.1 %, 74.5 %]`.
pub(super) fn efficiency(of: &EffectSize) -> String {
    let Some((low, high)) = of.low.zip(of.high) else {
        return format!("{:.0} %", 100.0 * of.estimate);
    };
    let [middle, low, high] = [of.estimate, low, high].map(|share| 100.0 * share);
    let digits = digits(high - low);
    format!("{middle:.digits$} % [{low:.digits$} %, {high:.digits$} %]")
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
    fn digits_are_those_that_the_interval_bears_out() {
        for (width, expected) in
            [(40.0, 0), (4.0, 0), (2.0, 1), (0.4, 1), (0.04, 2), (1e-9, 3), (0.0, 2)]
        {
            assert_eq!(digits(width), expected, "{width}");
        }
    }

    #[test]
    fn a_margin_has_two_digits_that_count() {
        for (value, expected) in
            [(2.0, "2"), (0.5, "0.5"), (1.96, "2"), (0.04321, "0.043"), (20.0, "20"), (0.0, "0")]
        {
            assert_eq!(two_digits(value), expected);
        }
    }

    #[test]
    fn a_level_is_told_against_another() {
        let (ratio, points) = (EffectUnit::Ratio, EffectUnit::Points);
        for (of, expected) in [
            (effect(ratio, 2.7, Some((2.5, 2.9))), "2.7 × npz [2.5, 2.9]"),
            (effect(ratio, 2.7, None), "2.70 × npz"),
            (effect(ratio, 0.88, Some((0.86, 0.90))), "12 % below npz [10 %, 14 %]"),
            (effect(ratio, 1.01, Some((0.998, 1.022))), "1.0 % above npz [−0.2 %, 2.2 %]"),
            (effect(points, -3.1, Some((-3.3, -2.9))), "3.1 points below npz [2.9, 3.3]"),
            (effect(points, 3.0, None), "3.0 points above npz"),
        ] {
            assert_eq!(against("npz", &of), expected);
        }
        assert_eq!(range(&effect(ratio, 1.0, Some((0.999, 1.004)))), "−0.1 to +0.4 %");
    }
}
