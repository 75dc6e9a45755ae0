//! A report of results, whoever wrote them: reads the folders that were asked for, and puts together what others say of them. Decides nothing about
//! what a number means.

use crate::figures::figures;
use crate::methods::{self, Made};
use crate::plot::Needs;
use crate::plot::data::{Data, FolderRun, processes};
use crate::report::{Au, Doubt, LeftOut, Metric, Report, Run, Seen, Source, Throughput};
use crate::told::told;
use feedrate_analysis::design::{Declared, Design, SOURCE, designs};
use feedrate_analysis::findings::Observation;
use feedrate_measure::metric::{
    self, AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, METRICS, NOMINAL_WINDOWED,
    Provenance, SAMPLES_WHOLE,
};
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_results::doubt;
use feedrate_results::files::StudyFiles;
use feedrate_results::import::RunOrigin;
use feedrate_results::index::{self, ReadOptions, RunIndex, RunsError};
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::run::{self, Reason, Settings};
use feedrate_results::state::StudyState;
use feedrate_spec::units::MIB;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Most runs of which the whole records are kept for figures.
const DETAILED_MAX: usize = 64;

/// Report on all results below `paths`, each a folder or a study's CSV, read by so many threads. Links to records start from the folder `from`;
/// without one there are none.
///
/// # Errors
/// There is nothing to report on.
pub fn of_results(
    paths: &[PathBuf],
    from: Option<&Path>,
    threads: usize,
) -> Result<Report, RunsError> {
    let found = Found::read(paths, &ReadOptions { threads, records_max: DETAILED_MAX })?;
    let mut report = Report {
        doubts: doubts(&found.runs),
        left_out: found.unread.iter().map(left_out).collect(),
        ..Report::default()
    };
    for (index, path) in paths.iter().enumerate() {
        let runs = found.sources.iter().filter(|source| **source == index).count();
        report.sources.push(Source { path: path.display().to_string(), runs });
    }
    let all = found.runs.iter().zip(&found.sources);
    report.runs = all.map(|(run, source)| view(run, *source, from)).collect();
    let mut made = Vec::new();
    for (at, place) in found.results.iter().enumerate() {
        let (run, source) = (&found.runs[*place], found.sources[*place]);
        let factors = found.levels(at);
        let experiment = format!("{:?} {factors:?}", run.accelerators);
        report.runs[*place].factors = factors;
        if run.unusable.is_none() {
            made.push(Made { run, settings: &found.settings[at], source, experiment });
        }
    }
    report.findings = told(&report.runs, &found.designs, &observations(&found));
    if !made.is_empty() {
        report.methods = methods::methods(&made, &report.sources);
    }
    report.setups = methods::setups(&made);
    report.configuration = methods::configuration(&made);
    let overview = overview(paths)?;
    (report.figures, report.not_drawn) = figures(&found.into_data(overview));
    Ok(report)
}

/// Read the data of a plot of all results below `paths`, and name what must not be drawn.
///
/// # Errors
/// There is nothing to draw.
pub fn plot_data(
    paths: &[PathBuf],
    needs: Needs,
    threads: usize,
) -> Result<(Data, Vec<index::LeftOut>), RunsError> {
    let overview = if needs == Needs::Progress { overview(paths)? } else { None };
    if overview.is_some() {
        return Ok((Data { overview, ..Data::default() }, Vec::new()));
    }
    let records_max = if needs == Needs::Records { usize::MAX } else { 0 };
    let mut found = Found::read(paths, &ReadOptions { threads, records_max })?;
    let mut unused = std::mem::take(&mut found.unread);
    for run in &found.runs {
        let Some(reason) = &run.unusable else { continue };
        let why = match reason {
            Reason::Invalid { doubt, evidence } => {
                format!("{doubt}: {}", evidence.split(';').next().unwrap_or_default())
            }
            reason => reason.name().into(),
        };
        unused.push(index::LeftOut { path: run.path.clone(), why });
    }
    Ok((found.into_data(None), unused))
}

/// All runs below some folders.
struct Found {
    /// In the order they were started.
    runs: Vec<run::Run>,
    /// The source of each.
    sources: Vec<usize>,
    /// Places of those that have results, be it such that must not be used.
    results: Vec<usize>,
    /// Settings of these, with the machine; and with the source, where there are several.
    settings: Vec<Settings>,
    /// Designs of these, by their places among these.
    designs: Vec<Design>,
    unread: Vec<index::LeftOut>,
    folders: Vec<FolderRun>,
}

