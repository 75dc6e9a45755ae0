//! The data of a figure: panels with axes, points, bars and spans. Has no coordinates or colours.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Title, also for screen readers.
    pub title: String,
    /// Explanation of marks and intervals, and of what was left out.
    pub caption: String,
    /// Panels in reading order.
    pub panels: Vec<Panel>,
    /// Maximum number of panels in a row.
    pub columns: usize,
}

/// A panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Panel {
    /// Title above the panel.
    pub title: Option<String>,
    /// Factor whose levels are the series; absent if series have names of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_of: Option<String>,
    /// Content of the panel.
    #[serde(flatten)]
    pub axes: Axes,
}

/// Marks between two axes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename = "axes")]
pub struct Axes {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis, upwards; categories start at the top.
    pub y: Axis,
    /// Layers from bottom to top.
    pub layers: Vec<Layer>,
    /// Height as a share of the width; ignored for categories on y, which take the room that they need.
    pub aspect: f64,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// Label with unit: `Throughput (MB/s)`.
    pub label: String,
    /// Mapping of values to places.
    pub scale: Scale,
    /// Ends of the axis.
    pub range: AxisRange,
    /// Whether its values are estimated instead of measured.
    #[serde(skip)]
    pub is_estimated: bool,
}

/// A mapping of values to places.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Linear.
    Linear,
    /// Linear, with ticks at these values as far as they fit.
    LinearAt(Vec<f64>),
    /// Logarithmic, with ticks at powers of ten.
    Log10,
    /// Logarithmic, with ticks at these values as far as they fit.
    LogAt(Vec<f64>),
    /// A place for each category; values are their indexes from 0.
    Categories(Vec<String>),
}

/// The ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AxisRange {
    /// From 0 to a round number above the marks.
    FromZero,
    /// At least between these values, extended to marks beyond.
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
    /// A shaded range of the x axis.
    Span(ShadedSpan),
    /// A line at a value of the y axis.
    Rule(Rule),
}

/// A line over the full width at a value of the y axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rule {
    /// Name: `baseline`.
    pub label: String,
    /// Value on the y axis.
    pub at: f64,
    /// Style of the line.
    pub line: RuleLine,
}

/// The style of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleLine {
    /// Dashed, for a target.
    Broken,
    /// Dotted, for a value that marks are compared with.
    Dotted,
}

/// A series of points.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Name; empty for none.
    pub label: String,
    /// Colour.
    pub tone: Tone,
    /// Style of drawing.
    pub style: Style,
    /// Axis of its intervals.
    pub spread: Spread,
    /// Points in the order in which they are joined.
    pub points: Vec<Point>,
}

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Marks.
    Marks,
    /// Small pale marks.
    Dots,
    /// Marks that are joined by lines.
    Joined,
    /// A line.
    Line,
    /// A line that steps to the next value at the next point.
    Steps,
    /// Steps with a dash pattern for each colour, so that lines without marks differ in more than colour.
    BrokenSteps,
    /// A dashed line.
    Dashes,
}

/// The axis of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Horizontal.
    X,
    /// Vertical.
    Y,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Lower end of the 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The values of two runs, which are drawn instead of their mean: an interval of two values shows nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<[f64; 2]>,
    /// Number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// Folders of the runs.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
}

/// Bars of one kind, along the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bars {
    /// Name.
    pub label: String,
    /// Colour.
    pub tone: Tone,
    /// Bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    /// Category on the y axis.
    pub at: f64,
    /// Start on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
}

/// A shaded range of the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShadedSpan {
    /// Start on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
    /// Kind: `checkpoint`.
    pub kind: String,
    /// Label above it if it fits: `epoch 1`.
    pub label: String,
    /// Colour.
    pub tone: Tone,
}

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// A distinguishable colour by number, which also selects the shape of marks.
    Hue(usize),
    /// A colour for the background.
    Faint,
    /// Done.
    Good,
    /// Failed.
    Bad,
    /// Neither done nor failed.
    Open,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, ..Point::default() }
    }

    /// The interval, or the values of two runs.
    pub fn ends(&self) -> (Option<f64>, Option<f64>) {
        match self.pair {
            Some([first, second]) => (Some(first.min(second)), Some(first.max(second))),
            None => (self.low, self.high),
        }
    }

    /// Whether the point shows a single run, without an interval.
    pub fn is_single(&self) -> bool {
        self.runs == Some(1) && self.low.is_none()
    }
}

impl Axis {
    /// An axis of measured values.
    pub fn new(label: impl Into<String>, scale: Scale, range: AxisRange) -> Self {
        Axis { label: label.into(), scale, range, is_estimated: false }
    }

    /// A linear axis.
    pub fn linear(label: impl Into<String>, range: AxisRange) -> Self {
        Axis::new(label, Scale::Linear, range)
    }

    /// An axis of categories.
    pub fn categories(label: impl Into<String>, names: Vec<String>) -> Self {
        Axis::new(label, Scale::Categories(names), AxisRange::Tight)
    }
}

impl Layer {
    /// A series whose intervals, if any, are vertical.
    pub fn series(label: impl Into<String>, tone: Tone, style: Style, points: Vec<Point>) -> Self {
        Layer::Series(Series { label: label.into(), tone, style, spread: Spread::Y, points })
    }

    /// Stacked bars, with a layer for each part. `rows` contains the length of each part in each row.
    pub fn stacked_bars<const PARTS: usize>(
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

    /// The name of a series or of bars.
    pub fn label(&self) -> Option<&str> {
        match self {
            Layer::Series(series) => Some(&series.label),
            Layer::Bars(bars) => Some(&bars.label),
            Layer::Span(_) | Layer::Rule(_) => None,
        }
    }
}

impl Figure {
    /// Whether each panel has only marks, all at the same position.
    pub fn shows_single_position(&self) -> bool {
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

/// Whether these panels have marks of single runs and marks of several runs.
pub fn has_single_among_several(panels: &[Panel]) -> bool {
    let points = || panels.iter().flat_map(Panel::points);
    points().any(Point::is_single)
        && points().any(|point| point.runs > Some(1) && point.pair.is_none())
}

impl Panel {
    /// A panel whose series have names of their own.
    pub fn from_axes(title: Option<String>, axes: Axes) -> Self {
        Panel { title, series_of: None, axes }
    }

    /// The name of a series without the context of its panel: `format npz`.
    pub fn series_name(&self, label: &str) -> String {
        match &self.series_of {
            Some(factor) if !label.is_empty() => format!("{factor} {label}"),
            _ => label.into(),
        }
    }

    /// The layers that are series of points.
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
