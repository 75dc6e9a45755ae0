//! A report of results, whoever wrote them: reads the folders that were asked for, and puts together what others say of them. Decides nothing about
//! what a number means.

use super::figures::figures;
use super::methods::{self, Made};
use super::settings::{factors, settings};
use super::told::told;
use super::{Au, Doubt, LeftOut, Metric, Report, Run, Seen, Source, Throughput};
use crate::plot::Needs;
use crate::plot::data::{Data, FolderRun, RunPoint};
use crate::plot::points::{Depth, processes};
use feedrate_analysis::findings::Observation;
use feedrate_measure::doubt::{Doubt as SeenDoubt, Severity};
use feedrate_measure::metric::{self, AU_WINDOWED, METRICS, NOMINAL_WINDOWED};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_results::all::analyse;
use feedrate_results::case::{Activity, Case, Loaded, load};
use feedrate_results::doubt;
use feedrate_results::files::StudyFiles;
use feedrate_results::import::Kind;
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::runs::{self, RunsError};
use feedrate_results::state::StudyState;
use feedrate_spec::plan::Plan;
use feedrate_spec::units::MIB;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Of so many runs the whole records are kept for figures, at most.
const DETAILED_MAX: usize = 64;

/// Of all results below `paths`, each a folder or a study's CSV, read by so many threads. Links to records start from the folder `from`;
/// without one there are none.
///
/// # Errors
/// There is nothing to report on.
pub fn of_results(
    paths: &[PathBuf],
    from: Option<&Path>,
    threads: usize,
) -> Result<Report, RunsError> {
    let found = gather(paths, from, threads, DETAILED_MAX)?;
    let mut report = Report::default();
    let left_out = |one: &runs::LeftOut| LeftOut {
        path: one.path.display().to_string(),
        why: one.why.clone(),
    };
    report.left_out.extend(found.left_out.iter().map(left_out));
    let count = |index: usize| found.all.iter().filter(|one| one.run.source == index).count();
    let sources = paths.iter().enumerate();
    report.sources = sources
        .map(|(index, path)| Source { path: path.display().to_string(), runs: count(index) })
        .collect();
    report.doubts = doubts(&found.all);
    let observed = observations(&found.all);
    let mut data = Data { overview: overview(paths)?, folders: found.folders, ..Data::default() };
    let mut made = Vec::new();
    for one in found.all {
        if one.run.unused.is_none() {
            data.runs.push(one.point);
            made.push(one.made);
        }
        report.runs.push(one.run);
    }
    report.findings = told(&report.runs, &observed);
    (report.figures, report.not_drawn) = figures(&data);
    if !made.is_empty() {
        report.methods = methods::methods(&made, &report.sources);
    }
    report.setups = methods::setups(&made);
    report.configuration = methods::configuration(&made);
    Ok(report)
}

/// What a plot of all results below `paths` is drawn from, and what must not be drawn.
///
/// # Errors
/// There is nothing to draw.
pub fn plot_data(
    paths: &[PathBuf],
    needs: Needs,
    threads: usize,
) -> Result<(Data, Vec<runs::LeftOut>), RunsError> {
    let overview = if needs == Needs::Progress { overview(paths)? } else { None };
    if overview.is_some() {
        return Ok((Data { overview, ..Data::default() }, Vec::new()));
    }
    let detailed_max = if needs == Needs::Records { usize::MAX } else { 0 };
    let mut found = gather(paths, None, threads, detailed_max)?;
    let mut data = Data { folders: found.folders, ..Data::default() };
    for one in found.all {
        match one.why_unused() {
            Some(why) => found.left_out.push(runs::LeftOut { path: one.run.path.into(), why }),
            None => data.runs.push(one.point),
        }
    }
    Ok((data, found.left_out))
}

/// All runs below some folders.
struct Found {
    /// In the order they were started.
    all: Vec<Gathered>,
    folders: Vec<FolderRun>,
    left_out: Vec<runs::LeftOut>,
}

