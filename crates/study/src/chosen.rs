//! Runs the studies of `scale`, `advise --try`, `run --repeat` and `run --rehearse`, whose rows a chooser selects. Except with `--repeat`, the
//! folder's name contains a hash of the command's inputs: the same command therefore resumes its study.

use crate::chooser::{Chooser, Observation, RunState};
use crate::datasets::Policy;
use crate::failure::as_refusal;
use crate::machine::{RunnerHost, ThisMachine};
use crate::runner::{Runner, RunnerEnd, RunnerEnv, RunnerOptions};
use crate::settings::{self, lock};
use anyhow::Context;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::write_atomically;
use feedrate_results::conclusion::CONCLUSION_FILE;
use feedrate_results::files::{STUDY_FILE, StudyFiles};
use feedrate_results::load_run;
use feedrate_results::row::Row;
use feedrate_results::run;
use feedrate_results::setting::{self, Setting};
use feedrate_results::state::{StudySettings, StudyState};
use feedrate_results::table::Table;
use feedrate_results::trials::TRIALS_FILE;
use feedrate_session::failure::Interrupted;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, is_file};
use feedrate_session::result_folder;
use feedrate_spec::bundled;
use feedrate_spec::plan::Cache;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_spec::workload::{canonical_key, overridden_key, override_without_secret};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Number of folders between the results of a study and its runs.
const MLPERF_FOLDER_DEPTH: usize = 2;

/// The inputs that identify a study. Commands with equal inputs resume the same study. Field names are part of the hash.
#[derive(Serialize)]
pub struct StudyIdentity<'a> {
    /// Kind of the study, and name of the workload.
    name: [&'a str; 2],
    /// The workload, as written in rows.
    workload: String,
    /// Settings of the unchanged workload.
    plan: BTreeMap<String, String>,
    data_root: String,
    cache: Cache,
    overrides: &'a [String],
    /// Shares of the files and of each sample's bytes.
    shares: [f64; 2],
    foreign: bool,
    /// Further options of the command.
    more: Vec<String>,
}

impl<'a> StudyIdentity<'a> {
    /// Identifies the study of a workload.
    pub fn new(
        kind: &'a str,
        resolved: &'a Resolved,
        request: &'a Request,
        more: Vec<String>,
    ) -> Self {
        let root = &resolved.data_root;
        StudyIdentity {
            name: [kind, &resolved.plan.workload],
            workload: row_model(&request.workload),
            plan: run::settings(&resolved.plan),
            data_root: std::path::absolute(root).as_ref().unwrap_or(root).display().to_string(),
            cache: request.cache,
            overrides: &request.overrides,
            shares: [request.scale, request.shrink_records],
            foreign: request.foreign,
            more,
        }
    }

    /// Name of the folder: `scale-unet3d_h100-1f3a9c02`.
    fn folder_name(&self) -> anyhow::Result<String> {
        let hash = crc32fast::hash(&serde_json::to_vec(self)?);
        let [kind, workload] = self.name;
        Ok(format!("{kind}-{}-{hash:08x}", result_folder::file_name(workload)))
    }
}

/// A study in its own folder, whose rows a chooser selects.
pub struct ChosenStudy {
    /// The folder with the CSV, its state and the results.
    pub folder: PathBuf,
    /// Its files.
    pub files: StudyFiles,
    settings: StudySettings,
    machine: ThisMachine,
    /// Whether this command ran a row.
    has_run: bool,
    /// Folders of the runs that were finished before this command; `None` before its first start.
    earlier: Option<BTreeSet<PathBuf>>,
    /// Number of earlier runs whose results are used.
    earlier_runs: usize,
    /// Start time of the oldest run whose result is used, as in its record.
    pub oldest_run: Option<String>,
}

impl ChosenStudy {
    /// Opens or creates the study with this identity below `results`. With `again`, all rows are set back and run again.
    pub fn open(
        identity: &StudyIdentity<'_>,
        results: &Path,
        data: &Request,
        again: bool,
        host: RunnerHost,
    ) -> anyhow::Result<Self> {
        let study = Self::open_in(&results.join(identity.folder_name()?), data, host)?;
        if again {
            study.reset_rows()?;
        }
        Ok(study)
    }