impl Found {
    fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<Self, RunsError> {
        let index = RunIndex::read(paths, options)?;
        let (mut runs, unread) = (index.runs, index.unread);
        let unread_folders = unread.iter().filter_map(|one| FolderRun::from_names(&one.path));
        let folders = runs.iter().filter_map(FolderRun::from_run).chain(unread_folders).collect();
        runs.sort_by_cached_key(|run| (run.started.clone(), run.path.clone()));
        let source = |run: &run::Run| {
            paths.iter().position(|path| path.display().to_string() == run.source).unwrap_or(0)
        };
        let sources: Vec<usize> = runs.iter().map(source).collect();
        let has_result =
            |at: &usize| matches!(runs[*at].unusable, None | Some(Reason::Invalid { .. }));
        let results: Vec<usize> = (0..runs.len()).filter(has_result).collect();
        let names = if paths.len() > 1 { source_names(paths) } else { Vec::new() };
        let settings: Vec<Settings> =
            results.iter().map(|&at| settings(&runs[at], names.get(sources[at]))).collect();
        let designs = designs(&settings.iter().collect::<Vec<_>>(), &declared(paths)?);
        Ok(Found { runs, sources, results, settings, designs, unread, folders })
    }

    /// The levels of factors of one of those with results; and its source, where there are several.
    fn levels(&self, at: usize) -> BTreeMap<String, String> {
        let mut levels = BTreeMap::new();
        for design in &self.designs {
            if let Some(cell) = design.cells.iter().find(|cell| cell.runs.contains(&at)) {
                levels = design.levels_of(cell);
            }
        }
        let source = self.settings[at].get(SOURCE);
        levels.extend(source.map(|source| (SOURCE.to_string(), source.clone())));
        levels
    }

    fn into_data(self, overview: Option<Overview>) -> Data {
        let results: BTreeSet<usize> = self.results.into_iter().collect();
        let runs = self.runs.into_iter().enumerate().filter(|(at, _)| results.contains(at));
        let runs = runs.map(|(_, run)| run).collect();
        Data { runs, designs: self.designs, overview, folders: self.folders }
    }
}

/// The last part of each path; the whole of it where several end alike.
fn source_names(paths: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for path in paths {
        let alike = paths.iter().filter(|other| other.file_name() == path.file_name()).count();
        let name = if alike == 1 { path.file_name() } else { None };
        let name = name.unwrap_or(path.as_os_str());
        names.push(name.to_string_lossy().into_owned());
    }
    names
}

fn settings(run: &run::Run, source: Option<&String>) -> Settings {
    let mut settings = run.settings.clone();
    let more = [
        ("workload", Some(run.workload.clone())),
        ("host", run.hostname.clone()),
        ("hosts", run.hosts.map(|count| count.to_string())),
        (SOURCE, source.cloned()),
    ];
    settings.extend(more.into_iter().filter_map(|(key, value)| Some((key.into(), value?))));
    settings
}

/// Words of the CSV about factors, where a study is what was asked for.
fn declared(paths: &[PathBuf]) -> Result<Declared, RunsError> {
    match paths {
        [csv] if csv.is_file() => Ok(Declared::from_table(&StudyFiles::new(csv)?.table()?)),
        _ => Ok(Declared::default()),
    }
}

/// The state of a study, where a study is what was asked for.
fn overview(paths: &[PathBuf]) -> Result<Option<Overview>, RunsError> {
    let [csv] = paths else { return Ok(None) };
    if !csv.is_file() {
        return Ok(None);
    }
    let files = StudyFiles::new(csv)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    Ok(Some(Overview::new(&rows, &StudyState::read(&files)?)))
}

fn left_out(one: &index::LeftOut) -> LeftOut {
    LeftOut { path: one.path.display().to_string(), why: one.why.clone() }
}

/// A run as the report shows it; its factors are not known yet.
fn view(of: &run::Run, source: usize, from: Option<&Path>) -> Run {
    let file = match of.origin {
        RunOrigin::Feedrate => Some(RECORD_FILE),
        _ => ["summary.json", "dlio.log"].into_iter().find(|name| of.path.join(name).is_file()),
    };
    let target = file.map_or(of.path.clone(), |name| of.path.join(name));
    let accelerators = processes(of);
    let is_told = of.parameter != "processes" || accelerators.is_some();
    Run {
        path: of.path.display().to_string(),
        link: from.and_then(|from| link(from, &target)),
        source,
        workload: of.workload.clone(),
        parameter: of.parameter.clone(),
        value: if is_told { of.value.clone() } else { String::new() },
        factors: BTreeMap::new(),
        replicate: of.replicate,
        host: of.hostname.clone(),
        hosts: of.hosts,
        accelerators,
        started: of.started.clone().unwrap_or_default(),
        epochs: of.epochs,
        au: Au {
            reported_percent: of.reported_au_percent(),
            windowed_percent: of.metric(&AU_WINDOWED),
            windowed_stdev_percent: stdev(of, &AU_WINDOWED),
            all_steps_percent: of.metric(&AU_ALL_STEPS),
            sustained_percent: of.metric(&AU_SUSTAINED),
        },
        throughput: Throughput {
            samples_per_second: of.metric(&SAMPLES_WHOLE),
            bytes_per_second: of.metric(&DELIVERED_WHOLE),
            is_estimated: of.provenance(&DELIVERED_WHOLE) == Some(Provenance::Estimated),
            windowed_mib_per_second: of.metric(&NOMINAL_WINDOWED).map(|rate| rate / MIB),
            windowed_stdev_mib_per_second: stdev(of, &NOMINAL_WINDOWED).map(|rate| rate / MIB),
        },
        doubts: of.doubts.iter().map(|doubt| doubt.name.clone()).collect(),
        unused: of.unusable.as_ref().map(|why| why.name().into()),
        metrics: metrics(of),
    }
}

