//! Draws a placed panel: frame, ticks, titles and layers.

use super::axis::{self, with_room};
use super::canvas::{Anchor, Area, At, Canvas, Paint, Stroke};
use super::figure::{Bars, Layer, Point, Rule, Scale, Series, ShadedSpan, Spread, Style, Tone};
use super::font;
use super::marks::{MARK, dashes, filled, hatch, interval, mark, rule_stroke};
use super::panel::{FittedPanel, GAP, LINE, SLANT, TITLE_OVER, has_marks, stand_aside};
use super::theme::{Colour, Palette, mixed};

/// A panel with its place.
pub(super) struct Placed<'a> {
    pub(super) fitted: &'a FittedPanel<'a>,
    /// Between the axes.
    pub(super) area: Area,
}

impl Placed<'_> {
    /// Draws the panel with its titles. `left`: start of its margin. `page`: ends of the page, which wide titles do not cross.
    pub(super) fn draw(&self, left: f64, page: [f64; 2], canvas: &mut Canvas) {
        let FittedPanel { panel, axes, .. } = self.fitted;
        self.fitted.spans().for_each(|span| self.span(span, canvas));
        self.frame(canvas);
        let beside = panel.all_series().filter(|series| has_marks(series)).count();
        let stand_aside = stand_aside(axes);
        let is_moved = |series: &Series| stand_aside || series.spread == Spread::X;
        let mut number = 0;
        for layer in &axes.layers {
            if let Layer::Rule(rule) = layer {
                self.rule(rule, canvas);
            }
            let Some(label) = layer.label() else { continue };
            canvas.begin(&panel.series_name(label));
            match layer {
                Layer::Bars(bars) => self.bars(bars, canvas),
                Layer::Series(series) if has_marks(series) && is_moved(series) => {
                    self.series(series, aside(series, number, beside), canvas);
                    number += 1;
                }
                Layer::Series(series) => self.series(series, 0.0, canvas),
                Layer::Span(_) | Layer::Rule(_) => {}
            }
            canvas.end();
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
            let y = self.y(tick.at);
            if !self.is_list() {
                canvas.line(&[(area.left, y), (area.right, y)], guide);
            }
            let above = (tick.label.lines().count().max(1) - 1) as f64 / 2.0;
            for (i, text) in tick.label.lines().enumerate() {
                let down = (i as f64 - above) * LINE * size;
                canvas.text((area.left - GAP, y + down + canvas.drop()), Anchor::End, text);
            }
        }
        let ticks = self.fitted.x_ticks.clone();
        let ticks = match &self.fitted.axes.x.scale {
            Scale::Categories(_) => ticks,
            _ => with_room(ticks, size, |value| self.x(value)),
        };
        for tick in ticks {
            let x = self.x(tick.at);
            if self.is_list() {
                canvas.line(&[(x, area.top), (x, area.bottom)], guide);
            } else {
                canvas.line(&[(x, area.bottom), (x, area.bottom + 2.5)], line);
            }
            let down = area.bottom + GAP;
            if self.fitted.slanted {
                let at = (x + canvas.drop(), down + canvas.drop() * 1.6);
                canvas.turned(at, Anchor::End, &tick.label, -SLANT);
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
            let at = (left + 0.85 * size, (area.top + area.bottom) / 2.0);
            let most = (area.height() + TITLE_OVER * size).max(40.0);
            canvas.turned(at, Anchor::Middle, &font::shortened(title, size, most), -90.0);
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
        self.area.left + self.fitted.x.share(value) * self.area.width()
    }

    /// The vertical place of a value: upwards, but downwards for categories.
    fn y(&self, value: f64) -> f64 {
        let share = self.fitted.y.share(value) * self.area.height();
        if self.is_list() { self.area.top + share } else { self.area.bottom - share }
    }

    /// Whether the y axis has categories.
    fn is_list(&self) -> bool {
        self.fitted.is_list()
    }

    fn at(&self, point: &Point) -> At {
        (self.x(point.x), self.y(point.y))
    }

    /// Draws a series. `aside`: its offset so that it does not hide others.
    fn series(&self, series: &Series, aside: f64, canvas: &mut Canvas) {
        let colour = canvas.palette.colour(series.tone);
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
            let hint = self.hint(&self.fitted.panel.series_name(&series.label), point);
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
                    let pale = mixed(colour, canvas.palette.background, 0.45);
                    canvas.circle(at, 1.4, Paint::fill(pale), &hint);
                }
                // A line of one point would be invisible, so it gets a mark.
                _ if series.points.len() == 1 => {
                    mark(canvas, series.tone, at, MARK, Paint::fill(colour), &hint);
                }
                Style::Line | Style::Steps | Style::BrokenSteps | Style::Dashes => {}
            }
        }
    }

    /// Draws a mark, hollow for a single run among means of several.
    fn mark(&self, tone: Tone, point: &Point, at: At, hint: &str, canvas: &mut Canvas) {
        let colour = canvas.palette.colour(tone);
        if self.fitted.labels.hollow_singles && point.is_single() {
            let paint = Paint::outlined(canvas.palette.background, Stroke::new(colour, 1.0));
            mark(canvas, tone, at, 0.88 * MARK, paint, hint);
        } else {
            mark(canvas, tone, at, MARK, Paint::fill(colour), hint);
        }
    }

    /// The tooltip of a mark.
    fn hint(&self, label: &str, point: &Point) -> String {
        let colon = if label.is_empty() { "" } else { ": " };
        let x = value(point.x, &self.fitted.axes.x.scale);
        let mut hint = format!("{label}{colon}{x}, {}", value(point.y, &self.fitted.axes.y.scale));
        if let Some((low, high)) = point.low.zip(point.high) {
            hint.push_str(&format!(" [{}, {}]", axis::text(low), axis::text(high)));
        }
        if let Some(runs) = point.runs {
            hint.push_str(&format!(", n = {runs}"));
        }
        hint
    }

    fn bars(&self, bars: &Bars, canvas: &mut Canvas) {
        for bar in &bars.bars {
            // A row is as high as its longest name, but bars have a maximum height.
            let half = (self.y(bar.at + 0.36) - self.y(bar.at)).min(THICKEST * canvas.size);
            let middle = self.y(bar.at);
            let area = Area {
                left: self.x(bar.from),
                right: self.x(bar.to),
                top: middle - half,
                bottom: middle + half,
            };
            let hint = format!("{}: {}", bars.label, axis::text(bar.to - bar.from));
            filled(canvas, bars.tone, area, &hint);
        }
    }

    fn span(&self, span: &ShadedSpan, canvas: &mut Canvas) {
        let left = self.x(span.from);
        let right = self.x(span.to);
        let hint = format!("{}: {}–{}", span.kind, axis::text(span.from), axis::text(span.to));
        self::span(canvas, span.tone, Area { left, right, ..self.area }, &hint);
        if canvas.width(&span.label) + 4.0 <= right - left {
            let at = ((left + right) / 2.0, self.area.top - 0.35 * canvas.size);
            canvas.text(at, Anchor::Middle, &span.label);
        }
    }

    fn rule(&self, rule: &Rule, canvas: &mut Canvas) {
        let y = self.y(rule.at);
        let stroke = rule_stroke(rule.line, canvas.palette);
        canvas.line(&[(self.area.left, y), (self.area.right, y)], stroke);
    }
}

