//! How text and lines look in one picture: sizes and colours, so that panels need not know the theme.

use super::font;
use super::scene::{Anchor, Shape, Stroke, Text};
use super::theme::{Colour, Theme};

/// How everything looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub(super) theme: Theme,
    pub(super) size: f64,
    /// Whether marks of single runs are hollow: where others are of several.
    pub(super) hollows_single: bool,
}

impl Pen {
    pub(super) fn text(&self, at: (f64, f64), anchor: Anchor, text: &str) -> Shape {
        self.coloured(at, anchor, text, self.theme.text())
    }

    pub(super) fn coloured(
        &self,
        (x, y): (f64, f64),
        anchor: Anchor,
        text: &str,
        colour: Colour,
    ) -> Shape {
        let text = text.to_string();
        Shape::Text(Text { x, y, text, size: self.size, colour, anchor, degrees: 0.0 })
    }

    pub(super) fn turned(
        &self,
        (x, y): (f64, f64),
        anchor: Anchor,
        text: &str,
        degrees: f64,
    ) -> Shape {
        let (text, colour) = (text.to_string(), self.theme.text());
        Shape::Text(Text { x, y, text, size: self.size, colour, anchor, degrees })
    }

    pub(super) fn width(&self, text: &str) -> f64 {
        font::width(text, self.size)
    }

    /// From the middle of a line of text to its base line.
    pub(super) fn drop(&self) -> f64 {
        font::CAPITALS * self.size / 2.0
    }

    pub(super) fn stroke(&self, colour: Colour, width: f64) -> Stroke {
        Stroke { colour, width, dashes: &[] }
    }
}
