//! `feedrate plot`: draws a plot of runs or of a study.

use crate::exit::Exit;
use crate::messages;
use anyhow::Context as _;
use clap::Args;
use feedrate_analysis::design::factor_name;
use feedrate_measure::metric::Metric;
use feedrate_report::draw::{
    COLUMN_IN, DEFAULT_DPI, DrawOptions, Figure, PAGE_HEIGHT_IN, PAGE_IN, PictureFormat, Theme,
    draw,
};
use feedrate_report::gather::plot_data;
use feedrate_report::output::Schema;
use feedrate_report::plot::data::Data;
use feedrate_report::plot::{self, Needs, PLOTS, Plot};
use feedrate_results::index::LeftOut;
use feedrate_session::output::{refuse_existing, write_output};
use feedrate_session::threads;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::{KEYS, canonical_key};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// `feedrate plot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Intervals are 95 % confidence intervals over runs, not epochs. Runs with the same settings are replicates. If there are several paths, the plot names each.

Examples:
  feedrate plot au_processes results -o au.pdf
  feedrate plot status study.csv -o status.svg --width page")]
pub(super) struct PlotArguments {
    /// Name of the plot; `feedrate list plots` lists them.
    name: String,
    /// Folders of one or several runs, or CSVs of studies.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// File to write, `.pdf`, `.svg` or `.png` [default: the plot's name with `.svg`].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Width: `column` (3.5 inches) or `page` (7 inches) of a paper, inches, or `8cm` or `80mm` [default: column, or page if the plot needs it].
    #[arg(long, value_name = "WIDTH", value_parser = width_in)]
    width: Option<f64>,
    /// Font size in points.
    #[arg(long, value_name = "POINTS", value_parser = number_in(FONTS_PT), default_value_t = 9.0)]
    font_size: f64,
    /// Draw on a dark background.
    #[arg(long)]
    dark: bool,
    /// Resolution of a PNG in dots per inch.
    #[arg(long, value_name = "N", value_parser = number_in(DPIS), default_value_t = DEFAULT_DPI)]
    dpi: f64,
    /// Metric to draw, such as `samples_per_second`, if the plot has a choice.
    #[arg(long, value_name = "NAME")]
    response: Option<String>,
    /// Factors to draw, separated by commas, if the plot has panels for factors [default: those with the largest differences that fit a page].
    #[arg(long = "factor", value_name = "NAMES", value_delimiter = ',')]
    factors: Vec<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Print the data as one JSON object on stdout, and draw only with `--output`.
    #[arg(long)]
    json: bool,
}

/// Accepted widths in inches: from the room that axes need to the widest paper.
const WIDTHS_IN: RangeInclusive<f64> = 1.5..=40.0;
const FONTS_PT: RangeInclusive<f64> = 4.0..=48.0;
const DPIS: RangeInclusive<f64> = 36.0..=2400.0;

fn number_in(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// Width in inches.
fn width_in(text: &str) -> Result<f64, String> {
    match text {
        "column" => return Ok(COLUMN_IN),
        "page" => return Ok(PAGE_IN),
        _ => {}
    }
    let units = [("cm", 2.54), ("mm", 25.4)];
    let in_unit = units.iter().find_map(|(unit, each)| Some((text.strip_suffix(unit)?, *each)));
    let (number, units_per_inch) = in_unit.unwrap_or((text, 1.0));
    let width: Option<f64> = number.trim_end().parse().ok();
    let width = width.map(|width| width / units_per_inch).filter(|width| WIDTHS_IN.contains(width));
    width.ok_or_else(|| {
        let range = format!("{} to {} inches", WIDTHS_IN.start(), WIDTHS_IN.end());
        format!("give `column`, `page`, or {range}, also as `8cm` or `80mm`")
    })
}

/// Draws the plot, and prints its path and caption.
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
    let (mut data, mut left_out) = found.map_err(Refusal::from)?;
    data.chosen_factors = factors(plot, arguments, &data)?;
    // A plot of progress also counts unusable runs, so they are not left out.
    let shows_values = plot.needs != Needs::Progress;
    if !shows_values {
        left_out.retain(|run| !data.folders.iter().any(|folder| folder.path == run.path));
    }
    let mut figure = plot.figure(&data, response).map_err(|missing| {
        let mut message = format!("{name} cannot be drawn: {}", missing.message);
        if let [LeftOut { path, why }, ..] = left_out.as_slice() {
            let count = left_out.len();
            let path = path.display();
            message.push_str(&format!("; {count} left out, the first `{path}`: {why}"));
        }
        Refusal::new(message, missing.hint)
    })?;
    if shows_values {
        figure.caption += &data.doubts(&figure);
        if !left_out.is_empty() {
            let runs = units::counted(left_out.len() as u64, "run");
            figure.caption += &format!(" Left out: {runs}.");
        }
    }
    if let [LeftOut { path, why }, rest @ ..] = left_out.as_slice() {
        let runs = units::counted(left_out.len() as u64, "run");
        let (first, more) = if rest.is_empty() {
            ("", "")
        } else {
            ("the first ", "; `feedrate analyze` lists all")
        };
        messages::say(format!("left out {runs}, {first}`{}`: {why}{more}", path.display()));
    }
    if let Some((target, format)) = &target {
        let theme = if arguments.dark { Theme::Dark } else { Theme::Light };
        let look = DrawOptions { width_in: arguments.width, font_pt: arguments.font_size, theme };
        let drawing = draw(&figure, &look);
        let height_in = drawing.size_in.1;
        if PAGE_HEIGHT_IN < height_in {
            messages::note(format!(
                "note: the picture is {height_in:.1} inches high, more than a page; {}",
                if plot.has_factor_panels {
                    "`--factor` draws fewer factors, `--response` one metric, and `--width page` fits two panels side by side"
                } else {
                    "`--width page` makes it lower"
                }
            ));
        }
        let bytes = drawing.encode(*format, arguments.dpi);
        let bytes = bytes.context("a smaller `--dpi` or `--width` helps")?;
        write_output(target, &bytes, Some(arguments.force))?;
    }
    if arguments.json {
        let file = target.as_ref().map(|(file, _)| &**file);
        let output = PlotOutput { plot: plot.name, file, left_out: &left_out, figure: &figure };
        messages::print_json(Schema::Plot, &output)?;
    } else if let Some((target, _)) = &target {
        messages::print_page(&format!("{}\n{}", target.display(), figure.caption))?;
    }
    Ok(Exit::Fine)
}

