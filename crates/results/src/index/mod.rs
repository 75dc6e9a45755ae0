//! The index of all runs below some folders. Each run is read once, receives its doubts, and is compared with the others. This module reads files and
//! prints nothing.

mod hosts;
mod names;
mod published;
#[cfg(test)]
mod tests;

use self::published::PublishedTable;
use crate::diagnosis::DIAGNOSIS_FILE;
use crate::doubt;
use crate::files::{FilesError, StudyFiles, similar_path, study_csv};
pub use crate::import::LeftOut;

use crate::import::{FoundRun, Imported, RunOrigin, find, find_within, load_dlio, load_run};
use crate::place::{experiment_dir, label};
use crate::relations::Relations;
use crate::row::{Row, WARM_UP};
use crate::run::{FolderNames, Reason, Run, Submission, warm_ups};
use crate::state::{Status, StudyState};
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, doubts as doubts_of_record, needs_loader};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_measure::supply::Supply;
use feedrate_spec::escape::{bash_word, path_text};
use feedrate_spec::refusal::Refusal;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::{io, iter, thread};

/// The runs below some sources.
#[derive(Clone, Debug, Default)]
pub struct RunIndex {
    /// Runs, in the order of their sources and paths.
    pub runs: Vec<Run>,
    /// Unreadable folders, rows of studies that are marked as done but have no result, and rows of published tables without a matching run.
    pub unread: Vec<LeftOut>,
    /// Indices of the runs below each source. A run may be below several sources.
    pub sources: Vec<Vec<usize>>,
}

/// Options for reading runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Number of reading threads; 0 means one.
    pub threads: usize,
    /// Maximum number of runs for which records are kept in [`Run::record`]. Records of thousands of runs would take too much memory.
    pub records_max: usize,
    /// Whether to leave out the other runs of the workload of a source that is itself a run. They show that a run may have read the dataset of another
    /// run.
    pub skips_siblings: bool,
}

/// Errors of reading runs.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum RunsError {
    #[error("cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` holds no result of a run", .0.display())]
    NoRuns(PathBuf),
    #[error(transparent)]
    Study(#[from] FilesError),
}

impl From<RunsError> for Refusal {
    fn from(error: RunsError) -> Self {
        Refusal { message: error.to_string(), hint: error.hint() }
    }
}

impl RunsError {
    /// Returns a remedy.
    pub fn hint(&self) -> Option<String> {
        self.likely_path().or_else(|| self.expected_path())
    }

    /// Names an existing path that was probably meant.
    fn likely_path(&self) -> Option<String> {
        match self {
            RunsError::Io { path, .. } => similar_path(path),
            RunsError::NoRuns(study) => results_elsewhere(study).map(|results| {
                let results = bash_word(&path_text(&results));
                let state = none_is_done(study);
                format!("{state}; `feedrate analyze {results}` reads the results there")
            }),
            RunsError::Study(_) => None,
        }
    }

    fn expected_path(&self) -> Option<String> {
        match self {
            RunsError::Study(error) => error.hint(),
            RunsError::NoRuns(study) if study.is_file() => Some(none_is_done(study)),
            RunsError::NoRuns(folder) if folder.join(DIAGNOSIS_FILE).is_file() => Some(format!(
                "it is a diagnosis: `feedrate show {}` shows its measurements",
                bash_word(&folder.display().to_string())
            )),
            RunsError::Io { path, .. } | RunsError::NoRuns(path) => Some(format!(
                "pass the folder of a run, a folder that contains runs, or the CSV of a study{}",
                if path.is_dir() {
                    let folder = bash_word(&path.display().to_string());
                    format!("; `feedrate run --data {folder}` trains on the files in a folder")
                } else {
                    String::new()
                }
            )),
        }
    }
}

fn none_is_done(study: &Path) -> String {
    let study = bash_word(&study.display().to_string());
    format!("none of its runs is done: `feedrate study run {study}` executes them")
}

/// Finds the folder `results` beside the CSV of a study, or beside its folder, that contains the folder of a row's experiment. A study that another program ran
/// may have its results there.
fn results_elsewhere(study: &Path) -> Option<PathBuf> {
    let folder = study.parent().filter(|_| study.is_file())?;
    let table = StudyFiles::new(study).ok()?.table().ok()?;
    let rows: Vec<Row> = table.rows().cloned().collect();
    let has_experiment =
        |results: &PathBuf| rows.iter().any(|row| experiment_dir(results, row, &rows).is_dir());
    ["results", "../results"].map(|name| folder.join(name)).into_iter().find(has_experiment)
}

