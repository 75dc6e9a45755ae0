//! Runs as comparisons need them: what was run, on what, and what it measured. Reads records; judges nothing but whether a run may be used.

use crate::files::{FilesError, StudyFiles};
use crate::import::{Kind, find};
use crate::place::{SUPERSEDED, label};
use crate::row::Row;
use crate::state::{History, IsCopy, Journal, JournalError, Status, places};
use feedrate_measure::doubt::Severity;
use feedrate_measure::record::Record;
use feedrate_measure::record::file;
use feedrate_measure::summary::Summary;
use feedrate_spec::plan::Plan;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// What was decided for a run, by key: `loader.workers` is `4`. Values as JSON writes them; what is null is left out.
pub type Settings = BTreeMap<String, String>;

/// Which of the runs of an experiment it is: those of two experiments in the same turn were made side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "as in a study's row")]
pub struct Turn {
    pub block: Option<u32>,
    pub replicate: Option<u32>,
}

/// What tells a run from another, and not from a copy of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Local wall-clock start; as text in the order of time.
    started: String,
    machines: Vec<String>,
    plan: Plan,
}

impl Origin {
    /// Of a record.
    pub fn of(record: &Record) -> Self {
        let (started, plan) = (record.started.clone(), record.plan.clone());
        Origin { started, machines: hostnames(record), plan }
    }

    /// Which was started first.
    pub fn cmp_start(&self, other: &Self) -> std::cmp::Ordering {
        self.started.cmp(&other.started)
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its folder.
    pub path: PathBuf,
    /// What makes it the experiment it is.
    pub settings: Settings,
    /// What it ran on.
    pub place: Settings,
    /// Block and replicate, where a study says them.
    pub turn: Turn,
    /// Start, machines and plan: no other run has the same.
    pub origin: Origin,
    /// What it measured.
    pub summary: Summary,
}

/// A run that is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its folder.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What a folder holds.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// In the order they were started.
    pub runs: Vec<Run>,
    /// Incomplete, invalid or unreadable.
    pub left_out: Vec<LeftOut>,
}

/// There is nothing to compare.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunsError {
    #[error("cannot look into `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` holds no result of a run", .0.display())]
    Nothing(PathBuf),
    #[error(transparent)]
    Study(#[from] FilesError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Copy(#[from] IsCopy),
}

impl RunsError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "give the folder of a run, any folder above those of several, or the CSV of a study"
    }
}

/// All runs in the folder `path` and below it: folders that hold a record. Links are not followed. Of a study's CSV, the runs of its rows.
///
/// # Errors
/// There is none, or the folder, the study or its journal cannot be read.
pub fn runs_of(path: &Path) -> Result<Runs, RunsError> {
    let mut found = Runs::default();
    match path.is_file() {
        true => of_study(path, &mut found)?,
        false => look_into(path, &mut found)?,
    }
    if found.runs.is_empty() && found.left_out.is_empty() {
        return Err(RunsError::Nothing(path.into()));
    }
    found.runs.sort_by(|a, b| (&a.origin.started, &a.path).cmp(&(&b.origin.started, &b.path)));
    found.leave_out_copies();
    found.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn look_into(root: &Path, found: &mut Runs) -> Result<(), RunsError> {
    let failed = |source| RunsError::Io { path: root.into(), source };
    let (folders, closed) = find(root).map_err(failed)?;
    let records = folders.into_iter().filter(|one| one.kind == Kind::Record);
    records.for_each(|one| found.take(root, &one.path));
    found.left_out.extend(closed.into_iter().map(|(path, why)| LeftOut { path, why }));
    Ok(())
}

fn of_study(csv: &Path, found: &mut Runs) -> Result<(), RunsError> {
    let (folders, left_out) = folders_of_study(csv)?;
    folders.iter().for_each(|folder| found.take(folder, folder));
    found.left_out.extend(left_out);
    Ok(())
}

/// The folders of the results of a study's rows; and those that are marked and have none.
///
/// # Errors
/// The study or its journal cannot be read.
pub fn folders_of_study(csv: &Path) -> Result<(Vec<PathBuf>, Vec<LeftOut>), RunsError> {
    let files = StudyFiles::of(csv)?;
    let table = files.table()?;
    let mut history = History::of(Journal::read(&files.journal())?);
    history.come_along(&files.csv)?;
    let rows: Vec<Row> = table.rows().cloned().collect();
    let (mut folders, mut left_out) = (Vec::new(), Vec::new());
    for (row, place) in rows.iter().zip(places(&rows, &history)) {
        match place.status {
            Status::Done(Some(attempt)) | Status::Unmarked(attempt) => {
                folders.push(attempt.run_dir.clone());
            }
            Status::Done(None) => {
                let why = format!("the study has no result of {}", label(row, &rows));
                left_out.push(LeftOut { path: csv.into(), why });
            }
            Status::Pending | Status::SetBack(_) | Status::Failed(..) | Status::Left(_) => {}
        }
    }
    Ok((folders, left_out))
}

impl Runs {
    fn take(&mut self, root: &Path, path: &Path) {
        let below = path.strip_prefix(root).unwrap_or(path);
        let usable = match file::read(path) {
            _ if below.iter().any(|part| part == SUPERSEDED) => {
                Err("superseded: its row was run again".into())
            }
            Ok(record) => Run::of(path, &record),
            Err(error) => Err(error.to_string()),
        };
        match usable {
            Ok(run) => self.runs.push(run),
            Err(why) => self.left_out.push(LeftOut { path: path.into(), why }),
        }
    }

    /// Copies of a folder are one run: the first by its path. No machine starts two runs of a plan in the same microsecond.
    fn leave_out_copies(&mut self) {
        let mut alone: Vec<Run> = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            match alone.iter().find(|one| one.origin == run.origin) {
                Some(one) => {
                    let why =
                        format!("the same run as `{}`: a copy is no replicate", one.path.display());
                    self.left_out.push(LeftOut { path: run.path, why });
                }
                None => alone.push(run),
            }
        }
        self.runs = alone;
    }
}

