//! Data of a figure: panels with axes, points, bars and spans. Says nothing of places or colours.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Its name, for those who cannot see it.
    pub title: String,
    /// Explains points and intervals, and names what was left out.
    pub caption: String,
    /// In the order of reading.
    pub panels: Vec<Panel>,
    /// Panels in a row, at most.
    pub columns: usize,
}

/// A part of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Panel {
    /// Above it.
    pub title: Option<String>,
    /// The factor whose levels its series are; `None` of series that have names of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_of: Option<String>,
    /// Shown in it.
    #[serde(flatten)]
    pub axes: Axes,
}

/// Marks between two axes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename = "axes")]
pub struct Axes {
    /// To the right.
    pub x: Axis,
    /// Upwards; categories from the top.
    pub y: Axis,
    /// The first lies lowest.
    pub layers: Vec<Layer>,
    /// Height as a share of the width; of categories on y, what they need.
    pub aspect: f64,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// With its unit: `Throughput (MB/s)`.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// Where it begins and ends.
    pub range: AxisRange,
    /// Whether values on it are estimated, not measured.
    #[serde(skip)]
    pub is_estimated: bool,
}

/// How values become places.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly, with ticks at these values, as far as there is room.
    LinearAt(Vec<f64>),
    /// By their logarithm, with ticks at powers of ten.
    Log10,
    /// By their logarithm, with ticks at these values, as far as there is room.
    LogAt(Vec<f64>),
    /// One place for each; values are their numbers from 0.
    Categories(Vec<String>),
}

/// Where an axis begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AxisRange {
    /// From 0 to a round number above the marks.
    FromZero,
    /// Between these, or further where marks lie beyond.
    AtLeast(f64, f64),
    /// Just around the marks.
    Tight,
}

/// A layer of a panel.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Layer {
    /// Points, lines, or both.
    Series(Series),
    /// Bars.
    Bars(Bars),
    /// A shaded stretch of the x axis.
    Span(ShadedSpan),
    /// A level of the y axis.
    Rule(Rule),
}

/// A level of the y axis, as a line over the whole width.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rule {
    /// Its name: `baseline`.
    pub label: String,
    /// On the y axis.
    pub at: f64,
    /// How it is drawn.
    pub line: RuleLine,
}

/// How a level is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleLine {
    /// A level that is asked for.
    Broken,
    /// A level that marks are compared with.
    Dotted,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Its name; empty has none.
    pub label: String,
    /// Its colour.
    pub tone: Tone,
    /// How it is drawn.
    pub style: Style,
    /// The axis along which its intervals lie.
    pub spread: Spread,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Marks.
    Marks,
    /// Small pale marks.
    Dots,
    /// Marks, joined.
    Joined,
    /// A line.
    Line,
    /// A line that steps to the next value at the next point.
    Steps,
    /// The same, broken as its colour's number says, so that lines that have no marks differ in more than colour.
    BrokenSteps,
    /// A broken line.
    Dashes,
}

/// Along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// To both sides.
    X,
    /// Up and down.
    Y,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// On the x axis.
    pub x: f64,
    /// On the y axis.
    pub y: f64,
    /// The low end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The high end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Runs behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// Their folders.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
}

/// Bars of one kind, along the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bars {
    /// Their name.
    pub label: String,
    /// Their colour.
    pub tone: Tone,
    /// Each.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    /// Its category on the y axis.
    pub at: f64,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// A shaded stretch of the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShadedSpan {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its kind: `checkpoint`.
    pub kind: String,
    /// Over it, where there is room: `epoch 1`.
    pub label: String,
    /// Its colour.
    pub tone: Tone,
}

/// A colour by what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// One of the colours that are told apart with any eyes, by number; so is the shape of marks.
    Hue(usize),
    /// In the background.
    Faint,
    /// Done.
    Good,
    /// Failed.
    Bad,
    /// Neither yet.
    Open,
}

