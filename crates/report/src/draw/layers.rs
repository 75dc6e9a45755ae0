//! The layers of a panel as shapes: points, lines, intervals, bars, spans. Where values lie is told by the panel.

use super::axis;
use super::figure::{Axes, Bars, Panel, Point, Scale, Series, Span, Spread, Style, Tone};
use super::marks::{MARK, dashes, interval, mark};
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Shape, Stroke};
use super::theme::{Colour, mixed};

/// Where values lie on the picture.
pub(super) struct Place<'a> {
    pub(super) pen: &'a Pen,
    pub(super) panel: &'a Panel,
    pub(super) axes: &'a Axes,
    pub(super) area: Area,
    pub(super) x: &'a dyn Fn(f64) -> f64,
    pub(super) y: &'a dyn Fn(f64) -> f64,
}

impl Place<'_> {
    /// How far a series is moved so that it does not hide others.
    pub(super) fn aside(&self, spread: Spread, number: usize, of: usize) -> f64 {
        let step = match spread {
            Spread::Y => (18.0 / of.max(1) as f64).min(2.1 * MARK),
            Spread::X => 2.2 * MARK,
        };
        (number as f64 - (of.max(1) - 1) as f64 / 2.0) * step
    }

    pub(super) fn series(&self, series: &Series, aside: f64, shapes: &mut Vec<Shape>) {
        let pen = self.pen;
        let colour = pen.theme.of(series.tone);
        let upright = series.spread == Spread::Y;
        let at = |point: &Point| {
            let (x, y) = ((self.x)(point.x), (self.y)(point.y));
            if upright { (x + aside, y) } else { (x, y + aside) }
        };
        let places: Vec<(f64, f64)> = series.points.iter().map(at).collect();
        let mut stroke = pen.stroke(colour, 1.2);
        let line = match series.style {
            Style::Joined | Style::Line => places.clone(),
            Style::Dashes => {
                stroke = Stroke { dashes: &[3.0, 3.0], width: 0.9, ..stroke };
                places.clone()
            }
            Style::Steps => steps(&places),
            Style::BrokenSteps => {
                stroke.dashes = dashes(series.tone);
                steps(&places)
            }
            Style::Marks | Style::Dots => Vec::new(),
        };
        if line.len() > 1 {
            shapes.push(Shape::Path(Path::through(&line, stroke)));
        }
        for (point, at) in series.points.iter().zip(places) {
            let hint = self.hint(&self.panel.series_name(&series.label), point);
            match series.style {
                Style::Marks | Style::Joined => {
                    self.point_interval(series, point, at, shapes);
                    let mark = self.mark(series.tone, point, at, colour);
                    shapes.push(Shape::Path(mark.hint(hint)));
                }
                Style::Dots => {
                    let pale = mixed(colour, pen.theme.background(), 0.45);
                    shapes.push(Shape::Path(Path::circle(at, 1.4, pale).hint(hint)));
                }
                // A line with one point is none.
                _ if series.points.len() == 1 => {
                    shapes.push(Shape::Path(mark(series.tone, at, MARK, colour).hint(hint)));
                }
                Style::Line | Style::Steps | Style::BrokenSteps | Style::Dashes => {}
            }
        }
    }

    /// Hollow of a single run where others are of several.
    fn mark(&self, tone: Tone, point: &Point, at: (f64, f64), colour: Colour) -> Path {
        let is_hollow = self.pen.hollows_single && point.is_single();
        if !is_hollow {
            return mark(tone, at, MARK, colour);
        }
        let path = mark(tone, at, 0.88 * MARK, self.pen.theme.background());
        Path { stroke: Some(self.pen.stroke(colour, 1.0)), ..path }
    }

    /// What is shown when a mark is pointed at.
    fn hint(&self, label: &str, point: &Point) -> String {
        let value = |value: f64, scale: &Scale| match scale {
            Scale::Categories(names) => {
                names.get(value.round() as usize).cloned().unwrap_or_default()
            }
            _ => axis::text(value),
        };
        let (x, y) = (value(point.x, &self.axes.x.scale), value(point.y, &self.axes.y.scale));
        let mut hint =
            if label.is_empty() { format!("{x}, {y}") } else { format!("{label}: {x}, {y}") };
        if let Some((low, high)) = point.low.zip(point.high) {
            hint.push_str(&format!(" [{}, {}]", axis::text(low), axis::text(high)));
        }
        if let Some(runs) = point.runs {
            hint.push_str(&format!(", n = {runs}"));
        }
        hint
    }

    fn point_interval(
        &self,
        series: &Series,
        point: &Point,
        at: (f64, f64),
        shapes: &mut Vec<Shape>,
    ) {
        let Some((low, high)) = point.low.zip(point.high) else { return };
        let stroke = self.pen.stroke(self.pen.theme.of(series.tone), 0.9);
        let paths = match series.spread {
            Spread::Y => {
                let ends = ((self.y)(low), (self.y)(high));
                interval(at.0, ends, (self.area.top, self.area.bottom), true, stroke)
            }
            Spread::X => {
                let ends = ((self.x)(low), (self.x)(high));
                interval(at.1, ends, (self.area.left, self.area.right), false, stroke)
            }
        };
        shapes.extend(paths.into_iter().map(Shape::Path));
    }

    pub(super) fn bars(&self, bars: &Bars, shapes: &mut Vec<Shape>) {
        let fill = self.pen.theme.of(bars.tone);
        for bar in &bars.bars {
            let (start, end) = (bar.at - 0.36, bar.at + 0.36);
            let area = match bars.on {
                Spread::X => Area {
                    left: (self.x)(start),
                    right: (self.x)(end),
                    top: (self.y)(bar.to),
                    bottom: (self.y)(bar.from),
                },
                Spread::Y => Area {
                    left: (self.x)(bar.from),
                    right: (self.x)(bar.to),
                    top: (self.y)(start),
                    bottom: (self.y)(end),
                },
            };
            let hint = format!("{}: {}", bars.label, axis::text(bar.to - bar.from));
            shapes.push(Shape::Path(Path::rectangle(area, fill).hint(hint)));
        }
    }

    pub(super) fn span(&self, span: &Span, shapes: &mut Vec<Shape>) {
        let pen = self.pen;
        let (left, right) = ((self.x)(span.from), (self.x)(span.to));
        let area = Area { left, right, ..self.area };
        let fill = span_fill(pen, span.tone);
        let hint = format!("{}: {}–{}", span.kind, axis::text(span.from), axis::text(span.to));
        shapes.push(Shape::Path(Path::rectangle(area, fill).hint(hint)));
        if pen.width(&span.label) + 4.0 <= right - left {
            let at = ((left + right) / 2.0, self.area.top - 0.35 * pen.size);
            shapes.push(pen.text(at, Anchor::Middle, &span.label));
        }
    }

    pub(super) fn rule(&self, at: f64, label: &str, shapes: &mut Vec<Shape>) {
        let (pen, area) = (self.pen, self.area);
        let y = (self.y)(at);
        let stroke = Stroke { dashes: &[2.5, 2.5], ..pen.stroke(pen.theme.line(), 0.8) };
        shapes.push(Shape::Path(Path::line((area.left, y), (area.right, y), stroke).hint(label)));
        if !label.is_empty() {
            let above = y - 0.3 * pen.size;
            shapes.push(pen.coloured((area.right, above), Anchor::End, label, pen.theme.line()));
        }
    }
}

/// Pale, so that lines are seen on it.
pub(super) fn span_fill(pen: &Pen, tone: Tone) -> Colour {
    mixed(pen.theme.of(tone), pen.theme.background(), 0.32)
}

/// Each value holds until the next point.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (i, &(x, y)) in points.iter().enumerate() {
        if let Some(before) = i.checked_sub(1) {
            corners.push((x, points[before].1));
        }
        corners.push((x, y));
    }
    corners
}
