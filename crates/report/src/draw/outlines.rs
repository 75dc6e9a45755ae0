//! Outlines of shapes for PNG and PDF. Text becomes the glyphs of the built-in font, so pictures need no fonts of a system.

use super::canvas::{Anchor, Paint, Position, Shape, Text};
use super::font;
use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::OutlineBuilder;

/// The outline of a shape in points, with its paint; `None` for a shape without extent.
pub(super) fn outline(shape: &Shape) -> Option<(Path, Paint)> {
    match shape {
        Shape::Outline { points, is_closed, paint } => {
            Some((polyline(points, *is_closed)?, *paint))
        }
        Shape::Circle { centre: (x, y), radius, paint } => {
            let path = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32)?;
            Some((path, *paint))
        }
        Shape::Text(text) => {
            let (x, y) = text.position;
            let turn = Transform::from_rotate_at(text.degrees as f32, x as f32, y as f32);
            Some((glyphs(text)?.transform(turn)?, Paint::fill(text.colour)))
        }
    }
}

fn polyline(points: &[Position], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let x = *x as f32;
        let y = *y as f32;
        if i == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if is_closed {
        path.close();
    }
    path.finish()
}

fn glyphs(text: &Text) -> Option<Path> {
    let face = font::face()?;
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => 0.5,
        Anchor::End => 1.0,
    };
    let mut glyphs = Glyphs {
        path: PathBuilder::new(),
        left: text.position.0 - before * font::width(&text.text, text.size),
        base: text.position.1,
        unit: text.size / f64::from(face.units_per_em()),
    };
    for c in text.text.chars() {
        // A blank has no outline.
        let _ = face.outline_glyph(face.glyph_index(c).unwrap_or_default(), &mut glyphs);
        glyphs.left += glyphs.unit * font::advance(&face, c);
    }
    glyphs.path.finish()
}

/// Outlines of glyphs side by side.
struct Glyphs {
    path: PathBuilder,
    /// Start of the next glyph.
    left: f64,
    /// The base line.
    base: f64,
    /// Points per unit of the font. In the font, y points upwards.
    unit: f64,
}

impl Glyphs {
    fn x(&self, x: f32) -> f32 {
        (self.left + self.unit * f64::from(x)) as f32
    }

    fn y(&self, y: f32) -> f32 {
        (self.base - self.unit * f64::from(y)) as f32
    }
}

impl OutlineBuilder for Glyphs {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x(x), self.y(y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x(x), self.y(y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.x(x1), self.y(y1), self.x(x), self.y(y));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(self.x(x1), self.y(y1), self.x(x2), self.y(y2), self.x(x), self.y(y));
    }

    fn close(&mut self) {
        self.path.close();
    }
}
