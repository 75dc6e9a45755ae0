//! A panel with axes: ticks, layers, titles. Where the panel lies is the layout's business.

use super::axis::{Extent, Fitted, Tick, with_room};
use super::canvas::{Anchor, Area, Canvas, Stroke};
use super::figure::{Axes, Layer, Panel, Scale, Series, Span, Spread, Style};
use super::font;
use super::layers::Placed;
use super::marks::MARK;

/// From a line of text to the next, in its size.
const LINE: f64 = 1.15;
/// From a tick to its label.
const GAP: f64 = 4.0;
/// About so many ticks stand on an upright axis.
const UPRIGHT_TICKS: f64 = 5.0;
/// Degrees by which labels are slanted that have no room side by side.
const SLANT: f64 = 40.0;
/// Names of categories take this share of a panel's width, at most.
pub(super) const CATEGORIES: f64 = 0.42;

/// Room around the area between the axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Axis titles and names of categories that a panel has; a neighbour's that say the same are enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    pub(super) x_title: bool,
    pub(super) y_title: bool,
    pub(super) categories: bool,
    /// Marks of single runs are hollow.
    pub(super) hollow_singles: bool,
}

/// A panel whose axes have their ends.
pub(super) struct FittedPanel<'a> {
    panel: &'a Panel,
    axes: &'a Axes,
    x: Fitted<'a>,
    y: Fitted<'a>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    /// Lines that the names of categories on y take, at most.
    lines: usize,
    /// Whether labels of the x axis are slanted.
    slanted: bool,
    labels: Labels,
}

impl<'a> FittedPanel<'a> {
    /// `width`: of the panel with its margins. `None` of one without axes.
    pub(super) fn new(
        panel: &'a Panel,
        canvas: &Canvas,
        width: f64,
        labels: Labels,
    ) -> Option<Self> {
        let (axes, size) = (panel.axes()?, canvas.size);
        let x_target = (width / (5.0 * size)).clamp(2.0, 9.0);
        let x = Fitted::new(&axes.x, &extents(axes, Spread::X), x_target);
        let y = Fitted::new(&axes.y, &extents(axes, Spread::Y), UPRIGHT_TICKS);
        let (mut x_ticks, mut y_ticks) = (x.ticks(x_target), y.ticks(UPRIGHT_TICKS));
        if matches!(axes.y.scale, Scale::Categories(_)) {
            for tick in &mut y_ticks {
                tick.label = font::wrapped(&tick.label, size, CATEGORIES * width).join("\n");
            }
        }
        let lines = y_ticks.iter().map(|tick| tick.label.lines().count()).max().unwrap_or(1);
        if !labels.categories {
            y_ticks.iter_mut().for_each(|tick| tick.label.clear());
        }
        let mut slanted = false;
        if let Scale::Categories(names) = &axes.x.scale {
            let short = font::shortened_apart(names, size, 0.4 * width);
            x_ticks.iter_mut().zip(short).for_each(|(tick, name)| tick.label = name);
            let slot = 0.75 * width / names.len().max(1) as f64;
            slanted = x_ticks.iter().any(|tick| canvas.width(&tick.label) + 3.0 > slot);
        }
        Some(FittedPanel { panel, axes, x, y, x_ticks, y_ticks, lines, slanted, labels })
    }

    pub(super) fn margins(&self, canvas: &Canvas) -> Margins {
        let size = canvas.size;
        let mut under = 1.2 * size;
        let mut right = self.x_ticks.last().map_or(0.0, |tick| canvas.width(&tick.label)) / 2.0;
        if self.slanted {
            under = widest(&self.x_ticks, canvas) * SLANT.to_radians().sin() + size;
            right = 2.0;
        }
        let x_title = if self.x_title().is_some() { 1.3 * size } else { 0.0 };
        let y_title = if self.y_title().is_some() { 1.5 * size } else { 0.0 };
        let has_names = self.spans().any(|span| !span.label.is_empty());
        Margins {
            left: widest(&self.y_ticks, canvas) + GAP + y_title + 2.0,
            right: right + 2.0,
            top: if has_names { 1.4 } else { 0.6 } * size,
            bottom: GAP + under + x_title,
        }
    }

