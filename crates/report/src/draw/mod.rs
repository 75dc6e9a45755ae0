//! Figures as SVG and PNG: axes, marks, labels, in sizes that print. Knows nothing of runs; reads nothing but its own font.
//!
//! A [`figure::Figure`] says what is shown; [`draw`] decides where it comes to lie; `svg` and `png` write the same shapes.

pub mod figure;
mod font;
mod theme;
mod scene;
mod axis;
mod marks;
mod pen;
mod layers;
mod panel;
mod pie;
mod matrix;
mod key;
mod layout;
mod svg;
mod png;
#[cfg(test)]
mod tests;

pub use png::PngError;
pub use theme::Theme;

use figure::Figure;
use scene::Scene;

/// How a figure looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Of the whole picture; `None` takes a column of a paper, or the page where a figure needs it.
    pub width_in: Option<f64>,
    /// Of axis titles; all other text follows.
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

/// Whether some interval is cut off by the end of its axis.
pub fn is_cut(axes: &figure::Axes) -> bool {
    panel::is_cut(axes)
}

/// A figure whose every shape has its place.
#[derive(Debug)]
pub struct Drawing(Scene);

/// Give everything its place.
pub fn draw(figure: &Figure, look: &Look) -> Drawing {
    Drawing(layout::place(figure, look))
}

impl Drawing {
    /// As SVG, text as text. Widths of text are those of Arial, Helvetica and their kin.
    pub fn svg(&self) -> String {
        svg::write(&self.0)
    }

    /// As PNG of so many dots per inch.
    ///
    /// # Errors
    /// It is too large for a picture.
    pub fn png(&self, dpi: f64) -> Result<Vec<u8>, PngError> {
        png::write(&self.0, dpi)
    }

    /// Width and height in inches.
    pub fn size_in(&self) -> (f64, f64) {
        (self.0.width / scene::PT_PER_IN, self.0.height / scene::PT_PER_IN)
    }
}
