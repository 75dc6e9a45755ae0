//! `feedrate plot`: a picture of runs or of a study.

use crate::exit::Exit;
use crate::messages;
use anyhow::Context as _;
use clap::Args;
use feedrate_measure::metric::Metric;
use feedrate_report::draw::{Figure, Look, Theme, draw};
use feedrate_report::gather::plot_data;
use feedrate_report::output::Schema;
use feedrate_report::plot::{self, Needs, PLOTS, Plot};
use feedrate_results::index::LeftOut;
use feedrate_session::output::{refuse_existing, write_output};
use feedrate_session::threads;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// `feedrate plot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Intervals are 95 % confidence intervals over runs, never over epochs. Runs of the same settings are replicates. Several paths are told apart by their names.

Examples:
  feedrate list plots
  feedrate plot au_processes results -o au.svg
  feedrate plot status study.csv -o status.png --width 7")]
pub(super) struct PlotArguments {
    /// Name of the plot; `feedrate list plots` has all.
    name: String,
    /// Folders of runs, folders above several, or CSVs of studies.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// File of the picture, `.svg` or `.png` [default: the plot's name and `.svg`].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Width in inches [default: 3.5, a column of a paper, or 7 with panels side by side].
    #[arg(long, value_name = "INCHES", value_parser = within(WIDTHS_IN))]
    width: Option<f64>,
    /// Size of the text in points.
    #[arg(long, value_name = "POINTS", value_parser = within(FONTS_PT), default_value_t = 9.0)]
    font_size: f64,
    /// Draw on a dark background.
    #[arg(long)]
    dark: bool,
    /// Dots per inch of a PNG.
    #[arg(long, value_name = "N", value_parser = within(DPIS), default_value_t = 300.0)]
    dpi: f64,
    /// Draw this metric, in plots that take one, such as `samples_per_second`.
    #[arg(long, value_name = "NAME")]
    response: Option<String>,
    /// Replace the picture if it exists.
    #[arg(long)]
    force: bool,
    /// Print the data as one JSON object on stdout; draw only with `--output`.
    #[arg(long)]
    json: bool,
}

/// Narrower has no room for axes, wider no paper.
const WIDTHS_IN: RangeInclusive<f64> = 1.5..=40.0;
const FONTS_PT: RangeInclusive<f64> = 4.0..=48.0;
const DPIS: RangeInclusive<f64> = 36.0..=2400.0;

fn within(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// Ending of a picture of dots; any other is of lines.
const PNG: &str = "png";

/// Draw, and say where the picture is.
pub(super) fn plot(arguments: &PlotArguments) -> anyhow::Result<Exit> {
    let name = &arguments.name;
    let plot = plot::find(name).ok_or_else(|| {
        Refusal::unknown_name(
            format!("there is no plot `{name}`"),
            name,
            PLOTS.iter().map(|plot| plot.name),
            "see `feedrate list plots`",
        )
    })?;
    let response = response(plot, arguments.response.as_deref())?;
    let target = target(arguments)?;
    let found = plot_data(&arguments.paths, plot.needs, threads());
    let (data, mut left_out) = found.map_err(Refusal::from)?;
    // How far runs came is no matter of what is doubted of them: what cannot be used is counted too.
    let is_of_values = plot.needs != Needs::Progress;
    if !is_of_values {
        left_out.retain(|one| !data.folders.iter().any(|folder| folder.path == one.path));
    }
    let mut figure = plot.figure(&data, response).map_err(|missing| {
        let mut message = format!("{name} cannot be drawn: {}", missing.message);
        if let [LeftOut { path, why }, ..] = left_out.as_slice() {
            let (count, path) = (left_out.len(), path.display());
            message.push_str(&format!("; {count} left out, the first `{path}`: {why}"));
        }
        Refusal::new(message, missing.hint)
    })?;
    if is_of_values {
        figure.caption += &data.doubts(&figure);
        if !left_out.is_empty() {
            let runs = units::counted(left_out.len() as u64, "run");
            figure.caption += &format!(" Left out: {runs}.");
        }
    }
    if let [LeftOut { path, why }, rest @ ..] = left_out.as_slice() {
        let runs = units::counted(left_out.len() as u64, "run");
        let more = if rest.is_empty() { "" } else { ", and others (`feedrate analyze`)" };
        messages::say(format!("left out: {runs}: `{}`: {why}{more}", path.display()));
    }
    if let Some(target) = &target {
        let theme = if arguments.dark { Theme::Dark } else { Theme::Light };
        let look = Look { width_in: arguments.width, font_pt: arguments.font_size, theme };
        let drawing = draw(&figure, &look);
        let bytes = if ending(target) == PNG {
            drawing.png(arguments.dpi).context("a smaller `--dpi` or `--width` helps")?
        } else {
            drawing.svg.into_bytes()
        };
        write_output(target, &bytes, Some(arguments.force))?;
    }
    if arguments.json {
        let file = target.as_deref();
        let output = PlotOutput { plot: plot.name, file, left_out: &left_out, figure: &figure };
        messages::print_json(Schema::Plot, &output)?;
    } else if let Some(target) = &target {
        messages::print_page(&format!("{}\n{}", target.display(), figure.caption))?;
    }
    Ok(Exit::Fine)
}

/// Output of `plot --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlotOutput<'a> {
    /// The plot's name.
    plot: &'static str,
    /// The picture; `null` if none was written.
    file: Option<&'a Path>,
    /// Runs that are not drawn, and why.
    left_out: &'a [LeftOut],
    /// All values that are drawn.
    figure: &'a Figure,
}

fn response(plot: &Plot, asked: Option<&str>) -> Result<Option<&'static Metric>, Refusal> {
    match (plot.responses, asked) {
        ([], Some(_)) => refuse(
            format!("`{}` takes no `--response`", plot.name),
            "`feedrate list plots` shows which do",
        ),
        (_, asked) => Ok(asked.map(Metric::find).transpose()?),
    }
}

/// Where the picture goes; `None` where only its data are wanted.
fn target(arguments: &PlotArguments) -> Result<Option<PathBuf>, Refusal> {
    let target = match &arguments.output {
        Some(path) => path.clone(),
        None if arguments.json => return Ok(None),
        None => PathBuf::from(format!("{}.svg", arguments.name)),
    };
    if !["svg", PNG].contains(&ending(&target).as_str()) {
        return refuse(
            format!("`{}` is neither `.svg` nor `.png`", target.display()),
            "the ending of the file says what is written; `rsvg-convert -f pdf FILE.svg -o FILE.pdf` makes a PDF of an `.svg` for LaTeX",
        );
    }
    refuse_existing(&target, Some(arguments.force))?;
    Ok(Some(target))
}

fn ending(path: &Path) -> String {
    path.extension().map_or(String::new(), |ending| ending.to_string_lossy().to_ascii_lowercase())
}
