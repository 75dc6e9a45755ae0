//! The processes of a command: how they find each other, what rank 0 decides for all, and who tells what went wrong.

use crate::cli::LaunchArguments;
use crate::exit::{Exit, UsageError, code_of};
use crate::messages;
use feedrate_run::comm::{Comm, CommError, Solo};
use feedrate_run::drive::Signals;
use feedrate_run::ranks;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a rank waits for the others, where nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What the command line says of processes.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The MPI library; found by itself where it is not given.
    pub(crate) library: Option<PathBuf>,
    /// How long a rank waits for the others.
    pub(crate) timeout: Duration,
}

impl Default for Launch {
    fn default() -> Self {
        Launch { library: None, timeout: TIMEOUT }
    }
}

impl TryFrom<&LaunchArguments> for Launch {
    type Error = UsageError;

    fn try_from(arguments: &LaunchArguments) -> Result<Self, UsageError> {
        let timeout = Duration::try_from_secs_f64(arguments.rank_timeout).ok();
        let timeout = timeout.filter(|timeout| !timeout.is_zero()).ok_or_else(|| UsageError {
            message: format!("`--rank-timeout {}` is no time to wait", arguments.rank_timeout),
            hint: Some("give seconds, more than none".into()),
        })?;
        Ok(Launch { library: arguments.mpi_library.clone(), timeout })
    }
}

/// Accelerators of a run of `processes`: `all` of them or so many `per_process`; `None` leaves it to the workload.
pub(crate) fn accelerators(
    processes: u32,
    all: Option<u32>,
    per_process: Option<u32>,
) -> Result<Option<u32>, UsageError> {
    match (all, per_process) {
        (Some(all), _) if all < processes => Err(UsageError {
            message: format!("{processes} processes cannot share `{all}` accelerators"),
            hint: Some("start as many processes as accelerators, or fewer".into()),
        }),
        (Some(all), _) => Ok(Some(all)),
        (None, Some(each)) => Ok(Some(each.saturating_mul(processes))),
        (None, None) => Ok((processes > 1).then_some(processes)),
    }
}

/// Run `work` as one of the processes that a launcher started, or as the only one. The first error of any of them is told once,
/// by rank 0.
pub(crate) fn together(
    launch: &Launch,
    signals: &Signals,
    work: impl FnOnce(&Arc<dyn Comm>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let comm = connect(launch, signals)?;
    let outcome = work(&comm);
    let Err(error) = outcome else { return outcome };
    comm.give_up(&messages::told(&error));
    match comm.rank() {
        0 => Err(error),
        // Nobody else is left to tell.
        1 if is_rank_0_lost(&error) => Err(error),
        _ => Ok(code_of(&error)),
    }
}

fn is_rank_0_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(CommError::Lost { rank: 0, .. })))
}

fn connect(_launch: &Launch, _signals: &Signals) -> anyhow::Result<Arc<dyn Comm>> {
    Ok(Arc::new(Solo))
}

/// What rank 0 decides, on all ranks.
pub(crate) fn decided<T: Serialize + DeserializeOwned>(
    comm: &dyn Comm,
    decide: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let own = if comm.rank() == 0 { Some(decide()?) } else { None };
    Ok(ranks::broadcast(comm, own)?)
}