impl Point {
    /// Without an interval.
    pub fn at(x: f64, y: f64) -> Self {
        Point { x, y, ..Point::default() }
    }

    /// Whether it is of one run, and has no interval.
    pub fn is_single(&self) -> bool {
        self.runs == Some(1) && self.low.is_none()
    }
}

impl Axis {
    /// An axis of values that are not estimated.
    pub fn new(label: impl Into<String>, scale: Scale, range: AxisRange) -> Self {
        Axis { label: label.into(), scale, range, is_estimated: false }
    }

    /// An even axis.
    pub fn linear(label: impl Into<String>, range: AxisRange) -> Self {
        Axis::new(label, Scale::Linear, range)
    }

    /// An axis of names.
    pub fn categories(label: impl Into<String>, names: Vec<String>) -> Self {
        Axis::new(label, Scale::Categories(names), AxisRange::Tight)
    }
}

impl Layer {
    /// A series whose intervals, if it has any, are upright.
    pub fn series(label: impl Into<String>, tone: Tone, style: Style, points: Vec<Point>) -> Self {
        Layer::Series(Series { label: label.into(), tone, style, spread: Spread::Y, points })
    }

    /// Bars of several parts, one behind the other: a layer for each part that some row has. `rows`: the length of each part.
    pub fn stacked<const PARTS: usize>(
        parts: [(&str, Tone); PARTS],
        rows: &[[Option<f64>; PARTS]],
    ) -> Vec<Layer> {
        let mut layers = Vec::new();
        for (part, (label, tone)) in parts.into_iter().enumerate() {
            let mut bars = Vec::new();
            for (at, lengths) in rows.iter().enumerate() {
                let from = lengths[..part].iter().flatten().fold(0.0, |sum, length| sum + length);
                let bar = |length| Bar { at: at as f64, from, to: from + length };
                bars.extend(lengths[part].map(bar));
            }
            if !bars.is_empty() {
                layers.push(Layer::Bars(Bars { label: label.into(), tone, bars }));
            }
        }
        layers
    }

    /// The name of a series.
    pub fn label(&self) -> Option<&str> {
        match self {
            Layer::Series(series) => Some(&series.label),
            Layer::Bars(bars) => Some(&bars.label),
            Layer::Span(_) | Layer::Rule(_) => None,
        }
    }
}

impl Figure {
    /// Whether all marks of each panel lie in one place, and nothing else stands beside them.
    pub fn is_bare(&self) -> bool {
        self.panels.iter().all(|panel| {
            let is_series = |layer: &Layer| matches!(layer, Layer::Series(_) | Layer::Rule(_));
            let places: BTreeSet<_> =
                panel.points().map(|point| (point.x.to_bits(), point.y.to_bits())).collect();
            panel.axes.layers.iter().all(is_series) && places.len() < 2
        })
    }

    /// All points of all panels.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.panels.iter().flat_map(Panel::points)
    }
}

/// Whether some marks of these panels are of single runs and others of several.
pub fn has_single_among_several(panels: &[Panel]) -> bool {
    let points = || panels.iter().flat_map(Panel::points);
    points().any(Point::is_single) && points().any(|point| point.runs > Some(1))
}

impl Panel {
    /// A panel with axes.
    pub fn from_axes(title: Option<String>, axes: Axes) -> Self {
        Panel { title, series_of: None, axes }
    }

    /// A series' name where the panel's title does not stand beside it: `format npz`.
    pub fn series_name(&self, label: &str) -> String {
        match &self.series_of {
            Some(factor) if !label.is_empty() => format!("{factor} {label}"),
            _ => label.into(),
        }
    }

    /// Those of its layers that are points.
    pub fn all_series(&self) -> impl Iterator<Item = &Series> {
        self.axes.layers.iter().filter_map(|layer| match layer {
            Layer::Series(series) => Some(series),
            Layer::Bars(_) | Layer::Span(_) | Layer::Rule(_) => None,
        })
    }

    /// The points of all its series.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.all_series().flat_map(|series| &series.points)
    }
}
