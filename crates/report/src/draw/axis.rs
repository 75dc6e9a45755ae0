//! Computes the ends and ticks of an axis, and maps values to positions on it. Draws nothing.

use super::figure::{Axis, AxisRange, Scale};
use super::font;

/// Maximum extension of an axis for intervals, as a share of the estimates' range. Longer intervals are cut off and marked.
const EXTENSION_MAX: f64 = 0.5;

/// Maximum extension of a logarithmic axis, as a factor.
const LOG_EXTENSION_MAX: f64 = 1.5;

/// Maximum number of ticks.
const TICKS_MAX: f64 = 100.0;
/// Decimal places of the smallest number.
const DECIMALS_MAX: f64 = 324.0;

/// A value on an axis with the ends of its interval.
pub(super) type Extent = (f64, Option<f64>, Option<f64>);

/// An axis with its ends.
#[derive(Clone, Debug)]
pub(super) struct FittedAxis<'a> {
    scale: &'a Scale,
    min: f64,
    max: f64,
}

/// A value with its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl<'a> FittedAxis<'a> {
    /// An axis around its values. `ticks`: approximate number of ticks.
    pub(super) fn new(axis: &'a Axis, extents: &[Extent], ticks: f64) -> Self {
        let ends = match (&axis.scale, ends(extents, &axis.scale)) {
            (Scale::Categories(names), _) => (-0.5, names.len().max(1) as f64 - 0.5),
            (Scale::Linear | Scale::LinearAt(_), ends) => {
                linear_ends(axis.range, ends, extents, ticks)
            }
            (Scale::Log10 | Scale::LogAt(_), ends) => logarithmic_ends(axis.range, ends, extents),
        };
        FittedAxis { scale: &axis.scale, min: ends.0, max: ends.1 }
    }

    /// The position of a value: 0 at the start of the axis, 1 at its end.
    pub(super) fn position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Log10 | Scale::LogAt(_) => {
                (value.ln() - self.min.ln()) / (self.max.ln() - self.min.ln())
            }
            Scale::Linear | Scale::LinearAt(_) | Scale::Categories(_) => {
                (value - self.min) / (self.max - self.min)
            }
        }
    }

    /// Whether a value is on the axis.
    pub(super) fn contains(&self, value: f64) -> bool {
        value.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&self.position(value))
    }

    /// The ticks. Scales without fixed values have approximately `target` ticks.
    pub(super) fn ticks(&self, target: f64) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.even_ticks(target),
            Scale::Log10 => self.decade_ticks(target),
            Scale::LinearAt(values) | Scale::LogAt(values) => {
                values.iter().filter(|&&at| self.contains(at)).map(|&at| Tick::new(at)).collect()
            }
            Scale::Categories(names) => {
                let names = names.iter().enumerate();
                names.map(|(i, name)| Tick { value: i as f64, label: name.clone() }).collect()
            }
        }
    }

    fn even_ticks(&self, target: f64) -> Vec<Tick> {
        let step = round_step(self.max - self.min, target);
        // The step of a tiny range may round to zero.
        let decimals = (-step.log10().floor()).clamp(0.0, DECIMALS_MAX) as usize;
        let first = (self.min / step - 1e-6).ceil();
        let last = (self.max / step + 1e-6).floor();
        let mut ticks = Vec::new();
        for i in 0..=(last - first).clamp(0.0, TICKS_MAX) as usize {
            let at = (first + i as f64) * step;
            let at = if at == 0.0 { 0.0 } else { at };
            ticks.push(Tick { value: at, label: format!("{at:.decimals$}").replace('-', "−") });
        }
        ticks
    }

    fn decade_ticks(&self, target: f64) -> Vec<Tick> {
        // Clamped to the exponents of 64-bit floats.
        let power = |power: f64| power.clamp(-324.0, 308.0) as i32;
        let first = power(self.min.log10().floor());
        let last = power(self.max.log10().ceil());
        let powers: Vec<f64> = (first..=last).map(|power| 10f64.powi(power)).collect();
        let mut values = powers.clone();
        values.retain(|at| self.contains(*at));
        if values.len() < 3 {
            values = powers.iter().flat_map(|at| [*at, 2.0 * at, 5.0 * at]).collect();
            values.retain(|at| self.contains(*at));
        }
        // A single tick shows no scale.
        if values.len() < 2 {
            return self.even_ticks(target.max(4.0));
        }
        let every = (values.len() as f64 / target.max(1.0)).ceil().max(1.0) as usize;
        values.into_iter().step_by(every).map(Tick::new).collect()
    }
}

impl Tick {
    fn new(at: f64) -> Self {
        Tick { value: at, label: short_number(at) }
    }
}

/// The ticks whose labels do not overlap. `place` maps a value to its coordinate along the axis.
pub(super) fn without_overlaps(
    ticks: Vec<Tick>,
    size: f64,
    place: impl Fn(f64) -> f64,
) -> Vec<Tick> {
    let mut end = f64::NEG_INFINITY;
    let mut kept = Vec::new();
    for tick in ticks {
        let middle = place(tick.value);
        let half = font::width(&tick.label, size) / 2.0;
        if end + 0.4 * size <= middle - half {
            end = middle + half;
            kept.push(tick);
        }
    }
    kept
}

