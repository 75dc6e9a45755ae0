//! Studies whose rows a chooser decides on: `scale` and `advise`. The folder follows from the question, so that the same command goes on with it.

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
use feedrate_session::bundled;
use feedrate_session::failure::Interrupted;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, is_file};
use feedrate_session::result_folder;
use feedrate_spec::plan::Cache;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_spec::workload::canonical_key;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What makes a study the one that a command goes on with.
#[derive(Serialize)]
pub struct StudyIdentity<'a> {
    /// Its kind, and the name of the workload.
    name: [&'a str; 2],
    /// The workload, as rows have it.
    workload: String,
    /// The settings of the workload as it is.
    plan: BTreeMap<String, String>,
    data_root: String,
    cache: Cache,
    overrides: &'a [String],
    shares: [f64; 2],
    foreign: bool,
    /// All else that the user decides on.
    more: Vec<String>,
}

impl<'a> StudyIdentity<'a> {
    /// About a workload as it was requested.
    pub fn new(
        kind: &'a str,
        resolved: &'a Resolved,
        request: &'a Request,
        more: Vec<String>,
    ) -> Self {
        let root = &resolved.data_root;
        StudyIdentity {
            name: [kind, &resolved.plan.workload],
            workload: model(&request.workload),
            plan: run::settings(&resolved.plan),
            data_root: std::path::absolute(root).as_ref().unwrap_or(root).display().to_string(),
            cache: request.cache,
            overrides: &request.overrides,
            shares: [request.scale, request.shrink_records],
            foreign: request.foreign,
            more,
        }
    }

    /// `scale-unet3d_h100-1f3a9c02`.
    fn folder_name(&self) -> anyhow::Result<String> {
        let hash = crc32fast::hash(&serde_json::to_vec(self)?);
        let [kind, workload] = self.name;
        Ok(format!("{kind}-{}-{hash:08x}", result_folder::file_name(workload)))
    }
}

/// A study in a folder of its own.
pub struct ChosenStudy {
    /// The folder: the CSV, its state, and the results.
    pub folder: PathBuf,
    /// Its files.
    pub files: StudyFiles,
    settings: StudySettings,
    machine: ThisMachine,
    /// This command ran something.
    has_run: bool,
    /// Folders of the runs that were finished before this command; `None` until it starts.
    earlier: Option<BTreeSet<PathBuf>>,
    /// Number of these that count.
    earlier_runs: usize,
    /// Start of the oldest run that counts, as its record has it.
    pub oldest_run: Option<String>,
}

impl ChosenStudy {
    /// The study about a question, below `results`; begun where there is none. With `again`, everything is measured anew.
    pub fn open(
        question: &StudyIdentity<'_>,
        results: &Path,
        data: &Request,
        again: bool,
        host: RunnerHost,
    ) -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("cannot tell the working directory")?;
        let folder = here.join(results).join(question.folder_name()?);
        let data_folder = data.data.as_ref().map(|data| here.join(data));
        // The scripts of runs are UTF-8: another name would become that of another folder.
        let folders = [data_folder.as_deref(), Some(folder.as_path())];
        if let Some(folder) = folders.into_iter().flatten().find(|path| path.to_str().is_none()) {
            let folder = folder.display();
            return refuse(
                format!("`{folder}` is not UTF-8, in which other processes are told of it"),
                "give folders of other names, or a link to them",
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
            // Another process may begin the same study.
            let _lock = lock(&files).map_err(|error| as_refusal(error.into()))?;
            if is_empty() {
                write_atomically(&csv, Table::new(Vec::new(), &[]).text().as_bytes())?;
            }
        }
        let cache = match question.cache {
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
            ..settings::defaults(&files.csv, &here)
        };
        let machine = ThisMachine::new(&files, host)?;
        let study = ChosenStudy {
            folder,
            files,
            settings,
            machine,
            has_run: false,
            earlier: None,
            earlier_runs: 0,
            oldest_run: None,
        };
        if again {
            study.set_back()?;
        }
        Ok(study)
    }

    fn set_back(&self) -> anyhow::Result<()> {
        let _lock = lock(&self.files)?;
        self.take_conclusion()?;
        self.files.edit_table(|table| {
            let count = table.rows().count();
            (0..count).for_each(|index| table.mark(index, false));
            0 < count
        })?;
        Ok(())
    }

    /// Run the rows that `chooser` decides on; `judge` reads the values of a run. What failed before is run again.
    pub fn run(
        &mut self,
        chooser: &mut dyn Chooser,
        judge: fn(&Record) -> Observation,
    ) -> anyhow::Result<RunnerEnd> {
        self.start(chooser, judge).map_err(as_refusal)
    }