    /// Height between the axes, where the width between them is known.
    pub(super) fn height(&self, size: f64, width: f64) -> f64 {
        let Scale::Categories(names) = &self.axes.y.scale else { return width * self.axes.aspect };
        let marks = self.panel.all_series().filter(|series| has_marks(series)).count().max(1);
        let text = (LINE * self.lines as f64 + 0.4) * size;
        let row = text.max(marks as f64 * 2.4 * MARK + 0.25 * size);
        row * names.len().max(1) as f64
    }

    fn spans(&self) -> impl Iterator<Item = &'a Span> {
        self.axes.layers.iter().filter_map(|layer| match layer {
            Layer::Span(span) => Some(span),
            _ => None,
        })
    }

    fn x_title(&self) -> Option<&'a str> {
        let label = self.axes.x.label.as_str();
        (self.labels.x_title && !label.is_empty()).then_some(label)
    }

    fn y_title(&self) -> Option<&'a str> {
        let label = self.axes.y.label.as_str();
        (self.labels.y_title && !label.is_empty()).then_some(label)
    }

    /// `left`: where the margin begins. `page`: its ends, which a title wider than its axis does not leave.
    pub(super) fn draw_titles(&self, area: Area, left: f64, page: [f64; 2], canvas: &mut Canvas) {
        let size = canvas.size;
        if let Some(title) = self.y_title() {
            let at = (left + 0.85 * size, (area.top + area.bottom) / 2.0);
            let most = (area.height() + 1.6 * size).max(40.0);
            canvas.turned(at, Anchor::Middle, &font::shortened(title, size, most), -90.0);
        }
        if let Some(title) = self.x_title() {
            let half = canvas.width(title) / 2.0;
            let middle = (area.left + area.right) / 2.0;
            let middle = middle.min(page[1] - half).max(page[0] + half);
            let under = area.bottom + self.margins(canvas).bottom - 0.3 * size;
            canvas.text((middle, under), Anchor::Middle, title);
        }
    }

    pub(super) fn draw(&self, area: Area, canvas: &mut Canvas) {
        let placed = Placed {
            panel: self.panel,
            axes: self.axes,
            x: &self.x,
            y: &self.y,
            area,
            hollow_singles: self.labels.hollow_singles,
        };
        self.spans().for_each(|span| placed.span(span, canvas));
        self.frame(&placed, canvas);
        self.ticks(&placed, canvas);
        let beside = self.panel.all_series().filter(|series| has_marks(series)).count();
        let mut number = 0;
        for layer in &self.axes.layers {
            match layer {
                Layer::Span(_) => {}
                Layer::Bars(bars) => {
                    canvas.begin(&self.panel.series_name(&bars.label));
                    placed.bars(bars, canvas);
                    canvas.end();
                }
                Layer::Rule { at } => placed.rule(*at, canvas),
                Layer::Series(series) => {
                    let aside = if has_marks(series) { aside(series, number, beside) } else { 0.0 };
                    number += usize::from(has_marks(series));
                    canvas.begin(&self.panel.series_name(&series.label));
                    placed.series(series, aside, canvas);
                    canvas.end();
                }
            }
        }
    }

    fn frame(&self, placed: &Placed<'_>, canvas: &mut Canvas) {
        let area = placed.area;
        let line = Stroke::new(canvas.theme.line(), 0.7);
        let guide = Stroke::new(canvas.theme.grid(), 0.6);
        if placed.is_list() {
            for x in self.x_places(placed, canvas.size).into_iter().map(|tick| placed.x(tick.at)) {
                canvas.line(&[(x, area.top), (x, area.bottom)], guide);
            }
        } else {
            for y in self.y_ticks.iter().map(|tick| placed.y(tick.at)) {
                canvas.line(&[(area.left, y), (area.right, y)], guide);
            }
            for x in self.x_places(placed, canvas.size).into_iter().map(|tick| placed.x(tick.at)) {
                canvas.line(&[(x, area.bottom), (x, area.bottom + 2.5)], line);
            }
        }
        let corner = (area.left, area.bottom);
        canvas.line(&[corner, (area.right, area.bottom)], line);
        canvas.line(&[(area.left, area.top), corner], line);
    }

    /// Ticks of the x axis whose labels have room.
    fn x_places(&self, placed: &Placed<'_>, size: f64) -> Vec<Tick> {
        match &self.axes.x.scale {
            Scale::Categories(_) => self.x_ticks.clone(),
            _ => with_room(self.x_ticks.clone(), size, |value| placed.x(value)),
        }
    }

    /// Their labels.
    fn ticks(&self, placed: &Placed<'_>, canvas: &mut Canvas) {
        let (area, size) = (placed.area, canvas.size);
        for tick in &self.y_ticks {
            let above = (tick.label.lines().count().max(1) - 1) as f64 / 2.0;
            for (i, line) in tick.label.lines().enumerate() {
                let down = (i as f64 - above) * LINE * size;
                let at = (area.left - GAP, placed.y(tick.at) + down + canvas.drop());
                canvas.text(at, Anchor::End, line);
            }
        }
        for tick in self.x_places(placed, size) {
            let x = placed.x(tick.at);
            if self.slanted {
                let at = (x + canvas.drop(), area.bottom + GAP + canvas.drop() * 1.6);
                canvas.turned(at, Anchor::End, &tick.label, -SLANT);
            } else {
                let at = (x, area.bottom + GAP + 0.85 * size);
                canvas.text(at, Anchor::Middle, &tick.label);
            }
        }
    }
}

