//! All runs below some folders, each read once, with their numbers and the doubts they deserve, alone and among each other. Reads files; prints nothing.

mod hosts;
mod names;
mod published;
#[cfg(test)]
mod tests;

use crate::diagnosis::DIAGNOSIS_FILE;
use crate::doubt;
use crate::files::{FilesError, StudyFiles, study_csv};
pub use crate::import::LeftOut;

use crate::import::{FoundRun, Imported, RunOrigin, find, load_dlio, load_run};
use crate::place::label;
use crate::relations::Relations;
use crate::row::Row;
use crate::run::{FolderNames, Run, Submission};
use crate::state::{Status, StudyState};
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, doubts as of_records, needs_loader};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_measure::supply::Supply;
use feedrate_spec::escape::bash_word;
use feedrate_spec::refusal::Refusal;
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::{io, iter, thread};

/// The runs below some sources.
#[derive(Clone, Debug, Default)]
pub struct RunIndex {
    /// In the order of their sources and paths.
    pub runs: Vec<Run>,
    /// Folders that are there and cannot be read, and rows of a study without the result they are marked with.
    pub unread: Vec<LeftOut>,
    /// For each source the runs below it, as indexes; one may lie below several.
    pub sources: Vec<Vec<usize>>,
}

/// How runs are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Threads that read; at least one does.
    pub threads: usize,
    /// Every step is kept in [`Run::record`], where there are no more runs than this: of thousands they are too large.
    pub records_max: usize,
}

/// There is nothing to read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunsError {
    #[error("cannot look into `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` holds no result of a run", .0.display())]
    Nothing(PathBuf),
    #[error(transparent)]
    Study(#[from] FilesError),
}

impl From<RunsError> for Refusal {
    fn from(error: RunsError) -> Self {
        Refusal { message: error.to_string(), hint: error.hint() }
    }
}

