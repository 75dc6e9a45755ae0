//! `feedrate study run`: what is pending, one run after another.

use super::dry_run;
use super::how;
use super::ledger::found;
use super::machine::Machine;
use super::precision;
use super::reporter::Reporter;
use crate::cli::{Datasets, StudyRunArguments};
use crate::exit::{Exit, UsageError};
use crate::messages;
use feedrate_results::files::StudyFiles;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{Status, StudyState};
use feedrate_spec::units;
use feedrate_study::datasets::Policy;
use feedrate_study::runner::{Report, Runner, RunnerOptions, Wanted, is_wanted};
use jiff::SignedDuration;
use serde_json::json;
use std::time::Duration;

/// Run a study.
pub(crate) fn run(arguments: &StudyRunArguments) -> anyhow::Result<Exit> {
    let files = StudyFiles::new(&arguments.study)?;
    let options = options(arguments)?;
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    found(&rows, &options.only)?;
    let mut machine = Machine::new(&files, Reporter::new(arguments.quiet))?;
    if arguments.dry_run {
        let state = StudyState::read(&files)?;
        let settings = how::settings(&arguments.how, &files.csv, &state)?;
        how::enter(&settings)?;
        return dry_run::dry_run(&mut machine, &state, &settings, &options, arguments.json);
    }
    machine.quiet_wait =
        Duration::try_from_secs_f64(arguments.quiet_wait).map_err(|_| UsageError {
            message: format!("`--quiet-wait {}` is no time", arguments.quiet_wait),
            hint: Some("give seconds, or 0".into()),
        })?;
    machine.listen();
    let lock = files.lock()?;
    let state = StudyState::open(&files, &lock)?;
    let settings = how::settings(&arguments.how, &files.csv, &state)?;
    how::enter(&settings)?;
    if !machine.wait_until_alone()? {
        return Ok(Exit::Interrupted);
    }
    let runner = Runner::new(&files, lock, state, settings, &mut machine, options);
    let (report, state) = runner.run()?;
    drop(machine);
    tell(arguments, &files, &report, &state)
}

fn options(arguments: &StudyRunArguments) -> Result<RunnerOptions, UsageError> {
    let until = arguments.until.as_deref().map(precision::until).transpose()?;
    let response = precision::response(&arguments.response)?;
    let replicates_max = arguments.max_replicates;

    let budget = arguments.time_budget.as_deref().map(seconds).transpose()?;
    Ok(RunnerOptions {
        only: arguments.only.clone(),
        limit: arguments.limit,
        time_budget_s: budget,
        retry: arguments.retry,
        until: until.map(|until| Wanted { until, response, replicates_max }),
        datasets: match arguments.datasets {
            Datasets::Keep => Policy::Keep,
            Datasets::MakeRoom => Policy::MakeRoom,
            Datasets::DeleteUnneeded => Policy::DeleteUnneeded,
        },
    })
}

/// `90`, `30m`, `1h 30m`.
fn seconds(text: &str) -> Result<f64, UsageError> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let with_unit = || text.parse::<SignedDuration>().ok().map(|time| time.as_secs_f64());
    number.or_else(with_unit).filter(|seconds| *seconds >= 0.0).ok_or_else(|| UsageError {
        message: format!("`--time-budget {text}` is no time"),
        hint: Some("write seconds, or a time as `30m`, `8h`, `1h 30m`".into()),
    })
}

fn tell(
    arguments: &StudyRunArguments,
    files: &StudyFiles,
    report: &Report,
    state: &StudyState,
) -> anyhow::Result<Exit> {
    let rows: Vec<Row> = files.table()?.rows().cloned().collect();
    let places = state.places(&rows);
    let is_failed = |index: usize| {
        places[index].status == Status::Failed
            && is_wanted(&arguments.only, index, &rows[index], &rows)
    };
    let has_failed = !report.failed.is_empty() || (0..rows.len()).any(is_failed);
    let count = |status: Status| places.iter().filter(|place| place.status == status).count();
    if arguments.json {
        let told = rows.iter().zip(&places).map(|(row, place)| {
            json!({
                "label": label(row, &rows),
                "status": place.status,
                "run_dir": place.result().map(|attempt| &attempt.run_dir),
            })
        });
        let told: Vec<_> = told.collect();
        messages::print(json!({
            "finished": report.finished,
            "failed": report.failed.iter().map(|(label, reason)| json!({ "label": label, "reason": reason })).collect::<Vec<_>>(),
            "stopped": report.is_stopped,
            "rows": told,
        }));
    } else {
        let left = match (count(Status::Pending), count(Status::Failed)) {
            (0, 0) => String::new(),
            (pending, 0) => format!(", {pending} pending"),
            (pending, failed) => {
                format!(", {pending} pending, {failed} failed (again with `--retry`)")
            }
        };
        let done = units::counted(report.finished as u64, "run");
        messages::print(format!(
            "{done} finished now; {} of {} done{left}",
            count(Status::Done),
            rows.len()
        ));
    }
    Ok(match (report.is_stopped, has_failed) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Fine,
        (false, true) => Exit::Failed,
    })
}
