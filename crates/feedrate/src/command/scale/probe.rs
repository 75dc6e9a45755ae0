//! One run of a search: a process of its own, as the user would start it, and what it measured. It ends when the search does, however that ends.

use crate::cli::DataArguments;
use crate::exit::{Exit, Interrupted};
use anyhow::Context;
use feedrate_measure::summary::Summary;
use feedrate_study::bash::quoted;
use feedrate_study::supervise::{Ended, GRACE, Supervised, Supervision};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where the runs of a search leave what they have.
pub(super) struct Probes<'a> {
    pub(super) folder: &'a Path,
    pub(super) cold: bool,
    pub(super) stop: &'a AtomicBool,
}

/// The line that `feedrate run --json` prints, as far as it is needed.
#[derive(Deserialize)]
struct Told {
    run_dir: PathBuf,
}

impl Probes<'_> {
    /// Run, and sum up. What it is told and tells is in files of this name.
    pub(super) fn run(
        &self,
        data: &DataArguments,
        accelerators: Option<u32>,
        name: &str,
    ) -> anyhow::Result<Summary> {
        let file = |extension: &str| self.folder.join(format!("{name}.{extension}"));
        let program = std::env::current_exe().context("cannot find this program")?;
        let order = Supervision {
            script: file("sh"),
            cleanup: None,
            stdout: file("json"),
            stderr: file("log"),
            running: self.folder.join("running"),
            grace: GRACE,
        };
        let mut words = vec![program.display().to_string()];
        words.extend(arguments(data, accelerators));
        words.extend(self.cold.then(|| "--cold".into()));
        words.extend(["--results".into(), self.folder.display().to_string()]);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        std::fs::write(&order.script, format!("exec {}\n", words.join(" ")))
            .with_context(|| format!("cannot write `{}`", order.script.display()))?;
        let mut run = Supervised::start(&program, &order).context("cannot start a run")?;
        let ended = run.wait(self.stop)?;
        if self.stop.load(Relaxed) || ended == Ended::Exited(Exit::Interrupted as i32) {
            return Err(Interrupted(self.folder.display().to_string()).into());
        }
        let said = std::fs::read_to_string(&order.stderr).unwrap_or_default();
        let why = match ended {
            Ended::Exited(0) => return self.summed_up(&order.stdout),
            Ended::Refused(why) => why,
            Ended::Signalled(signal) => format!("signal {signal} ended it"),
            Ended::Exited(_) | Ended::Lost => said.trim_end().into(),
        };
        anyhow::bail!("{name} failed: {why}")
    }

    fn summed_up(&self, stdout: &Path) -> anyhow::Result<Summary> {
        let cannot = || format!("cannot read `{}`", stdout.display());
        let told = std::fs::read(stdout).with_context(cannot)?;
        let Told { run_dir } = serde_json::from_slice(&told).with_context(cannot)?;
        let mut summary = Summary::new(&feedrate_results::load_run(&run_dir)?);
        summary.run_dir = Some(run_dir.display().to_string());
        Ok(summary)
    }
}

/// As the user would write them.
fn arguments(data: &DataArguments, accelerators: Option<u32>) -> Vec<String> {
    let mut words = vec!["run".to_string(), data.workload.clone()];
    words.extend(data.overrides.iter().cloned());
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_string(), value]));
    };
    option("--accelerators", accelerators.map(|number| number.to_string()));
    option("--data", data.data.as_ref().map(|path| path.display().to_string()));
    option("--scale", Some(data.scale.to_string()));
    option("--shrink-records", Some(data.shrink_records.to_string()));
    words.extend(data.foreign.then(|| "--foreign".to_string()));
    words.extend(["--json".into(), "--quiet".into()]);
    words
}
