//! A pie of few slices, their names in a list beside it.

use super::axis;
use super::canvas::{Anchor, Area, Canvas, Paint, Stroke};
use super::figure::Slice;

/// Height for a width.
pub(super) fn height(width: f64) -> f64 {
    (0.45 * width).min(90.0)
}

pub(super) fn draw(slices: &[Slice], area: Area, canvas: &mut Canvas) {
    let size = canvas.size;
    let whole: f64 = slices.iter().map(|slice| slice.value).sum();
    let radius = area.height() / 2.0 - 3.0;
    let centre = (area.left + radius + 3.0, (area.top + area.bottom) / 2.0);
    // Sets a slice off from its neighbours.
    let edge = Stroke::new(canvas.palette.background, 1.0);
    let left = centre.0 + radius + 1.4 * size;
    let half = 0.36 * size;
    let mut turn = 0.0;
    for (i, slice) in slices.iter().enumerate() {
        let name = name(slice, whole);
        let fill = canvas.palette.colour(slice.tone);
        let end = turn + slice.value / whole;
        if slice.value < whole {
            canvas.slice(centre, radius, [turn, end], Paint::outlined(fill, edge), &name);
        } else {
            canvas.circle(centre, radius, Paint::fill(fill), &name);
        }
        turn = end;
        let y = centre.1 + 1.5 * size * (i as f64 - (slices.len() - 1) as f64 / 2.0);
        let sign = Area { left, right: left + 2.0 * half, top: y - half, bottom: y + half };
        canvas.rectangle(sign, fill, "");
        canvas.text((left + 1.2 * size, y + canvas.drop()), Anchor::Start, &name);
    }
}

fn name(slice: &Slice, whole: f64) -> String {
    let percent = 100.0 * slice.value / whole;
    format!("{} {} ({percent:.0} %)", axis::text(slice.value), slice.label)
}