impl Run {
    /// Of a record.
    ///
    /// # Errors
    /// Why its numbers must not be used.
    pub fn of(path: &Path, record: &Record) -> Result<Self, String> {
        let summary = Summary::new(record);
        if let Some(doubt) = summary.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid)
        {
            return Err(format!("{}: {}", doubt.name, doubt.evidence));
        }
        let study = record.study.as_deref();
        Ok(Run {
            path: path.into(),
            turn: study.map_or_else(Turn::default, |study| Turn {
                block: study.block,
                replicate: study.replicate,
            }),
            settings: settings(&record.plan),
            place: place(record),
            origin: Origin::of(record),
            summary,
        })
    }
}

/// Follows from other settings, or says how a run is watched and judged, not what is run.
const NO_SETTINGS: &[&str] = &[
    "checkpoint.rank_bytes_max",
    "checkpoint.state",
    "checkpoint.total_bytes",
    "checkpoint.total_files",
    "dataset.extension",
    "doubts",
    "loader.batches_in_flight",
    "loader.held_at_start",
    "loader.held_batches",
    "metric.au_target_percent",
    "train.steps_per_epoch",
];

/// Replicates may differ in these.
const SEEDS: &[&str] = &["loader.order_seed", "loader.preprocess_seed", "train.compute_seed"];

/// What makes a run of this plan the experiment it is.
pub fn settings(plan: &Plan) -> Settings {
    let mut settings = Settings::new();
    // A plan is all of JSON's kinds.
    let value = serde_json::to_value(plan).unwrap_or_default();
    flatten("", &value, &mut settings);
    let is_part = |key: &str, of: &str| {
        key.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    settings.retain(|key, _| {
        let key = key.strip_prefix("evaluation.").unwrap_or(key);
        !NO_SETTINGS.iter().chain(SEEDS).any(|of| is_part(key, of))
    });
    settings
}

fn flatten(at: &str, value: &Value, settings: &mut Settings) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let key = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                flatten(&key, value, settings);
            }
        }
        Value::Null => {}
        Value::String(text) => drop(settings.insert(at.into(), text.clone())),
        // As people write it: `100000`, for 100000.0.
        Value::Number(number) => {
            let whole = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e15);
            let text = whole.map_or_else(|| number.to_string(), |value| format!("{value:.0}"));
            settings.insert(at.into(), text);
        }
        other => drop(settings.insert(at.into(), other.to_string())),
    }
}

fn hostnames(record: &Record) -> Vec<String> {
    record.machines().iter().map(|one| one.hostname.clone()).collect()
}

