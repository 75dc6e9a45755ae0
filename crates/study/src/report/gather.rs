//! A report of results, whoever wrote them: reads the folders that were asked for, and puts together what others say of them. Decides nothing about
//! what a number means.

use super::figures::figures;
use super::methods::{self, Made};
use super::settings::{factors, settings};
use super::told::told;
use super::{Au, Doubt, LeftOut, Metric, Report, Run, Seen, Source, Throughput};
use crate::analysis::analyse;
use crate::case::{Activity, Case, Loaded, load};
use crate::findings::{Doubted, Observation};
use crate::import::Kind;
use crate::overview::Overview;
use crate::plot::data::{Data, RunPoint};
use crate::row::Row;
use crate::runner::StudyFiles;
use crate::runs::{self, RunsError};
use crate::state::{History, Journal};
use feedrate_measure::doubt::{SeenDoubt, Severity};
use feedrate_measure::metric::{self, AU_WINDOWED, METRICS, NOMINAL_WINDOWED};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

const MIB: f64 = (1u64 << 20) as f64;
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
    let found = analyse(paths, threads)?;
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut report = Report::default();
    let left_out = |path: &Path, why| LeftOut { path: path.display().to_string(), why };
    report.left_out.extend(found.left_out.into_iter().map(|one| left_out(&one.path, one.why)));
    let has_details = found.runs.len() <= DETAILED_MAX;
    let mut all: Vec<Gathered> = Vec::new();
    for case in found.runs {
        // The analysis keeps no records: of thousands of runs they are too large.
        match load(&case.path, case.kind, &case.source) {
            Ok(loaded) => {
                let source = names.iter().position(|name| *name == case.source).unwrap_or(0);
                all.push(Gathered::of(case, &loaded, Place { source, from, has_details }));
            }
            Err(why) => report.left_out.push(left_out(&case.path, why)),
        }
    }
    all.sort_by(|a, b| (&a.run.started, &a.run.path).cmp(&(&b.run.started, &b.run.path)));
    let count = |index: usize| all.iter().filter(|one| one.run.source == index).count();
    let sources = names.iter().enumerate();
    report.sources =
        sources.map(|(index, path)| Source { path: path.clone(), runs: count(index) }).collect();
    report.doubts = doubts(&all);
    let observed = observations(&all, &report);
    let mut data = Data { overview: overview(paths)?, ..Data::default() };
    let mut made = Vec::new();
    for one in all {
        if one.run.unused.is_none() {
            let mut point = one.point;
            if report.has_several_sources() {
                point.settings.insert("source".into(), names[one.run.source].clone());
            }
            data.runs.push(point);
            made.push(one.made);
        }
        report.runs.push(one.run);
    }
    report.findings = told(&report.runs, &observed);
    report.figures = figures(&data);
    if !made.is_empty() {
        report.methods = methods::methods(&made);
    }
    report.setups = methods::setups(&made);
    report.configuration = methods::configuration(&made);
    Ok(report)
}

/// How far a study is, where a study is what was asked for.
fn overview(paths: &[PathBuf]) -> Result<Option<Overview>, RunsError> {
    let [csv] = paths else { return Ok(None) };
    if !csv.is_file() {
        return Ok(None);
    }
    let files = StudyFiles::of(csv)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let mut history = History::of(Journal::read(&files.journal())?);
    history.come_along(&files.csv)?;
    Ok(Some(Overview::of(&rows, &history)))
}

/// Where a run is from, and what is wanted of it.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: usize,
    from: Option<&'a Path>,
    has_details: bool,
}

/// All that a report needs of a run.
struct Gathered {
    run: Run,
    made: Made,
    point: RunPoint,
    doubts: Vec<SeenDoubt>,
}

