//! Arguments of `feedrate plot`. Nothing is checked here that clap does not check.

use clap::Args;
use std::path::PathBuf;

/// `feedrate plot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Intervals are of 95 % and over runs, never over epochs. What differs between runs is found from what they set: runs of the same settings are replicates. \
Several paths are told apart by their names.

  feedrate plot au_processes results -o au.svg
  feedrate plot status study.csv -o status.png --width 7")]
pub(crate) struct PlotArguments {
    /// Name of the plot (`feedrate list plots`).
    pub(crate) name: String,
    /// Folders of runs, folders above those of several, or CSVs of studies.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The picture, `.svg` or `.png` [default: the plot's name, `.svg`].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Width in inches [default: 3.5, a column of a paper, or 7 where panels stand side by side].
    #[arg(long, value_name = "INCHES")]
    pub(crate) width: Option<f64>,
    /// Size of all text in points.
    #[arg(long, value_name = "POINTS", default_value_t = 9.0)]
    pub(crate) font_size: f64,
    /// On a dark background.
    #[arg(long)]
    pub(crate) dark: bool,
    /// Dots per inch of a PNG.
    #[arg(long, value_name = "N", default_value_t = 300.0)]
    pub(crate) dpi: f64,
    /// Another response than the plot's own, where it takes one: `samples_per_second`.
    #[arg(long, value_name = "NAME")]
    pub(crate) response: Option<String>,
    /// Replace the picture if it is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the data drawn as one JSON object on stdout; write the picture only with `--output`.
    #[arg(long)]
    pub(crate) json: bool,
}
