//! Draws figures as SVG and PNG in sizes for print: axes, marks, labels. Knows nothing about runs, and uses no fonts of the system.
//!
//! A [`figure::Figure`] describes the content; [`draw`] places it and writes SVG. A PNG is drawn from the same shapes.

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
mod png;
#[cfg(test)]
pub(crate) mod tests;

pub use panel::{has_cut_interval, needs_offsets};
pub use png::PngError;
pub use theme::Theme;

pub use figure::Figure;

use canvas::Shape;
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

impl Default for DrawOptions {
    fn default() -> Self {
        DrawOptions { width_in: None, font_pt: 9.0, theme: Theme::Light }
    }
}

/// A figure with all shapes placed.
#[derive(Debug)]
pub struct Drawing {
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

impl Drawing {
    /// The drawing as PNG with `dpi` dots per inch.
    ///
    /// # Errors
    /// The picture would be too large.
    pub fn png(&self, dpi: f64) -> Result<Vec<u8>, PngError> {
        png::write(self, dpi)
    }
}
