//! Tests of the positions of shapes in invented figures, and checks for every picture.

use super::canvas::Area;
use super::figure::*;
use super::*;
use roxmltree::{Document, Node};

impl Drawing {
    /// The faults of a picture: coordinates that are not numbers or are outside, and texts that overlap.
    pub(crate) fn problems(&self) -> Vec<String> {
        let document = Document::parse(&self.svg).unwrap_or_else(|error| panic!("{error}"));
        let size = (72.0 * self.size_in.0, 72.0 * self.size_in.1);
        let is_inside = |x: f64, y: f64| {
            (-0.6..=size.0 + 0.6).contains(&x) && (-0.6..=size.1 + 0.6).contains(&y)
        };
        let mut problems = Vec::new();
        let mut boxes: Vec<(Area, &str)> = Vec::new();
        for node in document.descendants().filter(Node::is_element) {
            let positions = corners(&node);
            let outside = positions.iter().filter(|(x, y)| !is_inside(*x, *y));
            problems.extend(outside.map(|at| format!("{at:?} of {:?}", node.text())));
            if let (true, Some(text)) = (node.has_tag_name("text"), node.text()) {
                let x = || positions.iter().map(|at| at.0);
                let y = || positions.iter().map(|at| at.1);
                let area = Area {
                    left: x().fold(f64::INFINITY, f64::min),
                    right: x().fold(f64::NEG_INFINITY, f64::max),
                    top: y().fold(f64::INFINITY, f64::min),
                    bottom: y().fold(f64::NEG_INFINITY, f64::max),
                };
                if !is_slanted(&node) {
                    let over = boxes.iter().filter(|(other, _)| overlap(&area, other));
                    problems.extend(over.map(|(_, other)| format!("`{text}` over `{other}`")));
                    boxes.push((area, text));
                }
            }
        }
        problems
    }
}

/// Whether areas of two tones differ in grey: by lightness, or by hatching.
pub(crate) fn differ_in_grey(a: Tone, b: Tone) -> bool {
    // Rec. 601.
    let lightness = |tone| {
        let [red, green, blue] = Theme::Light.palette().colour(tone).map(f64::from);
        0.299 * red + 0.587 * green + 0.114 * blue
    };
    20.0 <= (lightness(a) - lightness(b)).abs() || marks::hatching(a) != marks::hatching(b)
}

/// A numeric attribute; 0 if missing.
fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn rotation_degrees(node: &Node<'_, '_>) -> f64 {
    let inside = node.attribute("transform").and_then(|text| text.strip_prefix("rotate("));
    inside.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0.0)
}

fn is_slanted(node: &Node<'_, '_>) -> bool {
    ![0.0, -90.0].contains(&rotation_degrees(node))
}

/// The corners of a shape; for text, the corners of a box around its capitals.
fn corners(node: &Node<'_, '_>) -> Vec<(f64, f64)> {
    let value = |name| number(node, name);
    match node.tag_name().name() {
        "polyline" | "polygon" => {
            let points = node.attribute("points").unwrap().split(' ');
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            let at = |(x, y): (&str, &str)| (number(x), number(y));
            points.map(|point| at(point.split_once(',').unwrap())).collect()
        }
        "rect" => vec![
            (value("x"), value("y")),
            (value("x") + value("width"), value("y") + value("height")),
        ],
        "circle" => {
            let x = value("cx");
            let y = value("cy");
            let r = value("r");
            vec![(x - r, y - r), (x + r, y + r)]
        }
        "text" => {
            let width = value("textLength");
            let high = font::CAPITALS * value("font-size");
            let start = match node.attribute("text-anchor") {
                Some("start") => 0.0,
                Some("middle") => -0.5 * width,
                _ => -width,
            };
            let (sin, cos) = rotation_degrees(node).to_radians().sin_cos();
            let corner = |along: f64, up: f64| {
                (value("x") + along * cos + up * sin, value("y") + along * sin - up * cos)
            };
            let ends = [(start, 0.0), (start + width, 0.0), (start, high), (start + width, high)];
            ends.map(|(along, up)| corner(along, up)).to_vec()
        }
        _ => Vec::new(),
    }
}

fn overlap(a: &Area, b: &Area) -> bool {
    let along = a.right.min(b.right) - a.left.max(b.left);
    let down = a.bottom.min(b.bottom) - a.top.max(b.top);
    along > 0.5 && down > 0.5
}

fn axis(label: &str) -> Axis {
    Axis::linear(label, AxisRange::FromZero)
}

/// A figure with series of these names, each with the same points.
fn figure(names: &[&str], points: &[(f64, f64)]) -> Figure {
    let layer = |(i, name): (usize, &&str)| {
        Layer::Series(Series {
            label: (*name).into(),
            tone: Tone::Hue(i),
            style: Style::Joined,
            spread: Spread::Y,
            points: points.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
        })
    };
    let layers = names.iter().enumerate().map(layer).collect();
    let axes = Axes { x: axis("Time (s)"), y: axis("Rate (MB/s)"), layers, aspect: 0.7 };
    Figure {
        title: "A figure".into(),
        caption: "What it shows.".into(),
        panels: vec![Panel::from_axes(None, axes)],
        columns: 1,
    }
}

