//! Draws figures as SVG, PDF and PNG in sizes for print: axes, marks, labels. Knows nothing about runs, and uses no fonts of the system.
//!
//! A [`figure::Figure`] describes the content; [`draw`] places it and writes SVG. PDF and PNG are drawn from the same shapes.

pub mod figure;
mod font;
mod theme;
mod canvas;
mod axis;
mod marks;
mod panel;
mod layers;
mod key;
mod layout;
mod outlines;
mod png;
mod pdf;
#[cfg(test)]
pub(crate) mod tests;

pub use panel::{has_cut_interval, needs_offsets};
pub use theme::Theme;

pub use figure::Figure;

use canvas::Shape;
use std::path::Path;
use theme::Colour;

/// Size and theme of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawOptions {
    /// Width of the picture; `None` for a column of a paper, or for the page if a figure needs more width.
    pub width_in: Option<f64>,
    /// Size of text.
    pub font_pt: f64,
    /// Light or dark colours.
    pub theme: Theme,
}

/// Width of a paper's column.
pub const COLUMN_IN: f64 = 3.5;
/// Width of both columns.
pub const PAGE_IN: f64 = 7.0;

/// Height of a paper's page without its margins.
pub const PAGE_HEIGHT_IN: f64 = 9.0;

/// Dots per inch of a PNG, unless the user gives another number.
pub const DEFAULT_DPI: f64 = 300.0;

impl Default for DrawOptions {
    fn default() -> Self {
        DrawOptions { width_in: None, font_pt: 9.0, theme: Theme::Light }
    }
}

/// A figure with all shapes placed.
#[derive(Debug)]
pub struct Drawing {
    title: String,
    /// Content of the SVG file. Text is not converted to paths; it is placed with the widths of Arial and Helvetica.
    pub svg: String,
    /// Width and height.
    pub size_in: (f64, f64),
    background: Colour,
    /// Shapes from bottom to top.
    shapes: Vec<Shape>,
}

/// Places and draws all parts of a figure.
pub fn draw(figure: &Figure, options: &DrawOptions) -> Drawing {
    layout::draw(figure, options)
}

/// A file format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Text stays text, and marks have tooltips.
    Svg,
    /// One page of the picture's size, with text as outlines.
    Pdf,
    /// Pixels, for programs that show no vectors.
    Png,
}

/// The reason why a picture cannot be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum PictureError {
    #[error("a picture of `{0} × {1}` pixels is too large")]
    TooLarge(u64, u64),
    #[error("cannot write the picture: {0}")]
    Png(#[from] ::png::EncodingError),
    #[error("cannot write the picture: {0}")]
    Pdf(#[from] std::io::Error),
}

impl PictureFormat {
    /// All formats.
    pub const ALL: [PictureFormat; 3] =
        [PictureFormat::Svg, PictureFormat::Pdf, PictureFormat::Png];

    /// The ending of files in this format.
    pub fn extension(self) -> &'static str {
        match self {
            PictureFormat::Svg => "svg",
            PictureFormat::Pdf => "pdf",
            PictureFormat::Png => "png",
        }
    }

    /// The format of a file, by its ending.
    pub fn from_path(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?;
        Self::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()))
    }
}

impl Drawing {
    /// The content of a file in `format`. `dpi`: dots per inch of a PNG.
    ///
    /// # Errors
    /// A PNG would be too large, or the file cannot be encoded.
    pub fn encode(&self, format: PictureFormat, dpi: f64) -> Result<Vec<u8>, PictureError> {
        match format {
            PictureFormat::Svg => Ok(self.svg.clone().into_bytes()),
            PictureFormat::Pdf => Ok(pdf::write(self)?),
            PictureFormat::Png => png::write(self, dpi),
        }
    }
}
