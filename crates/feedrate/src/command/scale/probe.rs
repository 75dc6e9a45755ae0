//! One run of a search: a process of its own, as the user would start it, and what it measured.

use crate::cli::DataArguments;
use crate::exit::{Exit, Interrupted};
use anyhow::Context;
use feedrate_measure::summary::Summary;
use serde::Deserialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(20);
/// A run that was told to stop has this long to write down what it measured.
const GRACE: Duration = Duration::from_secs(10);

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
    /// Run, and sum up.
    pub(super) fn run(
        &self,
        data: &DataArguments,
        accelerators: Option<u32>,
        name: &str,
    ) -> anyhow::Result<Summary> {
        let (stdout, stderr) = (self.file(name, "json"), self.file(name, "log"));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments(data, accelerators));
        command.args(self.cold.then_some("--cold")).arg("--results").arg(self.folder);
        command.stdin(Stdio::null());
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let mut child = command.spawn().context("cannot start a run")?;
        let status = self.wait(&mut child)?;
        let said = std::fs::read_to_string(&stderr).unwrap_or_default();
        if self.stop.load(Relaxed) || status.code() == Some(Exit::Interrupted as i32) {
            return Err(Interrupted(self.folder.display().to_string()).into());
        }
        anyhow::ensure!(status.success(), "{name} failed: {}", said.trim_end());
        let told: Told = serde_json::from_slice(&std::fs::read(&stdout)?)
            .with_context(|| format!("cannot read what {name} told"))?;
        let mut summary = Summary::of(&feedrate_study::load_run(&told.run_dir)?);
        summary.run_dir = Some(told.run_dir.display().to_string());
        Ok(summary)
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    /// Until the run has ended; what the terminal sends to all reaches it too.
    fn wait(&self, child: &mut Child) -> anyhow::Result<std::process::ExitStatus> {
        let mut told_to_stop = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.stop.load(Relaxed) {
                let since = told_to_stop.get_or_insert_with(Instant::now);
                if GRACE < since.elapsed() {
                    child.kill()?;
                }
            }
            std::thread::sleep(LOOK);
        }
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
