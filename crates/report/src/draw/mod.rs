//! Figures as SVG and PNG: axes, marks, labels, in sizes that print. Knows nothing of runs; reads nothing but its own font.
//!
//! A [`figure::Figure`] says what is shown; [`draw`] decides where it comes to lie, and writes it as SVG. A PNG is drawn from the same shapes.

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

pub use panel::{is_cut, stand_aside};
pub use png::PngError;
pub use theme::Theme;

pub use figure::Figure;

use canvas::Shape;
use theme::Colour;

/// How a figure looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Width of the whole picture; `None` takes a column of a paper, or the page where a figure needs it.
    pub width_in: Option<f64>,
    /// Size of all text.
    pub font_pt: f64,
    /// Light or dark.
    pub theme: Theme,
}

/// One column of a paper.
pub const COLUMN_IN: f64 = 3.5;
/// Both columns.
pub const PAGE_IN: f64 = 7.0;

impl Default for Look {
    fn default() -> Self {
        Look { width_in: None, font_pt: 9.0, theme: Theme::Light }
    }
}

/// A figure whose every shape has its place.
#[derive(Debug)]
pub struct Drawing {
    /// The whole file, text as text. Widths of text are those of Arial, Helvetica and their kin.
    pub svg: String,
    /// Width and height.
    pub size_in: (f64, f64),
    background: Colour,
    /// From the lowest to the topmost.
    shapes: Vec<Shape>,
}

/// Give everything its place.
pub fn draw(figure: &Figure, look: &Look) -> Drawing {
    layout::draw(figure, look)
}

impl Drawing {
    /// As PNG of so many dots per inch.
    ///
    /// # Errors
    /// It is too large for a picture.
    pub fn png(&self, dpi: f64) -> Result<Vec<u8>, PngError> {
        png::write(self, dpi)
    }
}
