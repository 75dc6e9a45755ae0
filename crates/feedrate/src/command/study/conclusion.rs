//! Prints and saves conclusions of studies: the answers of `scale`, `advise --try`, `run --repeat` and `run --rehearse`.

use crate::messages;
use anyhow::Context;
use feedrate_report::document::{Block, Document};
use feedrate_report::output::Schema;
use feedrate_results::conclusion::Conclusion;
use feedrate_session::failure::Interrupted;
use feedrate_spec::escape::path_text;
use feedrate_study::chosen::ChosenStudy;
use std::path::Path;

/// Names of the schemas of conclusions.
pub(in crate::command) const SCALE: &str = "scale";
pub(in crate::command) const TRIALS: &str = "trials";
pub(in crate::command) const REHEARSAL: &str = "rehearsal";
pub(in crate::command) const REPEAT: &str = "repeat";

/// Splits text into lines. Conclusions are stored as lines, so that the JSON has no escaped line breaks.
pub(in crate::command) fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_string).collect()
}

/// Saves the conclusion in the study's folder, and prints it.
pub(in crate::command) fn conclude(
    study: &ChosenStudy,
    conclusion: &Conclusion,
    json: bool,
) -> anyhow::Result<()> {
    let saved = conclusion.write(&study.folder).context("cannot save the conclusion");
    study.note_earlier_runs();
    print(conclusion, json)?;
    saved
}

/// The path as the user would type it.
pub(in crate::command) fn relative_to_working_folder(folder: &Path) -> String {
    let working_folder = std::env::current_dir().unwrap_or_default();
    path_text(folder.strip_prefix(working_folder).unwrap_or(folder))
}

/// The error of an interrupted study, which names its folder.
pub(in crate::command) fn interrupted(study: &ChosenStudy) -> anyhow::Error {
    Interrupted(relative_to_working_folder(&study.folder)).into()
}

/// Prints a conclusion.
pub(in crate::command) fn print(conclusion: &Conclusion, json: bool) -> anyhow::Result<()> {
    let Conclusion { schema, answer, rest, object, .. } = conclusion;
    if json {
        let schema = match schema.as_str() {
            TRIALS => Schema::Trials,
            REHEARSAL => Schema::Rehearsal,
            REPEAT => Schema::Repeat,
            _ => Schema::Scale,
        };
        messages::print_json(schema, object)?;
    } else {
        let parts = [answer, rest].map(|lines| Block::Sentence(lines.join("\n")));
        messages::print_answered(&Document::from(Vec::from(parts)))?;
    }
    Ok(())
}