/// Output of `plot --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlotOutput<'a> {
    /// The plot's name.
    plot: &'static str,
    /// The written file; `null` if none was written.
    file: Option<&'a Path>,
    /// Runs that are not drawn, with the reasons.
    left_out: &'a [LeftOut],
    /// All values that are drawn.
    figure: &'a Figure,
}

fn response(plot: &Plot, requested: Option<&str>) -> Result<Option<&'static Metric>, Refusal> {
    match (plot.responses, requested) {
        ([], Some(_)) => refuse(
            format!("`{}` takes no `--response`", plot.name),
            "`feedrate list plots` shows which do",
        ),
        (_, requested) => Ok(requested.map(Metric::find).transpose()?),
    }
}

/// The chosen factors, by their names in the data.
fn factors(plot: &Plot, arguments: &PlotArguments, data: &Data) -> Result<Vec<String>, Refusal> {
    let chosen = &arguments.factors;
    if !chosen.is_empty() && !plot.has_factor_panels {
        let with: Vec<&str> =
            PLOTS.iter().filter(|plot| plot.has_factor_panels).map(|plot| plot.name).collect();
        return refuse(
            format!("`{}` takes no `--factor`", plot.name),
            format!("these plots do: {}", with.join(", ")),
        );
    }
    let known = || data.designs.iter().flat_map(|design| &design.factors);
    let names = || known().map(|factor| factor.name.as_str());
    let resolved = chosen.iter().map(|name| {
        resolve_factor(name, names).ok_or_else(|| {
            let all = BTreeSet::from_iter(names());
            let all = Vec::from_iter(all).join(", ");
            Refusal::unknown_name(
                format!("the runs have no factor `{name}`"),
                name,
                names(),
                &if all.is_empty() {
                    "they have no factors".into()
                } else {
                    format!("their factors are {all}")
                },
            )
        })
    });
    resolved.collect()
}

/// Finds a factor by its name, or by the key of the workload that sets it.
fn resolve_factor<'n, N>(given: &str, names: impl Fn() -> N) -> Option<String>
where
    N: Iterator<Item = &'n str>,
{
    let key = canonical_key(given.strip_prefix("workload.").unwrap_or(given));
    let mut candidates = vec![given.to_string()];
    if KEYS.iter().any(|known| known.path == key) {
        candidates.push(factor_name(&key));
        // The plan has `storage.throttle_bytes_per_second` for `storage.throttle.bytes_per_second`.
        let below_section = key.split_once('.').map(|(_, rest)| rest);
        candidates.extend(
            below_section.filter(|rest| rest.contains('.')).map(|rest| rest.replace('.', "_")),
        );
    }
    candidates.into_iter().find(|candidate| names().any(|name| name == candidate))
}

/// File to write with its format; `None` if only the data are printed.
fn target(arguments: &PlotArguments) -> Result<Option<(PathBuf, PictureFormat)>, Refusal> {
    let target = match &arguments.output {
        Some(path) => path.clone(),
        None if arguments.json => return Ok(None),
        None => PathBuf::from(format!("{}.svg", arguments.name)),
    };
    let format = picture_format(&target)?;
    refuse_existing(&target, Some(arguments.force))?;
    Ok(Some((target, format)))
}

/// The format of a picture, by the ending of its file.
pub(super) fn picture_format(file: &Path) -> Result<PictureFormat, Refusal> {
    PictureFormat::from_path(file).ok_or_else(|| {
        Refusal::new(
            format!("`{}` does not end in `.pdf`, `.svg` or `.png`", file.display()),
            "the ending selects the format of the picture",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_found_by_name_and_by_key() {
        let names = ["read_threads", "format", "throttle_bytes_per_second"];
        let check = |given: &str, expected: Option<&str>| {
            let found = resolve_factor(given, || names.into_iter());
            assert_eq!(found.as_deref(), expected, "{given}");
        };
        check("read_threads", Some("read_threads"));
        check("reader.read_threads", Some("read_threads"));
        check("workload.reader.read_threads", Some("read_threads"));
        check("dataset.format", Some("format"));
        check("storage.throttle.bytes_per_second", Some("throttle_bytes_per_second"));
        check("reader.batch_size", None);
        check("reader.format", None);
        check("threads", None);
    }

    #[test]
    fn widths_are_inches_centimetres_or_millimetres() {
        let check = |text: &str, expected: Option<&str>| {
            let width = width_in(text).ok().map(|width| format!("{width:.3}"));
            assert_eq!(width.as_deref(), expected, "{text}");
        };
        check("column", Some("3.500"));
        check("2.5", Some("2.500"));
        check("8cm", Some("3.150"));
        check("88 mm", Some("3.465"));
        check("8mm", None);
        check("cm", None);
        check("200", None);
    }
}
