//! Draws a placed panel: frame, ticks, titles and layers.

use super::axis::{self, without_overlaps};
use super::canvas::{Anchor, Area, Canvas, Paint, Position, Stroke};
use super::figure::{Bars, Layer, Point, Rule, Scale, Series, ShadedSpan, Spread, Style, Tone};
use super::font;
use super::marks::{MARK_RADIUS, dashes, hatch, hatched_area, interval, mark, rule_stroke};
use super::panel::{
    FittedPanel, LABEL_GAP, LINE_HEIGHT, SLANT_DEGREES, TITLE_OVERHANG, has_marks, needs_offsets,
};
use super::theme::{Colour, Palette, blend};

/// A panel with its position.
pub(super) struct PlacedPanel<'a> {
    pub(super) fitted: &'a FittedPanel<'a>,
    /// Between the axes.
    pub(super) area: Area,
}

impl PlacedPanel<'_> {
    /// Draws the panel with its titles. `left` is the start of its margin. Wide titles stay between the ends of the `page`.
    pub(super) fn draw(&self, left: f64, page: [f64; 2], canvas: &mut Canvas) {
        let FittedPanel { panel, axes, .. } = self.fitted;
        self.fitted.spans().for_each(|span| self.span(span, canvas));
        self.frame(canvas);
        let count = panel.all_series().filter(|series| has_marks(series)).count();
        let needs_offsets = needs_offsets(axes);
        let is_moved = |series: &Series| needs_offsets || series.spread == Spread::X;
        let mut number = 0;
        for layer in &axes.layers {
            if let Layer::Rule(rule) = layer {
                self.rule(rule, canvas);
            }
            let Some(label) = layer.label() else { continue };
            canvas.begin_group(&panel.series_name(label));
            match layer {
                Layer::Bars(bars) => self.bars(bars, canvas),
                Layer::Series(series) if has_marks(series) && is_moved(series) => {
                    self.series(series, series_offset(series, number, count), canvas);
                    number += 1;
                }
                Layer::Series(series) => self.series(series, 0.0, canvas),
                Layer::Span(_) | Layer::Rule(_) => {}
            }
            canvas.end_group();
        }
        self.titles(left, page, canvas);
    }

    /// Draws the axes with ticks and guide lines.
    fn frame(&self, canvas: &mut Canvas) {
        let area = self.area;
        let size = canvas.size;
        let line = Stroke::new(canvas.palette.line, 0.7);
        let guide = Stroke::new(canvas.palette.grid, 0.6);
        for tick in &self.fitted.y_ticks {
            let y = self.y(tick.value);
            if !self.has_categories() {
                canvas.line(&[(area.left, y), (area.right, y)], guide);
            }
            let above = (tick.label.lines().count().max(1) - 1) as f64 / 2.0;
            for (i, text) in tick.label.lines().enumerate() {
                let down = (i as f64 - above) * LINE_HEIGHT * size;
                canvas.text(
                    (area.left - LABEL_GAP, y + down + canvas.baseline_offset()),
                    Anchor::End,
                    text,
                );
            }
        }
        let ticks = self.fitted.x_ticks.clone();
        let ticks = match &self.fitted.axes.x.scale {
            Scale::Categories(_) => ticks,
            _ => without_overlaps(ticks, size, |value| self.x(value)),
        };
        for tick in ticks {
            let x = self.x(tick.value);
            if self.has_categories() {
                canvas.line(&[(x, area.top), (x, area.bottom)], guide);
            } else {
                canvas.line(&[(x, area.bottom), (x, area.bottom + 2.5)], line);
            }
            let down = area.bottom + LABEL_GAP;
            if self.fitted.is_slanted {
                let position =
                    (x + canvas.baseline_offset(), down + canvas.baseline_offset() * 1.6);
                canvas.rotated_text(position, Anchor::End, &tick.label, -SLANT_DEGREES);
            } else {
                canvas.text((x, down + 0.85 * size), Anchor::Middle, &tick.label);
            }
        }
        let corner = (area.left, area.bottom);
        canvas.line(&[corner, (area.right, area.bottom)], line);
        canvas.line(&[(area.left, area.top), corner], line);
    }

    fn titles(&self, left: f64, page: [f64; 2], canvas: &mut Canvas) {
        let area = self.area;
        let size = canvas.size;
        if let Some(title) = self.fitted.y_title() {
            let position = (left + 0.85 * size, (area.top + area.bottom) / 2.0);
            let width_max = (area.height() + TITLE_OVERHANG * size).max(40.0);
            canvas.rotated_text(
                position,
                Anchor::Middle,
                &font::shorten(title, size, width_max),
                -90.0,
            );
        }
        if let Some(title) = self.fitted.x_title() {
            let half = canvas.width(title) / 2.0;
            let middle = (area.left + area.right) / 2.0;
            let middle = middle.min(page[1] - half).max(page[0] + half);
            let under = area.bottom + self.fitted.margins(canvas).bottom - 0.3 * size;
            canvas.text((middle, under), Anchor::Middle, title);
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.area.left + self.fitted.x.position(value) * self.area.width()
    }

    /// The vertical coordinate of a value. Values grow upwards, categories downwards.
    fn y(&self, value: f64) -> f64 {
        let share = self.fitted.y.position(value) * self.area.height();
        if self.has_categories() { self.area.top + share } else { self.area.bottom - share }
    }

    /// Whether the y axis has categories.
    fn has_categories(&self) -> bool {
        self.fitted.has_categories()
    }

    fn position(&self, point: &Point) -> Position {
        (self.x(point.x), self.y(point.y))
    }

    /// Draws a series, offset by `aside` to keep other series visible.
    fn series(&self, series: &Series, aside: f64, canvas: &mut Canvas) {
        let colour = canvas.palette.colour(series.tone);
        let is_upright = series.spread == Spread::Y;
        let (right, down) = if is_upright { (aside, 0.0) } else { (0.0, aside) };
        let places = series.points.iter().map(|point| self.position(point));
        let places: Vec<Position> = places.map(|(x, y)| (x + right, y + down)).collect();
        let stroke = Stroke::new(colour, 1.2);
        let (line, stroke) = match series.style {
            Style::Marks | Style::Dots => (Vec::new(), stroke),
            Style::Joined | Style::Line => (places.clone(), stroke),
            Style::Dashes => (places.clone(), Stroke { dashes: &[3.0, 3.0], width: 0.9, ..stroke }),
            Style::Steps => (steps(&places), stroke),
            Style::BrokenSteps => {
                (steps(&places), Stroke { dashes: dashes(series.tone), ..stroke })
            }
        };
        if line.len() > 1 {
            canvas.line(&line, stroke);
        }
        for (point, position) in series.points.iter().zip(places) {
            let tooltip = self.tooltip(&self.fitted.panel.series_name(&series.label), point);
            match series.style {
                Style::Marks | Style::Joined => {
                    if let Some((low, high)) = point.low.zip(point.high) {
                        let x = [self.x(low), self.x(high)];
                        let y = [self.y(low), self.y(high)];
                        let ends = if is_upright { y } else { x };
                        let thin = Stroke::new(colour, 0.9);
                        interval(canvas, position, ends, self.area, is_upright, thin);
                    }
                    // Two runs are drawn instead of their mean.
                    let pair = point.pair.map(|values| {
                        values.map(|value| {
                            if is_upright {
                                (position.0, self.y(value))
                            } else {
                                (self.x(value), position.1)
                            }
                        })
                    });
                    for position in pair.as_ref().map_or(&[position][..], |pair| pair) {
                        self.mark(series.tone, point, *position, &tooltip, canvas);
                    }
                }
                Style::Dots => {
                    let pale = blend(colour, canvas.palette.background, 0.45);
                    canvas.circle(position, 1.4, Paint::fill(pale), &tooltip);
                }
                // A line of one point would be invisible, so it gets a mark.
                _ if series.points.len() == 1 => {
                    mark(canvas, series.tone, position, MARK_RADIUS, Paint::fill(colour), &tooltip);
                }
                Style::Line | Style::Steps | Style::BrokenSteps | Style::Dashes => {}
            }
        }
    }

    /// Draws a mark: hollow for a single run if other marks are means of several runs.
    fn mark(
        &self,
        tone: Tone,
        point: &Point,
        position: Position,
        tooltip: &str,
        canvas: &mut Canvas,
    ) {
        let colour = canvas.palette.colour(tone);
        if self.fitted.labels.hollow_singles && point.is_single() {
            let paint = Paint::fill_and_stroke(canvas.palette.background, Stroke::new(colour, 1.0));
            mark(canvas, tone, position, 0.88 * MARK_RADIUS, paint, tooltip);
        } else {
            mark(canvas, tone, position, MARK_RADIUS, Paint::fill(colour), tooltip);
        }
    }

    /// The tooltip of a mark.
    fn tooltip(&self, label: &str, point: &Point) -> String {
        let colon = if label.is_empty() { "" } else { ": " };
        let x = value(point.x, &self.fitted.axes.x.scale);
        let mut tooltip =
            format!("{label}{colon}{x}, {}", value(point.y, &self.fitted.axes.y.scale));
        if let Some((low, high)) = point.low.zip(point.high) {
            tooltip.push_str(&format!(
                " [{}, {}]",
                axis::short_number(low),
                axis::short_number(high)
            ));
        }
        if let Some([first, second]) = point.pair {
            let values = [first, second].map(axis::short_number);
            tooltip.push_str(&format!(" ({} and {})", values[0], values[1]));
        }
        if let Some(runs) = point.runs {
            tooltip.push_str(&format!(", n = {runs}"));
        }
        tooltip
    }

    fn bars(&self, bars: &Bars, canvas: &mut Canvas) {
        for bar in &bars.bars {
            // A row is as high as its longest name, but bars have a maximum height.
            let half = (self.y(bar.at + 0.36) - self.y(bar.at)).min(HALF_HEIGHT_MAX * canvas.size);
            let middle = self.y(bar.at);
            let area = Area {
                left: self.x(bar.from),
                right: self.x(bar.to),
                top: middle - half,
                bottom: middle + half,
            };
            let tooltip = format!("{}: {}", bars.label, axis::short_number(bar.to - bar.from));
            hatched_area(canvas, bars.tone, area, &tooltip);
        }
    }

    fn span(&self, span: &ShadedSpan, canvas: &mut Canvas) {
        let left = self.x(span.from);
        let right = self.x(span.to);
        let tooltip = format!(
            "{}: {}–{}",
            span.kind,
            axis::short_number(span.from),
            axis::short_number(span.to)
        );
        self::span(canvas, span.tone, Area { left, right, ..self.area }, &tooltip);
        if canvas.width(&span.label) + 4.0 <= right - left {
            let position = ((left + right) / 2.0, self.area.top - 0.35 * canvas.size);
            canvas.text(position, Anchor::Middle, &span.label);
        }
    }

    fn rule(&self, rule: &Rule, canvas: &mut Canvas) {
        let y = self.y(rule.at);
        let stroke = rule_stroke(rule.line, canvas.palette);
        canvas.line(&[(self.area.left, y), (self.area.right, y)], stroke);
    }
}

