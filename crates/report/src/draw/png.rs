//! Draws pictures as PNG. Uses the built-in font, and therefore no fonts of the system.

use super::Drawing;
use super::canvas::{Anchor, PT_PER_IN, Paint, Position, Shape, Text};
use super::font;
use super::theme::Colour;
use tiny_skia::{
    Color, FillRule, LineJoin, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

/// Maximum pixels; larger images do not open in common viewers.
const PIXELS_MAX: f64 = 2e8;

/// The reason why a picture cannot be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum PngError {
    #[error("a picture of `{0} × {1}` pixels is too large")]
    TooLarge(u64, u64),
    #[error("cannot write the picture: {0}")]
    Encode(#[from] png::EncodingError),
}

/// The content of the file, with `dpi` pixels per inch.
pub(super) fn write(drawing: &Drawing, dpi: f64) -> Result<Vec<u8>, PngError> {
    let (width_in, height_in) = drawing.size_in;
    let width = (width_in * dpi).round();
    let height = (height_in * dpi).round();
    let too_large = || PngError::TooLarge(width as u64, height as u64);
    if width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    pixels.fill(color(drawing.background));
    let scale = (dpi / PT_PER_IN) as f32;
    let scale = Transform::from_scale(scale, scale);
    for shape in &drawing.shapes {
        match shape {
            Shape::Outline { points, is_closed, paint } => {
                draw(&mut pixels, outline(points, *is_closed), paint, scale);
            }
            Shape::Circle { centre: (x, y), radius, paint } => {
                let path = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32);
                draw(&mut pixels, path, paint, scale);
            }
            Shape::Text(text) => {
                let (x, y) = text.position;
                let turn = Transform::from_rotate_at(text.degrees as f32, x as f32, y as f32);
                let paint = Paint::fill(text.colour);
                draw(&mut pixels, text_outline(text), &paint, scale.pre_concat(turn));
            }
        }
    }
    encode(&pixels, dpi)
}

/// Draws a path. Shapes without extent have no path.
fn draw(pixels: &mut Pixmap, path: Option<Path>, paint: &Paint, transform: Transform) {
    let Some(path) = path else { return };
    if let Some(colour) = paint.fill {
        pixels.fill_path(&path, &opaque_paint(colour), FillRule::Winding, transform, None);
    }
    if let Some(stroke) = paint.stroke {
        let dashes: Vec<f32> = stroke.dashes.iter().map(|length| *length as f32).collect();
        let line = Stroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dashes, 0.0),
            ..Stroke::default()
        };
        pixels.stroke_path(&path, &opaque_paint(stroke.colour), &line, transform, None);
    }
}

fn outline(points: &[Position], is_closed: bool) -> Option<Path> {
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

fn text_outline(text: &Text) -> Option<Path> {
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

fn color([red, green, blue]: Colour) -> Color {
    Color::from_rgba8(red, green, blue, u8::MAX)
}

fn opaque_paint(colour: Colour) -> tiny_skia::Paint<'static> {
    let mut paint = tiny_skia::Paint::default();
    paint.set_color(color(colour));
    paint
}

/// The encoded file. It contains the resolution, and thus the size on paper.
fn encode(pixels: &Pixmap, dpi: f64) -> Result<Vec<u8>, PngError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (dpi / 0.0254).round() as u32;
    let unit = png::Unit::Meter;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit }));
    // All pixels are opaque like the background, except a fraction of a pixel at the edge.
    let colours = pixels.pixels().iter().map(|pixel| pixel.demultiply());
    let rgb: Vec<u8> =
        colours.flat_map(|colour| [colour.red(), colour.green(), colour.blue()]).collect();
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(file)
}
