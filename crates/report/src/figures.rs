//! The figures of a report: every plot that its runs have enough for, drawn on a light and a dark ground.

use crate::draw::figure::{self, Axis, Content, Layer, Panel, Scale, Spread};
use crate::draw::{Look, Theme, draw};
use crate::number::significant;
use crate::plot::data::Data;
use crate::plot::{Missing, PLOTS, Plot};
use crate::report::{Figure, NotDrawn};
use crate::table::Table;

/// In the order of the plots, and those that the data have not enough for.
pub(super) fn figures(data: &Data) -> (Vec<Figure>, Vec<NotDrawn>) {
    let (mut figures, mut not_drawn) = (Vec::new(), Vec::new());
    for plot in PLOTS {
        match one(plot, data) {
            Ok(figure) => figures.push(figure),
            Err(Missing { message, hint }) => {
                let name = plot.member.name.into();
                not_drawn.push(NotDrawn { name, why: message, hint });
            }
        }
    }
    (figures, not_drawn)
}

fn one(plot: &Plot, data: &Data) -> Result<Figure, Missing> {
    let drawn = plot.figure(data, None)?;
    let svg = |theme| draw(&drawn, &Look { theme, ..Look::default() }).svg;
    Ok(Figure {
        name: plot.member.name.into(),
        title: drawn.title.clone(),
        caption: drawn.caption.clone(),
        svg: svg(Theme::Light),
        svg_dark: Some(svg(Theme::Dark)),
        series: series(&drawn),
        values: values(&drawn),
    })
}

/// Names of series; none where there is only one.
fn series(drawn: &figure::Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for panel in &drawn.panels {
        for layer in panel.layers() {
            let label = match layer {
                Layer::Series(series) => &series.label,
                Layer::Bars(bars) => &bars.label,
                Layer::Span(_) | Layer::Rule { .. } => continue,
            };
            let name = panel.series_name(label);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.len() < 2 { Vec::new() } else { names }
}

/// Rows of a figure's table, about: of a timeline, which has thousands of points, every so many are kept.
const VALUES_MAX: usize = 400;

/// Panel, series, place, value, interval and number of runs of a mark.
type Row = [String; 6];

/// Each mark, under the names of the axes. Columns that nothing stands in are left out.
fn values(drawn: &figure::Figure) -> Table {
    let axes = || drawn.panels.iter().filter_map(Panel::axes);
    let x = heading(axes().map(|axes| &axes.x), "x");
    let y = heading(axes().map(|axes| &axes.y), "y");
    let every = drawn.points().count().div_ceil(VALUES_MAX).max(1);
    let mut rows: Vec<Row> = Vec::new();
    for panel in &drawn.panels {
        let title = panel.title.clone();
        let has_own_axes = x == "x" || y == "y";
        let axes = if has_own_axes { panel.axes() } else { None };
        let axes = axes.map(|axes| format!("{} by {}", label(&axes.y), label(&axes.x)));
        let name = title.into_iter().chain(axes).collect::<Vec<_>>().join(": ");
        add_panel(panel, &name, every, &mut rows);
    }
    let title = match every {
        1 => drawn.title.clone(),
        every => format!("{}, one point of {every}", drawn.title),
    };
    let columns = ["Panel", "Series", &x, &y, "95 % interval", "n"];
    Table::from_text(title, columns, rows.into_iter().map(Vec::from)).without_empty_columns()
}

/// The label that axes have, or `otherwise` where panels differ. One of categories may have none.
fn heading<'a>(axes: impl Iterator<Item = &'a Axis>, otherwise: &str) -> String {
    let mut labels: Vec<&str> = axes.map(label).collect();
    labels.retain(|label| !label.is_empty());
    labels.dedup();
    match labels.as_slice() {
        [one] => (*one).into(),
        _ => otherwise.into(),
    }
}

fn label(axis: &Axis) -> &str {
    match (&axis.scale, axis.label.as_str()) {
        (Scale::Categories(_), "") => "Of",
        (_, label) => label,
    }
}

fn add_panel(panel: &Panel, name: &str, every: usize, rows: &mut Vec<Row>) {
    let row = |series: &str, x: String, y: String| -> Row {
        [name.into(), series.into(), x, y, String::new(), String::new()]
    };
    match &panel.content {
        Content::Axes(axes) => {
            for layer in &axes.layers {
                match layer {
                    Layer::Series(series) => {
                        for point in series.points.iter().step_by(every) {
                            let mut row = row(
                                &panel.series_name(&series.label),
                                at(&axes.x, point.x),
                                at(&axes.y, point.y),
                            );
                            if let Some((low, high)) = point.low.zip(point.high) {
                                let [low, high] = [low, high].map(|end| significant(Some(end)));
                                row[4] = format!("{low} to {high}");
                            }
                            row[5] = point.runs.map_or(String::new(), |runs| runs.to_string());
                            rows.push(row);
                        }
                    }
                    Layer::Bars(bars) => rows.extend(bars.bars.iter().map(|bar| {
                        let height = significant(Some(bar.to - bar.from));
                        let label = panel.series_name(&bars.label);
                        match bars.on {
                            Spread::X => row(&label, at(&axes.x, bar.at), height),
                            Spread::Y => row(&label, height, at(&axes.y, bar.at)),
                        }
                    })),
                    Layer::Span(_) | Layer::Rule { .. } => {}
                }
            }
        }
        Content::Pie { slices } => rows.extend(
            slices
                .iter()
                .map(|slice| row(&slice.label, String::new(), significant(Some(slice.value)))),
        ),
        Content::Matrix(matrix) => {
            for (name, cells) in matrix.rows.iter().zip(&matrix.cells) {
                for (column, cell) in matrix.columns.iter().zip(cells) {
                    let text = cell.as_ref().map(|cell| cell.text.clone());
                    rows.extend(text.map(|text| row(name, column.clone(), text)));
                }
            }
        }
    }
}

/// A value of an axis; of categories its name.
fn at(axis: &Axis, value: f64) -> String {
    match &axis.scale {
        Scale::Categories(names) => {
            names.get(value.round() as usize).cloned().unwrap_or_else(|| significant(Some(value)))
        }
        _ if value == value.round() && value.abs() < 1e6 => format!("{value:.0}"),
        _ => significant(Some(value)),
    }
}
