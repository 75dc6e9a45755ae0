//! Where shapes come to lie, on figures made for it; and what every picture is held to.

use super::figure::*;
use super::scene::{Area, Segment, Shape, Text};
use super::*;

impl Drawing {
    /// What is wrong with a picture: places that are no numbers or lie outside, texts that run over each other.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_inside = |x: f64, y: f64| {
            (-0.6..=self.0.width + 0.6).contains(&x) && (-0.6..=self.0.height + 0.6).contains(&y)
        };
        let mut boxes: Vec<(Area, &str)> = Vec::new();
        for shape in &self.0.shapes {
            match shape {
                Shape::Path(path) => {
                    let points = path.segments.iter().flat_map(|segment| match segment {
                        Segment::Move(x, y) | Segment::Line(x, y) => vec![(*x, *y)],
                        Segment::Cubic([.., end]) => vec![*end],
                        Segment::Close => vec![],
                    });
                    problems.extend(
                        points
                            .filter(|(x, y)| !is_inside(*x, *y))
                            .map(|at| format!("{at:?} of {:?}", path.hint)),
                    );
                }
                Shape::Text(text) => {
                    let area = area_of(text);
                    if !is_inside(area.left, area.top) || !is_inside(area.right, area.bottom) {
                        problems.push(format!("`{}` lies outside: {area:?}", text.text));
                    }
                    if text.degrees == 0.0 || text.degrees == -90.0 {
                        let over = boxes.iter().filter(|(other, _)| meet(&area, other));
                        problems.extend(
                            over.map(|(_, other)| format!("`{}` over `{other}`", text.text)),
                        );
                        boxes.push((area, &text.text));
                    }
                }
                Shape::Begin(_) | Shape::End => {}
            }
        }
        problems
    }
}

/// Capitals of a text; of slanted text the ends of its base line.
fn area_of(text: &Text) -> Area {
    let width = font::width(&text.text, text.size);
    let high = font::CAPITALS * text.size;
    let (sin, cos) = text.degrees.to_radians().sin_cos();
    let start = text.anchor.share() * width;
    let corner =
        |along: f64, up: f64| (text.x + along * cos + up * sin, text.y + along * sin - up * cos);
    let corners = [
        corner(start, 0.0),
        corner(start + width, 0.0),
        corner(start, high),
        corner(start + width, high),
    ];
    let fold = |of: fn(&(f64, f64)) -> f64, with: fn(f64, f64) -> f64, from| {
        corners.iter().map(of).fold(from, with)
    };
    Area {
        left: fold(|at| at.0, f64::min, f64::INFINITY),
        right: fold(|at| at.0, f64::max, f64::NEG_INFINITY),
        top: fold(|at| at.1, f64::min, f64::INFINITY),
        bottom: fold(|at| at.1, f64::max, f64::NEG_INFINITY),
    }
}

fn meet(a: &Area, b: &Area) -> bool {
    let along = a.right.min(b.right) - a.left.max(b.left);
    let down = a.bottom.min(b.bottom) - a.top.max(b.top);
    along > 0.5 && down > 0.5
}

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), scale: Scale::Linear, range: Range::FromZero }
}

/// A series of these names, each with the same points.
fn figure(names: &[&str], points: &[(f64, f64)]) -> Figure {
    let layer = |(i, name): (usize, &&str)| {
        Layer::Series(Series {
            label: (*name).into(),
            tone: Tone::Hue(i),
            style: Style::Joined,
            spread: Spread::Y,
            points: points.iter().map(|(x, y)| Point::at(*x, *y)).collect(),
        })
    };
    let layers = names.iter().enumerate().map(layer).collect();
    let axes = Axes { x: axis("Time (s)"), y: axis("Rate (MB/s)"), layers, aspect: 0.7 };
    Figure {
        title: "A figure".into(),
        caption: "What it shows.".into(),
        panels: vec![Panel::axes(None, axes)],
        columns: 1,
        naming: Naming::Direct,
    }
}

fn texts(drawing: &Drawing) -> Vec<&Text> {
    drawing
        .0
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Text(text) => Some(text),
            _ => None,
        })
        .collect()
}