/// The machine, its kernel, and the device under the dataset.
pub fn place(record: &Record) -> Settings {
    let system = &record.system;
    let mount = system.data_mount.as_ref();
    let parts = [
        ("program", Some(record.program.clone())),
        ("machine", Some(hostnames(record).join(" "))),
        ("kernel", Some(system.kernel.clone())),
        ("file system", mount.map(|mount| mount.file_system.clone())),
        ("device", mount.map(|mount| mount.source.clone())),
    ];
    let known = parts.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{plan, simple};
    use feedrate_measure::record::file::RECORD_FILE;
    use feedrate_spec::plan::Cache;

    fn save(folder: &Path, name: &str, change: impl Fn(&mut Record)) {
        let mut record = simple(&[(1000, 1000, 0, 1_000_000); 20]);
        change(&mut record);
        std::fs::create_dir_all(folder.join(name)).unwrap();
        file::write(&folder.join(name), &record).unwrap();
    }

    fn names(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
        paths.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn runs_are_found_at_any_depth_in_the_order_of_their_start() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "model/4/later", |_| {});
        save(folder.path(), "z", |record| record.started = "2026-11-21T00:00:00.000000".into());
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let found = runs_of(folder.path()).unwrap();
        assert_eq!(names(found.runs.into_iter().map(|run| run.path)), ["z", "later"]);
        let one = runs_of(&folder.path().join("z")).unwrap();
        assert_eq!((one.runs.len(), one.left_out.len()), (1, 0));
    }

    #[test]
    fn what_must_not_be_used_is_left_out_and_named() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "broken_off", |record| {
            (record.complete, record.stopped_because) = (false, Some("interrupted".into()));
        });
        std::fs::create_dir(folder.path().join("damaged")).unwrap();
        std::fs::write(folder.path().join("damaged").join(RECORD_FILE), "{").unwrap();
        let found = runs_of(folder.path()).unwrap();
        assert_eq!(found.runs.len(), 0);
        let why: Vec<&str> = found.left_out.iter().map(|one| one.why.as_str()).collect();
        assert!(
            why[0].starts_with("incomplete_run: ") && why[0].contains("interrupted"),
            "{why:?}"
        );
        assert!(why[1].contains("is no record"), "{why:?}");
    }

    #[test]
    fn a_run_that_was_made_again_is_no_replicate() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "4/first", |_| {});
        save(folder.path(), "4/superseded/older", |_| {});
        let found = runs_of(folder.path()).unwrap();
        assert_eq!((found.runs.len(), found.left_out.len()), (1, 1));
        assert!(found.left_out[0].why.starts_with("superseded"));
        let older = runs_of(&folder.path().join("4/superseded/older")).unwrap();
        assert_eq!(older.runs.len(), 1, "who asks for it by name has it");
    }

    #[test]
    fn a_copy_of_a_run_is_no_replicate() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "4/first", |_| {});
        save(folder.path(), "4/first copy", |_| {});
        save(folder.path(), "4/other host", |record| record.system.hostname = "node2".into());
        save(folder.path(), "4/other plan", |record| record.plan.loader.order_seed += 1);
        let found = runs_of(folder.path()).unwrap();
        assert_eq!(found.runs.len(), 3);
        assert_eq!(names(found.left_out.iter().map(|one| one.path.clone())), ["first copy"]);
        assert!(found.left_out[0].why.contains("4/first`: a copy"), "{:?}", found.left_out);
    }

    #[test]
    fn a_folder_without_runs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(runs_of(folder.path()), Err(RunsError::Nothing(_))));
        assert!(matches!(runs_of(&folder.path().join("gone")), Err(RunsError::Io { .. })));
    }

    #[test]
    fn seeds_and_what_follows_from_others_are_no_settings() {
        let of = |change: fn(&mut Plan)| {
            let mut plan = plan(2, 7);
            change(&mut plan);
            settings(&plan)
        };
        let same = of(|_| {});
        assert_eq!(same["accelerators"], "2");
        assert_eq!(
            (same["loader.workers"].as_str(), same["dataset.format"].as_str()),
            ("1", "npy")
        );
        assert_eq!(same, of(|plan| plan.loader.order_seed += 1));
        assert_eq!(same, of(|plan| plan.train.compute_seed += 1));
        assert_ne!(same, of(|plan| plan.dataset.content_seed += 1));
        assert_ne!(same, of(|plan| plan.train.cache = Cache::Cold));
    }

    #[test]
    fn a_run_knows_where_it_ran() {
        let run = Run::of(Path::new("x"), &simple(&[(1000, 1000, 0, 1); 20])).unwrap();
        assert_eq!(run.place["machine"], "node1");
    }
}