/// Population deviation over the epochs that have a value.
fn stdev(run: &run::Run, metric: &metric::Metric) -> Option<f64> {
    run.metric(metric)?;
    let series = run.series.get(&metric.id)?;
    metric::stdev(&series.iter().copied().flatten().collect::<Vec<f64>>())
}

fn metrics(run: &run::Run) -> Vec<Metric> {
    let own = METRICS.iter().map(|one| Metric {
        name: one.label().into(),
        unit: one.unit.name().into(),
        value: run.metric(one),
        provenance: run.provenance(one),
    });
    let figures = run.figures().into_iter().map(|one| Metric {
        name: one.name.into(),
        unit: one.unit.into(),
        value: one.value.map(|value| value.number),
        provenance: one.value.map(|value| value.provenance),
    });
    own.chain(figures).collect()
}

/// Each doubt once, the worst first, then those of most runs.
fn doubts(runs: &[run::Run]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for doubt in &run.doubts {
            let (evidence, advice) = (doubt.evidence.clone(), doubt.advice.clone());
            let seen = Seen { run: Some(index), evidence, advice };
            let same =
                |known: &&mut Doubt| known.name == doubt.name && known.severity == doubt.severity;
            match found.iter_mut().find(same) {
                Some(known) => known.seen.push(seen),
                None => {
                    let (name, severity) = (doubt.name.clone(), doubt.severity);
                    found.push(Doubt { name, severity, seen: vec![seen] });
                }
            }
        }
    }
    found.sort_by_key(|doubt| (doubt.severity, Reverse(doubt.seen.len())));
    found
}

/// The runs with results, as findings take them; those that must not be used are among them, to be told.
fn observations(found: &Found) -> Vec<Observation> {
    let orders = orders(found);
    let mut observations = Vec::new();
    for (at, (place, order)) in found.results.iter().zip(orders).enumerate() {
        let run = &found.runs[*place];
        let settings = (!run.is_own()).then_some(&found.settings[at]);
        let ignored = found.levels(at).into_keys().filter_map(|name| {
            let why = doubt::ignored(settings?, &name)?;
            Some((name, why))
        });
        let responses = METRICS.iter().filter_map(|one| Some((one.id.name(), run.metric(one)?)));
        let epochs = run.series.get(&SAMPLES_WHOLE.id).into_iter().flatten();
        observations.push(Observation {
            path: run.path.clone(),
            name: run.short_path(),
            ignored: ignored.collect(),
            responses: responses.collect(),
            epochs: epochs.copied().flatten().collect(),
            order,
            doubts: run.doubts.clone(),
        });
    }
    observations
}

/// The place of each run with results in the order of running, within its source: its study's, or where a run has none, by when they were started. `None` where
/// that is not known.
fn orders(found: &Found) -> Vec<Option<u32>> {
    let results = || found.results.iter().map(|&at| (&found.runs[at], found.sources[at]));
    let of_study = |run: &run::Run| run.study.as_ref().and_then(|study| study.order);
    let without = results().filter(|(run, _)| of_study(run).is_none());
    let without: BTreeSet<usize> = without.map(|(_, source)| source).collect();
    let mut started: BTreeMap<usize, u32> = BTreeMap::new();
    let mut orders = Vec::new();
    for (run, source) in results() {
        if !without.contains(&source) {
            orders.push(of_study(run));
            continue;
        }
        let place = started.entry(source).or_default();
        *place += u32::from(run.started.is_some());
        orders.push(run.started.as_ref().map(|_| *place));
    }
    orders
}

/// The relative URL of a file, from a folder. Both may be relative to the working folder. `None` where it cannot be known.
fn link(from: &Path, to: &Path) -> Option<String> {
    let (from, to) = (std::path::absolute(from).ok()?, std::path::absolute(to).ok()?);
    let (from, to): (Vec<Component>, Vec<Component>) =
        (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec!["..".to_string(); from.len() - common];
    let down = to[common..].iter().map(|part| escaped(part.as_os_str().as_encoded_bytes()));
    Some(up.into_iter().chain(down).collect::<Vec<_>>().join("/"))
}

/// Percent-encoded (RFC 3986), so that nothing but a name is left.
fn escaped(name: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.iter().copied().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_the_report_to_the_record() {
        for (from, to, expected) in [
            ("/a/b", "/a/b/r/record.json", "r/record.json"),
            ("/a/out", "/a/res ults/<x>/record.json", "../res%20ults/%3Cx%3E/record.json"),
            ("/", "/r.json", "r.json"),
            ("/a", "/a/javascript:1", "javascript%3A1"),
        ] {
            assert_eq!(link(Path::new(from), Path::new(to)).unwrap(), expected);
        }
    }
}
