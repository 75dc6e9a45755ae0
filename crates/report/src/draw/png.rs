//! A scene as PNG: shapes and text alike are filled outlines, so that no font of the system is needed.

use super::font;
use super::scene::{PT_PER_IN, Path, Scene, Segment, Shape, Stroke, Text};
use super::theme::Colour;
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, Stroke as Pen, StrokeDash, Transform,
};

/// So many pixels have no picture any more that anybody opens.
const PIXELS_MAX: f64 = 2e8;

/// A picture cannot be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PngError {
    #[error("a picture of `{0} × {1}` pixels is too large")]
    TooLarge(u64, u64),
    #[error("cannot write the picture: {0}")]
    Encode(#[from] png::EncodingError),
}

/// The whole file.
pub(super) fn write(scene: &Scene, dpi: f64) -> Result<Vec<u8>, PngError> {
    let scale = dpi / PT_PER_IN;
    let (width, height) = ((scene.width * scale).round(), (scene.height * scale).round());
    let too_large = || PngError::TooLarge(width as u64, height as u64);
    if width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    let [red, green, blue, opacity] = scene.background;
    pixels.fill(Color::from_rgba8(red, green, blue, opacity));
    let transform = Transform::from_scale(scale as f32, scale as f32);
    for shape in &scene.shapes {
        match shape {
            Shape::Path(path) => draw_path(&mut pixels, path, transform),
            Shape::Text(text) => draw_text(&mut pixels, text, transform),
            Shape::Begin(_) | Shape::End => {}
        }
    }
    encoded(&pixels, dpi)
}

fn draw_path(pixels: &mut Pixmap, path: &Path, transform: Transform) {
    let Some(outline) = built(&path.segments) else { return };
    if let Some(fill) = path.fill {
        pixels.fill_path(&outline, &paint(fill), FillRule::Winding, transform, None);
    }
    if let Some(stroke) = path.stroke {
        pixels.stroke_path(&outline, &paint(stroke.colour), &pen(stroke), transform, None);
    }
}

fn draw_text(pixels: &mut Pixmap, text: &Text, transform: Transform) {
    let Some(outline) = built(&font::outline(&text.text, text.size)) else { return };
    let shift = font::width(&text.text, text.size) * text.anchor.share();
    let place = transform
        .pre_translate(text.x as f32, text.y as f32)
        .pre_concat(Transform::from_rotate(text.degrees as f32))
        .pre_translate(shift as f32, 0.0);
    pixels.fill_path(&outline, &paint(text.colour), FillRule::Winding, place, None);
}

fn built(segments: &[Segment]) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    for segment in segments {
        match *segment {
            Segment::Move(x, y) => builder.move_to(x as f32, y as f32),
            Segment::Line(x, y) => builder.line_to(x as f32, y as f32),
            Segment::Cubic(points) => {
                let [(ax, ay), (bx, by), (x, y)] = points.map(|(x, y)| (x as f32, y as f32));
                builder.cubic_to(ax, ay, bx, by, x, y);
            }
            Segment::Close => builder.close(),
        }
    }
    builder.finish()
}

fn paint([red, green, blue, opacity]: Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, opacity);
    paint.anti_alias = true;
    paint
}

fn pen(stroke: Stroke) -> Pen {
    let lengths = stroke.dashes.iter().map(|length| *length as f32).collect();
    let dash = StrokeDash::new(lengths, 0.0);
    Pen { width: stroke.width as f32, line_join: LineJoin::Round, dash, ..Pen::default() }
}

fn encoded(pixels: &Pixmap, dpi: f64) -> Result<Vec<u8>, PngError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (dpi / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    // The background is opaque, so all is.
    let rgb: Vec<u8> =
        pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(file)
}
