//! Places panels in a grid with aligned axes, and one key above all panels or a key above each panel.

use super::canvas::{Anchor, Area, Canvas, PT_PER_IN};
use super::figure::{Figure, Panel, Scale, has_single_among_several};
use super::layers::PlacedPanel;
use super::panel::{CATEGORY_SHARE_MAX, FittedPanel, LINE_HEIGHT, Labels, Margins, TITLE_OVERHANG};
use super::{COLUMN_IN, DrawOptions, Drawing, PAGE_IN, font, key};

/// Margin around the picture.
const PAGE_MARGIN: f64 = 4.0;
/// Distance between panels side by side.
const COLUMN_GAP: f64 = 9.0;
/// Distance between rows of panels.
const ROW_GAP: f64 = 12.0;
/// Minimum width of a panel, in text sizes.
const PANEL_WIDTH_MIN: f64 = 14.5;

/// Places and draws all parts of a figure.
pub(super) fn draw(figure: &Figure, options: &DrawOptions) -> Drawing {
    let mut canvas = Canvas::new(options.theme.palette(), options.font_pt);
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let is_wide = columns > 1 || figure.panels.iter().any(|panel| needs_page(panel, &canvas));
    let default_in = if is_wide { PAGE_IN } else { COLUMN_IN };
    let width = options.width_in.unwrap_or(default_in) * PT_PER_IN;
    // Panels too narrow for their axes stand below each other.
    let fitting = ((width - 2.0 * PAGE_MARGIN) / (PANEL_WIDTH_MIN * canvas.size)) as usize;
    let grid = Grid { figure, columns: columns.min(fitting.max(1)), width };
    let height = grid.draw(&mut canvas) + PAGE_MARGIN;
    canvas.finish(&figure.title, &figure.caption, (width, height))
}

/// Whether the names of rows are too long for a column of a paper.
fn needs_page(panel: &Panel, canvas: &Canvas) -> bool {
    let Scale::Categories(names) = &panel.axes.y.scale else { return false };
    names.iter().any(|name| canvas.width(name) > CATEGORY_SHARE_MAX * COLUMN_IN * PT_PER_IN)
}

/// The minimum height of the axes that shows the complete title of y.
fn title_height(slot: &Slot, canvas: &Canvas) -> f64 {
    let title = if slot.fitted.has_categories() { None } else { slot.fitted.y_title() };
    title.map_or(0.0, |title| canvas.width(title) - TITLE_OVERHANG * canvas.size)
}

struct Grid<'a> {
    figure: &'a Figure,
    columns: usize,
    width: f64,
}

/// A panel of a row.
struct Slot<'a> {
    panel: &'a Panel,
    fitted: FittedPanel<'a>,
    margins: Margins,
}

/// A column of panels: its widest margins, and its ends including the margins.
#[derive(Clone, Copy, Default)]
struct GridColumn {
    margin_left: f64,
    margin_right: f64,
    left: f64,
    right: f64,
}