fn gather(
    paths: &[PathBuf],
    from: Option<&Path>,
    threads: usize,
    detailed_max: usize,
) -> Result<Found, RunsError> {
    let analysis = analyse(paths, threads)?;
    let is_whole = analysis.runs.len() <= detailed_max;
    let depth = if is_whole { Depth::Whole } else { Depth::Summary };
    let mut found = Found { all: Vec::new(), folders: Vec::new(), left_out: analysis.left_out };
    for case in analysis.runs {
        // The analysis keeps no records: of thousands of runs they are too large.
        match load(&case.path, case.kind, &case.source) {
            Ok(loaded) => {
                let is_it = |path: &PathBuf| path.display().to_string() == case.source;
                let source = paths.iter().position(is_it).unwrap_or(0);
                found.folders.extend(FolderRun::of(&case));
                found.all.push(Gathered::of(case, &loaded, Place { source, from, depth }));
            }
            Err(why) => found.left_out.push(runs::LeftOut { path: case.path.clone(), why }),
        }
    }
    let unread = found.left_out.iter().filter_map(|one| FolderRun::of_unread(&one.path));
    found.folders.extend(unread);
    found.all.sort_by(|a, b| (&a.run.started, &a.run.path).cmp(&(&b.run.started, &b.run.path)));
    let sources = if paths.len() > 1 { source_names(paths) } else { Vec::new() };
    name_factors(&mut found.all, &sources);
    Ok(found)
}

/// The last part of each path; the whole of it where several end alike.
fn source_names(paths: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| {
        let alike = paths.iter().filter(|other| other.file_name() == path.file_name()).count();
        match path.file_name() {
            Some(name) if alike == 1 => name.to_string_lossy().into_owned(),
            _ => path.display().to_string(),
        }
    };
    paths.iter().map(name).collect()
}

/// Say of each run with results which levels of its workload's factors it has: for findings and figures the same. `sources`: names of
/// sources, where there are several.
fn name_factors(all: &mut [Gathered], sources: &[String]) {
    let mut workloads: BTreeMap<String, Vec<&mut Gathered>> = BTreeMap::new();
    for one in all.iter_mut().filter(|one| one.has_result()) {
        workloads.entry(one.run.workload.clone()).or_default().push(one);
    }
    for (workload, mut runs) in workloads {
        let levels = factors(&runs.iter().map(|one| &one.made.settings).collect::<Vec<_>>());
        for (one, mut levels) in runs.iter_mut().zip(levels) {
            if let Some(source) = sources.get(one.run.source) {
                levels.insert("source".into(), source.clone());
            }
            one.run.factors.clone_from(&levels);
            one.made.experiment = format!("{:?} {levels:?}", one.run.accelerators);
            // Figures want the number of processes whether it differs or not.
            levels.remove("processes");
            levels.insert("workload".into(), workload.clone());
            let accelerators = one.run.accelerators.map(|count| count.to_string());
            levels.extend(accelerators.map(|count| ("accelerators".to_string(), count)));
            one.point.settings = levels;
        }
    }
}

/// How far a study is, where a study is what was asked for.
fn overview(paths: &[PathBuf]) -> Result<Option<Overview>, RunsError> {
    let [csv] = paths else { return Ok(None) };
    if !csv.is_file() {
        return Ok(None);
    }
    let files = StudyFiles::new(csv)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    Ok(Some(Overview::new(&rows, &StudyState::read(&files)?)))
}

/// Where a run is from, and what is wanted of it.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: usize,
    from: Option<&'a Path>,
    depth: Depth,
}

/// All that a report needs of a run.
struct Gathered {
    run: Run,
    /// What sentences call it.
    name: String,
    made: Made,
    point: RunPoint,
    doubts: Vec<SeenDoubt>,
    /// Of DLIO's runs.
    plan: Option<Plan>,
    shown: BTreeMap<&'static str, f64>,
    epochs: Vec<f64>,
}

impl Gathered {
    /// Whether it has results, be it such that must not be used.
    fn has_result(&self) -> bool {
        self.run.unused.as_ref().is_none_or(|why| self.run.doubts.contains(why))
    }

    /// Why it counts for no experiment, with what was seen.
    fn why_unused(&self) -> Option<String> {
        let why = self.run.unused.clone()?;
        let seen = self.doubts.iter().find(|doubt| doubt.name == why);
        let evidence = seen.and_then(|doubt| doubt.evidence.split(';').next());
        Some(evidence.map_or(why.clone(), |evidence| format!("{why}: {evidence}")))
    }