fn widest(ticks: &[Tick], canvas: &Canvas) -> f64 {
    let lines = ticks.iter().flat_map(|tick| tick.label.lines());
    lines.map(|line| canvas.width(line)).fold(0.0, f64::max)
}

/// Whether it stands beside others where they share a place.
fn has_marks(series: &Series) -> bool {
    matches!(series.style, Style::Marks | Style::Joined)
}

/// Distance by which a series is moved so that it does not hide others.
fn aside(series: &Series, number: usize, count: usize) -> f64 {
    let step = match series.spread {
        Spread::Y => (18.0 / count as f64).min(2.1 * MARK),
        Spread::X => 2.2 * MARK,
    };
    (number as f64 - (count - 1) as f64 / 2.0) * step
}

/// All that lies along one axis.
fn extents(axes: &Axes, along: Spread) -> Vec<Extent> {
    let mut extents = Vec::new();
    for layer in &axes.layers {
        match layer {
            Layer::Series(series) => extents.extend(series.points.iter().map(|point| {
                let value = if along == Spread::X { point.x } else { point.y };
                let has_interval = series.spread == along;
                if has_interval { (value, point.low, point.high) } else { (value, None, None) }
            })),
            Layer::Bars(bars) if along == Spread::X => extents.extend(
                bars.bars.iter().flat_map(|bar| [(bar.from, None, None), (bar.to, None, None)]),
            ),
            Layer::Span(span) if along == Spread::X => {
                extents.extend([(span.from, None, None), (span.to, None, None)]);
            }
            Layer::Rule { at } if along == Spread::Y => extents.push((*at, None, None)),
            Layer::Bars(_) | Layer::Span(_) | Layer::Rule { .. } => {}
        }
    }
    extents
}

/// Whether some interval ends beyond its axis.
pub(super) fn is_cut(axes: &Axes) -> bool {
    [(&axes.x, Spread::X), (&axes.y, Spread::Y)].into_iter().any(|(axis, along)| {
        let extents = extents(axes, along);
        let fitted = Fitted::new(axis, &extents, UPRIGHT_TICKS);
        let mut ends = extents.iter().flat_map(|extent| [extent.1, extent.2]).flatten();
        ends.any(|end| !fitted.has(end))
    })
}