/// A value in few digits.
pub(super) fn short_number(value: f64) -> String {
    let size = value.abs();
    let is_long = 1e5 <= size && size.log10().fract() == 0.0;
    let digits = match size {
        0.0 => return "0".into(),
        // Powers of ten, as logarithmic axes have them, stay short.
        _ if is_long => return format!("{value:e}").replace('-', "−"),
        _ if (1e-3..1e6).contains(&size) => (3.0 - size.log10().floor()).clamp(0.0, 6.0) as usize,
        _ => return format!("{value:.3e}").replace('-', "−"),
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

/// The lowest and the highest estimate; `None` without any.
fn ends(extents: &[Extent], scale: &Scale) -> Option<(f64, f64)> {
    let is_log = matches!(scale, Scale::Log10 | Scale::LogAt(_));
    let known = extents.iter().map(|extent| extent.0);
    let known = known.filter(|value| value.is_finite() && (!is_log || *value > 0.0));
    known.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

fn linear_ends(
    range: AxisRange,
    ends: Option<(f64, f64)>,
    extents: &[Extent],
    ticks: f64,
) -> (f64, f64) {
    let (low, high) = ends.unwrap_or((0.0, 1.0));
    let (lowest, highest) = extend_to_intervals(extents, (low, high), f64::is_finite);
    match range {
        AxisRange::FromZero => {
            let top = highest.min(high * (1.0 + EXTENSION_MAX)).max(high);
            let top = if top > 0.0 { top } else { 1.0 };
            let step = round_step(top, ticks);
            (low.min(0.0), (top / step).ceil() * step)
        }
        AxisRange::AtLeast(from, to) => (low.min(from), high.max(to)),
        AxisRange::Tight => {
            let span = if low < high { high - low } else { 0.2 * high.abs().max(1e-9) };
            let low = lowest.max(low - EXTENSION_MAX * span) - 0.08 * span;
            (low, highest.min(high + EXTENSION_MAX * span) + 0.08 * span)
        }
    }
}

fn logarithmic_ends(range: AxisRange, ends: Option<(f64, f64)>, extents: &[Extent]) -> (f64, f64) {
    let (low, high) = ends.unwrap_or((1.0, 10.0));
    let (low, high) = match range {
        AxisRange::AtLeast(from, to) => (low.min(from), high.max(to)),
        AxisRange::FromZero | AxisRange::Tight => (low, high),
    };
    let (lowest, highest) =
        extend_to_intervals(extents, (low, high), |end| end > 0.0 && end.is_finite());
    let low = lowest.max(low / LOG_EXTENSION_MAX);
    let high = highest.min(high * LOG_EXTENSION_MAX);
    let room = if low < high { (high / low).powf(0.07) } else { 1.5 };
    (low / room, high * room)
}

/// The two ends, extended to the ends of intervals.
fn extend_to_intervals(
    extents: &[Extent],
    ends: (f64, f64),
    is_known: fn(f64) -> bool,
) -> (f64, f64) {
    let low = extents.iter().filter_map(|(_, low, _)| *low).filter(|end| is_known(*end));
    let high = extents.iter().filter_map(|(.., high)| *high).filter(|end| is_known(*end));
    (low.fold(ends.0, f64::min), high.fold(ends.1, f64::max))
}

/// A step of 1, 2 or 5 times a power of ten, for about `target` steps in `span`.
fn round_step(span: f64, target: f64) -> f64 {
    let rough = span / target.max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let part = rough / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| part <= *round * 1.0001).unwrap_or(10.0);
    round * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, range: AxisRange, values: &[f64]) -> String {
        let axis = Axis::new("", scale, range);
        let extents: Vec<Extent> = values.iter().map(|&value| (value, None, None)).collect();
        let fitted = FittedAxis::new(&axis, &extents, 5.0);
        let labels: Vec<String> = fitted.ticks(5.0).into_iter().map(|tick| tick.label).collect();
        labels.join(" ")
    }

    #[test]
    fn ticks_are_round_numbers() {
        for (scale, range, values, expected) in [
            (Scale::Linear, AxisRange::FromZero, vec![3.0, 87.0], "0 20 40 60 80 100"),
            (Scale::Linear, AxisRange::FromZero, vec![0.23], "0.00 0.05 0.10 0.15 0.20 0.25"),
            (Scale::Linear, AxisRange::AtLeast(0.0, 100.0), vec![50.0], "0 20 40 60 80 100"),
            (Scale::Linear, AxisRange::Tight, vec![-1.0, 1.0], "−1.0 −0.5 0.0 0.5 1.0"),
            (Scale::Linear, AxisRange::FromZero, vec![0.0], "0.0 0.2 0.4 0.6 0.8 1.0"),
            (Scale::LogAt(vec![1.0, 2.0, 4.0, 8.0]), AxisRange::Tight, vec![1.0, 4.0], "1 2 4"),
            (Scale::Log10, AxisRange::Tight, vec![0.02, 300.0], "0.1 1 10 100"),
            (Scale::Log10, AxisRange::Tight, vec![1.0, 9.0], "1 2 5 10"),
            (Scale::Log10, AxisRange::Tight, vec![5.9, 13.0], "6 8 10 12"),
            (Scale::LinearAt(vec![1.0, 2.0, 4.0, 8.0]), AxisRange::Tight, vec![1.0, 4.0], "1 2 4"),
            (Scale::Linear, AxisRange::Tight, vec![], "0.0 0.5 1.0"),
        ] {
            assert_eq!(labels(scale, range, &values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_long_interval_does_not_compress_the_estimates() {
        let axis = Axis::linear("", AxisRange::FromZero);
        let fitted = FittedAxis::new(&axis, &[(10.0, Some(-900.0), Some(900.0))], 5.0);
        assert!(
            fitted.contains(0.0) && fitted.contains(15.0) && !fitted.contains(20.1),
            "{fitted:?}"
        );
    }

    #[test]
    fn values_have_few_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (1234.5, "1234"),
            (16.0, "16"),
            (-2.25, "−2.25"),
            (12.3456, "12.35"),
            (1e7, "1e7"),
            (1e5, "1e5"),
            (123_456.0, "123456"),
            (12_345_678.0, "1.235e7"),
        ] {
            assert_eq!(short_number(value), expected);
        }
    }
}
