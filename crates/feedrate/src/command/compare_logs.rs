//! `feedrate compare` with the I/O log of a real job on one side: prints a table of both access patterns.

use crate::exit::Exit;
use crate::progress::TERMINAL;
use crate::{messages, text};
use feedrate_analysis::access_pattern::{ComparedAspect, compare_patterns};
use feedrate_measure::record::Record;
use feedrate_report::output::Schema;
use feedrate_report::words::access_pattern::{aspect, figures};
use feedrate_results::load_run;
use feedrate_session::log_files::is_log;
use feedrate_session::{logs, resolve};
use feedrate_spec::refusal::refuse;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Compares the reads of two logs, or of a log and a run.
pub(super) fn compare_logs(a: &Path, b: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let (a_kind, a_record) = load_side(a)?;
    let (b_kind, b_record) = load_side(b)?;
    let aspects = compare_patterns(&a_record, &b_record);
    if as_json {
        let a = ComparedLog { path: a, kind: a_kind };
        let b = ComparedLog { path: b, kind: b_kind };
        messages::print_json(Schema::CompareLogs, &CompareLogsOutput { aspects, a, b })?;
    } else {
        let head = [("A", a, a_kind), ("B", b, b_kind)]
            .map(|(name, path, kind)| format!("{name}  {}, {kind}", path.display()));
        let rows = aspects.into_iter().map(|compared| {
            [
                aspect(compared.aspect).to_string(),
                figures(compared.aspect, compared.a),
                figures(compared.aspect, compared.b),
            ]
        });
        let table = text::table(["", "A", "B"], rows);
        messages::print_page(&format!("{}\n\n{table}", head.join("\n")))?;
    }
    Ok(Exit::Fine)
}

/// Loads the record of a run, or converts a log into a record.
fn load_side(path: &Path) -> anyhow::Result<(&'static str, Record)> {
    if is_log(path) {
        let log = logs::import(path)?;
        return Ok((log.kind, log.record));
    }
    let Ok(record) = load_run(&resolve::run_folder(path, &TERMINAL)) else {
        return refuse(
            format!("`{}` is neither a log nor the folder of a feedrate run", path.display()),
            "compare a log with another log, or with the folder of a run (it contains `record.json`) or of several",
        );
    };
    let mut accelerators = record.epochs.iter().flat_map(|epoch| &epoch.accelerators);
    if accelerators.all(|accelerator| accelerator.io.reads == 0) {
        return refuse(
            format!("`{}` has no reads", path.display()),
            "give a run that read files; for a loop under `feedrate.watch`, give an I/O log of it",
        );
    }
    Ok(("run", record))
}

/// Output of `compare LOG RUN --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CompareLogsOutput<'a> {
    /// Each aspect of the access patterns, with the figures of both.
    aspects: Vec<ComparedAspect>,
    /// The first log or run.
    a: ComparedLog<'a>,
    /// The second log or run.
    b: ComparedLog<'a>,
}

/// A log or run.
#[derive(Serialize, JsonSchema)]
struct ComparedLog<'a> {
    /// Path of the log or run.
    path: &'a Path,
    /// `strace`, `darshan`, `dftracer` or `run`.
    kind: &'static str,
}
