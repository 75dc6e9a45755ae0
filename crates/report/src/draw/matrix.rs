//! A matrix of cells with text, rows and columns named.

use super::canvas::{Anchor, Area, Canvas};
use super::figure::Matrix;
use super::font;
use super::theme::{mixed, readable_on};

/// A row's height in sizes of text.
const ROW: f64 = 1.9;

pub(super) fn height(matrix: &Matrix, size: f64) -> f64 {
    (ROW * matrix.rows.len() as f64 + 3.2) * size
}

pub(super) fn draw(matrix: &Matrix, area: Area, canvas: &mut Canvas) {
    let size = canvas.size;
    let names = font::shortened_apart(&matrix.rows, size, 0.45 * area.width());
    let widest = names.iter().map(|name| canvas.width(name)).fold(0.0, f64::max);
    let left = area.left + widest + 5.0 + 1.4 * size;
    let column = (area.right - left) / matrix.columns.len().max(1) as f64;
    let row = ROW * size;
    let bottom = area.top + row * matrix.rows.len() as f64;
    for (i, name) in names.iter().enumerate() {
        let y = area.top + row * (i as f64 + 0.5) + canvas.drop();
        canvas.text((left - 4.0, y), Anchor::End, name);
    }
    for (i, name) in font::shortened_apart(&matrix.columns, size, column - 1.0).iter().enumerate() {
        let at = (left + column * (i as f64 + 0.5), bottom + 1.1 * size);
        canvas.text(at, Anchor::Middle, name);
    }
    for (i, cells) in matrix.cells.iter().enumerate() {
        for (j, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let (x, y) = (left + column * j as f64, area.top + row * i as f64);
            let inside = Area {
                left: x + 0.75,
                right: x + column - 0.75,
                top: y + 0.75,
                bottom: y + row - 0.75,
            };
            let tone = canvas.palette.colour(cell.tone);
            let fill = mixed(tone, canvas.palette.background, cell.strength);
            let hint = format!("{}, {}: {}", matrix.rows[i], matrix.columns[j], cell.text);
            canvas.rectangle(inside, fill, &hint);
            let at = (x + column / 2.0, y + row / 2.0 + canvas.drop());
            let text = font::shortened(&cell.text, size, column - 3.0);
            canvas.coloured(at, Anchor::Middle, &text, readable_on(fill));
        }
    }
    // A label wider than its columns stays on the picture.
    let half = canvas.width(&matrix.x_label) / 2.0;
    let middle = ((left + area.right) / 2.0).min(area.right - half);
    canvas.text((middle, bottom + 2.4 * size), Anchor::Middle, &matrix.x_label);
    // Of few rows it would be longer than they are high, and stands under their names where these are as wide.
    if canvas.width(&matrix.y_label) <= bottom - area.top {
        let beside = (area.left + 0.8 * size, (area.top + bottom) / 2.0);
        canvas.turned(beside, Anchor::Middle, &matrix.y_label, -90.0);
    } else if canvas.width(&matrix.y_label) <= widest + 1.4 * size {
        let before = (left - 4.0, bottom + 1.1 * size);
        canvas.coloured(before, Anchor::End, &matrix.y_label, canvas.palette.line);
    }
}