    /// Opens or creates the study in `folder`.
    ///
    /// # Errors
    /// The folder cannot be used, or an override is a secret.
    pub fn open_in(folder: &Path, data: &Request, host: RunnerHost) -> anyhow::Result<Self> {
        refuse_secrets(data.overrides.iter().map(String::as_str))?;
        let working_dir =
            std::env::current_dir().context("cannot determine the working directory")?;
        let folder = working_dir.join(folder);
        let data_folder = data.data.as_ref().map(|data| working_dir.join(data));
        // Scripts of runs are UTF-8 and could not contain the path unchanged.
        let paths = [data_folder.as_deref(), Some(folder.as_path())];
        if let Some(path) = paths.into_iter().flatten().find(|path| path.to_str().is_none()) {
            let path = path.display();
            return refuse(
                format!("`{path}` is not valid UTF-8, which the scripts of runs need"),
                "use folders with other names, or links to them",
            );
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let csv = folder.join(STUDY_FILE);
        match fs::File::create_new(&csv) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("cannot make `{}`", csv.display()));
            }
            _ => {}
        }
        let files = StudyFiles::new(&csv).map_err(|error| as_refusal(error.into()))?;
        let is_empty = || csv.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if is_empty() {
            // Another process may create the same study.
            let _lock = lock(&files).map_err(|error| as_refusal(error.into()))?;
            if is_empty() {
                write_atomically(&csv, Table::new(Vec::new(), &[]).text().as_bytes())?;
            }
        }
        let cache = match data.cache {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
            Cache::AsIs => settings::AS_IS,
        };
        let settings = StudySettings {
            results: folder.clone(),
            data: data_folder,
            scale: data.scale,
            shrink_records: data.shrink_records,
            cache: cache.into(),
            ..settings::defaults(&files.csv, &working_dir)
        };
        let machine = ThisMachine::new(&files, host)?;
        Ok(ChosenStudy {
            folder,
            files,
            settings,
            machine,
            has_run: false,
            earlier: None,
            earlier_runs: 0,
            oldest_run: None,
        })
    }

    /// Places all runs in `folder`, which is below the study's folder, with names as in submissions to MLPerf Storage.
    pub fn use_mlperf_folder(&mut self, folder: &Path) {
        let results = folder.ancestors().nth(MLPERF_FOLDER_DEPTH).unwrap_or(Path::new(""));
        self.settings.mlperf_folder = folder.strip_prefix(results).ok().map(Path::to_path_buf);
        self.settings.results = self.folder.join(results);
    }

    /// Sets all rows back to `N`, and removes the conclusion.
    fn reset_rows(&self) -> anyhow::Result<()> {
        let _lock = lock(&self.files)?;
        self.take_conclusion()?;
        self.files.edit_table(|table| {
            let count = table.rows().count();
            (0..count).for_each(|index| table.mark(index, false));
            0 < count
        })?;
        Ok(())
    }

    /// Runs the rows that `chooser` selects. `observe` extracts the values of a run from its record. Failed rows are run again.
    pub fn run(
        &mut self,
        chooser: &mut dyn Chooser,
        observe: fn(&Record) -> Observation,
    ) -> anyhow::Result<RunnerEnd> {
        self.run_rows(chooser, observe).map_err(as_refusal)
    }

    fn run_rows(
        &mut self,
        chooser: &mut dyn Chooser,
        observe: fn(&Record) -> Observation,
    ) -> anyhow::Result<RunnerEnd> {
        let lock = lock(&self.files)?;
        let state = StudyState::open(&self.files, &lock)?;
        let settings = state.settings.clone().unwrap_or_else(|| self.settings.clone());
        settings::change_to_start_folder(&settings)?;
        if !self.machine.wait_for_earlier_runs(state.settings.as_ref())? {
            return Err(Interrupted(self.folder.display().to_string()).into());
        }
        self.machine.observe_record = observe;
        let is_first_start = self.earlier.is_none();
        let options = RunnerOptions {
            retry: true,
            datasets: Policy::Keep,
            same_plan: true,
            repeat_invalid: is_first_start,
            ..RunnerOptions::default()
        };
        let attempts = state.attempts.iter().filter(|attempt| attempt.is_complete());
        let complete: BTreeSet<PathBuf> = attempts.map(|attempt| attempt.run_dir.clone()).collect();
        let earlier = self.earlier.get_or_insert(complete).clone();
        let concluded = self.take_conclusion()?;
        let before = fs::read(&self.files.csv)?;
        let runner = Runner::new(&self.files, lock, state, settings, &mut self.machine, options);
        let end = runner.run(chooser)?;
        let has_run = 0 < end.report.finished + end.report.failed.len();
        self.has_run |= has_run;
        if !has_run && before == fs::read(&self.files.csv)? {
            concluded.iter().try_for_each(|(path, text)| write_atomically(path, text))?;
        }
        let run_dirs = end.history.runs.iter().filter_map(|past| match &past.state {
            RunState::Done(measured) => Some(&measured.run_dir),
            _ => None,
        });
        let used: BTreeSet<&PathBuf> = run_dirs.collect();
        self.earlier_runs = used.iter().filter(|run_dir| earlier.contains(**run_dir)).count();
        let attempts = end.state.attempts.iter();
        let used_attempts = attempts.filter(|attempt| used.contains(&attempt.run_dir));
        let oldest = used_attempts.min_by_key(|attempt| attempt.number);
        let oldest_record = oldest.and_then(|attempt| load_run(&attempt.run_dir).ok());
        self.oldest_run = oldest_record.map(|record| record.started);
        Ok(end)
    }

    /// Removes the conclusion from the folder, because further runs may change it. Returns the removed files.
    fn take_conclusion(&self) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut taken = Vec::new();
        for path in [CONCLUSION_FILE, TRIALS_FILE].map(|name| self.folder.join(name)) {
            if let Ok(text) = fs::read(&path) {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove `{}`", path.display()))?;
                taken.push((path, text));
            }
        }
        Ok(taken)
    }

    /// Reports the number and age of results from earlier commands, if any are used.
    pub fn note_earlier_runs(&self) {
        if self.earlier_runs == 0 {
            return;
        }
        let no_run = if self.has_run { "" } else { "no run was made now; " };
        let runs = units::counted(self.earlier_runs as u64, "run");
        let started = self.oldest_run.as_deref().and_then(|started| started.get(..19));
        let age = started.map(|time| format!(", the oldest from {}", time.replace('T', " ")));
        let age = age.unwrap_or_default();
        self.machine.listener().note(format!(
            "note: {no_run}the result uses {runs} of an earlier command{age} (`--again` repeats them)"
        ));
    }

    /// Folders of the datasets below `roots` that the study generated.
    pub fn generated_datasets(
        &mut self,
        roots: &BTreeSet<PathBuf>,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let settings = StudyState::read(&self.files)?.settings;
        let generated = settings.map(|settings| self.machine.own_datasets(roots, &settings.id));
        Ok(generated.unwrap_or_default().into_keys().collect())
    }

    /// Removes the datasets below `roots` that the study generated, except `kept`. A dataset that cannot be removed causes a warning.
    pub fn remove_datasets(
        &mut self,
        roots: &BTreeSet<PathBuf>,
        kept: &Path,
    ) -> anyhow::Result<()> {
        for folder in self.generated_datasets(roots)?.into_iter().filter(|folder| folder != kept) {
            let reason = match self.machine.delete_dataset(&folder) {
                Ok(true) => continue,
                Ok(false) => "it is in use".to_string(),
                Err(error) => error.to_string(),
            };
            let folder = folder.display();
            let warning = format!("warning: `{folder}` is kept: {reason}");
            self.machine.listener().important(warning);
        }
        Ok(())
    }
}