/// Maximum half height of a bar, in text sizes.
const HALF_HEIGHT_MAX: f64 = 0.56;

/// The offset of a series that keeps other series visible.
fn series_offset(series: &Series, number: usize, count: usize) -> f64 {
    let step = match series.spread {
        Spread::Y => (18.0 / count as f64).min(2.1 * MARK_RADIUS),
        Spread::X => 2.2 * MARK_RADIUS,
    };
    (number as f64 - (count - 1) as f64 / 2.0) * step
}

fn value(value: f64, scale: &Scale) -> String {
    match scale {
        Scale::Categories(names) => names.get(value.round() as usize).cloned().unwrap_or_default(),
        _ => axis::short_number(value),
    }
}

/// Draws a shaded span. A pale colour keeps lines visible; hatching distinguishes spans without colour.
pub(super) fn span(canvas: &mut Canvas, tone: Tone, area: Area, tooltip: &str) {
    let colour = canvas.palette.colour(tone);
    let pale = span_fill(canvas.palette, tone);
    canvas.rectangle(area, pale, tooltip);
    let slopes: &[f64] = match tone {
        Tone::Faint => &[],
        Tone::Hue(2) => &[-1.0],
        _ => &[1.0],
    };
    hatch(canvas, slopes, area, Stroke::new(blend(colour, pale, 0.6), 0.5));
}

/// The pale fill of a span, on which lines stay visible.
fn span_fill(palette: &Palette, tone: Tone) -> Colour {
    blend(palette.colour(tone), palette.background, 0.32)
}

/// The corners of a line that steps to each next value at its point.
fn steps(points: &[Position]) -> Vec<Position> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (i, &(x, y)) in points.iter().enumerate() {
        if let Some(before) = i.checked_sub(1) {
            corners.push((x, points[before].1));
        }
        corners.push((x, y));
    }
    corners
}
