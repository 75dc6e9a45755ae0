//! `feedrate study status`: prints the progress of a study by row, factor, model and number of processes, with the estimated time left. With
//! rows as arguments, it prints their details.

use super::precision::PrecisionOutput;
use super::row_view::RowView;
use super::{precision, silent_host};
use crate::cli::metric;
use crate::exit::Exit;
use crate::messages;
use clap::Args;
use feedrate_analysis::design::DeclaredFactors;
use feedrate_analysis::precision::PrecisionTarget;
use feedrate_measure::metric::Metric;
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_report::table::ReportTable;
use feedrate_results::overview::{FactorCounts, ModelCounts, Overview, StatusCounts, orphans};
use feedrate_results::state::{Attempt, RowState, Status};
use feedrate_spec::escape::bash_word;
use feedrate_spec::units;
use feedrate_study::ledger::{Ledger, StudyRest, select_rows};
use feedrate_study::precision::assess;
use feedrate_study::select::run_order;
use feedrate_study::settings::SettingsOptions;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Maximum number of rows that are listed without `--all`.
const ROWS_MAX: usize = 60;
/// Width of a progress bar in characters.
const BAR_WIDTH: usize = 24;

/// `feedrate study status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate study status study.csv '#6' 'unet3d_h100/*'
  feedrate study status study.csv --until ci=2%    how many runs it takes")]
