//! Writes drawings as PDF: one page of the drawing's size with the same outlines as a PNG, so no font is embedded or missing.

use super::Drawing;
use super::canvas::{PT_PER_IN, Paint};
use super::outlines::outline;
use super::theme::Colour;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content, Filter, Pdf, Rect, Ref, TextStr};
use std::io::{self, Write};
use tiny_skia::{Path, PathSegment, Point};

/// The content of the file.
///
/// # Errors
/// The page could not be compressed.
pub(super) fn write(drawing: &Drawing) -> io::Result<Vec<u8>> {
    let [catalog, pages, page, content, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let (width_in, height_in) = drawing.size_in;
    let area = Rect::new(0.0, 0.0, points(width_in), points(height_in));
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    pdf.page(page).parent(pages).media_box(area).contents(content).resources();
    pdf.document_info(info).title(TextStr(&drawing.title)).creator(TextStr("feedrate"));
    let mut compressed = ZlibEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(&page_content(drawing, area))?;
    pdf.stream(content, &compressed.finish()?).filter(Filter::FlateDecode);
    Ok(pdf.finish())
}

fn points(inches: f64) -> f32 {
    (inches * PT_PER_IN) as f32
}

/// The drawing instructions of the page.
fn page_content(drawing: &Drawing, area: Rect) -> Vec<u8> {
    let mut content = Content::new();
    // In a PDF, y points upwards.
    content.transform([1.0, 0.0, 0.0, -1.0, 0.0, area.y2]);
    content.set_line_join(LineJoinStyle::RoundJoin);
    let [red, green, blue] = rgb(drawing.background);
    content.set_fill_rgb(red, green, blue);
    content.rect(area.x1, area.y1, area.x2, area.y2).fill_nonzero();
    for (path, paint) in drawing.shapes.iter().filter_map(outline) {
        draw(&mut content, &path, &paint);
    }
    content.finish().to_vec()
}

fn draw(content: &mut Content, path: &Path, paint: &Paint) {
    if let Some(colour) = paint.fill {
        let [red, green, blue] = rgb(colour);
        content.set_fill_rgb(red, green, blue);
    }
    if let Some(stroke) = paint.stroke {
        let [red, green, blue] = rgb(stroke.colour);
        content.set_stroke_rgb(red, green, blue).set_line_width(stroke.width as f32);
        content.set_dash_pattern(stroke.dashes.iter().map(|length| *length as f32), 0.0);
    }
    trace(content, path);
    match (paint.fill, paint.stroke) {
        (Some(_), Some(_)) => content.fill_nonzero_and_stroke(),
        (Some(_), None) => content.fill_nonzero(),
        (None, Some(_)) => content.stroke(),
        (None, None) => content.end_path(),
    };
}

fn trace(content: &mut Content, path: &Path) {
    let mut last = Point::zero();
    for segment in path.segments() {
        last = match segment {
            PathSegment::MoveTo(to) => {
                content.move_to(to.x, to.y);
                to
            }
            PathSegment::LineTo(to) => {
                content.line_to(to.x, to.y);
                to
            }
            // A PDF has only cubic curves.
            PathSegment::QuadTo(control, to) => {
                let near = |end: Point| {
                    (
                        end.x + 2.0 / 3.0 * (control.x - end.x),
                        end.y + 2.0 / 3.0 * (control.y - end.y),
                    )
                };
                let (first, second) = (near(last), near(to));
                content.cubic_to(first.0, first.1, second.0, second.1, to.x, to.y);
                to
            }
            PathSegment::CubicTo(first, second, to) => {
                content.cubic_to(first.x, first.y, second.x, second.y, to.x, to.y);
                to
            }
            PathSegment::Close => {
                content.close_path();
                last
            }
        };
    }
}

fn rgb(colour: Colour) -> [f32; 3] {
    colour.map(|part| f32::from(part) / f32::from(u8::MAX))
}
