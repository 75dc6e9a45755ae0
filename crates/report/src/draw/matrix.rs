//! A matrix of cells with text, rows and columns named.

use super::canvas::{Anchor, Area, At, Canvas};
use super::figure::Matrix;
use super::font;
use super::panel::LINE;
use super::theme::{Colour, mixed, readable_on};

/// Height of a row beside its lines of text, in sizes of text.
const AROUND: f64 = 0.75;
/// Names of rows take this share of the width, at most.
const NAMES: f64 = 0.35;

/// `area` has no bottom yet. Returns where it ends.
pub(super) fn draw(matrix: &Matrix, area: Area, canvas: &mut Canvas) -> f64 {
    let size = canvas.size;
    let wrapped = |text: &str, width: f64| font::wrapped(text, size, width);
    let names: Vec<Vec<String>> =
        matrix.rows.iter().map(|name| wrapped(name, NAMES * area.width())).collect();
    let widest = names.iter().flatten().map(|line| canvas.width(line)).fold(0.0, f64::max);
    let left = area.left + widest + 5.0 + 1.4 * size;
    let column = (area.right - left) / matrix.columns.len().max(1) as f64;
    let mut bottom = area.top;
    for ((row, name), own) in matrix.rows.iter().zip(&names).zip(&matrix.cells) {
        let texts = own.iter().map(|cell| match cell {
            Some(cell) => wrapped(&cell.text, column - 3.0),
            None => Vec::new(),
        });
        let texts: Vec<Vec<String>> = texts.collect();
        let lines = texts.iter().map(Vec::len).chain([name.len()]).max().unwrap_or(1);
        let (top, height) = (bottom, (LINE * lines as f64 + AROUND) * size);
        bottom += height;
        let middle = top + height / 2.0;
        text_lines(name, (left - 4.0, middle), Anchor::End, canvas.palette.text, canvas);
        for (j, (cell, text)) in own.iter().zip(&texts).enumerate() {
            let Some(cell) = cell else { continue };
            let x = left + column * j as f64;
            let inside = Area {
                left: x + 0.75,
                right: x + column - 0.75,
                top: top + 0.75,
                bottom: bottom - 0.75,
            };
            let tone = canvas.palette.colour(cell.tone);
            let fill = mixed(tone, canvas.palette.background, cell.strength);
            let hint = format!("{row}, {}: {}", matrix.columns[j], cell.text);
            canvas.rectangle(inside, fill, &hint);
            text_lines(text, (x + column / 2.0, middle), Anchor::Middle, readable_on(fill), canvas);
        }
    }
    for (i, name) in font::shortened_apart(&matrix.columns, size, column - 1.0).iter().enumerate() {
        let at = (left + column * (i as f64 + 0.5), bottom + 1.1 * size);
        canvas.text(at, Anchor::Middle, name);
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
    bottom + 3.2 * size
}

/// Lines around a place.
fn text_lines(lines: &[String], at: At, anchor: Anchor, colour: Colour, canvas: &mut Canvas) {
    let above = (lines.len().max(1) - 1) as f64 / 2.0;
    for (i, line) in lines.iter().enumerate() {
        let down = (i as f64 - above) * LINE * canvas.size + canvas.drop();
        canvas.coloured((at.0, at.1 + down), anchor, line, colour);
    }
}