    fn of(case: Case, loaded: &Loaded, place: Place) -> Self {
        let record = &loaded.record;
        let is_own = case.kind == Kind::Record;
        let settings = settings(&case);
        let point = point(&case, record, place);
        let run = run(&case, record, place);
        let made = Made {
            source: place.source,
            workload: run.workload.clone(),
            experiment: String::new(),
            started: run.started.clone(),
            settings,
            overrides: case.overrides.clone(),
            place: runs::place(record),
            machines: record.machines().to_vec(),
            memory_bytes: record.system.memory_bytes,
            study: record.study.as_deref().cloned(),
            is_own,
        };
        let plan = loaded.imported.as_ref().map(|_| record.plan.clone());
        let epochs = metric::SAMPLES_WHOLE.of_epochs(record);
        let is_known = case.throughput.whole_samples_per_second.is_some();
        let epochs = epochs.into_iter().flatten().filter(|_| is_known).collect();
        let shown = shown(&case);
        let name = case.short_path();
        Gathered { run, name, made, point, doubts: case.doubts, plan, shown, epochs }
    }
}

/// What was reported, and how far ranks differ: by these findings tell how large a doubt is.
fn shown(case: &Case) -> BTreeMap<&'static str, f64> {
    let all = [
        ("au_reported_percent", case.au.reported_percent),
        ("au_lowest_percent", case.skew.windowed_lowest_percent),
        ("au_highest_percent", case.skew.windowed_highest_percent),
        ("wait_excluded_percent", case.stall.excluded_percent),
        ("reported_samples_per_second", case.throughput.reported_samples_per_second),
        ("windowed_samples_per_second", case.throughput.windowed_samples_per_second),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn run(case: &Case, record: &Record, place: Place) -> Run {
    let rates = &case.throughput;
    let bytes_per_second = |mib: Option<f64>| mib.map(|rate| rate * MIB);
    let is_known = rates.windowed_mib_per_second.is_some();
    let stdev = NOMINAL_WINDOWED.stdev_over_epochs(record).filter(|_| is_known);
    let file = ["summary.json", "dlio.log"].into_iter().find(|name| case.path.join(name).is_file());
    let file = if case.kind == Kind::Record { Some(RECORD_FILE) } else { file };
    let target = file.map_or(case.path.clone(), |name| case.path.join(name));
    let accelerators = processes(case);
    let is_told = case.parameter != "processes" || accelerators.is_some();
    let value = if is_told { case.value.clone() } else { String::new() };
    Run {
        path: case.path.display().to_string(),
        link: place.from.and_then(|from| link(from, &target)),
        source: place.source,
        workload: case.workload.clone(),
        parameter: case.parameter.clone(),
        value,
        replicate: case.replicate,
        host: case.hostname.clone(),
        hosts: case.hosts,
        accelerators,
        factors: BTreeMap::new(),
        started: case.started.clone().unwrap_or_default(),
        epochs: case.epochs,
        au: Au {
            reported_percent: case.au.reported_percent,
            windowed_percent: case.au.windowed_percent,
            windowed_stdev_percent: AU_WINDOWED.stdev_over_epochs(record),
            all_steps_percent: case.au.all_steps_percent,
            sustained_percent: case.au.sustained_percent,
        },
        throughput: Throughput {
            samples_per_second: rates.whole_samples_per_second,
            bytes_per_second: bytes_per_second(rates.whole_read_mib_per_second),
            is_estimated: case.kind != Kind::Record,
            windowed_mib_per_second: rates.windowed_mib_per_second,
            windowed_stdev_mib_per_second: stdev.map(|rate| rate / MIB),
        },
        doubts: case.doubts.iter().map(|doubt| doubt.name.clone()).collect(),
        unused: unused(case),
        metrics: metrics(case, record),
    }
}

/// Why a run counts for no experiment.
fn unused(case: &Case) -> Option<String> {
    let invalid = case.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid);
    match (case.activity, &case.put_aside, invalid) {
        (_, Some(word), _) => Some(word.clone()),
        (Activity::Generation, ..) => Some("generated data only".into()),
        (Activity::Checkpoints, ..) => Some("checkpoints only".into()),
        (_, _, Some(doubt)) => Some(doubt.name.clone()),
        _ if case.steps == 0 => Some("no steps".into()),
        _ => None,
    }
}

