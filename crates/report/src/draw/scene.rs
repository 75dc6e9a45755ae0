//! Shapes with their places, in points from the top left. Whoever writes a picture needs nothing else.

use super::theme::Colour;

/// Points of an inch.
pub(super) const PT_PER_IN: f64 = 72.0;

/// A picture.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) background: Colour,
    pub(super) shapes: Vec<Shape>,
}

/// Something to see.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Path(Path),
    Text(Text),
    /// What follows is of this series, until [`Shape::End`].
    Begin(String),
    End,
}

/// Lines and areas.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    pub(super) segments: Vec<Segment>,
    pub(super) fill: Option<Colour>,
    pub(super) stroke: Option<Stroke>,
    /// Shown when pointed at.
    pub(super) hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Segment {
    Move(f64, f64),
    Line(f64, f64),
    Cubic([(f64, f64); 3]),
    Close,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    /// Lengths of line and gap in turn; none of a whole line.
    pub(super) dashes: &'static [f64],
}

/// A line of text.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// Of the anchor, on the base line.
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) colour: Colour,
    pub(super) anchor: Anchor,
    /// Around the anchor, clockwise.
    pub(super) degrees: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// Where the text begins, from the anchor, in its width.
    pub(super) fn share(self) -> f64 {
        match self {
            Anchor::Start => 0.0,
            Anchor::Middle => -0.5,
            Anchor::End => -1.0,
        }
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

impl Path {
    pub(super) fn line(from: (f64, f64), to: (f64, f64), stroke: Stroke) -> Self {
        Path::through(&[from, to], stroke)
    }

    pub(super) fn through(points: &[(f64, f64)], stroke: Stroke) -> Self {
        Path { segments: corners(points), stroke: Some(stroke), ..Path::default() }
    }

    pub(super) fn polygon(points: &[(f64, f64)], fill: Colour) -> Self {
        let mut segments = corners(points);
        segments.push(Segment::Close);
        Path { segments, fill: Some(fill), ..Path::default() }
    }

    pub(super) fn rectangle(area: Area, fill: Colour) -> Self {
        let Area { left, top, right, bottom } = area;
        Path::polygon(&[(left, top), (right, top), (right, bottom), (left, bottom)], fill)
    }

    pub(super) fn circle(centre: (f64, f64), radius: f64, fill: Colour) -> Self {
        let mut segments = vec![Segment::Move(centre.0, centre.1 - radius)];
        arc(&mut segments, centre, radius, 0.0, 1.0);
        segments.push(Segment::Close);
        Path { segments, fill: Some(fill), ..Path::default() }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Path { hint: Some(hint.into()), ..self }
    }

    pub(super) fn filled(self, fill: Colour) -> Self {
        Path { fill: Some(fill), ..self }
    }
}

fn corners(points: &[(f64, f64)]) -> Vec<Segment> {
    let place = |(i, &(x, y)): (usize, &(f64, f64))| {
        if i == 0 { Segment::Move(x, y) } else { Segment::Line(x, y) }
    };
    points.iter().enumerate().map(place).collect()
}

/// A point of a circle; `turn` is a share of it, clockwise from the top.
pub(super) fn on_circle(centre: (f64, f64), radius: f64, turn: f64) -> (f64, f64) {
    let angle = turn * std::f64::consts::TAU;
    (centre.0 + radius * angle.sin(), centre.1 - radius * angle.cos())
}

/// Go on along a circle from a point of it, in curves of an eighth of a turn at most.
pub(super) fn arc(
    segments: &mut Vec<Segment>,
    centre: (f64, f64),
    radius: f64,
    from: f64,
    to: f64,
) {
    let parts = ((to - from) * 8.0).ceil().max(1.0);
    let step = (to - from) / parts;
    let handle = 4.0 / 3.0 * (step * std::f64::consts::TAU / 4.0).tan() * radius;
    for part in 0..parts as usize {
        let (start, end) = (from + step * part as f64, from + step * (part + 1) as f64);
        let tangent = |turn: f64| {
            let angle = turn * std::f64::consts::TAU;
            (angle.cos() * handle, angle.sin() * handle)
        };
        let (a, b) = (on_circle(centre, radius, start), on_circle(centre, radius, end));
        let (leaves, enters) = (tangent(start), tangent(end));
        let first = (a.0 + leaves.0, a.1 + leaves.1);
        let second = (b.0 - enters.0, b.1 - enters.1);
        segments.push(Segment::Cubic([first, second, b]));
    }
}
