//! Where panels lie: a grid whose axes line up, with the names of series above where they do not stand beside their lines.

use super::figure::{Axes, Content, Figure, Layer, Naming, Panel, Scale, Series};
use super::key::{self, Entry, entries};
use super::panel::{CATEGORIES, Margins, Ready, Shown};
use super::pen::Pen;
use super::scene::{Anchor, Area, PT_PER_IN, Scene, Shape};
use super::{COLUMN_IN, Look, PAGE_IN, font, matrix, pie};

/// Around everything.
const EDGE: f64 = 4.0;
/// Between panels side by side.
const BETWEEN: f64 = 9.0;
/// Between rows of panels.
const BELOW: f64 = 12.0;
/// Of a panel, in sizes of text.
const NARROWEST: f64 = 14.5;
/// Names beside lines take this share of a panel's width, at most.
const NAMES: f64 = 0.36;

/// Give everything its place.
pub(super) fn place(figure: &Figure, look: &Look) -> Scene {
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let hollows_single = figure.has_single_among_several();
    let pen = Pen { theme: look.theme, size: look.font_pt, hollows_single };
    let has_long_names = figure.panels.iter().filter_map(axes).any(|axes| match &axes.y.scale {
        Scale::Categories(names) => {
            names.iter().any(|name| pen.width(name) > CATEGORIES * COLUMN_IN * PT_PER_IN)
        }
        _ => false,
    });
    let own_in = if columns > 1 || has_long_names { PAGE_IN } else { COLUMN_IN };
    let width = look.width_in.unwrap_or(own_in) * PT_PER_IN;
    // Panels too narrow for their axes stand below each other.
    let fitting = ((width - 2.0 * EDGE) / (NARROWEST * pen.size)) as usize;
    let columns = columns.min(fitting.max(1));
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

/// Where names of series stand that are not beside their lines.
enum Key {
    None,
    /// Above all panels.
    Common(Vec<Entry>),
    /// Above each panel.
    Own,
}

impl Key {
    fn of(figure: &Figure, direct: bool) -> Self {
        match figure.naming {
            Naming::None => Key::None,
            Naming::Direct if direct => Key::None,
            Naming::Direct | Naming::Key => key::common(figure).map_or(Key::Own, Key::Common),
        }
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
    /// Width of a panel with its margins, about.
    fn panel_width(&self) -> f64 {
        let between = BETWEEN * (self.columns - 1) as f64;
        (self.width - 2.0 * EDGE - between) / self.columns as f64
    }

    /// Panels by row; a matrix has one of its own.
    fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let is_wide = |i: usize| matches!(self.figure.panels[i].content, Content::Matrix(_));
        for i in 0..self.figure.panels.len() {
            match rows.last_mut() {
                Some(row) if row.len() < self.columns && !is_wide(i) && !is_wide(row[0]) => {
                    row.push(i)
                }
                _ => rows.push(vec![i]),
            }
        }
        rows
    }

    /// Returns where the last row ends.
    fn draw(&mut self) -> f64 {
        let direct = self.figure.naming == Naming::Direct && self.has_room_for_names();
        let key = Key::of(self.figure, direct);
        let mut top = EDGE;
        if let Key::Common(entries) = &key {
            let ends = (EDGE, self.width - EDGE);
            top = key::draw(entries, &self.pen, ends, top, &mut self.shapes);
        }
        let (pen, width, figure, rows) = (self.pen, self.panel_width(), self.figure, self.rows());
        let ready: Vec<Option<Ready<'_>>> = figure
            .panels
            .iter()
            .enumerate()
            .map(|(i, panel)| {
                let shown = shown(figure, &rows, i);
                axes(panel).map(|axes| Ready::of((panel, axes), &pen, width, direct, shown))
            })
            .collect();
        let margins: Vec<Margins> = ready
            .iter()
            .map(|ready| ready.as_ref().map_or(Margins::default(), |ready| ready.margins(&pen)))
            .collect();
        let most = |of: fn(&Margins) -> f64, panels: &[usize]| {
            panels.iter().map(|i| of(&margins[*i])).fold(0.0, f64::max)
        };
        let sides: Vec<(f64, f64)> = (0..self.columns)
            .map(|column| {
                let panels: Vec<usize> =
                    rows.iter().filter_map(|row| row.get(column)).copied().collect();
                (most(|margins| margins.left, &panels), most(|margins| margins.right, &panels))
            })
            .collect();
        let taken: f64 = sides.iter().map(|(left, right)| left + right).sum();
        let between = BETWEEN * (self.columns - 1) as f64;
        let inner = ((self.width - 2.0 * EDGE - between - taken) / self.columns as f64).max(20.0);
        for row in &rows {
            let has_title = row.iter().any(|i| figure.panels[*i].title.is_some());
            let title = if has_title { 1.4 * pen.size } else { 0.0 };
            let keys = match &key {
                Key::Own => self.keys(row, &sides, inner, top + title),
                Key::None | Key::Common(_) => 0.0,
            };
            let over = most(|margins| margins.top, row) + title + keys;
            let mut bottom = top;
            let mut start = EDGE;
            for (column, i) in row.iter().copied().enumerate() {
                let panel = &figure.panels[i];
                let (left, right) = sides[column];
                let mut area = Area {
                    left: start + left,
                    right: start + left + inner,
                    top: top + over,
                    bottom: top + over,
                };
                if ready[i].is_none() {
                    area.left = start;
                    area.right = start + left + inner + right;
                }
                if matches!(panel.content, Content::Matrix(_)) {
                    area.right = self.width - EDGE;
                }
                area.bottom += self.height(panel, ready[i].as_ref(), area.width());
                self.panel(panel, ready[i].as_ref(), area, (start, top + pen.size));
                bottom = f64::max(bottom, area.bottom + margins[i].bottom);
                start += left + inner + right + BETWEEN;
            }
            top = bottom + BELOW;
        }
        top - BELOW
    }

    /// A key over each panel of a row. Returns how high the highest is.
    fn keys(&mut self, row: &[usize], sides: &[(f64, f64)], inner: f64, top: f64) -> f64 {
        let (mut start, mut height) = (EDGE, 0.0f64);
        for (i, (left, right)) in row.iter().zip(sides) {
            let end = start + left + inner + right;
            let entries = entries(&self.figure.panels[*i]);
            let below = key::draw(&entries, &self.pen, (start, end), top, &mut self.shapes);
            height = height.max(below - top);
            start = end + BETWEEN;
        }
        height
    }

    fn height(&self, panel: &Panel, ready: Option<&Ready<'_>>, width: f64) -> f64 {
        match (&panel.content, ready) {
            (Content::Pie { .. }, _) => pie::height(width),
            (Content::Matrix(matrix), _) => matrix::height(matrix, &self.pen),
            (Content::Axes(_), Some(ready)) => ready.height(&self.pen, width),
            (Content::Axes(_), None) => 0.0,
        }
    }

    /// `corner`: where the panel begins with its margins, and the base line of its title.
    fn panel(&mut self, panel: &Panel, ready: Option<&Ready<'_>>, area: Area, corner: (f64, f64)) {
        let start = corner.0;
        let pen = self.pen;
        match (&panel.content, ready) {
            (Content::Pie { slices }, _) => pie::draw(slices, &pen, area, &mut self.shapes),
            (Content::Matrix(matrix), _) => matrix::draw(matrix, &pen, area, &mut self.shapes),
            (Content::Axes(axes), Some(ready)) => {
                ready.draw(&pen, area, &mut self.shapes);
                self.labels(axes, ready, area, start);
            }
            (Content::Axes(_), None) => {}
        }
        if let Some(title) = &panel.title {
            let title = font::shortened(title, pen.size, area.right - start - 2.0);
            let at = (start + 2.0, corner.1);
            self.shapes.push(pen.text(at, Anchor::Start, &title));
        }
    }

    fn labels(&mut self, axes: &Axes, ready: &Ready<'_>, area: Area, start: f64) {
        let pen = self.pen;
        if ready.has_y_title() {
            let at = (start + 0.85 * pen.size, (area.top + area.bottom) / 2.0);
            let most = (area.height() + 1.6 * pen.size).max(40.0);
            let label = font::shortened(&axes.y.label, pen.size, most);
            self.shapes.push(pen.turned(at, Anchor::Middle, &label, -90.0));
        }
        if ready.has_x_title() {
            let under = area.bottom + ready.margins(&pen).bottom - 0.3 * pen.size;
            let middle = (area.left + area.right) / 2.0;
            let half = pen.width(&axes.x.label) / 2.0;
            // A label wider than its axis stays on the picture.
            let middle = middle.min(self.width - EDGE - half).max(EDGE + half);
            self.shapes.push(pen.text((middle, under), Anchor::Middle, &axes.x.label));
        }
    }

    /// Beside lines there is room, and not the same names again in each panel.
    fn has_room_for_names(&self) -> bool {
        let names = |panel: &Panel| {
            let entries = entries(panel).into_iter();
            entries.map(|entry| panel.series_name(&entry.name)).collect::<Vec<_>>()
        };
        let panels = &self.figure.panels;
        if panels.len() > 1 && panels.iter().all(|panel| names(panel) == names(&panels[0])) {
            return false;
        }
        let width = self.panel_width();
        self.figure.panels.iter().all(|panel| {
            let Some(axes) = axes(panel) else { return true };
            let names = entries(panel);
            let widest = names.iter().map(|entry| self.pen.width(&entry.name)).fold(0.0, f64::max);
            let height = (width - widest) * axes.aspect;
            ends_beside_names(axes)
                && widest + 8.0 <= NAMES * width
                && names.len() as f64 * 1.15 * self.pen.size <= height
        })
    }
}

/// What panel `i` has to say itself.
fn shown(figure: &Figure, rows: &[Vec<usize>], i: usize) -> Shown {
    let all = Shown { x_title: true, y_title: true, categories: true };
    let row = rows.iter().position(|row| row.contains(&i));
    let Some((row, own)) = row.zip(axes(&figure.panels[i])) else { return all };
    let column = rows[row].iter().position(|panel| *panel == i).unwrap_or(0);
    let neighbour = |panel: Option<&usize>| panel.and_then(|panel| axes(&figure.panels[*panel]));
    let before = neighbour(column.checked_sub(1).and_then(|column| rows[row].get(column)));
    let below = neighbour(rows.get(row + 1).and_then(|row| row.get(column)));
    let is_list = matches!(own.y.scale, Scale::Categories(_));
    Shown {
        x_title: below.is_none_or(|below| below.x.label != own.x.label),
        y_title: before.is_none_or(|before| before.y.label != own.y.label),
        categories: !is_list || before.is_none_or(|before| before.y.scale != own.y.scale),
    }
}

/// Whether every named series reaches the right end of what is drawn, so that a name there is beside it.
fn ends_beside_names(axes: &Axes) -> bool {
    let end = |series: &Series| series.points.iter().map(|point| point.x).reduce(f64::max);
    let series = || {
        axes.layers.iter().filter_map(|layer| match layer {
            Layer::Series(series) => Some(series),
            _ => None,
        })
    };
    let last = series().filter_map(end).reduce(f64::max);
    let mut named = series().filter(|series| !series.label.is_empty());
    named.all(|series| end(series).is_none_or(|end| Some(end) == last))
}

fn axes(panel: &Panel) -> Option<&Axes> {
    match &panel.content {
        Content::Axes(axes) => Some(axes),
        Content::Pie { .. } | Content::Matrix(_) => None,
    }
}
