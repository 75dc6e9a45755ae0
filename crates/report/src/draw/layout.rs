//! Where panels lie: a grid whose axes line up, with the names of series above where they do not stand beside their lines.

use super::canvas::{Anchor, Area, Canvas, PT_PER_IN};
use super::figure::{Axes, Content, Figure, Naming, Panel, Scale, Series};
use super::key::{self, Entry, entries};
use super::panel::{CATEGORIES, Labels, Margins, Prepared};
use super::{COLUMN_IN, Drawing, Look, PAGE_IN, font, matrix, pie};

/// Around everything.
const EDGE: f64 = 4.0;
/// Between panels side by side.
const BETWEEN: f64 = 9.0;
/// Between rows of panels.
const BELOW: f64 = 12.0;
/// Width of the narrowest panel, in sizes of text.
const NARROWEST: f64 = 14.5;
/// Names beside lines take this share of a panel's width, at most.
const NAMES: f64 = 0.36;

/// Give everything its place.
pub(super) fn draw(figure: &Figure, look: &Look) -> Drawing {
    let mut canvas = Canvas::new(look.theme, look.font_pt);
    let is_long = |name: &String| canvas.width(name) > CATEGORIES * COLUMN_IN * PT_PER_IN;
    let has_long_names =
        figure.panels.iter().filter_map(Panel::axes).any(
            |axes| matches!(&axes.y.scale, Scale::Categories(names) if names.iter().any(is_long)),
        );
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let own_in = if columns > 1 || has_long_names { PAGE_IN } else { COLUMN_IN };
    let width = look.width_in.unwrap_or(own_in) * PT_PER_IN;
    // Panels too narrow for their axes stand below each other.
    let fitting = ((width - 2.0 * EDGE) / (NARROWEST * canvas.size)) as usize;
    let grid = Grid { figure, columns: columns.min(fitting.max(1)), width };
    let height = grid.draw(&mut canvas) + EDGE;
    let svg = canvas.finish(&figure.title, &figure.caption, (width, height));
    Drawing { svg, size_in: (width / PT_PER_IN, height / PT_PER_IN) }
}

/// The place of names of series that are not beside their lines.
enum Key {
    None,
    /// Above all panels.
    Common(Vec<Entry>),
    /// Above each panel.
    Own,
}

struct Grid<'a> {
    figure: &'a Figure,
    columns: usize,
    width: f64,
}

/// The margins of the panels of a column, the widest of each side.
#[derive(Clone, Copy, Default)]
struct Sides {
    left: f64,
    right: f64,
}