impl RunIndex {
    /// Reads all runs below `sources`, which are folders or the CSVs of studies. A run below several sources is read once and belongs to the first
    /// of them. Links are not followed.
    ///
    /// # Errors
    /// A source cannot be read, or no source contains a run.
    pub fn read(sources: &[PathBuf], options: &ReadOptions) -> Result<Self, RunsError> {
        let mut index = RunIndex::default();
        let mut found: Vec<(FoundRun, String)> = Vec::new();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let tables = published::read_tables(sources);
        for source in sources {
            if tables.iter().any(|table| table.path == *source) {
                index.sources.push(Vec::new());
                continue;
            }
            let (folders, left_out) = find_folders(source)?;
            index.unread.extend(left_out);
            let found_indices = folders.into_iter().map(|folder| {
                *known.entry(canonical(&folder.path)).or_insert_with(|| {
                    found.push((folder, source.display().to_string()));
                    found.len() - 1
                })
            });
            index.sources.push(found_indices.collect());
        }
        if found.is_empty() && index.unread.is_empty() {
            return Err(RunsError::NoRuns(sources.first().cloned().unwrap_or_default()));
        }
        Ok(index.with_runs(&found, &tables, options))
    }

    /// Reads the runs in `folders`, each of which is a source, without searching below them. Folders that cannot be read are in [`RunIndex::unread`].
    pub fn read_folders(folders: &[PathBuf], options: &ReadOptions) -> Self {
        let mut index = RunIndex::default();
        let mut found: Vec<(FoundRun, String)> = Vec::new();
        for folder in folders {
            let (runs, left_out) = find_within(folder, 0).unwrap_or_else(|error| {
                (Vec::new(), vec![LeftOut::new(folder, error.to_string())])
            });
            index.unread.extend(left_out);
            index.sources.push((found.len()..found.len() + runs.len()).collect());
            found.extend(runs.into_iter().map(|run| (run, folder.display().to_string())));
        }
        index.with_runs(&found, &[], options)
    }

    /// Reads the found folders, to whose indices `sources` refers, and compares the runs.
    fn with_runs(
        mut self,
        found: &[(FoundRun, String)],
        tables: &[PublishedTable],
        options: &ReadOptions,
    ) -> Self {
        let keeps_records = found.len() <= options.records_max;
        // The index in `runs` of each found folder; `None` if the folder is unreadable.
        let mut run_indices = Vec::new();
        for result in read_all(found, options.threads, keeps_records) {
            run_indices.push(result.is_ok().then_some(self.runs.len()));
            match result {
                Ok(run) => self.runs.push(run),
                Err(left_out) => self.unread.push(left_out),
            }
        }
        let submissions = self.runs.iter_mut().filter_map(|run| run.submission.as_mut());
        Submission::shorten_rounds(submissions);
        let joined_indices = hosts::join(&mut self.runs);
        for source in &mut self.sources {
            let runs = source.iter().filter_map(|&found| Some(joined_indices[run_indices[found]?]));
            *source = runs.collect();
            source.dedup();
        }
        names::join_workloads(&mut self.runs);
        names::complete_settings(&mut self.runs);
        names::name_varied_parameters(&mut self.runs);
        names::distinguish(&mut self.runs);
        names::number_replicates(&mut self.runs);
        self.unread.extend(tables.iter().flat_map(|table| table.unmatched_rows(&self.runs)));
        add_set_doubts(&mut self.runs, read_siblings(found, options));
        for index in warm_ups(&self.runs) {
            self.runs[index].unusable = Some(Reason::PutAside(WARM_UP.into()));
        }
        names::number_order(&mut self.runs);
        self
    }

    /// Returns the part of the index below the source with this index and path. Doubts from comparisons with runs of other sources are kept.
    pub fn subset_below(&self, source: usize, path: &Path) -> RunIndex {
        let root = canonical(path);
        let is_below = |left_out: &&LeftOut| canonical(&left_out.path).starts_with(&root);
        let unread = self.unread.iter().filter(is_below);
        let indices = self.sources.get(source).into_iter().flatten();
        let runs: Vec<Run> = indices.map(|&index| self.runs[index].clone()).collect();
        RunIndex {
            sources: vec![(0..runs.len()).collect()],
            runs,
            unread: unread.cloned().collect(),
        }
    }