/// The y coordinate and content of each text, from the top.
fn texts(drawing: &Drawing) -> Vec<(f64, String)> {
    let document = Document::parse(&drawing.svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let mut texts: Vec<(f64, String)> = texts
        .map(|node| (number(&node, "y"), node.text().unwrap_or_default().to_string()))
        .collect();
    texts.sort_by(|a, b| a.0.total_cmp(&b.0));
    texts
}

#[test]
fn names_are_above_the_panel() {
    let name = "a name that is much too long to stand beside the end of a line";
    let drawing = draw(&figure(&[name, "b"], &[(0.0, 1.0), (1.0, 5.0)]), &DrawOptions::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let highest = &texts(&drawing)[0];
    assert!(highest.1.starts_with("a name"), "{highest:?}");
}

#[test]
fn a_rule_is_named_and_drawn_as_in_the_key() {
    let mut figure = figure(&["a"], &[(0.0, 1.0), (1.0, 5.0)]);
    let axes = &mut figure.panels[0].axes;
    for (label, line) in [("target", RuleLine::Broken), ("baseline", RuleLine::Dotted)] {
        axes.layers.push(Layer::Rule(Rule { label: label.into(), at: 3.0, line }));
    }
    let drawing = draw(&figure, &DrawOptions::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let texts = texts(&drawing);
    assert!(["target", "baseline"].iter().all(|name| texts.iter().any(|text| text.1 == *name)));
    let count = |dashes: &str| drawing.svg.matches(&format!("dasharray=\"{dashes}\"")).count();
    // Once over the panel, once in the key.
    assert_eq!((count("4 2.5"), count("1 1.8")), (2, 2));
}

#[test]
fn a_hatching_stays_in_its_bar() {
    for tone in (0..7).map(Tone::Hue).chain([Tone::Good, Tone::Bad]) {
        let mut canvas = canvas::Canvas::new(Theme::Light.palette(), 9.0);
        let area = Area { left: 10.0, top: 20.0, right: 33.0, bottom: 30.0 };
        marks::hatched_area(&mut canvas, tone, area, "");
        let svg = canvas.finish("", "", (50.0, 50.0)).svg;
        let document = Document::parse(&svg).unwrap();
        let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
        let positions: Vec<(f64, f64)> = lines.flat_map(|line| corners(&line)).collect();
        // Each bar also has the line of the gap to its neighbour.
        assert_eq!(2 < positions.len(), !marks::hatching(tone).is_empty(), "{tone:?}");
        let is_inside =
            |(x, y): &(f64, f64)| (9.99..=33.01).contains(x) && (19.99..=30.01).contains(y);
        assert!(positions.iter().all(is_inside), "{tone:?}: {positions:?}");
    }
}

#[test]
fn marks_of_good_and_bad_differ_in_shape() {
    let shape = |tone| {
        let mut canvas = canvas::Canvas::new(Theme::Light.palette(), 9.0);
        marks::mark(
            &mut canvas,
            tone,
            (0.0, 0.0),
            marks::MARK_RADIUS,
            canvas::Paint::default(),
            "",
        );
        canvas.finish("", "", (1.0, 1.0)).svg
    };
    let shapes = [Tone::Good, Tone::Hue(0), Tone::Bad].map(shape);
    assert!(shapes[0] != shapes[1] && shapes[1] != shapes[2] && shapes[0] != shapes[2]);
}

#[test]
fn marks_on_a_numeric_axis_have_offsets_only_to_show_intervals() {
    let mut drawn = figure(&["a", "b"], &[(0.0, 1.0), (1.0, 5.0)]);
    let axes = &mut drawn.panels[0].axes;
    assert!(!needs_offsets(axes));
    let Layer::Series(series) = &mut axes.layers[0] else { panic!() };
    (series.points[0].low, series.points[0].high) = (Some(0.5), Some(1.5));
    assert!(needs_offsets(axes));
}

#[test]
fn an_interval_that_is_cut_off_ends_in_an_arrow() {
    let mut wild = figure(&["a"], &[(0.0, 10.0)]);
    if let Layer::Series(series) = &mut wild.panels[0].axes.layers[0] {
        (series.points[0].low, series.points[0].high) = (Some(-500.0), Some(500.0));
    }
    let drawing = draw(&wild, &DrawOptions::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let polygons = drawing.svg.lines().filter(|line| line.starts_with("<polygon"));
    let triangles = polygons.filter(|line| line.matches(',').count() == 3);
    assert_eq!(triangles.count(), 2);
}

/// The number of pixels that differ from the background.
fn count_inked_pixels(drawing: &Drawing) -> usize {
    let bytes = drawing.encode(PictureFormat::Png, 100.0).unwrap();
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    pixels.chunks(3).filter(|pixel| **pixel != [255, 255, 255]).count()
}

#[test]
fn text_is_drawn_in_a_png_with_the_built_in_font() {
    let mut picture = draw(&figure(&["a"], &[(0.0, 1.0)]), &DrawOptions::default());
    let all = count_inked_pixels(&picture);
    picture.shapes.retain(|shape| !matches!(shape, canvas::Shape::Text(_)));
    assert!(count_inked_pixels(&picture) + 300 < all, "{} of {all}", count_inked_pixels(&picture));
}

#[test]
fn a_picture_has_the_requested_size() {
    for (width_in, dpi, expected) in
        [(None, 100.0, 350), (Some(7.0), 100.0, 700), (Some(2.0), 300.0, 600)]
    {
        let drawing = draw(
            &figure(&["a"], &[(0.0, 1.0)]),
            &DrawOptions { width_in, ..DrawOptions::default() },
        );
        let bytes = drawing.encode(PictureFormat::Png, dpi).unwrap();
        let picture = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        assert_eq!(picture.info().width, expected);
    }
    let drawing = draw(
        &figure(&["a"], &[(0.0, 1.0)]),
        &DrawOptions { width_in: Some(40.0), ..DrawOptions::default() },
    );
    let outcome = drawing.encode(PictureFormat::Png, 2400.0);
    assert!(matches!(outcome, Err(PictureError::TooLarge(96_000, _))));
}

#[test]
fn marks_of_a_series_form_a_group_with_its_name() {
    let svg = draw(&figure(&["a", "b<c"], &[(0.0, 1.0), (1.0, 5.0)]), &DrawOptions::default()).svg;
    let count = |text: &str| svg.matches(text).count();
    assert_eq!(
        (count("<g data-series=\"a\">"), count("<g data-series=\"b&lt;c\">"), count("</g>")),
        (1, 1, 2)
    );
}

#[test]
fn text_keeps_its_width_in_any_font() {
    let svg = draw(&figure(&["a", "b"], &[(0.0, 1.0), (1.0, 5.0)]), &DrawOptions::default()).svg;
    let texts = svg.lines().filter(|line| line.starts_with("<text"));
    assert!(texts.clone().count() > 5);
    assert!(texts.clone().all(|text| text.contains(" textLength=\"")), "{svg}");
}

#[test]
fn a_figure_is_drawn_even_with_little_room() {
    for drawn in [figure(&["a long name of a series"], &[(0.0, 1.0)]), figure(&[], &[])] {
        for width_in in [0.0, 0.1, 1.5, 7.0] {
            let options =
                DrawOptions { width_in: Some(width_in), font_pt: 48.0, theme: Theme::Light };
            assert!(draw(&drawn, &options).size_in.1.is_finite(), "{width_in}");
        }
    }
}

#[test]
fn extreme_numbers_are_drawn() {
    let least = f64::from_bits(1);
    let most = f64::MAX;
    for scale in [Scale::Linear, Scale::Log10] {
        for ends in [[least, 2.0 * least], [-least, least], [1.0, most], [-most, most]] {
            let mut drawn = figure(&["a"], &[(0.0, ends[0]), (1.0, ends[1])]);
            let axes = &mut drawn.panels[0].axes;
            axes.y = Axis::new("Rate", scale.clone(), AxisRange::Tight);
            draw(&drawn, &DrawOptions::default());
        }
    }
    let mut canvas = canvas::Canvas::new(Theme::Light.palette(), 9.0);
    let sides = [(0.0, f64::INFINITY), (1e300, 1.1e300), (0.0, 1e12), (9.0, -9.0), (f64::NAN, 9.0)];
    for (left, right) in sides {
        marks::hatched_area(
            &mut canvas,
            Tone::Hue(1),
            Area { left, top: 0.0, right, bottom: 9.0 },
            "",
        );
    }
}

#[test]
fn names_that_cannot_fit_are_drawn_in_any_size() {
    let name = "unet3d_h100, record_length_bytes 536.9 MB ".repeat(3);
    for count in [1, 60, 200] {
        let names: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
        let series: Vec<&str> = names.iter().map(String::as_str).take(7).collect();
        let points: Vec<(f64, f64)> = (0..count).map(|i| (i.into(), i.into())).collect();
        for is_on_x in [true, false] {
            let mut drawn = figure(&series, &points);
            let axes = &mut drawn.panels[0].axes;
            let axis = if is_on_x { &mut axes.x } else { &mut axes.y };
            *axis = Axis::categories(&*name, names.clone());
            drawn.panels[0].title = Some(name.clone());
            drawn.panels = vec![drawn.panels[0].clone(); 2];
            drawn.columns = 2;
            for width_in in [-1.0, 0.0, 1.5, 40.0, f64::NAN] {
                let options =
                    DrawOptions { width_in: Some(width_in), font_pt: 48.0, theme: Theme::Light };
                let height_in = draw(&drawn, &options).size_in.1;
                assert!(height_in.is_finite(), "{count} names, {width_in} in: {height_in}");
            }
        }
    }
}
