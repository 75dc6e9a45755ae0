//! Draws the key: the names of series with their symbols. The layout decides whether and where a figure has a key.

use super::canvas::{Anchor, Area, Canvas, Paint, Position, Stroke};
use super::figure::{Figure, Layer, Panel, RuleLine, Style, Tone};
use super::font;
use super::layers::span;
use super::marks::{MARK_RADIUS, dashes, hatched_area, mark, rule_stroke};
use super::panel::LINE_HEIGHT;

/// A name with its symbol.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyEntry {
    pub(super) name: String,
    tone: Tone,
    symbol: Symbol,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol {
    Line(Style),
    Area,
    Span,
    Rule(RuleLine),
}

/// The key entries of a panel's named layers.
pub(super) fn entries(panel: &Panel) -> Vec<KeyEntry> {
    let mut entries: Vec<KeyEntry> = Vec::new();
    for layer in &panel.axes.layers {
        let (name, tone, symbol) = match layer {
            Layer::Series(series) => (&series.label, series.tone, Symbol::Line(series.style)),
            Layer::Bars(bars) => (&bars.label, bars.tone, Symbol::Area),
            Layer::Span(span) => (&span.kind, span.tone, Symbol::Span),
            Layer::Rule(rule) => (&rule.label, Tone::Open, Symbol::Rule(rule.line)),
        };
        if !name.is_empty() && !entries.iter().any(|known| known.name == *name) {
            entries.push(KeyEntry { name: name.clone(), tone, symbol });
        }
    }
    entries
}

/// The common key of all panels; `None` if a name or a colour has different meanings in them.
pub(super) fn common_entries(figure: &Figure) -> Option<Vec<KeyEntry>> {
    let mut all: Vec<KeyEntry> = Vec::new();
    for panel in &figure.panels {
        for mut entry in entries(panel) {
            // Rules, such as a target, are not levels of a factor.
            if !matches!(entry.symbol, Symbol::Rule(_)) {
                entry.name = panel.series_name(&entry.name);
            }
            if all.iter().any(|other| entry.conflicts_with(other)) {
                return None;
            }
            match all.iter_mut().find(|known| known.name == entry.name) {
                // A series may be joined in one panel and not in another.
                Some(known) if entry.symbol == Symbol::Line(Style::Joined) => *known = entry,
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
    /// Whether the entries share only their name or only their look.
    fn conflicts_with(&self, other: &KeyEntry) -> bool {
        (self.name == other.name) != self.has_same_look(other)
    }

    fn has_same_look(&self, other: &KeyEntry) -> bool {
        let has_marks = |symbol| matches!(symbol, Symbol::Line(Style::Marks | Style::Joined));
        let is_same_symbol =
            self.symbol == other.symbol || (has_marks(self.symbol) && has_marks(other.symbol));
        self.tone == other.tone && is_same_symbol
    }

    /// Draws the symbol with its left end at `position`.
    fn draw(&self, position: Position, width: f64, canvas: &mut Canvas) {
        let colour = canvas.palette.colour(self.tone);
        let ends = [position, (position.0 + width, position.1)];
        let middle = (position.0 + width / 2.0, position.1);
        let line_dashes = match self.symbol {
            Symbol::Line(Style::Dashes) => &[3.0, 3.0],
            Symbol::Line(Style::BrokenSteps) => dashes(self.tone),
            _ => &[],
        };
        let half = 0.36 * canvas.size;
        let area = Area {
            left: position.0,
            right: position.0 + width,
            top: position.1 - half,
            bottom: position.1 + half,
        };
        match self.symbol {
            Symbol::Area => hatched_area(canvas, self.tone, area, ""),
            Symbol::Rule(line) => canvas.line(&ends, rule_stroke(line, canvas.palette)),
            Symbol::Span => span(canvas, self.tone, area, ""),
            Symbol::Line(style) => {
                if !matches!(style, Style::Marks | Style::Dots) {
                    canvas.line(&ends, Stroke { dashes: line_dashes, ..Stroke::new(colour, 1.2) });
                }
                if matches!(style, Style::Marks | Style::Joined | Style::Dots) {
                    mark(canvas, self.tone, middle, MARK_RADIUS, Paint::fill(colour), "");
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
    let is_broken = |entry: &KeyEntry| entry.symbol == Symbol::Line(Style::BrokenSteps);
    let symbol_width = if entries.iter().any(is_broken) { 2.8 } else { 1.5 } * size;
    let start = area.left + 2.0;
    let (mut x, mut y) = (start, area.top + 0.6 * size);
    for entry in entries {
        let lines = font::wrap(&entry.name, size, area.width() - symbol_width - 6.0);
        let widest = lines.iter().map(|line| canvas.width(line)).fold(0.0, f64::max);
        if start < x && area.right < x + symbol_width + widest {
            (x, y) = (start, y + 1.35 * size);
        }
        entry.draw((x, y), symbol_width - 4.0, canvas);
        for (i, line) in lines.iter().enumerate() {
            y += if i == 0 { 0.0 } else { LINE_HEIGHT * size };
            canvas.text((x + symbol_width, y + canvas.baseline_offset()), Anchor::Start, line);
        }
        x += symbol_width + widest + 12.0;
    }
    y + 1.1 * size
}
