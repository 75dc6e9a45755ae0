//! The shapes of marks: what tells series apart beside their colour.

use super::figure::Tone;
use super::scene::{Area, Path, Stroke};
use super::theme::Colour;

/// Half the size of a mark.
pub(super) const MARK: f64 = 2.5;

/// The mark of a tone, around a point.
pub(super) fn mark(tone: Tone, (x, y): (f64, f64), half: f64, fill: Colour) -> Path {
    let shape = match tone {
        Tone::Hue(number) => number,
        _ => 0,
    };
    let at = |points: &[(f64, f64)]| {
        let points: Vec<(f64, f64)> =
            points.iter().map(|(dx, dy)| (x + dx * half, y + dy * half)).collect();
        Path::polygon(&points, fill)
    };
    match shape % 6 {
        0 => Path::circle((x, y), half, fill),
        1 => {
            let half = 0.9 * half;
            let area = Area { left: x - half, top: y - half, right: x + half, bottom: y + half };
            Path::rectangle(area, fill)
        }
        2 => at(&[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)]),
        3 => at(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => at(&[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)]),
        _ => at(&[
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
            (-1.2, -0.4),
            (-0.4, -0.4),
        ]),
    }
}

/// How the line of a colour is broken where nothing but colour would tell it from others.
pub(super) fn dashes(tone: Tone) -> &'static [f64] {
    const OF_HUES: [&[f64]; 7] = [
        &[],
        &[5.0, 2.0],
        &[1.2, 1.6],
        &[6.0, 1.8, 1.2, 1.8],
        &[9.0, 2.5],
        &[2.6, 1.4],
        &[6.0, 1.6, 1.2, 1.6, 1.2, 1.6],
    ];
    match tone {
        Tone::Hue(number) => OF_HUES[number % OF_HUES.len()],
        _ => &[],
    }
}

/// An interval between two places of a line; where it is cut off, an arrow says so.
pub(super) fn interval(
    across: f64,
    (from, to): (f64, f64),
    (least, most): (f64, f64),
    upright: bool,
    stroke: Stroke,
) -> Vec<Path> {
    let point = |along: f64, aside: f64| {
        if upright { (across + aside, along) } else { (along, across + aside) }
    };
    let (start, end) = (from.min(to).max(least), from.max(to).min(most));
    let mut paths = vec![Path::line(point(start, 0.0), point(end, 0.0), stroke)];
    for (wanted, drawn, inwards) in [(from.min(to), start, 1.0), (from.max(to), end, -1.0)] {
        paths.push(match (wanted - drawn).abs() < 0.01 {
            true => Path::line(point(drawn, -1.8), point(drawn, 1.8), stroke),
            false => {
                let back = drawn + 3.0 * inwards;
                let arrow = [point(drawn, 0.0), point(back, -1.8), point(back, 1.8)];
                Path::polygon(&arrow, stroke.colour)
            }
        });
    }
    paths
}
