//! A scene as SVG. Text stays text; nothing is fetched from elsewhere.

use super::font::{self, FAMILIES};
use super::scene::{Anchor, PT_PER_IN, Path, Scene, Segment, Shape, Text};
use super::theme::Colour;
use std::fmt::Write as _;

/// The whole file.
pub(super) fn write(scene: &Scene) -> String {
    let mut svg = String::new();
    let (width, height) = (scene.width, scene.height);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}in\" height=\"{}in\" viewBox=\"0 0 {} {}\" role=\"img\" font-family=\"{FAMILIES}\">",
        number(width / PT_PER_IN),
        number(height / PT_PER_IN),
        number(width),
        number(height)
    );
    let _ = writeln!(
        svg,
        "<title>{}</title>\n<desc>{}</desc>",
        escaped(&scene.title),
        escaped(&scene.caption)
    );
    let _ = writeln!(
        svg,
        "<rect width=\"{}\" height=\"{}\"{}/>",
        number(width),
        number(height),
        paint("fill", scene.background)
    );
    for shape in &scene.shapes {
        match shape {
            Shape::Path(path) => write_path(&mut svg, path),
            Shape::Text(text) => write_text(&mut svg, text),
            Shape::Begin(series) => {
                let _ = writeln!(svg, "<g data-series=\"{}\">", escaped(series));
            }
            Shape::End => svg.push_str("</g>\n"),
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn write_path(svg: &mut String, path: &Path) {
    svg.push_str("<path d=\"");
    for segment in &path.segments {
        let _ = match segment {
            Segment::Move(x, y) => write!(svg, "M{} {}", number(*x), number(*y)),
            Segment::Line(x, y) => write!(svg, "L{} {}", number(*x), number(*y)),
            Segment::Cubic([a, b, c]) => {
                let [a, b, c] = [a, b, c].map(|(x, y)| format!("{} {}", number(*x), number(*y)));
                write!(svg, "C{a} {b} {c}")
            }
            Segment::Close => write!(svg, "Z"),
        };
    }
    svg.push('"');
    svg.push_str(&path.fill.map_or(" fill=\"none\"".into(), |fill| paint("fill", fill)));
    if let Some(stroke) = path.stroke {
        let _ = write!(
            svg,
            "{} stroke-width=\"{}\" stroke-linejoin=\"round\"",
            paint("stroke", stroke.colour),
            number(stroke.width)
        );
        if !stroke.dashes.is_empty() {
            let dashes: Vec<String> = stroke.dashes.iter().copied().map(number).collect();
            let _ = write!(svg, " stroke-dasharray=\"{}\"", dashes.join(" "));
        }
    }
    match &path.hint {
        Some(hint) => {
            let _ = writeln!(svg, "><title>{}</title></path>", escaped(hint));
        }
        None => svg.push_str("/>\n"),
    }
}

fn write_text(svg: &mut String, text: &Text) {
    let (x, y) = (number(text.x), number(text.y));
    let anchor = match text.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let _ = write!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\"{}",
        number(text.size),
        paint("fill", text.colour)
    );
    // Whoever has none of the fonts has one that is wider, by which names would run over each other and out of the picture.
    let width = font::width(&text.text, text.size);
    if width > 0.0 {
        let _ = write!(svg, " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", number(width));
    }
    if text.degrees != 0.0 {
        let _ = write!(svg, " transform=\"rotate({} {x} {y})\"", number(text.degrees));
    }
    let _ = writeln!(svg, ">{}</text>", escaped(&text.text));
}

fn paint(name: &str, [red, green, blue, opacity]: Colour) -> String {
    let mut paint = format!(" {name}=\"#{red:02x}{green:02x}{blue:02x}\"");
    if opacity < 255 {
        let _ = write!(paint, " {name}-opacity=\"{}\"", number(f64::from(opacity) / 255.0));
    }
    paint
}

/// To a hundredth of a point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// What XML takes: marks are written as entities, characters that it does not know are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
