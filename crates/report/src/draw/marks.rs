//! Draws marks, dashes, hatching and intervals. Their shapes distinguish series in addition to colours.

use super::canvas::{Area, Canvas, Paint, Position, Stroke};
use super::figure::{RuleLine, Tone};
use super::theme::Palette;

/// Half the size of a mark.
pub(super) const MARK_RADIUS: f64 = 2.5;

/// Draws the mark of a tone around a point.
pub(super) fn mark(
    canvas: &mut Canvas,
    tone: Tone,
    position: Position,
    half: f64,
    paint: Paint,
    tooltip: &str,
) {
    let corners = match tone {
        Tone::Hue(number) => corners(number),
        // Good and bad have nearly the same grey.
        Tone::Bad => corners(1),
        Tone::Good => corners(2),
        Tone::Faint | Tone::Open => Vec::new(),
    };
    if corners.is_empty() {
        return canvas.circle(position, half, paint, tooltip);
    }
    let points: Vec<Position> =
        corners.iter().map(|(x, y)| (position.0 + x * half, position.1 + y * half)).collect();
    canvas.polygon(&points, paint, tooltip);
}

/// The corners of a mark in half sizes; empty for a circle.
fn corners(number: usize) -> Vec<Position> {
    match number % 6 {
        0 => vec![],
        1 => vec![(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => vec![(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
        3 => vec![(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        4 => vec![(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
        _ => {
            // A plus: the same arm, turned four times.
            let arm = [(-0.4, -1.2), (0.4, -1.2), (0.4, -0.4)];
            let arms = std::iter::successors(Some(arm), |arm| Some(arm.map(|(x, y)| (-y, x))));
            arms.take(4).flatten().collect()
        }
    }
}

/// The dashes of a line without marks, which distinguish lines in addition to colours.
pub(super) fn dashes(tone: Tone) -> &'static [f64] {
    const BY_HUE: [&[f64]; 7] = [
        &[],
        &[5.0, 2.0],
        &[1.2, 1.6],
        &[6.0, 1.8, 1.2, 1.8],
        &[9.0, 2.5],
        &[2.6, 1.4],
        &[6.0, 1.6, 1.2, 1.6, 1.2, 1.6],
    ];
    match tone {
        Tone::Hue(number) => BY_HUE[number % BY_HUE.len()],
        _ => &[],
    }
}

/// The stroke of a rule.
pub(super) fn rule_stroke(line: RuleLine, palette: &Palette) -> Stroke {
    let (dashes, width): (&[f64], f64) = match line {
        RuleLine::Broken => (&[4.0, 2.5], 0.8),
        RuleLine::Dotted => (&[1.0, 1.8], 1.0),
    };
    Stroke { dashes, ..Stroke::new(palette.line, width) }
}

/// Distance between lines of a hatching.
const HATCH: f64 = 3.4;

/// The slopes of a tone's hatching, in widths per height. Hatching distinguishes neighbours without colour.
pub(super) fn hatching(tone: Tone) -> &'static [f64] {
    match tone {
        Tone::Hue(1) | Tone::Bad => &[1.0],
        Tone::Hue(2) => &[-1.0],
        Tone::Hue(3) => &[0.0],
        Tone::Hue(5) => &[1.0, -1.0],
        _ => &[],
    }
}

/// Draws a rectangle of a tone, with a gap to its neighbours.
pub(super) fn hatched_area(canvas: &mut Canvas, tone: Tone, area: Area, tooltip: &str) {
    let background = canvas.palette.background;
    canvas.rectangle(area, canvas.palette.colour(tone), tooltip);
    let stroke = Stroke::new(background, 0.7);
    hatch(canvas, hatching(tone), area, stroke);
    canvas.line(&[(area.right, area.top), (area.right, area.bottom)], stroke);
}

/// Maximum number of lines of a hatching, enough for a width of ten metres.
const HATCH_LINES_MAX: f64 = 10_000.0;

/// Draws lines of these slopes over an area, or nothing if the area is too large for any picture.
pub(super) fn hatch(canvas: &mut Canvas, slopes: &[f64], area: Area, stroke: Stroke) {
    for &slope in slopes {
        let over = slope * area.height();
        let first = area.left - over.max(0.0) + HATCH / 2.0;
        let count = ((area.right - over.min(0.0) - first) / HATCH).ceil();
        if !(0.0..=HATCH_LINES_MAX).contains(&count) {
            continue;
        }
        for line in 0..count as u32 {
            let from = first + HATCH * f64::from(line);
            // The shares of the line where the area begins and ends. For a vertical line they are infinite, which keeps the whole line.
            let ends = [(area.left - from) / over, (area.right - from) / over];
            let start = ends[0].min(ends[1]).max(0.0);
            let end = ends[0].max(ends[1]).min(1.0);
            let position = |share: f64| (from + share * over, area.bottom - share * area.height());
            if start < end {
                canvas.line(&[position(start), position(end)], stroke);
            }
        }
    }
}

/// Draws an interval around a position. Its `ends` are on the y axis if `is_upright`, else on the x axis. An end outside of the area becomes an arrow.
pub(super) fn interval(
    canvas: &mut Canvas,
    position: Position,
    ends: [f64; 2],
    area: Area,
    is_upright: bool,
    stroke: Stroke,
) {
    let point = |along: f64, aside: f64| {
        if is_upright { (position.0 + aside, along) } else { (along, position.1 + aside) }
    };
    let (least, most) = if is_upright { (area.top, area.bottom) } else { (area.left, area.right) };
    let from = ends[0].min(ends[1]);
    let to = ends[0].max(ends[1]);
    let start = from.max(least);
    let end = to.min(most);
    canvas.line(&[point(start, 0.0), point(end, 0.0)], stroke);
    for (wanted, drawn, inwards) in [(from, start, 3.0), (to, end, -3.0)] {
        if (wanted - drawn).abs() < 0.01 {
            canvas.line(&[point(drawn, -1.8), point(drawn, 1.8)], stroke);
        } else {
            let back = drawn + inwards;
            let arrow = [point(drawn, 0.0), point(back, -1.8), point(back, 1.8)];
            canvas.polygon(&arrow, Paint::fill(stroke.colour), "");
        }
    }
}
