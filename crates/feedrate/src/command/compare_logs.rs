//! `feedrate compare` where a side is a log of a real job: a table of both access patterns.

use crate::exit::Exit;
use crate::{messages, text};
use feedrate_analysis::access_pattern::{ComparedAspect, compare_patterns};
use feedrate_measure::record::Record;
use feedrate_report::output::Schema;
use feedrate_report::words::access_pattern::{aspect, figures};
use feedrate_results::load_run;
use feedrate_session::logs;
use feedrate_spec::refusal::refuse;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Compare the reads of two runs or logs, of which one is a log.
pub(super) fn compare_logs(a: &Path, b: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let (a_kind, a_record) = side(a)?;
    let (b_kind, b_record) = side(b)?;
    let aspects = compare_patterns(&a_record, &b_record);
    if as_json {
        let [a, b] = [(a, a_kind), (b, b_kind)].map(|(path, kind)| ComparedLog { path, kind });
        messages::print_json(Schema::CompareLogs, &CompareLogsOutput { aspects, a, b })?;
    } else {
        let head = [("A", a, a_kind), ("B", b, b_kind)]
            .map(|(name, path, kind)| format!("{name}  {}, {kind}", path.display()));
        let rows = aspects.into_iter().map(|compared| {
            let [a, b] = [compared.a, compared.b].map(|side| figures(compared.aspect, side));
            [aspect(compared.aspect).to_string(), a, b]
        });
        let table = text::table(["", "A", "B"], rows);
        messages::print_page(&format!("{}\n\n{table}", head.join("\n")))?;
    }
    Ok(Exit::Fine)
}

/// The record of a run, or one that is made of a log.
fn side(path: &Path) -> anyhow::Result<(&'static str, Record)> {
    if logs::is_log(path) {
        let log = logs::import(path)?;
        return Ok((log.kind, log.record));
    }
    let Ok(record) = load_run(path) else {
        return refuse(
            format!("`{}` is neither a log nor the folder of a run of ours", path.display()),
            "compare a log with one run, the folder that holds its `record.json`, or with another log",
        );
    };
    if record.epochs.iter().flat_map(|epoch| &epoch.accelerators).all(|own| own.io.reads == 0) {
        return refuse(
            format!("`{}` has counted no reads", path.display()),
            "give a run that read files, or a log of the loop that was watched",
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
    /// The second.
    b: ComparedLog<'a>,
}

/// A log or run.
#[derive(Serialize, JsonSchema)]
struct ComparedLog<'a> {
    /// Where it is.
    path: &'a Path,
    /// `strace`, `darshan`, `dftracer` or `feedrate`.
    kind: &'static str,
}
