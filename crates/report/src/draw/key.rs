//! The key: names of series, each with its sign. Whether a figure has one, and where, is the layout's business.

use super::figure::{Axes, Content, Figure, Layer, Panel, Style, Tone};
use super::font;
use super::layers::span_fill;
use super::marks::{MARK, dashes, mark};
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Shape};

/// A name, and what stands for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    tone: Tone,
    sign: Sign,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sign {
    Of(Style),
    Area,
    Span,
}

/// Named series of a panel.
pub(super) fn entries(panel: &Panel) -> Vec<Entry> {
    let layers = match &panel.content {
        Content::Axes(Axes { layers, .. }) => layers.as_slice(),
        Content::Pie { .. } | Content::Matrix(_) => &[],
    };
    let entry = |layer: &Layer| {
        let (name, tone, sign) = match layer {
            Layer::Series(series) => (&series.label, series.tone, Sign::Of(series.style)),
            Layer::Bars(bars) => (&bars.label, bars.tone, Sign::Area),
            Layer::Span(span) => (&span.kind, span.tone, Sign::Span),
            Layer::Rule { .. } => return None,
        };
        (!name.is_empty()).then(|| Entry { name: name.clone(), tone, sign })
    };
    let mut entries: Vec<Entry> = Vec::new();
    for entry in layers.iter().filter_map(entry) {
        if !entries.iter().any(|known| known.name == entry.name) {
            entries.push(entry);
        }
    }
    entries
}

/// Those of all panels, where each name and each colour has one meaning in all of them; else `None`.
pub(super) fn common(figure: &Figure) -> Option<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    for panel in &figure.panels {
        let mut own = entries(panel);
        own.iter_mut().for_each(|entry| entry.name = panel.series_name(&entry.name));
        let is_span = |entry: &Entry| entry.sign == Sign::Span;
        let differs = |one: &Entry, other: &Entry| {
            let is_like = one.tone == other.tone && is_span(one) == is_span(other);
            one != other && (one.name == other.name || is_like)
        };
        if own.iter().any(|one| all.iter().any(|other| differs(one, other))) {
            return None;
        }
        own.retain(|entry| !all.contains(entry));
        all.extend(own);
    }
    let is_taken = |tone: Tone| all.iter().any(|entry| entry.tone == tone);
    let mut unnamed = figure.panels.iter().flat_map(unnamed);
    (!unnamed.any(is_taken)).then_some(all)
}

/// Colours of lines and marks of a panel that have no name.
fn unnamed(panel: &Panel) -> Vec<Tone> {
    let Content::Axes(axes) = &panel.content else { return Vec::new() };
    let tone = |layer: &Layer| match layer {
        Layer::Series(one) if one.label.is_empty() => {
            matches!(one.style, Style::Joined | Style::Marks).then_some(one.tone)
        }
        _ => None,
    };
    axes.layers.iter().filter_map(tone).collect()
}

/// Draw them from the left, in as many lines as they take. Returns where they end.
pub(super) fn draw(
    entries: &[Entry],
    pen: &Pen,
    (left, right): (f64, f64),
    top: f64,
    shapes: &mut Vec<Shape>,
) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let is_broken = |entry: &Entry| entry.sign == Sign::Of(Style::BrokenSteps);
    let sign = if entries.iter().any(is_broken) { 2.8 } else { 1.5 } * pen.size;
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let names = font::shortened_apart(&names, pen.size, right - left - sign - 6.0);
    let (mut x, mut y) = (left + 2.0, top + 0.6 * pen.size);
    for (entry, name) in entries.iter().zip(names) {
        let width = sign + pen.width(&name) + 12.0;
        if left + 2.0 < x && right < x + width - 12.0 {
            (x, y) = (left + 2.0, y + 1.35 * pen.size);
        }
        draw_sign(entry, pen, (x, y), sign - 4.0, shapes);
        shapes.push(pen.text((x + sign, y + pen.drop()), Anchor::Start, &name));
        x += width;
    }
    y + 1.1 * pen.size
}

fn draw_sign(entry: &Entry, pen: &Pen, (x, y): (f64, f64), width: f64, shapes: &mut Vec<Shape>) {
    let tone = entry.tone;
    let colour = pen.theme.of(tone);
    let mut stroke = pen.stroke(colour, 1.2);
    let mut line = |stroke| shapes.push(Shape::Path(Path::line((x, y), (x + width, y), stroke)));
    match entry.sign {
        Sign::Area | Sign::Span => {
            let is_span = entry.sign == Sign::Span;
            let colour = if is_span { span_fill(pen, tone) } else { colour };
            let half = 0.36 * pen.size;
            let area = Area { left: x, right: x + width, top: y - half, bottom: y + half };
            shapes.push(Shape::Path(Path::rectangle(area, colour)));
            return;
        }
        Sign::Of(Style::Marks | Style::Dots) => {}
        Sign::Of(Style::Dashes) => {
            stroke.dashes = &[3.0, 3.0];
            line(stroke);
        }
        Sign::Of(Style::BrokenSteps) => {
            stroke.dashes = dashes(tone);
            line(stroke);
        }
        Sign::Of(Style::Joined | Style::Line | Style::Steps) => line(stroke),
    }
    if matches!(entry.sign, Sign::Of(Style::Marks | Style::Joined | Style::Dots)) {
        shapes.push(Shape::Path(mark(tone, (x + width / 2.0, y), MARK, colour)));
    }
}
