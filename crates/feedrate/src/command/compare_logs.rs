//! `feedrate compare` where a side is a log of a real job: how alike the access patterns are.

use crate::exit::{Exit, refuse};
use crate::logs;
use crate::{messages, text};
use feedrate_analysis::likeness::{PatternComparison, compare_patterns};
use feedrate_measure::record::Record;
use feedrate_report::output::Schema;
use feedrate_report::words::likeness::{aspect, distance, figures, verdict};
use feedrate_results::load_run;
use serde_json::json;
use std::path::Path;

/// Compare the reads of two runs or logs, of which one is a log.
pub(super) fn compare_logs(a: &Path, b: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let (a_kind, a_record) = side(a)?;
    let (b_kind, b_record) = side(b)?;
    let found = compare_patterns(&a_record, &b_record);
    if as_json {
        let mut object = serde_json::to_value(&found)?;
        object["a"] = json!({"path": a, "kind": a_kind});
        object["b"] = json!({"path": b, "kind": b_kind});
        object["says"] = json!(verdict(&found));
        messages::print_json(Schema::CompareLogs.object(object))?;
    } else {
        let head = [("A", a, a_kind), ("B", b, b_kind)]
            .map(|(name, path, kind)| format!("{name}  {}, {kind}", path.display()));
        messages::print_page(&format!("{}\n\n{}", head.join("\n"), page(&found)))?;
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

fn page(found: &PatternComparison) -> String {
    let rows = found.aspects.iter().map(|one| {
        [
            aspect(one.aspect).to_string(),
            figures(one.aspect, one.a),
            figures(one.aspect, one.b),
            distance(one),
            one.likeness.map_or("unknown", |likeness| likeness.name()).to_string(),
        ]
    });
    format!("{}\n\n{}", text::table(["", "A", "B", "apart", ""], rows), verdict(found))
}