    fn start(
        &mut self,
        chooser: &mut dyn Chooser,
        judge: fn(&Record) -> Observation,
    ) -> anyhow::Result<RunnerEnd> {
        let lock = lock(&self.files)?;
        let state = StudyState::open(&self.files, &lock)?;
        let settings = state.settings.clone().unwrap_or_else(|| self.settings.clone());
        settings::enter(&settings)?;
        if !self.machine.wait_for_earlier_runs(state.settings.as_ref())? {
            return Err(Interrupted(self.folder.display().to_string()).into());
        }
        self.machine.judge = judge;
        let is_first_start = self.earlier.is_none();
        let options = RunnerOptions {
            retry: true,
            datasets: Policy::Keep,
            same_plan: true,
            repeat_worthless: is_first_start,
            ..RunnerOptions::default()
        };
        let complete = state.attempts.iter().filter(|attempt| attempt.is_complete());
        let complete: BTreeSet<PathBuf> = complete.map(|attempt| attempt.run_dir.clone()).collect();
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
        let done = end.history.runs.iter().filter_map(|past| match &past.state {
            RunState::Done(measured) => Some(&measured.run_dir),
            _ => None,
        });
        let done: BTreeSet<&PathBuf> = done.collect();
        self.earlier_runs = done.iter().filter(|run_dir| earlier.contains(**run_dir)).count();
        let counted = end.state.attempts.iter().filter(|attempt| done.contains(&attempt.run_dir));
        let oldest = counted.min_by_key(|attempt| attempt.number);
        let oldest = oldest.and_then(|attempt| load_run(&attempt.run_dir).ok());
        self.oldest_run = oldest.map(|record| record.started);
        Ok(end)
    }

    /// Remove the conclusion from the folder: it is not that of the runs to come.
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

    /// Note how old the results are of which some are older than this command.
    pub fn note_earlier_runs(&self) {
        if self.earlier_runs == 0 {
            return;
        }
        let nothing = if self.has_run { "" } else { "nothing was run now; " };
        let runs = units::counted(self.earlier_runs as u64, "run");
        let oldest = self.oldest_run.as_deref().and_then(|started| started.get(..19));
        let oldest = oldest.map(|time| format!(", the oldest from {}", time.replace('T', " ")));
        let oldest = oldest.unwrap_or_default();
        self.machine.listener().note(format!(
            "note: {nothing}{runs} of an earlier start count{oldest} (`--again` measures anew)"
        ));
    }

    /// Folders of the datasets below `roots` that the study made.
    pub fn datasets_made(&mut self, roots: &BTreeSet<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
        let settings = StudyState::read(&self.files)?.settings;
        let made = settings.map(|settings| self.machine.own_datasets(roots, &settings.id));
        Ok(made.unwrap_or_default().into_keys().collect())
    }

    /// Remove all datasets that the study made in these folders but one.
    pub fn remove_datasets(
        &mut self,
        roots: &BTreeSet<PathBuf>,
        kept: &Path,
    ) -> anyhow::Result<()> {
        for folder in self.datasets_made(roots)?.into_iter().filter(|folder| folder != kept) {
            let deleted = self.machine.delete_dataset(&folder);
            let listener = self.machine.listener();
            match deleted {
                Ok(true) => {}
                Ok(false) => {
                    let folder = folder.display();
                    listener.important(format!("warning: `{folder}` stays: it is in use"));
                }
                Err(error) => {
                    let folder = folder.display();
                    listener.important(format!("warning: `{folder}` stays: {error}"));
                }
            }
        }
        Ok(())
    }
}

/// The row that runs a workload with all of these overrides, of which the last of a key counts.
pub fn row(data: &Request, accelerators: u32) -> anyhow::Result<Row> {
    let foreign = data.foreign.then(|| "dataset.foreign=True".to_string());
    let mut settings: Vec<Setting> = Vec::new();
    for text in data.overrides.iter().chain(&foreign) {
        let mut setting = Setting::parse(text).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        if let Some(value) = &mut setting.value {
            if value.chars().any(char::is_control) {
                return refuse(
                    format!("`{}` holds a tab, an end of line or the like", text.escape_debug()),
                    "set it in the workload's file",
                );
            }
            if !value.starts_with(['[', '{', '\'', '"']) {
                *value = setting::quoted(value);
            }
        }
        let key = canonical_key(&setting.key).to_string();
        settings.retain(|known| canonical_key(&known.key) != key);
        if key != "accelerators" {
            settings.push(setting);
        }
    }
    Ok(Row { settings, ..Row::new(model(&data.workload), accelerators) })
}

/// The workload as rows have it: the absolute path of a file or folder, or the name of a bundled workload.
fn model(workload: &str) -> String {
    let is_bundled = !is_file(workload) && bundled::find(workload).is_some();
    let path = std::path::absolute(workload).ok().filter(|path| !is_bundled && path.exists());
    let path = path.as_deref().and_then(Path::to_str);
    path.filter(|path| !path.chars().any(char::is_control)).unwrap_or(workload).into()
}