    /// Splits the index into usable runs, in the order of their starts, and everything else with the reasons, sorted by path.
    pub fn into_usable(self) -> (Vec<Run>, Vec<LeftOut>) {
        let mut runs = Vec::new();
        let mut left_out = self.unread;
        for run in self.runs {
            match &run.unusable {
                None => runs.push(run),
                Some(reason) => left_out.push(LeftOut::new(&run.path, reason.to_string())),
            }
        }
        runs.sort_by(|a, b| (&a.started, &a.path).cmp(&(&b.started, &b.path)));
        left_out.sort();
        (runs, left_out)
    }
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

/// Finds the runs below a source, and the folders that are left out.
fn find_folders(source: &Path) -> Result<(Vec<FoundRun>, Vec<LeftOut>), RunsError> {
    let Some(csv) = study_csv(source) else {
        return find(source).map_err(|error| RunsError::Io { path: source.into(), source: error });
    };
    let (folders, left_out) = folders_of_study(&csv)?;
    let found = folders.into_iter().map(|path| {
        let has_record = path.join(RECORD_FILE).is_file();
        FoundRun { origin: if has_record { RunOrigin::Feedrate } else { RunOrigin::Dlio }, path }
    });
    Ok((found.collect(), left_out))
}

/// Returns the result folders of a study's rows, and the rows that are marked as done but have no result.
///
/// # Errors
/// The study cannot be read.
pub fn folders_of_study(csv: &Path) -> Result<(Vec<PathBuf>, Vec<LeftOut>), RunsError> {
    let files = StudyFiles::new(csv)?;
    let state = StudyState::read(&files)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let mut folders = Vec::new();
    let mut left_out = Vec::new();
    for (row, row_state) in rows.iter().zip(state.row_states(&rows)) {
        match row_state.result() {
            Some(attempt) => folders.push(attempt.run_dir.clone()),
            None if row_state.status == Status::Done => {
                let mut why = format!("the study has no result of {}", label(row, &rows));
                let key = row.key();
                if let Some(run) = state.contradicting.iter().find(|run| run.key == key) {
                    let differences = run.differences.join("; ");
                    why += &format!("; that in `{}` differs: {differences}", run.run_dir.display());
                }
                left_out.push(LeftOut::new(csv, why));
            }
            None => {}
        }
    }
    Ok((folders, left_out))
}

/// Reads runs with several threads. `folders` pairs each run with its source; results are in the same order.
fn read_all(
    folders: &[(FoundRun, String)],
    threads: usize,
    keeps_records: bool,
) -> Vec<Result<Run, LeftOut>> {
    let next = AtomicUsize::new(0);
    let read_next = || {
        let position = next.fetch_add(1, Relaxed);
        folders
            .get(position)
            .map(|(found, source)| (position, read_run(found, source, keeps_records)))
    };
    let mut all: Vec<(usize, Result<Run, LeftOut>)> = thread::scope(|scope| {
        let read_rest = || iter::from_fn(read_next).collect::<Vec<_>>();
        // If no more threads can be started, fewer threads read.
        let workers: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, read_rest).ok())
            .collect();
        let read_here = read_rest();
        let joined =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|e| resume_unwind(e)));
        joined.flatten().chain(read_here).collect()
    });
    all.sort_unstable_by_key(|(position, _)| *position);
    all.into_iter().map(|(_, run)| run).collect()
}

/// Reads a run and adds the doubts that follow from the run alone.
fn read_run(found: &FoundRun, source: &str, keeps_record: bool) -> Result<Run, LeftOut> {
    let FoundRun { path, origin } = found;
    let imported = (*origin != RunOrigin::Feedrate).then(|| load_dlio(path));
    let (mut run, record) = match &imported {
        Some(imported) => {
            let run = Run::from_dlio(path, source, *origin, imported);
            (run, imported.record.as_ref().map(Cow::Borrowed))
        }
        None => {
            let record = load_run(path).map_err(|error| LeftOut::new(path, error.to_string()))?;
            (Run::without_doubts(path, source, &record), Some(Cow::Owned(record)))
        }
    };
    run.doubts = all_run_doubts(&run, record.as_deref(), imported.as_ref());
    let measured = if run.is_from_feedrate() { record.as_deref() } else { None };
    run.supply = measured.map(|record| Supply::new(&Derived::new(record), &run.doubts));
    run.record =
        if keeps_record { record.map(|record| Box::new(record.into_owned())) } else { None };
    Ok(run)
}

