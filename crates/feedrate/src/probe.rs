//! One run of a search or of trials: a process of its own, as the user would start it, and what it measured. It ends when the search does, however that ends.

use crate::cli::LIVE_FILE;
use crate::exit::Exit;
use crate::messages;
use crate::progress::{self, Progress, TERMINAL};
use anyhow::Context;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_run::live::Signals;
use feedrate_session::failure::Interrupted;
use feedrate_session::hung;
use feedrate_session::request::Request;
use feedrate_session::result_folder;
use feedrate_spec::escape::bash_command;
use feedrate_spec::refusal::refuse;
use feedrate_spec::workload::Workload;
use feedrate_study::bash;
use feedrate_study::supervise::{GRACE, ScriptEnd, Supervised, Supervision, wait_until_alone};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Runs of a search or of trials, and the folder that they leave what they have in.
pub(crate) struct Probes<'a> {
    pub(crate) folder: PathBuf,
    progress: Progress,
    signals: &'a Signals,
}

impl<'a> Probes<'a> {
    /// In a new folder of the results of `workload`, whose name begins with `kind`. `results` is the folder that the user gave.
    pub(crate) fn new(
        kind: &str,
        results: Option<&Path>,
        workload: &Workload,
        progress: Progress,
        signals: &'a Signals,
    ) -> anyhow::Result<Self> {
        let folder = result_folder::make_folder(&result_folder::root(results, workload)?, kind)?;
        Ok(Probes { folder, progress, signals })
    }

    /// Make a run, whose live line begins with `what`, and sum it up. Its script, its output and its messages are in files called `name`. Returns also how many seconds it
    /// took.
    pub(crate) fn run(
        &self,
        request: &Request,
        name: &str,
        what: &str,
    ) -> anyhow::Result<(AnsweredSummary, f64)> {
        let live_file = self.file(name, "live");
        let _line = progress::run_in_process(what, self.progress.clone(), live_file.clone());
        let begun = Instant::now();
        // A script is UTF-8: a name that is not would become that of another folder.
        let folders = [request.data.as_deref(), Some(self.folder.as_path())];
        if let Some(folder) = folders.into_iter().flatten().find(|folder| folder.to_str().is_none())
        {
            let folder = folder.display();
            return refuse(
                format!("`{folder}` is not UTF-8, in which other processes are told of it"),
                "give folders of other names, or a link to them",
            );
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let order = Supervision {
            script: self.file(name, "sh"),
            cleanup: None,
            stdout: self.file(name, "json"),
            stderr: self.file(name, "log"),
            running: self.folder.join("running"),
            grace: GRACE,
        };
        let mut words = vec![program.display().to_string()];
        words.extend(request.run_arguments());
        words.extend([LIVE_FILE.into(), live_file.display().to_string()]);
        words.extend([
            "--json".into(),
            "--quiet".into(),
            "--results".into(),
            self.folder.display().to_string(),
        ]);
        let command = bash_command(&words);
        messages::detail(|| format!("starting: {command}"));
        let script = bash::script("", &[], &format!("exec {command}"));
        std::fs::write(&order.script, script)
            .with_context(|| format!("cannot write `{}`", order.script.display()))?;
        let Signals { interrupted, leave, .. } = self.signals;
        // The supervisor of an earlier run may have been killed.
        wait_until_alone(&order.running, &[], interrupted, &mut || {})
            .context("cannot tell whether an earlier run goes on")?;
        let mut run = Supervised::start(&program, &order).context("cannot start a run")?;
        let ended = run.wait_for_end(interrupted, leave)?;
        if interrupted.load(Relaxed) || ended == ScriptEnd::Exited(Exit::Interrupted as i32) {
            hung::repeat_report(&order.stderr, &TERMINAL);
            return Err(Interrupted(self.folder.display().to_string()).into());
        }
        match ended.failure(&order.stderr) {
            None => Ok((summed_up(&order.stdout)?, begun.elapsed().as_secs_f64())),
            Some(why) => anyhow::bail!("{name} failed: {why}"),
        }
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }
}

/// The summary of the run whose folder `feedrate run --json` has told.
fn summed_up(stdout: &Path) -> anyhow::Result<AnsweredSummary> {
    let told = std::fs::read(stdout).map_err(anyhow::Error::from);
    let told = told.and_then(|told| Ok(serde_json::from_slice::<serde_json::Value>(&told)?));
    let told = told.with_context(|| format!("cannot read `{}`", stdout.display()))?;
    let run_dir = told["run_dir"].as_str();
    let run_dir = run_dir.with_context(|| format!("no `run_dir` in `{}`", stdout.display()))?;
    let mut answered = AnsweredSummary::new(&feedrate_results::load_run(Path::new(run_dir))?);
    answered.summary.run_dir = Some(run_dir.into());
    Ok(answered)
}