impl Grid<'_> {
    /// Draws all panels and returns the lower end of the last row.
    fn draw(&self, canvas: &mut Canvas) -> f64 {
        let common = key::common_entries(self.figure);
        let mut top = PAGE_MARGIN;
        if let Some(entries) = &common {
            let right = self.width - PAGE_MARGIN;
            top = key::draw(entries, Area { left: PAGE_MARGIN, top, right, bottom: top }, canvas);
        }
        let rows = self.rows(canvas);
        let columns = self.columns(&rows);
        for row in &rows {
            let titles = row.iter().zip(&columns).map(|(slot, column)| {
                let width = column.right - column.margin_right - column.left - 2.0;
                let title = slot.panel.title.as_deref();
                title.map_or(Vec::new(), |title| font::wrap(title, canvas.size, width))
            });
            let titles: Vec<Vec<String>> = titles.collect();
            let title = match titles.iter().map(Vec::len).max() {
                Some(lines @ 1..) => (LINE_HEIGHT * (lines - 1) as f64 + 1.4) * canvas.size,
                _ => 0.0,
            };
            let mut axes_top = top + title;
            for (slot, GridColumn { left, right, .. }) in row.iter().zip(&columns) {
                if common.is_none() {
                    let area = Area { left: *left, right: *right, top: top + title, bottom: top };
                    axes_top = axes_top.max(key::draw(&key::entries(slot.panel), area, canvas));
                }
            }
            axes_top += row.iter().map(|slot| slot.margins.top).fold(0.0, f64::max);
            let height_min = row.iter().map(|slot| title_height(slot, canvas)).fold(0.0, f64::max);
            let mut bottom = top;
            for ((slot, column), title) in row.iter().zip(&columns).zip(&titles) {
                for (i, line) in title.iter().enumerate() {
                    let down = (1.0 + LINE_HEIGHT * i as f64) * canvas.size;
                    canvas.text((column.left + 2.0, top + down), Anchor::Start, line);
                }
                bottom = f64::max(bottom, self.panel(slot, column, axes_top, height_min, canvas));
            }
            top = bottom + ROW_GAP;
        }
        top - ROW_GAP
    }

    /// The width available for panels, without the distances between them.
    fn shared_width(&self) -> f64 {
        self.width - 2.0 * PAGE_MARGIN - COLUMN_GAP * (self.columns - 1) as f64
    }

    /// Panels by row.
    fn rows(&self, canvas: &Canvas) -> Vec<Vec<Slot<'_>>> {
        let rows: Vec<&[Panel]> = self.figure.panels.chunks(self.columns).collect();
        let width = self.shared_width() / self.columns as f64;
        let slot = |number: usize, column: usize| {
            let panel = &rows[number][column];
            let before = column.checked_sub(1).map(|before| &rows[number][before]);
            let below = rows.get(number + 1).and_then(|row| row.get(column));
            let labels = self.labels(panel, before, below);
            let fitted = FittedPanel::new(panel, canvas, width, labels);
            Slot { panel, margins: fitted.margins(canvas), fitted }
        };
        let row = |number: usize| {
            Vec::from_iter((0..rows[number].len()).map(|column| slot(number, column)))
        };
        (0..rows.len()).map(row).collect()
    }

    /// The labels of a panel. Labels that a neighbour also has are omitted.
    fn labels(&self, panel: &Panel, before: Option<&Panel>, below: Option<&Panel>) -> Labels {
        let hollow_singles = has_single_among_several(&self.figure.panels);
        let mut labels = Labels { x_title: true, y_title: true, categories: true, hollow_singles };
        let axes = &panel.axes;
        if let Some(below) = below {
            labels.x_title = below.axes.x.label != axes.x.label;
        }
        if let Some(before) = before {
            labels.y_title = before.axes.y.label != axes.y.label;
            let has_categories = matches!(axes.y.scale, Scale::Categories(_));
            labels.categories = !has_categories || before.axes.y.scale != axes.y.scale;
        }
        labels
    }

    fn columns(&self, rows: &[Vec<Slot<'_>>]) -> Vec<GridColumn> {
        let mut columns = vec![GridColumn::default(); self.columns];
        for (column, slot) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            let column: &mut GridColumn = &mut columns[column];
            column.margin_left = column.margin_left.max(slot.margins.left);
            column.margin_right = column.margin_right.max(slot.margins.right);
        }
        let taken: f64 =
            columns.iter().map(|column| column.margin_left + column.margin_right).sum();
        let inner = ((self.shared_width() - taken) / self.columns as f64).max(20.0);
        let mut left = PAGE_MARGIN;
        for column in &mut columns {
            column.left = left;
            column.right = left + column.margin_left + inner + column.margin_right;
            left = column.right + COLUMN_GAP;
        }
        columns
    }

    /// Draws a panel and returns its lower end with margins. `height_min`: minimum height of the row's axes, unless they have categories.
    fn panel(
        &self,
        slot: &Slot<'_>,
        column: &GridColumn,
        top: f64,
        height_min: f64,
        canvas: &mut Canvas,
    ) -> f64 {
        let fitted = &slot.fitted;
        let left = column.left + column.margin_left;
        let right = column.right - column.margin_right;
        let mut area = Area { left, right, top, bottom: top };
        let height_min = if fitted.has_categories() { 0.0 } else { height_min };
        area.bottom += fitted.height(canvas.size, area.width()).max(height_min);
        let page = [PAGE_MARGIN, self.width - PAGE_MARGIN];
        PlacedPanel { fitted, area }.draw(column.left, page, canvas);
        area.bottom + slot.margins.bottom
    }
}