/// Returns the doubts of a run and of its record.
fn all_run_doubts(run: &Run, record: Option<&Record>, imported: Option<&Imported>) -> Vec<Doubt> {
    let mut doubts = doubt::run_doubts(run, imported);
    // Doubts of records concern training.
    if let Some(record) = record
        && imported.is_none_or(Imported::trains)
    {
        let knows_loader = imported.is_none_or(|imported| imported.config.is_known());
        let mut record_doubts = doubts_of_record(&Derived::new(record));
        record_doubts.retain(|doubt| knows_loader || !needs_loader(&doubt.name));
        doubts.append(&mut record_doubts);
    }
    doubts
}

/// Maximum number of sibling runs that are read in addition.
const SIBLINGS_MAX: usize = 500;

/// Adds the doubts that follow from comparing runs, and decides which runs may be used. `siblings` only serve to find runs that read the dataset of
/// another run.
fn add_set_doubts(runs: &mut Vec<Run>, siblings: Vec<Run>) {
    let is_stale = |doubt: &Doubt| doubt.name == doubt::STALE_DATA;
    let mut set_doubts = compare_all(runs);
    if !siblings.is_empty() {
        let count = runs.len();
        runs.extend(siblings);
        for (doubts, mut with_siblings) in set_doubts.iter_mut().zip(compare_all(runs)) {
            doubts.retain(|doubt| !is_stale(doubt));
            with_siblings.retain(is_stale);
            doubts.append(&mut with_siblings);
        }
        runs.truncate(count);
    }
    for (run, doubts) in runs.iter_mut().zip(&mut set_doubts) {
        if doubts.iter().any(is_stale) {
            // It is not certain which of the two datasets the run read.
            run.set_sample_bytes(None);
            run.doubts.retain(|doubt| doubt.name != doubt::NOMINAL_BYTES);
        }
        run.doubts.append(doubts);
        doubt::sort(&mut run.doubts);
        run.set_usability();
    }
}

/// Compares each run with the others and returns the doubts of each.
fn compare_all(runs: &[Run]) -> Vec<Vec<Doubt>> {
    let relations = Relations::new(runs);
    (0..runs.len()).map(|index| doubt::set_doubts(&relations, index)).collect()
}

/// Reads the other DLIO runs of the same workload for sources that are themselves a run, `WORKLOAD/EXPERIMENT/RUN`, or a study: the runs that generate
/// data are not results of its rows.
fn read_siblings(found: &[(FoundRun, String)], options: &ReadOptions) -> Vec<Run> {
    if options.skips_siblings {
        return Vec::new();
    }
    let single_runs = found.iter().filter(|(run, source)| {
        let source = Path::new(source);
        run.origin != RunOrigin::Feedrate && (run.path == source || study_csv(source).is_some())
    });
    // The source of the first run of each workload.
    let mut workloads: BTreeMap<PathBuf, &String> = BTreeMap::new();
    for (run, source) in single_runs {
        let path = canonical(&run.path);
        if FolderNames::new(&path).processes().is_some()
            && let Some(workload) = path.ancestors().nth(2)
        {
            workloads.entry(workload.into()).or_insert(source);
        }
    }
    let mut folders: Vec<(FoundRun, String)> = Vec::new();
    for (workload, source) in workloads {
        let (others, _) = find(&workload).unwrap_or_default();
        folders.extend(others.into_iter().map(|other| (other, source.clone())));
    }
    folders.sort_by(|a, b| a.0.path.cmp(&b.0.path));
    folders.dedup_by(|a, b| a.0.path == b.0.path);
    let known: HashSet<PathBuf> = found.iter().map(|(run, _)| canonical(&run.path)).collect();
    folders.retain(|(sibling, _)| !known.contains(&sibling.path));
    folders.truncate(SIBLINGS_MAX);
    read_all(&folders, options.threads, false).into_iter().flatten().collect()
}
