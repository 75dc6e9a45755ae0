//! `feedrate show`: prints the summary of a finished run from its record, or the saved answer of a search, trials, a rehearsal or a
//! diagnosis.

use super::analyze::analyze_run;
use super::diagnose;
use super::rehearse::RehearsalResult;
use super::repeat::RepeatResult;
use super::scale::SearchResult;
use super::study::conclusion::{self, REHEARSAL, REPEAT, SCALE, TRIALS};
use crate::exit::Exit;
use crate::gate::{self, GateArguments};
use crate::progress::TERMINAL;
use crate::summary::{self, OutputMode, PrintedRun};
use clap::Args;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_results::conclusion::Conclusion;
use feedrate_results::diagnosis::Diagnosis;
use feedrate_results::trials::TrialsResult;
use feedrate_session::recognise::{is_run_of_dlio, refuse_other, run_of_file};
use feedrate_session::resolve;
use feedrate_spec::escape::{bash_word, path_text};
use feedrate_spec::refusal::{Refusal, refuse};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// `feedrate show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate show results/unet3d/RUN
  feedrate show results/unet3d/RUN --fail-below-au 90 --fail-on warning")]
pub(super) struct ShowArguments {
    /// Folder of a run, search or diagnosis; of several runs, the newest is shown.
    run: PathBuf,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// Also print notes and the distribution of read times.
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    gates: GateArguments,
}

impl ShowArguments {
    /// Refuses gates on something that has no record of feedrate: it would be printed without being judged.
    fn refuse_gates(&self, found: &str, hint: &str) -> Result<(), Refusal> {
        if !self.gates.are_given() {
            return Ok(());
        }
        let path = self.run.display();
        let options = "`--fail-below-au` and `--fail-on`";
        refuse(format!("{options} need feedrate's record of a run, and `{path}` is {found}"), hint)
    }

    /// Refuses gates on a folder with several runs, of which only the newest would be judged.
    fn refuse_gates_on_several(&self, folder: &Path) -> Result<(), Refusal> {
        if !self.gates.are_given() || resolve::is_run(folder) {
            return Ok(());
        }
        let runs = resolve::runs_below(folder).len();
        if runs < 2 {
            return Ok(());
        }
        let hint = "give the folder of one of them; `feedrate run --repeat` judges their mean";
        self.refuse_gates(&format!("a folder with {runs} runs"), hint)
    }
}

/// Recomputes the summary, and prints it.
pub(crate) fn show(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    if let Some(diagnosis) = Diagnosis::read(&arguments.run) {
        arguments.refuse_gates("a diagnosis", "give the folder of a run")?;
        diagnose::print_diagnosis(&diagnosis, Some(&arguments.run), arguments.json)?;
        return Ok(Exit::Fine);
    }
    if let Some(conclusion) = read_conclusion(&arguments.run)? {
        arguments.refuse_gates("the result of several runs", "give the folder of one of them")?;
        conclusion::print(&conclusion, arguments.json)?;
        return Ok(Exit::Fine);
    }
    let folder = run_of_file(&arguments.run).unwrap_or(&arguments.run);
    arguments.refuse_gates_on_several(folder)?;
    let run = resolve::run_folder(folder, &TERMINAL);
    if !resolve::is_run(&run) && run.exists() {
        if is_run_of_dlio(folder) {
            let path = bash_word(&folder.display().to_string());
            arguments
                .refuse_gates("a run of DLIO", &format!("`feedrate analyze {path}` reads it"))?;
            return analyze_run(folder, arguments.json);
        }
        refuse_other(&run)?;
    }
    let record = feedrate_results::load_run(&run)?;
    let expect = &record.plan.metric.expect;
    let target_percent = arguments.gates.target_percent(expect);
    let mut answered = AnsweredSummary::with_target(&record, target_percent);
    answered.summary.run_dir = Some(path_text(&run));
    let output_mode = match (arguments.json, arguments.details) {
        (true, _) => OutputMode::Json,
        (false, false) => OutputMode::Measurements,
        (false, true) => OutputMode::Details,
    };
    let gates = arguments.gates.judge(expect, std::slice::from_ref(&answered));
    let output = PrintedRun { found: None, gates: &gates, next: None };
    summary::print(&answered, &record, output_mode, &output)?;
    Ok(gate::exit(&gates))
}

/// Reads the saved conclusion of a search or of trials; `None` if the folder contains no conclusion.
fn read_conclusion(folder: &Path) -> anyhow::Result<Option<Conclusion>> {
    let Some(conclusion) = Conclusion::read(folder) else { return Ok(None) };
    let Conclusion { schema, object, .. } = &conclusion;
    let problem = match schema.as_str() {
        SCALE => SearchResult::deserialize(object).err(),
        TRIALS => TrialsResult::deserialize(object).err(),
        REHEARSAL => RehearsalResult::deserialize(object).err(),
        REPEAT => RepeatResult::deserialize(object).err(),
        _ => Some(serde::de::Error::custom(format!("unknown schema `{schema}`"))),
    };
    match problem {
        None => Ok(Some(conclusion)),
        Some(problem) => refuse(
            format!("the conclusion in `{}` cannot be read: {problem}", folder.display()),
            "run the command of the search again to write it anew",
        ),
    }
}
