//! Fits the axes of a panel, and computes the space that the panel needs. Draws nothing; the layout decides the position of the panel.

use super::axis::{Extent, FittedAxis, Tick};
use super::canvas::Canvas;
use super::figure::{Axes, Layer, Panel, Point, Scale, Series, ShadedSpan, Spread, Style};
use super::font;
use super::marks::MARK_RADIUS;
use std::collections::BTreeSet;

/// Distance between lines of text, in text sizes.
pub(super) const LINE_HEIGHT: f64 = 1.15;
/// Distance from a tick to its label.
pub(super) const LABEL_GAP: f64 = 4.0;
/// Maximum height of axes, so that a figure of a page's width leaves room for text; wider figures may be higher.
const HEIGHT_MAX: f64 = 230.0;
/// Approximate number of ticks on a vertical axis.
const Y_TICKS: f64 = 5.0;
/// Angle in degrees of labels that do not fit side by side.
pub(super) const SLANT_DEGREES: f64 = 40.0;
/// Length by which the title of y may exceed its axis, in text sizes.
pub(super) const TITLE_OVERHANG: f64 = 1.6;
/// Maximum share of a panel's width for the names of categories.
pub(super) const CATEGORY_SHARE_MAX: f64 = 0.42;

/// Space around the area between the axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The labels that a panel shows. Labels that a neighbour also shows are omitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    pub(super) x_title: bool,
    pub(super) y_title: bool,
    pub(super) categories: bool,
    /// Whether marks of single runs are hollow.
    pub(super) hollow_singles: bool,
}

/// A panel with fitted axes.
pub(super) struct FittedPanel<'a> {
    pub(super) panel: &'a Panel,
    pub(super) axes: &'a Axes,
    pub(super) x: FittedAxis<'a>,
    pub(super) y: FittedAxis<'a>,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    /// Maximum number of lines in the names of categories on y.
    pub(super) lines: usize,
    /// Whether labels of the x axis are slanted.
    pub(super) is_slanted: bool,
    pub(super) labels: Labels,
}

impl<'a> FittedPanel<'a> {
    /// Fits the axes of a panel. `width`: width with margins.
    pub(super) fn new(panel: &'a Panel, canvas: &Canvas, width: f64, labels: Labels) -> Self {
        let axes = &panel.axes;
        let size = canvas.size;
        let x_target = (width / (5.0 * size)).clamp(2.0, 9.0);
        let x = FittedAxis::new(&axes.x, &extents(axes, Spread::X), x_target);
        let y = FittedAxis::new(&axes.y, &extents(axes, Spread::Y), Y_TICKS);
        let mut x_ticks = x.ticks(x_target);
        let mut y_ticks = y.ticks(Y_TICKS);
        if matches!(axes.y.scale, Scale::Categories(_)) {
            for tick in &mut y_ticks {
                tick.label = font::wrap(&tick.label, size, CATEGORY_SHARE_MAX * width).join("\n");
            }
        }
        let lines = y_ticks.iter().map(|tick| tick.label.lines().count()).max().unwrap_or(1);
        if !labels.categories {
            y_ticks.iter_mut().for_each(|tick| tick.label.clear());
        }
        let mut is_slanted = false;
        if let Scale::Categories(names) = &axes.x.scale {
            let short = font::shorten_distinct(names, size, 0.4 * width);
            x_ticks.iter_mut().zip(short).for_each(|(tick, name)| tick.label = name);
            let slot = 0.75 * width / names.len().max(1) as f64;
            is_slanted = x_ticks.iter().any(|tick| canvas.width(&tick.label) + 3.0 > slot);
        }
        FittedPanel { panel, axes, x, y, x_ticks, y_ticks, lines, is_slanted, labels }
    }

    pub(super) fn margins(&self, canvas: &Canvas) -> Margins {
        let size = canvas.size;
        let mut under = 1.2 * size;
        let mut right = self.x_ticks.last().map_or(0.0, |tick| canvas.width(&tick.label)) / 2.0;
        if self.is_slanted {
            under = widest(&self.x_ticks, canvas) * SLANT_DEGREES.to_radians().sin() + size;
            right = 2.0;
        }
        let x_title = if self.x_title().is_some() { 1.3 * size } else { 0.0 };
        let y_title = if self.y_title().is_some() { 1.5 * size } else { 0.0 };
        let has_names = self.spans().any(|span| !span.label.is_empty());
        Margins {
            left: widest(&self.y_ticks, canvas) + LABEL_GAP + y_title + 2.0,
            right: right + 2.0,
            top: if has_names { 1.4 } else { 0.6 } * size,
            bottom: LABEL_GAP + under + x_title,
        }
    }

