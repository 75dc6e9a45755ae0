//! A matrix of cells with text, rows and columns named.

use super::figure::Matrix;
use super::font;
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Shape};
use super::theme::{mixed, readable_on};

/// A row's height in sizes of text.
const ROW: f64 = 1.9;

pub(super) fn height(matrix: &Matrix, pen: &Pen) -> f64 {
    (ROW * matrix.rows.len() as f64 + 3.2) * pen.size
}

pub(super) fn draw(matrix: &Matrix, pen: &Pen, area: Area, shapes: &mut Vec<Shape>) {
    let most = 0.45 * area.width();
    let names = font::shortened_apart(&matrix.rows, pen.size, most);
    let widest = names.iter().map(|name| pen.width(name)).fold(0.0, f64::max);
    let left = area.left + widest + 5.0 + 1.4 * pen.size;
    let (columns, row) = (matrix.columns.len().max(1) as f64, ROW * pen.size);
    let column = (area.right - left) / columns;
    let bottom = area.top + row * matrix.rows.len() as f64;
    for (i, name) in names.iter().enumerate() {
        let y = area.top + row * (i as f64 + 0.5) + pen.drop();
        shapes.push(pen.text((left - 4.0, y), Anchor::End, name));
    }
    let names = font::shortened_apart(&matrix.columns, pen.size, column - 1.0);
    for (i, name) in names.iter().enumerate() {
        let at = (left + column * (i as f64 + 0.5), bottom + 1.1 * pen.size);
        shapes.push(pen.text(at, Anchor::Middle, name));
    }
    for (i, cells) in matrix.cells.iter().enumerate() {
        for (j, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let (x, y) = (left + column * j as f64, area.top + row * i as f64);
            let box_of = Area {
                left: x + 0.75,
                right: x + column - 0.75,
                top: y + 0.75,
                bottom: y + row - 0.75,
            };
            let fill = mixed(pen.theme.of(cell.tone), pen.theme.background(), cell.strength);
            let hint = format!("{}, {}: {}", matrix.rows[i], matrix.columns[j], cell.text);
            shapes.push(Shape::Path(Path::rectangle(box_of, fill).hint(hint)));
            let at = (x + column / 2.0, y + row / 2.0 + pen.drop());
            let text = font::shortened(&cell.text, pen.size, column - 3.0);
            shapes.push(pen.coloured(at, Anchor::Middle, &text, readable_on(fill)));
        }
    }
    // A label wider than its columns stays on the picture.
    let middle = ((left + area.right) / 2.0).min(area.right - pen.width(&matrix.x_label) / 2.0);
    let under = (middle, bottom + 2.4 * pen.size);
    shapes.push(pen.text(under, Anchor::Middle, &matrix.x_label));
    // Of few rows it would be longer than they are high, and stands under their names where these are as wide.
    if pen.width(&matrix.y_label) <= bottom - area.top {
        let beside = (area.left + 0.8 * pen.size, (area.top + bottom) / 2.0);
        shapes.push(pen.turned(beside, Anchor::Middle, &matrix.y_label, -90.0));
    } else if pen.width(&matrix.y_label) <= widest + 1.4 * pen.size {
        let before = (left - 4.0, bottom + 1.1 * pen.size);
        shapes.push(pen.coloured(before, Anchor::End, &matrix.y_label, pen.theme.line()));
    }
}
