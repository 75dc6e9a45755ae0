//! Draws the key: the names of series with their signs. The layout decides whether and where a figure has one.

use super::canvas::{Anchor, Area, At, Canvas, Paint, Stroke};
use super::figure::{Figure, Layer, Panel, RuleLine, Style, Tone};
use super::font;
use super::layers::span;
use super::marks::{MARK, dashes, filled, mark, rule_stroke};
use super::panel::LINE;

/// A name with its sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyEntry {
    pub(super) name: String,
    tone: Tone,
    sign: Sign,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sign {
    Line(Style),
    Area,
    Span,
    Rule(RuleLine),
}

/// The key entries of a panel's named layers.
pub(super) fn entries(panel: &Panel) -> Vec<KeyEntry> {
    let mut entries: Vec<KeyEntry> = Vec::new();
    for layer in &panel.axes.layers {
        let (name, tone, sign) = match layer {
            Layer::Series(series) => (&series.label, series.tone, Sign::Line(series.style)),
            Layer::Bars(bars) => (&bars.label, bars.tone, Sign::Area),
            Layer::Span(span) => (&span.kind, span.tone, Sign::Span),
            Layer::Rule(rule) => (&rule.label, Tone::Open, Sign::Rule(rule.line)),
        };
        if !name.is_empty() && !entries.iter().any(|known| known.name == *name) {
            entries.push(KeyEntry { name: name.clone(), tone, sign });
        }
    }
    entries
}

/// The common key of all panels; `None` if a name or a colour has different meanings in them.
pub(super) fn common(figure: &Figure) -> Option<Vec<KeyEntry>> {
    let mut all: Vec<KeyEntry> = Vec::new();
    for panel in &figure.panels {
        for mut entry in entries(panel) {
            // Rules, such as a target, are not levels of a factor.
            if !matches!(entry.sign, Sign::Rule(_)) {
                entry.name = panel.series_name(&entry.name);
            }
            if all.iter().any(|other| entry.differs(other)) {
                return None;
            }
            match all.iter_mut().find(|known| known.name == entry.name) {
                // A series may be joined in one panel and not in another.
                Some(known) if entry.sign == Sign::Line(Style::Joined) => *known = entry,
                Some(_) => {}
                None => all.push(entry),
            }
        }
    }
    let series = figure.panels.iter().flat_map(Panel::all_series);
    let mut unnamed = series
        .filter(|line| line.label.is_empty() && matches!(line.style, Style::Joined | Style::Marks));
    let is_clear = !unnamed.any(|line| all.iter().any(|entry| entry.tone == line.tone));
    is_clear.then_some(all)
}

impl KeyEntry {
    /// Whether the same name or the same look means something else in another entry.
    fn differs(&self, other: &KeyEntry) -> bool {
        (self.name == other.name) != self.looks_like(other)
    }

    fn looks_like(&self, other: &KeyEntry) -> bool {
        let has_marks = |sign| matches!(sign, Sign::Line(Style::Marks | Style::Joined));
        let is_same_sign =
            self.sign == other.sign || (has_marks(self.sign) && has_marks(other.sign));
        self.tone == other.tone && is_same_sign
    }

    /// Draws the sign with its left end at `at`.
    fn draw(&self, at: At, width: f64, canvas: &mut Canvas) {
        let colour = canvas.palette.colour(self.tone);
        let ends = [at, (at.0 + width, at.1)];
        let middle = (at.0 + width / 2.0, at.1);
        let broken = match self.sign {
            Sign::Line(Style::Dashes) => &[3.0, 3.0],
            Sign::Line(Style::BrokenSteps) => dashes(self.tone),
            _ => &[],
        };
        let half = 0.36 * canvas.size;
        let area = Area { left: at.0, right: at.0 + width, top: at.1 - half, bottom: at.1 + half };
        match self.sign {
            Sign::Area => filled(canvas, self.tone, area, ""),
            Sign::Rule(line) => canvas.line(&ends, rule_stroke(line, canvas.palette)),
            Sign::Span => span(canvas, self.tone, area, ""),
            Sign::Line(style) => {
                if !matches!(style, Style::Marks | Style::Dots) {
                    canvas.line(&ends, Stroke { dashes: broken, ..Stroke::new(colour, 1.2) });
                }
                if matches!(style, Style::Marks | Style::Joined | Style::Dots) {
                    mark(canvas, self.tone, middle, MARK, Paint::fill(colour), "");
                }
            }
        }
    }
}

/// Draws entries from the left in as many lines as needed, and returns their lower end. The bottom of `area` is ignored.
pub(super) fn draw(entries: &[KeyEntry], area: Area, canvas: &mut Canvas) -> f64 {
    if entries.is_empty() {
        return area.top;
    }
    let size = canvas.size;
    let is_broken = |entry: &KeyEntry| entry.sign == Sign::Line(Style::BrokenSteps);
    let sign = if entries.iter().any(is_broken) { 2.8 } else { 1.5 } * size;
    let start = area.left + 2.0;
    let (mut x, mut y) = (start, area.top + 0.6 * size);
    for entry in entries {
        let lines = font::wrapped(&entry.name, size, area.width() - sign - 6.0);
        let widest = lines.iter().map(|line| canvas.width(line)).fold(0.0, f64::max);
        if start < x && area.right < x + sign + widest {
            (x, y) = (start, y + 1.35 * size);
        }
        entry.draw((x, y), sign - 4.0, canvas);
        for (i, line) in lines.iter().enumerate() {
            y += if i == 0 { 0.0 } else { LINE * size };
            canvas.text((x + sign, y + canvas.drop()), Anchor::Start, line);
        }
        x += sign + widest + 12.0;
    }
    y + 1.1 * size
}
