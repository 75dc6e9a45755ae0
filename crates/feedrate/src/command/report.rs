//! `feedrate report`: writes a report on results as a web page, a document or tables.

use crate::exit::Exit;
use crate::messages;
use anyhow::Context as _;
use clap::Args;
use feedrate_report::draw::{DEFAULT_DPI, DrawOptions, PictureFormat, draw};
use feedrate_report::gather::results_report;
use feedrate_report::output::{OUTPUTS, ReportOutput, find, for_file};
use feedrate_report::report::{FigureUse, Report, ReportFigure};
use feedrate_session::output::{refuse_existing, refuse_missing_folder, refuse_root, write_output};
use feedrate_session::template::replan;
use feedrate_session::threads;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use std::fs;
use std::path::{Path, PathBuf};

/// `feedrate report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate report results -o report.html
  feedrate report study.csv -o table.tex")]
pub(super) struct ReportArguments {
    /// Folders of one or several runs (feedrate's, DLIO's or MLPerf Storage's), or CSVs of studies.
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// File to write: `.html`, `.md`, `.csv`, `.tex` or `.json` [default: Markdown on stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format: html, markdown, csv, csv-std, tidy, latex or json [default: by the extension of FILE].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Also write each figure into this folder as PDF, SVG and PNG, in the width of a paper's column, or of its page if it needs that.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Title of the report [default: `Report on` with the folders' names].
    #[arg(long)]
    title: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    /// Print one JSON object on stdout.
    #[arg(long, conflicts_with_all = ["format", "output"])]
    json: bool,
}

/// Writes the report.
pub(super) fn report(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let ReportArguments { results, output: target, title, .. } = arguments;
    let output = output(arguments)?;
    // The parent of a bare file name is the empty path.
    let folder = target.as_deref().and_then(Path::parent).map(|folder| Path::new(".").join(folder));
    if let Some(target) = target {
        refuse_missing_folder(target)?;
        refuse_existing(target, Some(arguments.force))?;
    }
    if let Some(folder) = &arguments.figures {
        refuse_root(folder, "--figures")?;
    }
    let figure_use = match output.figures {
        FigureUse::Nothing if arguments.figures.is_some() => FigureUse::Values,
        figure_use => figure_use,
    };
    let found = results_report(results, folder.as_deref(), threads(), &replan, figure_use)
        .map_err(Refusal::from)?;
    let names: Vec<String> = results.iter().map(|path| path.display().to_string()).collect();
    let report = Report {
        title: title.clone().unwrap_or_else(|| format!("Report on {}", names.join(", "))),
        program: format!("feedrate {}", env!("CARGO_PKG_VERSION")),
        ..found
    };
    if let Some(folder) = &arguments.figures {
        write_figures(folder, &report.figures, arguments.force)?;
    }
    let text = output.text(&report);
    match target {
        Some(file) => {
            write_output(file, text.as_bytes(), Some(arguments.force))?;
            let size = units::bytes(text.len() as u64);
            let lines = report.headlines();
            let between = if lines.len() == 1 { "; " } else { "\n  " };
            let answer: String = lines.iter().map(|says| format!("{between}{says}")).collect();
            messages::note(format!("{}: {size}{answer}", file.display()));
        }
        None => messages::print(text.trim_end_matches('\n'))?,
    }
    Ok(Exit::Fine)
}

/// Writes each figure in each format, named as in `feedrate plot NAME`.
fn write_figures(folder: &Path, figures: &[ReportFigure], force: bool) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    for ReportFigure { name, figure, .. } in figures {
        let Some(figure) = figure else { continue };
        let drawing = draw(figure, &DrawOptions::default());
        for format in PictureFormat::ALL {
            let file = folder.join(format!("{name}.{}", format.extension()));
            write_output(&file, &drawing.encode(format, DEFAULT_DPI)?, Some(force))?;
        }
    }
    let count = units::counted(figures.len() as u64, "figure");
    messages::note(format!("{}: {count}, each as PDF, SVG and PNG", folder.display()));
    Ok(())
}

fn output(arguments: &ReportArguments) -> Result<&'static ReportOutput, Refusal> {
    let (found, message) = match (&arguments.format, &arguments.output) {
        _ if arguments.json => (find("json"), String::new()),
        (Some(name), _) => (find(name), format!("unknown report format: `{name}`")),
        (None, Some(file)) => {
            (for_file(file), format!("unknown report format: `{}`", file.display()))
        }
        (None, None) => (find("markdown"), String::new()),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
        Refusal::new(message, format!("one of {}", names.join(", ")))
    })
}
