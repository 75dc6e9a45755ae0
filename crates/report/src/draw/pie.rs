//! A pie of few slices, their names in a list beside it.

use super::axis;
use super::figure::Slice;
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Segment, Shape, arc, on_circle};

/// Height for a width.
pub(super) fn height(width: f64) -> f64 {
    (0.45 * width).min(90.0)
}

pub(super) fn draw(slices: &[Slice], pen: &Pen, area: Area, shapes: &mut Vec<Shape>) {
    let whole: f64 = slices.iter().map(|slice| slice.value).sum();
    let radius = area.height() / 2.0 - 3.0;
    let centre = (area.left + radius + 3.0, (area.top + area.bottom) / 2.0);
    let mut turn = 0.0;
    for slice in slices.iter().filter(|slice| slice.value > 0.0) {
        let end = turn + slice.value / whole;
        let fill = pen.theme.of(slice.tone);
        let path = match slice.value < whole {
            true => part(centre, radius, (turn, end), pen).filled(fill),
            false => Path::circle(centre, radius, fill),
        };
        shapes.push(Shape::Path(path.hint(name(slice, whole))));
        turn = end;
    }
    let line = 1.5 * pen.size;
    let left = centre.0 + radius + 1.4 * pen.size;
    let half = 0.36 * pen.size;
    for (i, slice) in slices.iter().enumerate() {
        let y = centre.1 + line * (i as f64 - (slices.len() - 1) as f64 / 2.0);
        let sign = Area { left, right: left + 2.0 * half, top: y - half, bottom: y + half };
        shapes.push(Shape::Path(Path::rectangle(sign, pen.theme.of(slice.tone))));
        let at = (left + 1.2 * pen.size, y + pen.drop());
        shapes.push(pen.text(at, Anchor::Start, &name(slice, whole)));
    }
}

/// A slice from one share of a turn to another, set off from its neighbours.
fn part(centre: (f64, f64), radius: f64, (from, to): (f64, f64), pen: &Pen) -> Path {
    let (x, y) = on_circle(centre, radius, from);
    let mut segments = vec![Segment::Move(centre.0, centre.1), Segment::Line(x, y)];
    arc(&mut segments, centre, radius, from, to);
    segments.push(Segment::Close);
    let edge = pen.stroke(pen.theme.background(), 1.0);
    Path { segments, stroke: Some(edge), ..Path::default() }
}

fn name(slice: &Slice, whole: f64) -> String {
    let percent = 100.0 * slice.value / whole;
    format!("{} {} ({percent:.0} %)", axis::text(slice.value), slice.label)
}