/// Refuses secrets in overrides, because rows and the names of folders contain the overrides.
///
/// # Errors
/// An override is a secret.
pub fn refuse_secrets<'o>(overrides: impl IntoIterator<Item = &'o str>) -> anyhow::Result<()> {
    let is_secret = |text: &&str| !text.contains("${") && override_without_secret(text) != **text;
    match overrides.into_iter().find(is_secret) {
        None => Ok(()),
        Some(text) => refuse(
            format!(
                "`{}` may be a secret, and overrides are written to files",
                overridden_key(text)
            ),
            "set it in the environment, such as `AWS_SECRET_ACCESS_KEY`, or in the workload's file",
        ),
    }
}

/// Returns the row that runs a request. If several overrides set the same key, the last one is used.
pub fn row(data: &Request, accelerators: u32) -> anyhow::Result<Row> {
    let foreign = data.foreign.then(|| "dataset.foreign=True".to_string());
    let mut settings: Vec<Setting> = Vec::new();
    for text in data.overrides.iter().chain(&foreign) {
        let mut setting = Setting::parse(text).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        if let Some(value) = &mut setting.value {
            if value.chars().any(char::is_control) {
                return refuse(
                    format!("`{}` contains a control character", text.escape_debug()),
                    "set it in the workload's file",
                );
            }
            if !value.starts_with(['[', '{', '\'', '"']) {
                *value = setting::quote(value);
            }
        }
        let key = canonical_key(&setting.key).to_string();
        settings.retain(|known| canonical_key(&known.key) != key);
        if key != "accelerators" {
            settings.push(setting);
        }
    }
    Ok(Row { settings, ..Row::new(row_model(&data.workload), accelerators) })
}

/// The workload as written in rows: the absolute path of a file or folder, or the name of a bundled workload.
fn row_model(workload: &str) -> String {
    let is_bundled = !is_file(workload) && bundled::find(workload).is_some();
    let absolute = std::path::absolute(workload).ok().filter(|path| !is_bundled && path.exists());
    let text = absolute.as_deref().and_then(Path::to_str);
    text.filter(|path| !path.chars().any(char::is_control)).unwrap_or(workload).into()
}