/// Of others' runs only what their files tell: they have steps, and no counters of reads.
fn metrics(case: &Case, record: &Record) -> Vec<Metric> {
    let of_steps = [
        &metric::AU_WINDOWED,
        &metric::AU_ALL_STEPS,
        &metric::SAMPLES_WINDOWED,
        &metric::SAMPLES_WHOLE,
        &metric::NOMINAL_WINDOWED,
        &metric::NOMINAL_WHOLE,
        &metric::LOAD_S,
        &metric::COMPUTE_S,
    ];
    let is_known = |name: &str| {
        let has_rates = case.throughput.whole_samples_per_second.is_some();
        let has_bytes = case.throughput.whole_mib_per_second.is_some();
        let is_of_steps = of_steps.iter().any(|metric| metric.label() == name);
        case.kind == Kind::Record
            || (is_of_steps
                && (has_rates || !name.starts_with("samples"))
                && (has_bytes || !name.starts_with("nominal")))
    };
    let value = |metric: &&metric::Metric| Metric {
        name: metric.label().into(),
        unit: metric.unit.name().into(),
        value: (metric.of_run)(record).filter(|_| is_known(metric.label())),
    };
    let figure = |(name, unit, value): (&str, &str, Option<f64>)| Metric {
        name: name.into(),
        unit: unit.into(),
        value,
    };
    METRICS.iter().map(value).chain(case.figures().into_iter().map(figure)).collect()
}

/// Of a record what every plot may want; of others' runs, and of records that cannot be used, what their steps tell.
fn point(case: &Case, record: &Record, place: Place) -> RunPoint {
    let own = (case.kind == Kind::Record).then(|| runs::Run::of(&case.path, record).ok()).flatten();
    match own {
        Some(run) => RunPoint::of_record(&run, case, record, place.depth),
        None => RunPoint::of_case(case, record, place.depth),
    }
}

/// Each doubt once, the worst first, then those of most runs.
fn doubts(all: &[Gathered]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        for SeenDoubt { name, severity, evidence, advice, .. } in &one.doubts {
            let seen =
                Seen { run: Some(index), evidence: evidence.clone(), advice: advice.clone() };
            match found.iter_mut().find(|known| known.name == *name && known.severity == *severity)
            {
                Some(known) => known.seen.push(seen),
                None => {
                    found.push(Doubt { name: name.clone(), severity: *severity, seen: vec![seen] })
                }
            }
        }
    }
    found.sort_by_key(|doubt| (doubt.severity, Reverse(doubt.seen.len())));
    found
}

/// The runs with results, as findings take them; those that must not be used are among them, to be told. By workload.
fn observations(all: &[Gathered]) -> Vec<Observation> {
    let of = |(one, order): (&Gathered, Option<u32>)| {
        let factors = one.run.factors.clone();
        let why = |name: &String| Some((name.clone(), doubt::ignored(one.plan.as_ref()?, name)?));
        Observation {
            path: one.run.path.clone().into(),
            name: one.name.clone(),
            workload: one.run.workload.clone(),
            ignored: factors.keys().filter_map(why).collect(),
            factors,
            responses: one.point.responses.clone(),
            order,
            shown: one.shown.clone(),
            epochs: one.epochs.clone(),
            doubts: one.doubts.clone(),
        }
    };
    let with_result: Vec<&Gathered> = all.iter().filter(|one| one.has_result()).collect();
    let orders = orders(&with_result);
    let mut observations: Vec<Observation> = with_result.into_iter().zip(orders).map(of).collect();
    observations.sort_by(|a, b| a.workload.cmp(&b.workload));
    observations
}

/// The place of each run in the order of running, within its source: its study's, or where a run has none, by when they were started, which `all` are in
/// the order of. `None` where that is not known.
fn orders(all: &[&Gathered]) -> Vec<Option<u32>> {
    let of_study = |one: &Gathered| one.made.study.as_ref().and_then(|study| study.order);
    let without: BTreeSet<usize> =
        all.iter().filter(|one| of_study(one).is_none()).map(|one| one.run.source).collect();
    let mut started: BTreeMap<usize, u32> = BTreeMap::new();
    let order = |one: &&Gathered| {
        if !without.contains(&one.run.source) {
            return of_study(one);
        }
        let place = started.entry(one.run.source).or_default();
        *place += u32::from(!one.run.started.is_empty());
        (!one.run.started.is_empty()).then_some(*place)
    };
    all.iter().map(order).collect()
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
    let one = |&byte: &u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.iter().map(one).collect()
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
