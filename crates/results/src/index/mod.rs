//! All runs below some folders, each read once, with their numbers and the doubts they deserve, alone and among each other. Reads files; prints nothing.

mod names;
#[cfg(test)]
mod tests;

use crate::doubt;
use crate::files::{FilesError, StudyFiles};
use crate::import::{Found, Origin, find, load_dlio, load_run};
use crate::place::label;
use crate::relations::Relations;
use crate::row::Row;
use crate::run::{Loaded, Run};
use crate::state::{Status, StudyState};
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, doubts as of_records};
use feedrate_measure::record::file::RECORD_FILE;
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// A folder, and why it is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its folder.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

/// How runs are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Threads that read.
    pub threads: usize,
    /// Every step is kept in [`Run::record`], where there are no more runs than this: of thousands they are too large.
    pub records_max: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { threads: 1, records_max: 0 }
    }
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

impl RunsError {
    /// Advice.
    pub fn hint(&self) -> &'static str {
        "give the folder of a run, any folder above those of several, or the CSV of a study"
    }
}

/// A folder to read, and the source it was found under first.
struct Folder {
    found: Found,
    source: String,
}

impl RunIndex {
    /// Read all runs below `sources`, each a folder or the CSV of a study. A folder is one run, of the first source it is found under. Links are not followed.
    ///
    /// # Errors
    /// A source cannot be looked into, or none holds a run.
    pub fn read(sources: &[PathBuf], options: &ReadOptions) -> Result<Self, RunsError> {
        let mut index = RunIndex::default();
        let mut folders: Vec<Folder> = Vec::new();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let mut below: Vec<Vec<usize>> = Vec::new();
        for source in sources {
            let (found, closed) = folders_of(source)?;
            index.unread.extend(closed);
            let numbers = found.into_iter().map(|found| {
                *known.entry(whole_path(&found.path)).or_insert_with(|| {
                    folders.push(Folder { found, source: source.display().to_string() });
                    folders.len() - 1
                })
            });
            below.push(numbers.collect());
        }
        let is_kept = folders.len() <= options.records_max;
        let mut places = Vec::new();
        for (folder, read) in folders.iter().zip(read_all(&folders, options.threads, is_kept)) {
            places.push(read.is_ok().then_some(index.runs.len()));
            match read {
                Ok(run) => index.runs.push(run),
                Err(why) => index.unread.push(LeftOut { path: folder.found.path.clone(), why }),
            }
        }
        let of_source = |folders: Vec<usize>| folders.into_iter().filter_map(|at| places[at]);
        index.sources = below.into_iter().map(|folders| of_source(folders).collect()).collect();
        if index.runs.is_empty() && index.unread.is_empty() {
            return Err(RunsError::Nothing(sources.first().cloned().unwrap_or_default()));
        }
        names::name_varied(&mut index.runs);
        names::tell_apart(&mut index.runs);
        names::number_replicates(&mut index.runs);
        judge(&mut index.runs);
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
            match &run.usable {
                Ok(()) => runs.push(run),
                Err(reason) => left_out.push(LeftOut { why: reason.to_string(), path: run.path }),
            }
        }
        runs.sort_by(|a, b| (&a.started, &a.path).cmp(&(&b.started, &b.path)));
        left_out.sort_by(|a, b| a.path.cmp(&b.path));
        (runs, left_out)
    }
}

fn whole_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

fn folders_of(source: &Path) -> Result<(Vec<Found>, Vec<LeftOut>), RunsError> {
    if source.is_file() {
        let (folders, left_out) = folders_of_study(source)?;
        let found = folders.into_iter().map(|path| {
            let is_own = path.join(RECORD_FILE).is_file();
            Found { origin: if is_own { Origin::Feedrate } else { Origin::Dlio }, path }
        });
        return Ok((found.collect(), left_out));
    }
    let failed = |error| RunsError::Io { path: source.into(), source: error };
    let (found, closed) = find(source).map_err(failed)?;
    let closed = closed.into_iter().map(|(path, why)| LeftOut { path, why });
    Ok((found, closed.collect()))
}

/// The folders of the results of a study's rows; and those that are marked and have none.
///
/// # Errors
/// The study or its journal cannot be read.
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
                left_out.push(LeftOut { path: csv.into(), why });
            }
            None => {}
        }
    }
    Ok((folders, left_out))
}

/// In the order of `folders`.
fn read_all(folders: &[Folder], threads: usize, is_kept: bool) -> Vec<Result<Run, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(folder) = folders.get(index) else { return read };
            read.push((index, read_run(folder, is_kept)));
        }
    };
    let mut all: Vec<(usize, Result<Run, String>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(read) => all.extend(read),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, read)| read).collect()
}

/// A run with the doubts that it deserves by itself.
fn read_run(folder: &Folder, is_kept: bool) -> Result<Run, String> {
    let Folder { found: Found { path, origin }, source } = folder;
    let (mut run, doubts, record) = match origin {
        Origin::Feedrate => {
            let record = load_run(path).map_err(|error| error.to_string())?;
            let run = Run::measured(path, source, &record);
            let doubts = own_doubts(&Loaded { run: &run, record: &record, imported: None });
            (run, doubts, record)
        }
        Origin::Dlio | Origin::MlperfStorage => {
            let imported = load_dlio(path);
            let run = Run::imported(path, source, *origin, &imported);
            let doubts = own_doubts(&Loaded {
                run: &run,
                record: &imported.record,
                imported: Some(&imported),
            });
            (run, doubts, imported.record)
        }
    };
    run.doubts = doubts;
    run.record = is_kept.then(|| Box::new(record));
    Ok(run)
}

fn own_doubts(loaded: &Loaded) -> Vec<Doubt> {
    let mut doubts = doubt::of_run(loaded);
    // Where nothing was trained there is nothing to doubt.
    if loaded.imported.is_some_and(|imported| !imported.trains()) {
        return doubts;
    }
    let knows_loader = loaded.imported.is_none_or(|imported| imported.config.is_known());
    let of_loader = ["too_few_steps", "window_shorter_than_stock"];
    let of_steps = of_records(&Derived::new(loaded.record)).into_iter();
    doubts.extend(of_steps.filter(|d| knows_loader || !of_loader.contains(&d.name.as_str())));
    doubts
}

/// Add the doubts among runs, and decide which may be used.
fn judge(runs: &mut [Run]) {
    let relations = Relations::new(runs);
    let among: Vec<(Vec<Doubt>, Option<Option<f64>>)> = (0..runs.len())
        .map(|index| {
            let read = relations.stale(index).map(|stale| runs[stale.of].mean_sample_bytes);
            (doubt::among_runs(&relations, index), read)
        })
        .collect();
    for (run, (doubts, read)) in runs.iter_mut().zip(among) {
        if let Some(mean_sample_bytes) = read {
            run.read_bytes(mean_sample_bytes);
            // Of sizes that were not read.
            run.doubts.retain(|doubt| doubt.name != "nominal_bytes");
        }
        run.doubts.extend(doubts);
        doubt::in_order(&mut run.doubts);
        run.decide();
    }
}
