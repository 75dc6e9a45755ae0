//! A picture as PNG, drawn from its SVG with the font that plots carry: none of the system is needed.

use super::font::SANS;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Tree};

/// Maximum pixels; larger images do not open in common viewers.
const PIXELS_MAX: f64 = 2e8;

/// A picture cannot be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PngError {
    #[error("a picture of `{0} × {1}` pixels is too large")]
    TooLarge(u64, u64),
    #[error("cannot draw the picture: {0}")]
    Draw(#[from] usvg::Error),
    #[error("cannot write the picture: {0}")]
    Encode(#[from] png::EncodingError),
}

/// The whole file, of a picture of so many inches.
pub(super) fn write(svg: &str, size_in: (f64, f64), dpi: f64) -> Result<Vec<u8>, PngError> {
    let (width, height) = ((size_in.0 * dpi).round(), (size_in.1 * dpi).round());
    let too_large = || PngError::TooLarge(width as u64, height as u64);
    if width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_font_data(SANS.to_vec());
    let tree = Tree::from_str(svg, &options)?;
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    let scale = Transform::from_scale(
        width as f32 / tree.size().width(),
        height as f32 / tree.size().height(),
    );
    resvg::render(&tree, scale, &mut pixels.as_mut());
    encoded(&pixels, dpi)
}

/// With its size on paper, which the pixels alone do not tell.
fn encoded(pixels: &Pixmap, dpi: f64) -> Result<Vec<u8>, PngError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (dpi / 0.0254).round() as u32;
    let unit = png::Unit::Meter;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit }));
    // The background is opaque, so all is, but for the last part of a pixel at the edge.
    let colours = pixels.pixels().iter().map(|pixel| pixel.demultiply());
    let rgb: Vec<u8> =
        colours.flat_map(|colour| [colour.red(), colour.green(), colour.blue()]).collect();
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(file)
}