impl RunsError {
    /// Advice.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunsError::Study(error) => error.hint(),
            RunsError::Nothing(study) if study.is_file() => Some(format!(
                "none of its runs is done: `feedrate study run {}` makes them",
                bash_word(&study.display().to_string())
            )),
            RunsError::Nothing(folder) if folder.join(DIAGNOSIS_FILE).is_file() => Some(format!(
                "it is a diagnosis: `feedrate show {}` says what it measured",
                bash_word(&folder.display().to_string())
            )),
            RunsError::Io { path, .. } | RunsError::Nothing(path) => Some(format!(
                "give the folder of a run, any folder above those of several, or the CSV of a study{}",
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

impl RunIndex {
    /// Read all runs below `sources`, each a folder or the CSV of a study. A folder is one run, of the first source it is found under. Links are not followed.
    ///
    /// # Errors
    /// A source cannot be looked into, or none holds a run.
    pub fn read(sources: &[PathBuf], options: &ReadOptions) -> Result<Self, RunsError> {
        let mut index = RunIndex::default();
        // Each with the source it was found under first.
        let mut found: Vec<(FoundRun, String)> = Vec::new();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let tables = published::tables(sources);
        for source in sources {
            if tables.iter().any(|table| table.path == *source) {
                index.sources.push(Vec::new());
                continue;
            }
            let (folders, left_out) = folders_of(source)?;
            index.unread.extend(left_out);
            let places = folders.into_iter().map(|folder| {
                *known.entry(whole_path(&folder.path)).or_insert_with(|| {
                    found.push((folder, source.display().to_string()));
                    found.len() - 1
                })
            });
            index.sources.push(places.collect());
        }
        let is_kept = found.len() <= options.records_max;
        let mut places = Vec::new();
        for read in read_all(&found, options.threads, is_kept) {
            places.push(read.is_ok().then_some(index.runs.len()));
            match read {
                Ok(run) => index.runs.push(run),
                Err(left_out) => index.unread.push(left_out),
            }
        }
        let submissions = index.runs.iter_mut().filter_map(|run| run.submission.as_mut());
        Submission::shorten_rounds(submissions);
        let joined = hosts::join(&mut index.runs);
        for source in &mut index.sources {
            *source = source.iter().filter_map(|&at| Some(joined[places[at]?])).collect();
            source.dedup();
        }
        if index.runs.is_empty() && index.unread.is_empty() {
            return Err(RunsError::Nothing(sources.first().cloned().unwrap_or_default()));
        }
        names::join(&mut index.runs);
        names::complete(&mut index.runs);
        names::name_varied(&mut index.runs);
        names::tell_apart(&mut index.runs);
        names::number_replicates(&mut index.runs);
        index.unread.extend(tables.iter().flat_map(|table| table.unbacked(&index.runs)));
        judge(&mut index.runs, beside(&found, options));
        names::number_order(&mut index.runs);
        Ok(index)
    }

    /// The part of one source, by its number and path, judged as it was among all.
    pub fn below(&self, source: usize, path: &Path) -> RunIndex {
        let root = whole_path(path);
        let unread = self.unread.iter().filter(|one| whole_path(&one.path).starts_with(&root));
        let numbers = self.sources.get(source).into_iter().flatten();
        let runs: Vec<Run> = numbers.map(|&number| self.runs[number].clone()).collect();
        RunIndex {
            sources: vec![(0..runs.len()).collect()],
            runs,
            unread: unread.cloned().collect(),
        }
    }

    /// The runs that may be used, in the order they were started; and all else, with why, by path.
    pub fn into_usable(self) -> (Vec<Run>, Vec<LeftOut>) {
        let (mut runs, mut left_out) = (Vec::new(), self.unread);
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

fn whole_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

fn folders_of(source: &Path) -> Result<(Vec<FoundRun>, Vec<LeftOut>), RunsError> {
    let Some(csv) = study_csv(source) else {
        return find(source).map_err(|error| RunsError::Io { path: source.into(), source: error });
    };
    let (folders, left_out) = folders_of_study(&csv)?;
    let found = folders.into_iter().map(|path| {
        let is_own = path.join(RECORD_FILE).is_file();
        FoundRun { origin: if is_own { RunOrigin::Feedrate } else { RunOrigin::Dlio }, path }
    });
    Ok((found.collect(), left_out))
}

/// The folders of the results of a study's rows; and those that are marked and have none.
///
/// # Errors
/// The study cannot be read.
pub fn folders_of_study(csv: &Path) -> Result<(Vec<PathBuf>, Vec<LeftOut>), RunsError> {
    let files = StudyFiles::new(csv)?;
    let state = StudyState::read(&files)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let (mut folders, mut left_out) = (Vec::new(), Vec::new());
    for (row, place) in rows.iter().zip(state.places(&rows)) {
        match place.result() {
            Some(attempt) => folders.push(attempt.run_dir.clone()),
            None if place.status == Status::Done => {
                let why = format!("the study has no result of {}", label(row, &rows));
                left_out.push(LeftOut::new(csv, why));
            }
            None => {}
        }
    }
    Ok((folders, left_out))
}

/// In the order of `folders`.
fn read_all(
    folders: &[(FoundRun, String)],
    threads: usize,
    is_kept: bool,
) -> Vec<Result<Run, LeftOut>> {
    let next = AtomicUsize::new(0);
    let read_next = || {
        let at = next.fetch_add(1, Relaxed);
        folders.get(at).map(|(found, source)| (at, read_run(found, source, is_kept)))
    };
    let mut all: Vec<(usize, Result<Run, LeftOut>)> = thread::scope(|scope| {
        let read_all = || iter::from_fn(read_next).collect::<Vec<_>>();
        // Where no further thread can be had, fewer read.
        let others =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, read_all).ok());
        let others: Vec<_> = others.collect();
        let own = read_all();
        let read = others.into_iter().map(|one| one.join().unwrap_or_else(|e| resume_unwind(e)));
        read.flatten().chain(own).collect()
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, run)| run).collect()
}

/// A run with the doubts that it deserves by itself.
fn read_run(found: &FoundRun, source: &str, is_kept: bool) -> Result<Run, LeftOut> {
    let FoundRun { path, origin } = found;
    let imported = (*origin != RunOrigin::Feedrate).then(|| load_dlio(path));
    let (mut run, record) = match &imported {
        Some(imported) => {
            let run = Run::imported(path, source, *origin, imported);
            (run, imported.record.as_ref().map(Cow::Borrowed))
        }
        None => {
            let record = load_run(path).map_err(|error| LeftOut::new(path, error.to_string()))?;
            (Run::measured(path, source, &record), Some(Cow::Owned(record)))
        }
    };
    run.doubts = own_doubts(&run, record.as_deref(), imported.as_ref());
    let own = if run.is_own() { record.as_deref() } else { None };
    run.supply = own.map(|record| Supply::new(&Derived::new(record), &run.doubts));
    run.record = if is_kept { record.map(|record| Box::new(record.into_owned())) } else { None };
    Ok(run)
}

fn own_doubts(run: &Run, record: Option<&Record>, imported: Option<&Imported>) -> Vec<Doubt> {
    let mut doubts = doubt::of_run(run, imported);
    // Where nothing was trained there is nothing to doubt.
    if let Some(record) = record
        && imported.is_none_or(Imported::trains)
    {
        let knows_loader = imported.is_none_or(|imported| imported.config.is_known());
        let mut of_steps = of_records(&Derived::new(record));
        of_steps.retain(|doubt| knows_loader || !needs_loader(&doubt.name));
        doubts.append(&mut of_steps);
    }
    doubts
}

/// Runs that are read because they lie beside one.
const BESIDE_MAX: usize = 500;

/// Add the doubts among runs, and decide which may be used. Those `beside` them only say which read another's dataset.
fn judge(runs: &mut Vec<Run>, beside: Vec<Run>) {
    let is_stale = |doubt: &Doubt| doubt.name == doubt::STALE_DATA;
    let mut found = among(runs);
    if !beside.is_empty() {
        let count = runs.len();
        runs.extend(beside);
        for (doubts, mut wider) in found.iter_mut().zip(among(runs)) {
            doubts.retain(|doubt| !is_stale(doubt));
            wider.retain(is_stale);
            doubts.append(&mut wider);
        }
        runs.truncate(count);
    }
    for (run, doubts) in runs.iter_mut().zip(&mut found) {
        if doubts.iter().any(is_stale) {
            // It is not certain which of the two datasets it read.
            run.set_sample_bytes(None);
            run.doubts.retain(|doubt| doubt.name != doubt::NOMINAL_BYTES);
        }
        run.doubts.append(doubts);
        doubt::in_order(&mut run.doubts);
        run.decide();
    }
}

/// The doubts of each run among the others.
fn among(runs: &[Run]) -> Vec<Vec<Doubt>> {
    let relations = Relations::new(runs);
    (0..runs.len()).map(|index| doubt::among_runs(&relations, index)).collect()
}

/// Runs of DLIO that nobody asked for: those of the workload of a source that is a run itself, `WORKLOAD/EXPERIMENT/RUN`.
fn beside(found: &[(FoundRun, String)], options: &ReadOptions) -> Vec<Run> {
    let of_dlio = found
        .iter()
        .filter(|(run, source)| run.origin != RunOrigin::Feedrate && run.path == Path::new(source));
    let mut folders: Vec<(FoundRun, String)> = Vec::new();
    for (run, source) in of_dlio {
        let path = whole_path(&run.path);
        if FolderNames::new(&path).processes().is_none() {
            continue;
        }
        let Some(workload) = path.ancestors().nth(2) else { continue };
        let (others, _) = find(workload).unwrap_or_default();
        folders.extend(others.into_iter().map(|other| (other, source.clone())));
    }
    folders.sort_by(|a, b| a.0.path.cmp(&b.0.path));
    folders.dedup_by(|a, b| a.0.path == b.0.path);
    folders.retain(|(one, _)| found.iter().all(|(run, _)| whole_path(&run.path) != one.path));
    folders.truncate(BESIDE_MAX);
    read_all(&folders, options.threads, false).into_iter().flatten().collect()
}