/// Maximum half height of a bar, in text sizes.
const THICKEST: f64 = 0.56;

/// The offset of a series so that it does not hide others.
fn aside(series: &Series, number: usize, count: usize) -> f64 {
    let step = match series.spread {
        Spread::Y => (18.0 / count as f64).min(2.1 * MARK),
        Spread::X => 2.2 * MARK,
    };
    (number as f64 - (count - 1) as f64 / 2.0) * step
}

fn value(value: f64, scale: &Scale) -> String {
    match scale {
        Scale::Categories(names) => names.get(value.round() as usize).cloned().unwrap_or_default(),
        _ => axis::text(value),
    }
}

/// Draws a shaded span. It is pale so that lines stay visible, and hatched unless faint, so that spans differ in grey too.
pub(super) fn span(canvas: &mut Canvas, tone: Tone, area: Area, hint: &str) {
    let colour = canvas.palette.colour(tone);
    let pale = span_fill(canvas.palette, tone);
    canvas.rectangle(area, pale, hint);
    let slopes: &[f64] = match tone {
        Tone::Faint => &[],
        Tone::Hue(2) => &[-1.0],
        _ => &[1.0],
    };
    hatch(canvas, slopes, area, Stroke::new(mixed(colour, pale, 0.6), 0.5));
}

/// The pale fill of a span, on which lines stay visible.
fn span_fill(palette: &Palette, tone: Tone) -> Colour {
    mixed(palette.colour(tone), palette.background, 0.32)
}

/// The corners of a line that steps to each next value at its point.
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