#[test]
fn names_at_one_end_are_moved_apart_and_stay_in_order() {
    let drawing = draw(&figure(&["a", "b", "c", "d"], &[(0.0, 1.0), (1.0, 5.0)]), &Look::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let mut names: Vec<(f64, &str)> = texts(&drawing)
        .iter()
        .filter(|text| ["a", "b", "c", "d"].contains(&&*text.text))
        .map(|text| (text.y, text.text.as_str()))
        .collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(names.iter().map(|name| name.1).collect::<String>(), "abcd");
}

#[test]
fn long_names_stand_above() {
    let name = "a name that is much too long to stand beside the end of a line";
    let drawing = draw(&figure(&[name, "b"], &[(0.0, 1.0), (1.0, 5.0)]), &Look::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let highest = texts(&drawing).into_iter().min_by(|a, b| a.y.total_cmp(&b.y)).unwrap();
    assert!(highest.text.starts_with("a name"), "{highest:?}");
}

#[test]
fn an_interval_that_is_cut_off_ends_in_an_arrow() {
    let mut wild = figure(&["a"], &[(0.0, 10.0)]);
    if let Content::Axes(axes) = &mut wild.panels[0].content
        && let Layer::Series(series) = &mut axes.layers[0]
    {
        (series.points[0].low, series.points[0].high) = (Some(-500.0), Some(500.0));
    }
    let drawing = draw(&wild, &Look::default());
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let triangles = drawing.0.shapes.iter().filter(|shape| match shape {
        Shape::Path(path) => path.segments.len() == 4 && path.segments[3] == Segment::Close,
        _ => false,
    });
    assert_eq!(triangles.count(), 2);
}

#[test]
fn a_picture_has_the_size_that_was_asked_for() {
    for (width_in, dpi, expected) in
        [(None, 100.0, 350), (Some(7.0), 100.0, 700), (Some(2.0), 300.0, 600)]
    {
        let drawing = draw(&figure(&["a"], &[(0.0, 1.0)]), &Look { width_in, ..Look::default() });
        let bytes = drawing.png(dpi).unwrap();
        let picture = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        assert_eq!(picture.info().width, expected);
    }
    let drawing =
        draw(&figure(&["a"], &[(0.0, 1.0)]), &Look { width_in: Some(40.0), ..Look::default() });
    assert!(matches!(drawing.png(2400.0), Err(PngError::TooLarge(96_000, _))));
}

#[test]
fn a_full_turn_is_a_circle() {
    let mut segments = vec![Segment::Move(0.0, -1.0)];
    scene::arc(&mut segments, (0.0, 0.0), 1.0, 0.0, 1.0);
    for segment in &segments[1..] {
        let Segment::Cubic([.., (x, y)]) = segment else { panic!("{segment:?}") };
        assert!((x.hypot(*y) - 1.0).abs() < 1e-9, "{segment:?}");
    }
    assert_eq!(segments.len(), 9);
}

#[test]
fn marks_and_name_of_a_series_are_groups_of_its_name() {
    let svg = draw(&figure(&["a", "b<c"], &[(0.0, 1.0), (1.0, 5.0)]), &Look::default()).svg();
    let count = |text: &str| svg.matches(text).count();
    assert_eq!(
        (count("<g data-series=\"a\">"), count("<g data-series=\"b&lt;c\">"), count("</g>")),
        (2, 2, 4)
    );
}

#[test]
fn text_has_its_width_in_any_font() {
    let svg = draw(&figure(&["a", "b"], &[(0.0, 1.0), (1.0, 5.0)]), &Look::default()).svg();
    let texts = svg.lines().filter(|line| line.starts_with("<text"));
    assert!(texts.clone().count() > 5);
    assert!(texts.clone().all(|text| text.contains(" textLength=\"")), "{svg}");
}

#[test]
fn the_name_of_a_low_matrix_lies_in_no_other() {
    let cell = Cell { text: "1/1".into(), strength: 0.5, tone: Tone::Good };
    let matrix = Matrix {
        x_label: "Processes (emulated accelerators)".into(),
        y_label: "Model".into(),
        columns: vec!["1".into()],
        rows: vec!["a model".into()],
        cells: vec![vec![Some(cell)]],
    };
    let panel = Panel {
        title: Some("Rows done of all".into()),
        series_of: None,
        content: Content::Matrix(matrix),
    };
    let figure = Figure { panels: vec![panel], ..figure(&[], &[]) };
    for width_in in [None, Some(2.5)] {
        let look = Look { width_in, ..Look::default() };
        assert_eq!(draw(&figure, &look).problems(), Vec::<String>::new());
    }
}
