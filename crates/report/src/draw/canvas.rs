//! Draws lines, areas and text at coordinates in points from the top left. SVG keeps text as text and fetches nothing.

use super::Drawing;
use super::font::{self, FAMILIES};
use super::theme::{Colour, Palette};
use feedrate_spec::escape;
use std::fmt::{Display, Write as _};

/// Points per inch.
pub(super) const PT_PER_IN: f64 = 72.0;

/// A position: the distances from the left and from the upper edge.
pub(super) type Position = (f64, f64);

/// The picture so far, with its colours and text size.
#[derive(Debug)]
pub(super) struct Canvas {
    pub(super) palette: &'static Palette,
    /// Text size in points.
    pub(super) size: f64,
    svg: String,
    shapes: Vec<Shape>,
}

/// A shape, without its group and tooltip in SVG.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Outline { points: Vec<Position>, is_closed: bool, paint: Paint },
    Circle { centre: Position, radius: f64, paint: Paint },
    Text(Text),
}

/// A line of text, rotated clockwise around its anchor.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) position: Position,
    pub(super) anchor: Anchor,
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) colour: Colour,
    pub(super) degrees: f64,
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    fn corners(&self) -> [Position; 4] {
        let Area { left, top, right, bottom } = *self;
        [(left, top), (right, top), (right, bottom), (left, bottom)]
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    /// Alternating lengths of dashes and gaps; empty for a solid line.
    pub(super) dashes: &'static [f64],
}

impl Stroke {
    pub(super) fn new(colour: Colour, width: f64) -> Self {
        Stroke { colour, width, dashes: &[] }
    }
}

/// The inside and the outline of a shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paint {
    pub(super) fill: Option<Colour>,
    pub(super) stroke: Option<Stroke>,
}

impl Paint {
    pub(super) fn fill(colour: Colour) -> Self {
        Paint { fill: Some(colour), stroke: None }
    }

    pub(super) fn fill_and_stroke(fill: Colour, stroke: Stroke) -> Self {
        Paint { fill: Some(fill), stroke: Some(stroke) }
    }
}

impl Canvas {
    pub(super) fn new(palette: &'static Palette, size: f64) -> Self {
        Canvas { palette, size, svg: String::new(), shapes: Vec::new() }
    }

    /// Width of a text.
    pub(super) fn width(&self, text: &str) -> f64 {
        font::width(text, self.size)
    }

    /// Distance from the middle of a line of text down to its baseline.
    pub(super) fn baseline_offset(&self) -> f64 {
        font::CAPITALS * self.size / 2.0
    }

    pub(super) fn text(&mut self, position: Position, anchor: Anchor, text: &str) {
        self.rotated_text(position, anchor, text, 0.0);
    }

    /// Draws text, rotated clockwise around its anchor.
    pub(super) fn rotated_text(
        &mut self,
        position: Position,
        anchor: Anchor,
        text: &str,
        degrees: f64,
    ) {
        self.shapes.push(Shape::Text(Text {
            position,
            anchor,
            text: escape::one_line(text).into(),
            size: self.size,
            colour: self.palette.text,
            degrees,
        }));
        let x = number(position.0);
        let y = number(position.1);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let mut attributes = format!(
            "x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"",
            number(self.size),
            hex(self.palette.text)
        );
        // If these fonts are missing, a viewer may use a wider font, and names would overlap or leave the picture.
        let width = self.width(text);
        if width > 0.0 {
            let length = number(width);
            attributes += &format!(" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\"");
        }
        if degrees != 0.0 {
            attributes += &format!(" transform=\"rotate({} {x} {y})\"", number(degrees));
        }
        self.push(format_args!("<text {attributes}>{}</text>", escape_xml(text)));
    }

    pub(super) fn line(&mut self, points: &[Position], stroke: Stroke) {
        let paint = Paint { fill: None, stroke: Some(stroke) };
        self.shapes.push(Shape::Outline { points: points.into(), is_closed: false, paint });
        self.shape("polyline", &points_attribute(points), paint, "");
    }

    /// Draws a polygon. An empty `tooltip` means none.
    pub(super) fn polygon(&mut self, points: &[Position], paint: Paint, tooltip: &str) {
        self.shapes.push(Shape::Outline { points: points.into(), is_closed: true, paint });
        self.shape("polygon", &points_attribute(points), paint, tooltip);
    }

    pub(super) fn rectangle(&mut self, area: Area, fill: Colour, tooltip: &str) {
        let geometry = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            number(area.left),
            number(area.top),
            number(area.width()),
            number(area.height())
        );
        let points = area.corners().into();
        let paint = Paint::fill(fill);
        self.shapes.push(Shape::Outline { points, is_closed: true, paint });
        self.shape("rect", &geometry, paint, tooltip);
    }

    pub(super) fn circle(&mut self, centre: Position, radius: f64, paint: Paint, tooltip: &str) {
        self.shapes.push(Shape::Circle { centre, radius, paint });
        let geometry = format!(
            "cx=\"{}\" cy=\"{}\" r=\"{}\"",
            number(centre.0),
            number(centre.1),
            number(radius)
        );
        self.shape("circle", &geometry, paint, tooltip);
    }

    /// Writes an SVG element.
    fn shape(&mut self, element: &str, geometry: &str, paint: Paint, tooltip: &str) {
        let fill = paint.fill.map_or("none".into(), hex);
        let mut attributes = format!("{geometry} fill=\"{fill}\"");
        if let Some(Stroke { colour, width, dashes }) = paint.stroke {
            attributes += &format!(
                " stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
                hex(colour),
                number(width)
            );
            if !dashes.is_empty() {
                let dashes: Vec<String> = dashes.iter().copied().map(number).collect();
                attributes += &format!(" stroke-dasharray=\"{}\"", dashes.join(" "));
            }
        }
        if tooltip.is_empty() {
            self.push(format_args!("<{element} {attributes}/>"));
        } else {
            let tooltip = escape_xml(tooltip);
            self.push(format_args!("<{element} {attributes}><title>{tooltip}</title></{element}>"));
        }
    }

    /// Begins the group of a series. [`Canvas::end_group`] ends it.
    pub(super) fn begin_group(&mut self, series: &str) {
        self.push(format_args!("<g data-series=\"{}\">", escape_xml(series)));
    }

    pub(super) fn end_group(&mut self) {
        self.push("</g>");
    }

    /// The finished picture. `size`: its width and height in points.
    pub(super) fn finish(self, title: &str, caption: &str, size: Position) -> Drawing {
        let width = number(size.0);
        let height = number(size.1);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FAMILIES}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n{}</svg>\n",
            escape_xml(title),
            escape_xml(caption),
            hex(self.palette.background),
            self.svg
        );
        let size_in = (size.0 / PT_PER_IN, size.1 / PT_PER_IN);
        Drawing {
            title: escape::one_line(title).into(),
            svg,
            size_in,
            background: self.palette.background,
            shapes: self.shapes,
        }
    }

    fn push(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.svg, "{line}");
    }
}

fn points_attribute(points: &[Position]) -> String {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    format!("points=\"{}\"", points.join(" "))
}

fn hex(colour: Colour) -> String {
    let [red, green, blue] = colour;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A coordinate, rounded to a hundredth of a point.
fn number(value: f64) -> String {
    let rounded = format!("{value:.2}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// Text escaped for XML: markup as entities, control characters as escapes, and characters that XML forbids as blanks.
fn escape_xml(text: &str) -> String {
    let line = escape::one_line(text);
    let escaped = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace(['\u{fffe}', '\u{ffff}'], " ")
}