pub(in crate::command) struct StudyStatusArguments {
    /// The study's CSV.
    study: PathBuf,
    /// Rows to show with every attempt: `#6`, a model, an experiment (`4_batch_size_1`) or both (`unet3d/4*`).
    #[arg(value_name = "ROW", conflicts_with_all = ["all", "until"])]
    rows: Vec<String>,
    /// Show all rows, even if they do not fit on the screen.
    #[arg(long)]
    all: bool,
    /// Show how many runs it takes until the metric's 95 % interval is this narrow: `ci=2%` means ± 2 %.
    #[arg(long, value_name = "PRECISION", value_parser = precision::parse_until)]
    until: Option<PrecisionTarget>,
    /// Metric for `--until`.
    #[arg(long, value_name = "NAME", value_parser = metric, default_value = "au_all_steps_percent", requires = "until")]
    response: &'static Metric,
    /// Smallest difference between two experiments that the runs should detect; for `--until`.
    #[arg(long, value_name = "SHARE", value_parser = precision::parse_difference, default_value = "5%", requires = "until")]
    difference: f64,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Output of `study status --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct StudyStatusOutput<'a> {
    /// The study's CSV.
    study: &'a Path,
    /// Number of rows by state.
    overview: &'a Overview,
    /// Estimated time for the pending rows, in seconds; `null` if unknown.
    left_s: Option<f64>,
    /// All rows with their states.
    rows: Vec<RowView<'a>>,
    /// Precision of the metric, with `--until`.
    precision: Option<PrecisionOutput<'a>>,
    /// Folders of results whose rows are no longer in the CSV.
    without_a_row: &'a [String],
    /// Folders of runs of other programs that are not used, since their settings differ from those of their rows, with the differences.
    contradicting: &'a [String],
}

/// Output of `study status ROW --json`.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct StudyShowOutput<'a> {
    /// The rows, with every attempt.
    runs: Vec<RowView<'a>>,
}

/// Prints the progress of a study, or details of some rows.
pub(super) fn status(arguments: &StudyStatusArguments) -> anyhow::Result<Exit> {
    let mut ledger = Ledger::open(&arguments.study, &SettingsOptions::default(), silent_host())?;
    if !arguments.rows.is_empty() {
        return show_rows(&ledger, arguments);
    }
    let mut overview = Overview::new(&ledger.rows, &ledger.state);
    DeclaredFactors::from_table(&ledger.machine.files.table()?).sort_levels(&mut overview);
    let rest = ledger.rest();
    let StudyStatusArguments { until, response, difference, .. } = *arguments;
    let known = until.map(|until| assess(until, response, difference, &mut ledger));
    let places = ledger.row_states();
    let contradicting = contradicting(&ledger);
    let orphans = folder_names(orphans(&ledger.rows, &ledger.state));
    if arguments.json {
        let output = StudyStatusOutput {
            study: &ledger.machine.files.csv,
            overview: &overview,
            left_s: rest.left_s,
            rows: RowView::all(&ledger, &places, 0..places.len(), true),
            precision: known.as_ref().map(PrecisionOutput::new),
            without_a_row: &orphans,
            contradicting: &contradicting,
        };
        messages::print_json(Schema::StudyStatus, &output)?;
        return Ok(Exit::Fine);
    }
    let mut blocks = vec![Block::Sentence(ledger.machine.files.csv.display().to_string())];
    blocks.extend(list_blocks(
        "Failed, run again with `feedrate study run --retry`:",
        failures(&ledger, &places),
    ));
    blocks.extend(list_blocks("Results whose rows are no longer in the CSV:", orphans));
    let left = folder_names(&ledger.interrupted);
    blocks
        .extend(list_blocks("Left by a runner that died; the next `study run` checks them:", left));
    blocks.extend(list_blocks(
        "Runs of other programs with other settings than their rows:",
        contradicting,
    ));
    blocks.extend(missing_results(&places).map(Block::Sentence));
    blocks.extend(known.iter().map(precision::table));
    blocks.extend(row_blocks(&ledger, &places, arguments.all));
    blocks.extend([
        Block::Table(factor_table(&overview.factors)),
        Block::Table(model_table(&overview.matrix)),
    ]);
    let mut document = Document::from(blocks);
    document.summary = progress(&ledger, &places, &overview, rest);
    // At the end, so that it is on the screen even if the tables are not.
    if let Some(known) = &known {
        document.summary = format!("{}\n{}", precision::runs_needed(known), document.summary);
    }
    messages::print_document(&document, arguments.all)?;
    Ok(Exit::Fine)
}

fn show_rows(ledger: &Ledger, arguments: &StudyStatusArguments) -> anyhow::Result<Exit> {
    let places = ledger.row_states();
    let indices = select_rows(&ledger.rows, &arguments.rows)?;
    let views = RowView::all(ledger, &places, indices, false).into_iter();
    let views: Vec<RowView> = views.map(|view| view.with_attempts(ledger)).collect();
    if arguments.json {
        messages::print_json(Schema::StudyShow, &StudyShowOutput { runs: views })?;
    } else {
        let blocks: Vec<Block> = views.iter().flat_map(RowView::blocks).collect();
        messages::print_document(&Document::from(blocks), true)?;
    }
    Ok(Exit::Fine)
}

fn folder_names<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Vec<String> {
    attempts.into_iter().map(|attempt| attempt.run_dir.display().to_string()).collect()
}

fn contradicting(ledger: &Ledger) -> Vec<String> {
    let line = ledger.state.contradicting.iter().map(|run| {
        let row = ledger.rows.iter().position(|row| row.key() == run.key);
        let row = row.map_or(String::new(), |index| format!("#{} ", index + 1));
        format!("{row}{}: {}", run.run_dir.display(), run.differences.join("; "))
    });
    line.collect()
}

fn list_blocks(heading: &str, items: Vec<String>) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading(heading.into()), Block::sentences(items)]
}

fn missing_results(places: &[RowState]) -> Option<String> {
    let is_missing = |place: &&RowState| place.status == Status::Done && place.attempt.is_none();
    let count = places.iter().filter(is_missing).count();
    (0 < count).then(|| {
        let rows = units::counted(count as u64, "row");
        format!("{rows} marked `Y` without a result here: set them to `N` to run them again.")
    })
}

/// Progress of the study, such as `[=====   ] 3 of 12 done, 1 running, 8 pending, about 2 min left`.
fn progress(ledger: &Ledger, places: &[RowState], overview: &Overview, rest: StudyRest) -> String {
    let counts = &overview.counts;
    let elsewhere = overview.done_elsewhere;
    let mut words = vec![match elsewhere {
        0 => format!("{} of {} done", counts.done, counts.total()),
        _ => format!("{} of {} done here", counts.done - elsewhere, counts.total()),
    }];
    words.extend((0 < elsewhere).then(|| format!("{elsewhere} marked `Y` without a result")));
    let stages: Vec<&str> = places.iter().map(|place| ledger.stage(place)).collect();
    for name in ["running", "preparing", "pending", "failed"] {
        let rows = stages.iter().filter(|stage| **stage == name).count();
        words.extend((rows > 0).then(|| format!("{rows} {name}")));
    }
    if counts.done < counts.total() {
        words.extend(rest.left_s.map(|left_s| format!("about {} left", units::seconds(left_s))));
    }
    let refused = match rest.refused {
        0 => String::new(),
        rows => {
            let csv = bash_word(&ledger.machine.files.csv.display().to_string());
            format!("; {rows} cannot run: `feedrate study run --dry-run {csv}`")
        }
    };
    format!("[{}] {}{refused}", bar(counts, BAR_WIDTH), words.join(", "))
}

/// Progress bar: `=` is done, `x` failed, blank pending.
fn bar(counts: &StatusCounts, width: usize) -> String {
    let all = counts.total().max(1);
    let done = counts.done * width / all;
    let failed = counts.failed * width / all;
    format!("{}{}{}", "=".repeat(done), "x".repeat(failed), " ".repeat(width - done - failed))
}

fn row_blocks(ledger: &Ledger, places: &[RowState], all: bool) -> Vec<Block> {
    let order = run_order(&ledger.rows);
    let shown = if all { order.len() } else { order.len().min(ROWS_MAX) };
    // The other runs of a workload may be thousands, but only they show that a run may have read the dataset of another.
    let rows = RowView::all(ledger, places, order[..shown].iter().copied(), !all);
    let cells = rows.iter().map(RowView::cells);
    let mut blocks = vec![Block::Table(ReportTable::from_text("", RowView::HEADER, cells))];
    if shown < order.len() {
        blocks.push(Block::Sentence(format!("{} more rows with `--all`", order.len() - shown)));
    }
    blocks
}

fn factor_table(factors: &[FactorCounts]) -> ReportTable {
    let rows = factors.iter().flat_map(|factor| {
        factor.levels.iter().enumerate().map(|(index, level)| {
            let counts = &level.counts;
            [
                if index == 0 { factor.factor.clone() } else { String::new() },
                if level.level == "-" { "default".into() } else { level.level.clone() },
                format!("[{}]", bar(counts, BAR_WIDTH / 2)),
                counts.done.to_string(),
                (counts.pending + counts.running).to_string(),
                counts.failed.to_string(),
            ]
        })
    });
    ReportTable::from_text("", ["Factor", "Level", "", "Done", "Pending", "Failed"], rows)
}

/// A row for each model and a column for each number of processes.
fn model_table(cells: &[ModelCounts]) -> ReportTable {
    let models: Vec<&[ModelCounts]> =
        cells.chunk_by(|cell, next| cell.model == next.model).collect();
    let processes = models.first().copied().unwrap_or_default().iter();
    let processes: Vec<String> = processes.map(|cell| cell.processes.to_string()).collect();
    let header = ["Done of all, by processes"].into_iter();
    let rows = models.iter().map(|cells| {
        let counts = cells.iter().map(|cell| match cell.counts.total() {
            0 => "-".into(),
            all => format!("{}/{all}", cell.counts.done),
        });
        cells.first().map(|cell| cell.model.clone()).into_iter().chain(counts).collect::<Vec<_>>()
    });
    ReportTable::from_text("", header.chain(processes.iter().map(String::as_str)), rows)
}

fn failures(ledger: &Ledger, places: &[RowState]) -> Vec<String> {
    let failed = places.iter().enumerate().filter(|(_, place)| place.status == Status::Failed);
    let line = failed.map(|(index, place)| {
        let reason = place.reason().unwrap_or_default().replace('\n', "\n      ");
        format!("#{} {}: {reason}", index + 1, ledger.label(index))
    });
    line.collect()
}