    /// Height of the area between the axes for a given width.
    pub(super) fn height(&self, size: f64, width: f64) -> f64 {
        let Scale::Categories(names) = &self.axes.y.scale else {
            return (width * self.axes.aspect).min(HEIGHT_MAX.max(0.4 * width));
        };
        let marks = self.panel.all_series().filter(|series| has_marks(series)).count().max(1);
        let text = (LINE_HEIGHT * self.lines as f64 + 0.4) * size;
        let row = text.max(marks as f64 * 2.4 * MARK_RADIUS + 0.25 * size);
        row * names.len().max(1) as f64
    }

    /// Whether the y axis has categories.
    pub(super) fn has_categories(&self) -> bool {
        matches!(self.axes.y.scale, Scale::Categories(_))
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = &'a ShadedSpan> {
        self.axes.layers.iter().filter_map(|layer| match layer {
            Layer::Span(span) => Some(span),
            _ => None,
        })
    }

    pub(super) fn x_title(&self) -> Option<&'a str> {
        let label = self.axes.x.label.as_str();
        (self.labels.x_title && !label.is_empty()).then_some(label)
    }

    pub(super) fn y_title(&self) -> Option<&'a str> {
        let label = self.axes.y.label.as_str();
        (self.labels.y_title && !label.is_empty()).then_some(label)
    }
}

fn widest(ticks: &[Tick], canvas: &Canvas) -> f64 {
    let lines = ticks.iter().flat_map(|tick| tick.label.lines());
    lines.map(|line| canvas.width(line)).fold(0.0, f64::max)
}

/// Whether a series has marks, which may need offsets.
pub(super) fn has_marks(series: &Series) -> bool {
    matches!(series.style, Style::Marks | Style::Joined)
}

/// Whether marks of several series share x values and need offsets. A numeric axis without intervals has no offsets: they would change the slope of lines.
pub fn needs_offsets(axes: &Axes) -> bool {
    let has_categories = matches!(axes.x.scale, Scale::Categories(_));
    let is_interval = |point: &Point| point.ends() != (None, None);
    let mut series = axes.layers.iter().filter_map(|layer| match layer {
        Layer::Series(series) if has_marks(series) => Some(series),
        _ => None,
    });
    if !has_categories && !series.any(|series| series.points.iter().any(is_interval)) {
        return false;
    }
    let mut places: BTreeSet<u64> = BTreeSet::new();
    for layer in &axes.layers {
        let Layer::Series(series) = layer else { continue };
        if series.spread == Spread::Y && has_marks(series) {
            let x: BTreeSet<u64> = series.points.iter().map(|point| point.x.to_bits()).collect();
            if !x.is_disjoint(&places) {
                return true;
            }
            places.extend(x);
        }
    }
    false
}

/// The values and intervals along one axis.
fn extents(axes: &Axes, along: Spread) -> Vec<Extent> {
    let mut extents = Vec::new();
    for layer in &axes.layers {
        match layer {
            Layer::Series(series) => extents.extend(series.points.iter().map(|point| {
                let value = if along == Spread::X { point.x } else { point.y };
                let has_interval = series.spread == along;
                let (low, high) = if has_interval { point.ends() } else { (None, None) };
                (value, low, high)
            })),
            Layer::Bars(bars) if along == Spread::X => extents.extend(
                bars.bars.iter().flat_map(|bar| [(bar.from, None, None), (bar.to, None, None)]),
            ),
            Layer::Span(span) if along == Spread::X => {
                extents.extend([(span.from, None, None), (span.to, None, None)]);
            }
            Layer::Rule(rule) if along == Spread::Y => extents.push((rule.at, None, None)),
            Layer::Bars(_) | Layer::Span(_) | Layer::Rule(_) => {}
        }
    }
    extents
}

/// Whether an interval ends beyond its axis.
pub fn has_cut_interval(axes: &Axes) -> bool {
    [(&axes.x, Spread::X), (&axes.y, Spread::Y)].into_iter().any(|(axis, along)| {
        let extents = extents(axes, along);
        let fitted = FittedAxis::new(axis, &extents, Y_TICKS);
        let mut ends = extents.iter().flat_map(|extent| [extent.1, extent.2]).flatten();
        ends.any(|end| !fitted.contains(end))
    })
}
