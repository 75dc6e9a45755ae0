//! Where panels lie: a grid whose axes line up, with the names of series above where they do not stand beside their lines.

use super::figure::{Axes, Content, Figure, Layer, Naming, Panel, Style, Tone};
use super::marks::{MARK, mark};
use super::panel::{Margins, Pen, Ready};
use super::scene::{Anchor, Area, PT_PER_IN, Path, Scene, Shape};
use super::{COLUMN_IN, Look, PAGE_IN, font, matrix, pie};

/// Around everything.
const EDGE: f64 = 4.0;
/// Between panels.
const BETWEEN: f64 = 9.0;
/// Names beside lines take this share of a panel's width, at most.
const NAMES: f64 = 0.36;

/// Give everything its place.
pub(super) fn place(figure: &Figure, look: &Look) -> Scene {
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let own_in = if columns > 1 { PAGE_IN } else { COLUMN_IN };
    let width = look.width_in.unwrap_or(own_in) * PT_PER_IN;
    let pen = Pen { theme: look.theme, size: look.font_pt };
    let mut grid = Grid { figure, pen, columns, width, shapes: Vec::new() };
    let bottom = grid.draw();
    Scene {
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        width,
        height: bottom + EDGE,
        background: look.theme.background(),
        shapes: grid.shapes,
    }
}

struct Grid<'a> {
    figure: &'a Figure,
    pen: Pen,
    columns: usize,
    width: f64,
    shapes: Vec<Shape>,
}

