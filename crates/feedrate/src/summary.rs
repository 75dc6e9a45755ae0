//! Prints the result of a run: the answer in a few lines, all measurements, or one JSON object.

use crate::gate::GateResult;
use crate::messages;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::record::Record;
use feedrate_measure::summary::Summary;
use feedrate_report::output::Schema;
use feedrate_report::run_page::{AnswerOutput, RunPage};
use feedrate_results::replan::Replan;
use feedrate_session::folder::FoundFolder;
use feedrate_session::request::Request;
use feedrate_session::template::RunTemplate;
use feedrate_session::threads;
use schemars::JsonSchema;
use serde::Serialize;

/// Form of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutputMode {
    /// One JSON object.
    Json,
    /// At most seven lines.
    Answer,
    /// Measurements and warnings.
    Measurements,
    /// All measurements and doubts.
    Details,
}

/// Output of `run --json` and `show --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunOutput<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Whether the accelerators were fed.
    answer: AnswerOutput<'a>,
    /// The folder of existing files that the run read, with `--foreign` or without a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a FoundFolder>,
    /// The conditions on the run, which decide the exit code.
    gates: &'a [GateResult],
}

/// What is printed with a run.
pub(crate) struct PrintedRun<'a> {
    /// The folder of existing files that the run read.
    pub(crate) found: Option<&'a FoundFolder>,
    /// The gates.
    pub(crate) gates: &'a [GateResult],
    /// A suggested next command.
    pub(crate) next: Option<&'a str>,
}

/// Prints a run.
pub(crate) fn print(
    answered: &AnsweredSummary,
    record: &Record,
    output_mode: OutputMode,
    printed: &PrintedRun<'_>,
) -> anyhow::Result<()> {
    let PrintedRun { found, gates, next } = *printed;
    let summary = &answered.summary;
    let template = summary.run_dir.as_deref();
    let template =
        template.and_then(|folder| RunTemplate::from_run(folder, record, &Request::default()).ok());
    let replan = template.as_ref().map(|template| template as &dyn Replan);
    let page = RunPage::new(answered, record, replan);
    match output_mode {
        OutputMode::Json => {
            let answer = page.answer_output();
            messages::print_json(Schema::Run, &RunOutput { summary, answer, found, gates })?;
        }
        OutputMode::Answer => {
            let files = found.map(FoundFolder::line);
            let page = page.brief_answer(files.as_deref(), threads() as u64, next);
            messages::print_document(&page, true)?;
        }
        OutputMode::Measurements => messages::print_answered(&page.measurements())?,
        OutputMode::Details => messages::print_answered(&page.details())?,
    }
    Ok(())
}