impl Grid<'_> {
    /// The width that panels share, without what is between them.
    fn shared_width(&self) -> f64 {
        self.width - 2.0 * EDGE - BETWEEN * (self.columns - 1) as f64
    }

    /// Width of a panel with its margins, about.
    fn panel_width(&self) -> f64 {
        self.shared_width() / self.columns as f64
    }

    /// Panels by row; a matrix has one of its own.
    fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let is_wide = |i: usize| matches!(self.figure.panels[i].content, Content::Matrix(_));
        for i in 0..self.figure.panels.len() {
            match rows.last_mut() {
                Some(row) if row.len() < self.columns && !is_wide(i) && !is_wide(row[0]) => {
                    row.push(i);
                }
                _ => rows.push(vec![i]),
            }
        }
        rows
    }

    /// Returns where the last row ends.
    fn draw(&self, canvas: &mut Canvas) -> f64 {
        let (figure, size) = (self.figure, canvas.size);
        let at_ends = figure.naming == Naming::Direct && self.has_room_for_names(canvas);
        let key = match figure.naming {
            Naming::Direct if at_ends => Key::None,
            Naming::None => Key::None,
            Naming::Direct | Naming::Key => key::common(figure).map_or(Key::Own, Key::Common),
        };
        let mut top = EDGE;
        if let Key::Common(entries) = &key {
            let right = self.width - EDGE;
            top = key::draw(entries, Area { left: EDGE, top, right, bottom: top }, canvas);
        }
        let rows = self.rows();
        let mut prepared: Vec<Option<Prepared<'_>>> = Vec::new();
        for (i, panel) in figure.panels.iter().enumerate() {
            let labels = self.labels(&rows, i, at_ends);
            prepared.push(Prepared::new(panel, canvas, self.panel_width(), labels));
        }
        let margins: Vec<Margins> = prepared
            .iter()
            .map(|one| one.as_ref().map_or(Margins::default(), |one| one.margins(canvas)))
            .collect();
        let mut sides = vec![Sides::default(); self.columns];
        for (side, i) in rows.iter().flat_map(|row| (0..).zip(row)) {
            let side: &mut Sides = &mut sides[side];
            side.left = side.left.max(margins[*i].left);
            side.right = side.right.max(margins[*i].right);
        }
        let taken: f64 = sides.iter().map(|side| side.left + side.right).sum();
        let inner = ((self.shared_width() - taken) / self.columns as f64).max(20.0);
        for row in &rows {
            let panels = || row.iter().map(|i| (&figure.panels[*i], &margins[*i]));
            let has_title = panels().any(|(panel, _)| panel.title.is_some());
            let title = if has_title { 1.4 * size } else { 0.0 };
            let is_own = matches!(key, Key::Own);
            let keys =
                if is_own { self.keys(row, &sides, inner, top + title, canvas) } else { 0.0 };
            let over = panels().map(|(_, margins)| margins.top).fold(0.0, f64::max) + title + keys;
            let (mut bottom, mut left) = (top, EDGE);
            for (side, i) in sides.iter().zip(row) {
                let right = left + side.left + inner + side.right;
                let cell = Area { left, top, right, bottom: top + over };
                let panel = &figure.panels[*i];
                let end = self.panel(panel, prepared[*i].as_ref(), cell, *side, canvas);
                bottom = f64::max(bottom, end + margins[*i].bottom);
                left = right + BETWEEN;
            }
            top = bottom + BELOW;
        }
        top - BELOW
    }

    /// A key over each panel of a row. Returns how high the highest is.
    fn keys(
        &self,
        row: &[usize],
        sides: &[Sides],
        inner: f64,
        top: f64,
        canvas: &mut Canvas,
    ) -> f64 {
        let (mut left, mut height) = (EDGE, 0.0_f64);
        for (i, side) in row.iter().zip(sides) {
            let right = left + side.left + inner + side.right;
            let entries = entries(&self.figure.panels[*i]);
            let below = key::draw(&entries, Area { left, top, right, bottom: top }, canvas);
            height = height.max(below - top);
            left = right + BETWEEN;
        }
        height
    }

    /// `cell`: the room over the panel, with its margins. Returns where the panel ends, without that below.
    fn panel(
        &self,
        panel: &Panel,
        prepared: Option<&Prepared<'_>>,
        cell: Area,
        side: Sides,
        canvas: &mut Canvas,
    ) -> f64 {
        let mut area = Area { top: cell.bottom, ..cell };
        match (&panel.content, prepared) {
            (Content::Pie { slices }, _) => {
                area.bottom += pie::height(area.width());
                pie::draw(slices, area, canvas);
            }
            (Content::Matrix(matrix), _) => {
                area.right = self.width - EDGE;
                area.bottom += matrix::height(matrix, canvas.size);
                matrix::draw(matrix, area, canvas);
            }
            (Content::Axes(axes), Some(prepared)) => {
                area.left += side.left;
                area.right -= side.right;
                area.bottom += prepared.height(canvas.size, area.width());
                prepared.draw(area, canvas);
                self.axis_titles(axes, prepared, area, cell.left, canvas);
            }
            (Content::Axes(_), None) => {}
        }
        if let Some(title) = &panel.title {
            let at = (cell.left + 2.0, cell.top + canvas.size);
            let title = font::shortened(title, canvas.size, area.right - at.0);
            canvas.text(at, Anchor::Start, &title);
        }
        area.bottom
    }

    fn axis_titles(
        &self,
        axes: &Axes,
        prepared: &Prepared<'_>,
        area: Area,
        start: f64,
        canvas: &mut Canvas,
    ) {
        let size = canvas.size;
        if prepared.has_y_title() {
            let at = (start + 0.85 * size, (area.top + area.bottom) / 2.0);
            let most = (area.height() + 1.6 * size).max(40.0);
            let label = font::shortened(&axes.y.label, size, most);
            canvas.turned(at, Anchor::Middle, &label, -90.0);
        }
        if prepared.has_x_title() {
            let under = area.bottom + prepared.margins(canvas).bottom - 0.3 * size;
            let half = canvas.width(&axes.x.label) / 2.0;
            // A label wider than its axis stays on the picture.
            let middle = (area.left + area.right) / 2.0;
            let middle = middle.min(self.width - EDGE - half).max(EDGE + half);
            canvas.text((middle, under), Anchor::Middle, &axes.x.label);
        }
    }

    /// Beside lines there is room, and not the same names again in each panel.
    fn has_room_for_names(&self, canvas: &Canvas) -> bool {
        let panels = &self.figure.panels;
        if panels.len() > 1 && panels.iter().all(|panel| names(panel) == names(&panels[0])) {
            return false;
        }
        let width = self.panel_width();
        panels.iter().filter_map(|panel| Some((panel, panel.axes()?))).all(|(panel, axes)| {
            let names = entries(panel);
            let widest = names.iter().map(|entry| canvas.width(&entry.name)).fold(0.0, f64::max);
            let height = (width - widest) * axes.aspect;
            ends_beside_names(panel)
                && widest + 8.0 <= NAMES * width
                && names.len() as f64 * 1.15 * canvas.size <= height
        })
    }

    /// The labels that panel `i` has itself, as no neighbour says the same.
    fn labels(&self, rows: &[Vec<usize>], i: usize, ends: bool) -> Labels {
        let hollow_singles = self.figure.has_single_among_several();
        let all = Labels { x_title: true, y_title: true, categories: true, ends, hollow_singles };
        let row = rows.iter().position(|row| row.contains(&i)).unwrap_or(0);
        let column = rows[row].iter().position(|panel| *panel == i).unwrap_or(0);
        let axes = |panel: Option<&usize>| self.figure.panels[*panel?].axes();
        let Some(own) = axes(Some(&i)) else { return all };
        let before = axes(column.checked_sub(1).and_then(|column| rows[row].get(column)));
        let below = axes(rows.get(row + 1).and_then(|row| row.get(column)));
        let is_list = matches!(own.y.scale, Scale::Categories(_));
        Labels {
            x_title: below.is_none_or(|below| below.x.label != own.x.label),
            y_title: before.is_none_or(|before| before.y.label != own.y.label),
            categories: !is_list || before.is_none_or(|before| before.y.scale != own.y.scale),
            ..all
        }
    }
}

fn names(panel: &Panel) -> Vec<String> {
    entries(panel).iter().map(|entry| panel.series_name(&entry.name)).collect()
}

/// Whether every named series reaches the right end of what is drawn, so that a name there is beside it.
fn ends_beside_names(panel: &Panel) -> bool {
    let end = |series: &Series| series.points.iter().map(|point| point.x).reduce(f64::max);
    let last = panel.all_series().filter_map(end).reduce(f64::max);
    let mut named = panel.all_series().filter(|series| !series.label.is_empty());
    named.all(|series| end(series).is_none_or(|end| Some(end) == last))
}
