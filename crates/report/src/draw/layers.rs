//! The layers of a panel that has its place: points, lines, intervals, bars, spans.

use super::axis::{self, Fitted};
use super::canvas::{Anchor, Area, At, Canvas, Paint, Stroke};
use super::figure::{Axes, Bars, Panel, Point, Scale, Series, Span, Spread, Style, Tone};
use super::marks::{MARK, dashes, interval, mark};
use super::theme::{Colour, Theme, mixed};

/// A panel with its place.
pub(super) struct Placed<'a> {
    pub(super) panel: &'a Panel,
    pub(super) axes: &'a Axes,
    pub(super) x: &'a Fitted<'a>,
    pub(super) y: &'a Fitted<'a>,
    pub(super) area: Area,
    /// Marks of single runs are hollow.
    pub(super) hollow_singles: bool,
}

impl Placed<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.area.left + self.x.share(value) * self.area.width()
    }

    /// Upwards; categories from the top.
    pub(super) fn y(&self, value: f64) -> f64 {
        let share = self.y.share(value) * self.area.height();
        if self.is_list() { self.area.top + share } else { self.area.bottom - share }
    }

    /// Whether its rows have names.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.axes.y.scale, Scale::Categories(_))
    }

    fn at(&self, point: &Point) -> At {
        (self.x(point.x), self.y(point.y))
    }

    /// `aside`: how far it is moved so that it does not hide others.
    pub(super) fn series(&self, series: &Series, aside: f64, canvas: &mut Canvas) {
        let colour = canvas.theme.colour(series.tone);
        let is_upright = series.spread == Spread::Y;
        let (right, down) = if is_upright { (aside, 0.0) } else { (0.0, aside) };
        let places = series.points.iter().map(|point| self.at(point));
        let places: Vec<At> = places.map(|(x, y)| (x + right, y + down)).collect();
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
        for (point, at) in series.points.iter().zip(places) {
            let hint = self.hint(&self.panel.series_name(&series.label), point);
            match series.style {
                Style::Marks | Style::Joined => {
                    if let Some((low, high)) = point.low.zip(point.high) {
                        let x = [self.x(low), self.x(high)];
                        let y = [self.y(low), self.y(high)];
                        let ends = if is_upright { y } else { x };
                        let thin = Stroke::new(colour, 0.9);
                        interval(canvas, at, ends, self.area, is_upright, thin);
                    }
                    self.mark(series.tone, point, at, &hint, canvas);
                }
                Style::Dots => {
                    let pale = mixed(colour, canvas.theme.background(), 0.45);
                    canvas.circle(at, 1.4, Paint::fill(pale), &hint);
                }
                // A line with one point is none.
                _ if series.points.len() == 1 => {
                    mark(canvas, series.tone, at, MARK, Paint::fill(colour), &hint);
                }
                Style::Line | Style::Steps | Style::BrokenSteps | Style::Dashes => {}
            }
        }
    }

    /// Hollow of a single run where others are of several.
    fn mark(&self, tone: Tone, point: &Point, at: At, hint: &str, canvas: &mut Canvas) {
        let colour = canvas.theme.colour(tone);
        if self.hollow_singles && point.is_single() {
            let paint = Paint::outlined(canvas.theme.background(), Stroke::new(colour, 1.0));
            mark(canvas, tone, at, 0.88 * MARK, paint, hint);
        } else {
            mark(canvas, tone, at, MARK, Paint::fill(colour), hint);
        }
    }

    /// Shown when a mark is pointed at.
    fn hint(&self, label: &str, point: &Point) -> String {
        let colon = if label.is_empty() { "" } else { ": " };
        let x = value(point.x, &self.axes.x.scale);
        let mut hint = format!("{label}{colon}{x}, {}", value(point.y, &self.axes.y.scale));
        if let Some((low, high)) = point.low.zip(point.high) {
            hint.push_str(&format!(" [{}, {}]", axis::text(low), axis::text(high)));
        }
        if let Some(runs) = point.runs {
            hint.push_str(&format!(", n = {runs}"));
        }
        hint
    }

    pub(super) fn bars(&self, bars: &Bars, canvas: &mut Canvas) {
        let fill = canvas.theme.colour(bars.tone);
        for bar in &bars.bars {
            let area = Area {
                left: self.x(bar.from),
                right: self.x(bar.to),
                top: self.y(bar.at - 0.36),
                bottom: self.y(bar.at + 0.36),
            };
            let hint = format!("{}: {}", bars.label, axis::text(bar.to - bar.from));
            canvas.rectangle(area, fill, &hint);
        }
    }

    pub(super) fn span(&self, span: &Span, canvas: &mut Canvas) {
        let (left, right) = (self.x(span.from), self.x(span.to));
        let hint = format!("{}: {}–{}", span.kind, axis::text(span.from), axis::text(span.to));
        let fill = span_fill(canvas.theme, span.tone);
        canvas.rectangle(Area { left, right, ..self.area }, fill, &hint);
        if canvas.width(&span.label) + 4.0 <= right - left {
            let at = ((left + right) / 2.0, self.area.top - 0.35 * canvas.size);
            canvas.text(at, Anchor::Middle, &span.label);
        }
    }

    pub(super) fn rule(&self, at: f64, canvas: &mut Canvas) {
        let y = self.y(at);
        let stroke = Stroke { dashes: &[2.5, 2.5], ..Stroke::new(canvas.theme.line(), 0.8) };
        canvas.line(&[(self.area.left, y), (self.area.right, y)], stroke);
    }
}

fn value(value: f64, scale: &Scale) -> String {
    match scale {
        Scale::Categories(names) => names.get(value.round() as usize).cloned().unwrap_or_default(),
        _ => axis::text(value),
    }
}

/// Pale, so that lines are seen on it.
pub(super) fn span_fill(theme: Theme, tone: Tone) -> Colour {
    mixed(theme.colour(tone), theme.background(), 0.32)
}

/// Each value holds until the next point.
fn steps(points: &[At]) -> Vec<At> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (i, &(x, y)) in points.iter().enumerate() {
        if let Some(before) = i.checked_sub(1) {
            corners.push((x, points[before].1));
        }
        corners.push((x, y));
    }
    corners
}
