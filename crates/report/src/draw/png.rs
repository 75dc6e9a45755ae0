//! Draws pictures as PNG.

use super::canvas::{PT_PER_IN, Paint};
use super::outlines::outline;
use super::theme::Colour;
use super::{Drawing, PictureError};
use tiny_skia::{Color, FillRule, LineJoin, Path, Pixmap, Stroke, StrokeDash, Transform};

/// Maximum pixels; larger images do not open in common viewers.
const PIXELS_MAX: f64 = 2e8;

/// The content of the file, with `dpi` pixels per inch.
pub(super) fn write(drawing: &Drawing, dpi: f64) -> Result<Vec<u8>, PictureError> {
    let (width_in, height_in) = drawing.size_in;
    let width = (width_in * dpi).round();
    let height = (height_in * dpi).round();
    let too_large = || PictureError::TooLarge(width as u64, height as u64);
    if width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    pixels.fill(color(drawing.background));
    let scale = (dpi / PT_PER_IN) as f32;
    let scale = Transform::from_scale(scale, scale);
    for (path, paint) in drawing.shapes.iter().filter_map(outline) {
        draw(&mut pixels, &path, &paint, scale);
    }
    encode(&pixels, dpi)
}

fn draw(pixels: &mut Pixmap, path: &Path, paint: &Paint, transform: Transform) {
    if let Some(colour) = paint.fill {
        pixels.fill_path(path, &opaque_paint(colour), FillRule::Winding, transform, None);
    }
    if let Some(stroke) = paint.stroke {
        let dashes: Vec<f32> = stroke.dashes.iter().map(|length| *length as f32).collect();
        let line = Stroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dashes, 0.0),
            ..Stroke::default()
        };
        pixels.stroke_path(path, &opaque_paint(stroke.colour), &line, transform, None);
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
fn encode(pixels: &Pixmap, dpi: f64) -> Result<Vec<u8>, PictureError> {
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