impl Gathered {
    fn of(case: Case, loaded: &Loaded, place: Place) -> Self {
        let record = &loaded.record;
        let is_own = case.kind == Kind::Record;
        let settings = settings(&case);
        let point = point(&case, record, place);
        let run = run(&case, record, place);
        let made = Made {
            workload: run.workload.clone(),
            experiment: format!("{:?} {} {}", run.accelerators, run.parameter, run.value),
            started: run.started.clone(),
            settings,
            place: runs::place(record),
            machines: record.machines().to_vec(),
            study: record.study.as_deref().cloned(),
            is_own,
        };
        Gathered { run, made, point, doubts: case.doubts }
    }
}

fn run(case: &Case, record: &Record, place: Place) -> Run {
    let rates = &case.throughput;
    let bytes_per_second = |mib: Option<f64>| mib.map(|rate| rate * MIB);
    let is_known = rates.windowed_mib_per_second.is_some();
    let stdev = NOMINAL_WINDOWED.stdev_over_epochs(record).filter(|_| is_known);
    let file = ["summary.json", "dlio.log"].into_iter().find(|name| case.path.join(name).is_file());
    let file = if case.kind == Kind::Record { Some(RECORD_FILE) } else { file };
    let target = file.map_or(case.path.clone(), |name| case.path.join(name));
    Run {
        path: case.path.display().to_string(),
        link: place.from.and_then(|from| link(from, &target)),
        source: place.source,
        workload: case.workload.clone(),
        parameter: case.parameter.clone(),
        value: case.value.clone(),
        replicate: case.replicate,
        host: case.hostname.clone(),
        hosts: case.hosts,
        accelerators: case.accelerators,
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
        let is_of_steps = of_steps.iter().any(|metric| metric.name == name);
        case.kind == Kind::Record
            || (is_of_steps
                && (has_rates || !name.starts_with("samples"))
                && (has_bytes || !name.starts_with("nominal")))
    };
    let value = |metric: &&metric::Metric| Metric {
        name: metric.name.into(),
        unit: metric.unit.into(),
        value: (metric.of_run)(record).filter(|_| is_known(metric.name)),
    };
    let figure = |(name, unit, value): (&str, &str, Option<f64>)| Metric {
        name: name.into(),
        unit: unit.into(),
        value,
    };
    METRICS.iter().map(value).chain(case.figures().into_iter().map(figure)).collect()
}

/// Of a record what every plot may want; of others' runs, and of those that must not be used, what the case has.
fn point(case: &Case, record: &Record, place: Place) -> RunPoint {
    let own = (case.kind == Kind::Record).then(|| runs::Run::of(&case.path, record).ok()).flatten();
    match own {
        Some(run) => {
            let details = Some(record).filter(|_| place.has_details);
            RunPoint::of(&run, None, details).doubted(case)
        }
        None => RunPoint::of_case(case, None),
    }
}

/// Each doubt once, the worst first, then those of most runs.
fn doubts(all: &[Gathered]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        for SeenDoubt { name, severity, evidence, advice } in &one.doubts {
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

/// The runs with results, as findings take them; those that must not be used are among them, to be told.
fn observations(all: &[Gathered], report: &Report) -> Vec<Observation> {
    let has_result =
        |one: &&Gathered| one.run.unused.as_ref().is_none_or(|why| one.run.doubts.contains(why));
    let mut workloads: BTreeMap<&str, Vec<&Gathered>> = BTreeMap::new();
    for one in all.iter().filter(has_result) {
        workloads.entry(&one.run.workload).or_default().push(one);
    }
    let mut observations = Vec::new();
    for (workload, runs) in workloads {
        let levels = factors(&runs.iter().map(|one| &one.made.settings).collect::<Vec<_>>());
        for (one, mut factors) in runs.into_iter().zip(levels) {
            if report.has_several_sources() {
                factors.insert("source".into(), report.sources[one.run.source].path.clone());
            }
            observations.push(Observation {
                path: one.run.path.clone().into(),
                workload: workload.into(),
                factors,
                responses: one.point.responses.clone(),
                order: one.made.study.as_ref().and_then(|study| study.order),
                doubts: one
                    .doubts
                    .iter()
                    .map(|doubt| Doubted { name: doubt.name.clone(), severity: doubt.severity })
                    .collect(),
            });
        }
    }
    observations
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
