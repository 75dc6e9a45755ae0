//! A pie of few slices, each named beside it.

use super::axis;
use super::figure::Slice;
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Segment, Shape, arc, on_circle};

/// Height for a width.
pub(super) fn height(width: f64) -> f64 {
    (0.55 * width).min(105.0)
}

pub(super) fn draw(slices: &[Slice], pen: &Pen, area: Area, shapes: &mut Vec<Shape>) {
    let whole: f64 = slices.iter().map(|slice| slice.value).sum();
    let names = slices.iter().map(|slice| pen.width(&name(slice, whole)));
    let beside = names.fold(0.0, f64::max) + 6.0;
    let radius = (area.height() / 2.0 - 1.5 * pen.size).min(area.width() / 2.0 - beside).max(12.0);
    let centre = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
    if let [only] = slices.iter().filter(|slice| slice.value > 0.0).collect::<Vec<_>>()[..] {
        let path = Path::circle(centre, radius, pen.theme.of(only.tone));
        shapes.push(Shape::Path(path.hint(name(only, whole))));
        let under = (centre.0, centre.1 + radius + 1.2 * pen.size);
        shapes.push(pen.text(under, Anchor::Middle, &name(only, whole)));
        return;
    }
    let mut turn = 0.0;
    let mut names = Vec::new();
    for slice in slices.iter().filter(|slice| slice.value > 0.0) {
        let end = turn + slice.value / whole;
        let (x, y) = on_circle(centre, radius, turn);
        let mut segments = vec![Segment::Move(centre.0, centre.1), Segment::Line(x, y)];
        arc(&mut segments, centre, radius, turn, end);
        segments.push(Segment::Close);
        let edge = pen.stroke(pen.theme.background(), 1.0);
        let path = Path { segments, fill: Some(pen.theme.of(slice.tone)), ..Path::default() };
        shapes.push(Shape::Path(path.outlined(edge).hint(name(slice, whole))));
        names.push(((turn + end) / 2.0, name(slice, whole)));
        turn = end;
    }
    let mut lowest = [f64::NEG_INFINITY; 2];
    names.sort_by(|a, b| on_circle(centre, 1.0, a.0).1.total_cmp(&on_circle(centre, 1.0, b.0).1));
    for (turn, name) in names {
        let (x, y) = on_circle(centre, radius + 5.0, turn);
        let is_right = turn <= 0.5;
        let y = y.max(lowest[usize::from(is_right)] + 1.15 * pen.size);
        lowest[usize::from(is_right)] = y;
        let anchor = if is_right { Anchor::Start } else { Anchor::End };
        shapes.push(pen.text((x, y + pen.drop()), anchor, &name));
    }
}

fn name(slice: &Slice, whole: f64) -> String {
    let percent = 100.0 * slice.value / whole;
    format!("{} {} ({percent:.0} %)", axis::text(slice.value), slice.label)
}