impl Grid<'_> {
    /// Width of a panel with its margins.
    fn panel_width(&self) -> f64 {
        let between = BETWEEN * (self.columns - 1) as f64;
        (self.width - 2.0 * EDGE - between) / self.columns as f64
    }

    /// Returns where the last row ends.
    fn draw(&mut self) -> f64 {
        let direct = self.figure.naming == Naming::Direct && self.has_room_for_names();
        let mut top = EDGE;
        if !direct && self.figure.naming != Naming::None {
            top = self.key(top);
        }
        let (pen, width) = (self.pen, self.panel_width());
        let figure = self.figure;
        let ready: Vec<Option<Ready<'_>>> = figure
            .panels
            .iter()
            .map(|panel| axes(panel).map(|axes| Ready::of(axes, &pen, width, direct)))
            .collect();
        let margins: Vec<Margins> = ready
            .iter()
            .map(|ready| ready.as_ref().map_or(Margins::default(), |ready| ready.margins(&pen)))
            .collect();
        let most = |of: fn(&Margins) -> f64, panels: &mut dyn Iterator<Item = usize>| {
            panels.filter_map(|i| margins.get(i)).map(of).fold(0.0, f64::max)
        };
        let count = figure.panels.len();
        for first in (0..count).step_by(self.columns) {
            let row = first..(first + self.columns).min(count);
            let over = most(|margins| margins.top, &mut row.clone());
            let under = most(|margins| margins.bottom, &mut row.clone());
            let has_title = figure.panels[row.clone()].iter().any(|panel| panel.title.is_some());
            let title = if has_title { 1.5 * pen.size } else { 0.0 };
            let mut bottom = top;
            for i in row {
                let column = || (i % self.columns..count).step_by(self.columns);
                let left = most(|margins| margins.left, &mut column());
                let right = most(|margins| margins.right, &mut column());
                let start = EDGE + (width + BETWEEN) * (i - first) as f64;
                let mut area = Area {
                    left: start + left,
                    right: start + width - right,
                    top: top + over + title,
                    bottom: top + over + title,
                };
                area.bottom += self.height(&figure.panels[i], ready[i].as_ref(), area.width());
                self.panel(i, ready[i].as_ref(), area, start);
                bottom = f64::max(bottom, area.bottom + under);
            }
            top = bottom + BETWEEN;
        }
        top - BETWEEN
    }

    fn height(&self, panel: &Panel, ready: Option<&Ready<'_>>, width: f64) -> f64 {
        match (&panel.content, ready) {
            (Content::Pie { .. }, _) => pie::height(width),
            (Content::Matrix(matrix), _) => matrix::height(matrix, &self.pen),
            (Content::Axes(_), Some(ready)) => ready.height(&self.pen, width),
            (Content::Axes(_), None) => 0.0,
        }
    }

    /// `start`: where the panel begins, with its margins.
    fn panel(&mut self, i: usize, ready: Option<&Ready<'_>>, area: Area, start: f64) {
        let pen = self.pen;
        let figure = self.figure;
        let panel = &figure.panels[i];
        match (&panel.content, ready) {
            (Content::Pie { slices }, _) => pie::draw(slices, &pen, area, &mut self.shapes),
            (Content::Matrix(matrix), _) => matrix::draw(matrix, &pen, area, &mut self.shapes),
            (Content::Axes(axes), Some(ready)) => {
                ready.draw(&pen, area, &mut self.shapes);
                self.labels(i, axes, ready, area, start);
            }
            (Content::Axes(_), None) => {}
        }
        if let Some(title) = &panel.title {
            let title = font::shortened(title, pen.size, area.right - start - 2.0);
            let at = (start + 2.0, area.top - 0.9 * pen.size);
            self.shapes.push(pen.text(at, Anchor::Start, &title));
        }
    }

    /// Titles of axes; a neighbour's that says the same is enough.
    fn labels(&mut self, i: usize, own: &Axes, ready: &Ready<'_>, area: Area, start: f64) {
        let pen = self.pen;
        let panels = &self.figure.panels;
        let same = |other: Option<&Panel>, of: fn(&Axes) -> &str| {
            other.and_then(axes).is_some_and(|other| of(other) == of(own))
        };
        let before = i.checked_sub(1).filter(|_| i % self.columns > 0).and_then(|i| panels.get(i));
        if !own.y.label.is_empty() && !same(before, |axes| &axes.y.label) {
            let at = (start + 0.85 * pen.size, (area.top + area.bottom) / 2.0);
            self.shapes.push(pen.turned(at, Anchor::Middle, &own.y.label, -90.0));
        }
        if !own.x.label.is_empty() && !same(panels.get(i + self.columns), |axes| &axes.x.label) {
            let under = area.bottom + ready.margins(&pen).bottom - 0.3 * pen.size;
            let middle = (area.left + area.right) / 2.0;
            let half = pen.width(&own.x.label) / 2.0;
            // A label wider than its axis stays on the picture.
            let middle = middle.min(self.width - EDGE - half).max(EDGE + half);
            self.shapes.push(pen.text((middle, under), Anchor::Middle, &own.x.label));
        }
    }

    fn has_room_for_names(&self) -> bool {
        let width = self.panel_width();
        self.figure.panels.iter().filter_map(axes).all(|axes| {
            let names: Vec<&str> = names_of(axes).into_iter().map(|(name, ..)| name).collect();
            let widest = names.iter().map(|name| self.pen.width(name)).fold(0.0, f64::max);
            let height = (width - widest) * axes.aspect;
            widest + 8.0 <= NAMES * width && names.len() as f64 * 1.15 * self.pen.size <= height
        })
    }

    /// The names of all series above the panels. Returns where they end.
    fn key(&mut self, top: f64) -> f64 {
        let pen = self.pen;
        let mut entries: Vec<(&str, Tone, Sign)> = Vec::new();
        for entry in self.figure.panels.iter().filter_map(axes).flat_map(names_of) {
            if !entries.iter().any(|known| known.0 == entry.0) {
                entries.push(entry);
            }
        }
        if entries.is_empty() {
            return top;
        }
        let (mut x, mut y) = (EDGE + 2.0, top + 0.75 * pen.size);
        let sign = 1.5 * pen.size;
        for (name, tone, kind) in entries {
            let name = font::shortened(name, pen.size, self.width - 2.0 * EDGE - sign - 6.0);
            let width = sign + pen.width(&name) + 12.0;
            if EDGE + 2.0 < x && self.width - EDGE < x + width - 12.0 {
                (x, y) = (EDGE + 2.0, y + 1.35 * pen.size);
            }
            self.sign(tone, kind, (x, y), sign - 4.0);
            self.shapes.push(pen.text((x + sign, y + pen.drop()), Anchor::Start, &name));
            x += width;
        }
        y + 0.9 * pen.size
    }

    fn sign(&mut self, tone: Tone, kind: Sign, (x, y): (f64, f64), width: f64) {
        let colour = self.pen.theme.of(tone);
        let mut stroke = self.pen.stroke(colour, 1.2);
        let mut line = |stroke| {
            self.shapes.push(Shape::Path(Path::line((x, y), (x + width, y), stroke)));
        };
        match kind {
            Sign::Area => {
                let half = 0.36 * self.pen.size;
                let area = Area { left: x, right: x + width, top: y - half, bottom: y + half };
                self.shapes.push(Shape::Path(Path::rectangle(area, colour)));
                return;
            }
            Sign::Of(Style::Marks | Style::Dots) => {}
            Sign::Of(Style::Dashes) => {
                stroke.dashes = Some(3.0);
                line(stroke);
            }
            Sign::Of(Style::Joined | Style::Line | Style::Steps) => line(stroke),
        }
        if matches!(kind, Sign::Of(Style::Marks | Style::Joined | Style::Dots)) {
            self.shapes.push(Shape::Path(mark(tone, (x + width / 2.0, y), MARK, colour)));
        }
    }
}

/// What stands for a series in the key.
#[derive(Clone, Copy)]
enum Sign {
    Of(Style),
    Area,
}

fn axes(panel: &Panel) -> Option<&Axes> {
    match &panel.content {
        Content::Axes(axes) => Some(axes),
        Content::Pie { .. } | Content::Matrix(_) => None,
    }
}

fn names_of(axes: &Axes) -> Vec<(&str, Tone, Sign)> {
    axes.layers.iter().filter_map(name_of).filter(|(name, ..)| !name.is_empty()).collect()
}

fn name_of(layer: &Layer) -> Option<(&str, Tone, Sign)> {
    match layer {
        Layer::Series(series) => Some((&series.label, series.tone, Sign::Of(series.style))),
        Layer::Bars(bars) => Some((&bars.label, bars.tone, Sign::Area)),
        Layer::Span(_) | Layer::Rule { .. } => None,
    }
}
