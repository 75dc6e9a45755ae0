//! The processes of a request: connects them, shares the decisions of rank 0, and reports each failure once.

use crate::agreement::{RankArguments, compare};
use crate::failure::{self, AlreadyReported, FailureKind};
use anyhow::bail;
use feedrate_data::storage::object::{self, StoreSettings};
use feedrate_run::comm::mpi::{self, LaunchedRank, MpiLauncher, OnLoss};
use feedrate_run::comm::{Comm, CommError, End, Solo};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_run::{ranks, system};
use feedrate_spec::listener::Listener;
use feedrate_spec::refusal::{Refusal, refuse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How the processes of a run connect. Without a launcher there is one process.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchOptions {
    /// The launcher's environment variables for this process.
    pub launched: Option<LaunchedRank>,
    /// Number of emulated accelerators per process.
    pub accelerators_per_rank: Option<u32>,
    /// MPI library to load; `None` to search for one.
    pub mpi_library: Option<PathBuf>,
    /// Maximum time in seconds that a process waits for the others in a step.
    pub rank_timeout_s: f64,
}

impl LaunchOptions {
    /// Default value of `rank_timeout_s`.
    pub const RANK_TIMEOUT_S: f64 = 600.0;
}

impl Default for LaunchOptions {
    fn default() -> Self {
        LaunchOptions {
            launched: None,
            accelerators_per_rank: None,
            mpi_library: None,
            rank_timeout_s: LaunchOptions::RANK_TIMEOUT_S,
        }
    }
}

/// Converts the maximum time in seconds that a rank waits for the others.
///
/// # Errors
/// Returns a refusal if the time is not positive.
pub fn rank_timeout(seconds: f64) -> Result<Duration, Refusal> {
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
    timeout.ok_or_else(|| {
        let message = format!("a `--rank-timeout` of {seconds} s is not a valid time");
        Refusal::new(message, "give a time above 0, such as `600s`")
    })
}

/// Returns the number of accelerators of a run: `total`, or `per_process` for each process. `None` if the workload decides.
///
/// # Errors
/// Returns a refusal if some processes would have no accelerator.
pub fn accelerators(
    processes: u32,
    total: Option<u32>,
    per_process: Option<u32>,
) -> Result<Option<u32>, Refusal> {
    match (total, per_process) {
        (Some(total), _) if total < processes => refuse(
            format!("{processes} processes cannot share `{total}` accelerators"),
            "start at most as many processes as accelerators",
        ),
        (Some(total), _) => Ok(Some(total)),
        (None, Some(each)) => Ok(Some(each.saturating_mul(processes))),
        (None, None) => Ok((processes > 1).then_some(processes)),
    }
}

/// Time in which a starting rank 0 reports a refusal.
const REPORT_TIME: Duration = Duration::from_secs(2);

/// Runs `work` in one of the processes that a launcher started, or in the only process. The arguments of all processes must be equal.
///
/// # Errors
/// Fails if `work` fails in any process. One process returns the error, the others [`AlreadyReported`].
pub fn run_together<T>(
    options: &LaunchOptions,
    signals: &Signals,
    listener: &Arc<dyn Listener>,
    arguments: impl FnOnce() -> RankArguments,
    work: impl FnOnce(&Arc<dyn Comm>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let rank_timeout = rank_timeout(options.rank_timeout_s)?;
    let launched = options.launched;
    if let Some(launched) = launched.as_ref().filter(|launched| is_plain_srun(launched, options)) {
        return Err(if launched.rank == 0 {
            plain_srun_refusal().into()
        } else {
            leave_report_to_rank_0()
        });
    }
    // Each worker has open files, and rank 0 has a connection to each other rank.
    system::raise_open_files();
    let is_reported = Arc::new(AtomicBool::new(false));
    let late_listener = Arc::clone(listener);
    let mpi_options = mpi::Options {
        launched,
        library: options.mpi_library.clone(),
        rank_timeout,
        stop: Arc::clone(&signals.interrupted),
        on_loss: Some(on_loss(&is_reported, signals, listener)),
        on_wait: Some(Arc::new(move |late| {
            late_listener
                .important(format!("note: {late}: the process is alive, so the wait continues"));
        })),
    };
    let comm: Arc<dyn Comm> = match mpi::connect(&mpi_options) {
        Ok(Some(comm)) => Arc::new(comm),
        Ok(None) => Arc::new(Solo),
        Err(error) if !error.must_report() => {
            return Err(leave_report_to_rank_0());
        }
        Err(error) => {
            return Err(Refusal { message: error.to_string(), hint: error.hint() }.into());
        }
    };
    let outcome = check_agreement(&*comm, arguments).and_then(|()| work(&comm));
    let Err(error) = outcome else { return outcome };
    if comm.size() == 1 {
        return Err(error);
    }
    if let Some(SharedFailure(kind)) = error.downcast_ref() {
        report_on_rank_0(&*comm, || listener.important(failure::message(&error)));
        return Err(AlreadyReported(*kind).into());
    }
    let kind = FailureKind::from_error(&error);
    comm.give_up(match kind {
        FailureKind::Interrupted => End::Interrupted,
        _ => End::Failed(failure::describe(&error)),
    });
    if is_reported.load(Relaxed) {
        // The loss was reported when it happened. The context of the error adds the attempted operation.
        if error.chain().len() > 1 {
            listener.important(&error);
        }
    } else if comm.rank() == 0 {
        // Reported before the ranks disconnect, because disconnecting may end this process.
        listener.important(failure::message(&error));
    }
    // The rank that ended the work determines the kind of failure for all ranks.
    Err(AlreadyReported(match comm.end_reason() {
        Some(CommError::Lost { rank, .. }) if rank == comm.rank() => kind,
        Some(loss) if loss.is_interruption() => FailureKind::Interrupted,
        Some(_) => FailureKind::Failed,
        None => kind,
    })
    .into())
}

/// Waits while rank 0 reports a refusal, before the ranks are connected, and returns the error of another rank. `mpirun` ends all ranks as soon as
/// one has ended.
pub fn leave_report_to_rank_0() -> anyhow::Error {
    std::thread::sleep(REPORT_TIME);
    AlreadyReported(FailureKind::Refused).into()
}

/// Reports a failure that all ranks know, on rank 0. The other ranks wait for it, since some launchers end all ranks as soon as one has ended.
fn report_on_rank_0(comm: &dyn Comm, report: impl FnOnce()) {
    if comm.rank() == 0 {
        report();
    }
    // The failure is reported even if a rank is lost meanwhile.
    let _ = comm.barrier_with_timeout();
}

/// Refuses several processes of a `command` that starts its runs itself.
///
/// # Errors
/// Fails if there are several processes. One of them returns the refusal.
pub fn refuse_several_processes(
    launched: Option<&LaunchedRank>,
    command: &str,
) -> anyhow::Result<()> {
    refuse_if_several(launched, || {
        let message = format!(
            "`feedrate {command}` starts its runs itself, but it was itself started in several processes"
        );
        Refusal::new(
            message,
            "start it without mpirun or srun; `-n` sets the number of accelerators",
        )
    })
}

/// Refuses several processes before they are connected.
///
/// # Errors
/// Fails if there are several processes. One of them returns `refusal`.
pub fn refuse_if_several(
    launched: Option<&LaunchedRank>,
    refusal: impl FnOnce() -> Refusal,
) -> anyhow::Result<()> {
    let Some(LaunchedRank { rank, size, .. }) = launched else { return Ok(()) };
    match (rank, size) {
        (1.., _) => Err(leave_report_to_rank_0()),
        (0, Some(2..)) => Err(refusal().into()),
        _ => Ok(()),
    }
}

/// Refuses processes with different arguments.
fn check_agreement(
    comm: &dyn Comm,
    arguments: impl FnOnce() -> RankArguments,
) -> anyhow::Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    let encoded = comm.gather(&serde_json::to_vec(&arguments())?)?;
    decide_on_rank_0(comm, || {
        let all: Result<Vec<RankArguments>, _> =
            encoded.iter().map(|bytes| serde_json::from_slice(bytes)).collect();
        Ok(compare(&all?)?)
    })
}

/// Whether `srun` started several processes without support for MPI. Some MPI libraries would end such processes.
fn is_plain_srun(launched: &LaunchedRank, options: &LaunchOptions) -> bool {
    let is_several = launched.size.is_none_or(|size| size > 1);
    launched.launcher == MpiLauncher::Slurm && is_several && options.mpi_library.is_none()
}

fn plain_srun_refusal() -> Refusal {
    Refusal::new(
        "`srun` started several processes without MPI",
        "start with `srun --mpi=pmix` for Open MPI, `srun --mpi=pmi2` for MPICH and its relatives; `srun --mpi=list` \
             shows the available ones. Name a library that needs neither with `--mpi-library PATH`",
    )
}

/// Reports a lost rank at once, and stops the work.
fn on_loss(
    is_reported: &Arc<AtomicBool>,
    signals: &Signals,
    listener: &Arc<dyn Listener>,
) -> OnLoss {
    let is_reported = Arc::clone(is_reported);
    let interrupted = Arc::clone(&signals.interrupted);
    let listener = Arc::clone(listener);
    Arc::new(move |loss| {
        // Rank 0 itself reports its own failure, and an interruption of all ranks.
        let is_failure_of_rank_0 =
            matches!(loss, CommError::Lost { rank: 0, end: End::Failed(_), .. });
        if !is_failure_of_rank_0 && !loss.is_interruption() {
            is_reported.store(true, Relaxed);
            listener.important(format!("error: {loss}"));
        }
        interrupted.store(true, Relaxed);
    })
}

/// Marks a failure that all ranks know. The error that contains it has the text.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct SharedFailure(FailureKind);

/// Makes a decision on rank 0, and returns it on all ranks.
///
/// # Errors
/// Fails on all ranks if rank 0 fails. Rank 0 has the reason, and the others have the kind of failure.
pub fn decide_on_rank_0<T: Serialize + DeserializeOwned>(
    comm: &dyn Comm,
    decide: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if comm.size() == 1 {
        return decide();
    }
    if comm.rank() > 0 {
        let (decision, stores) =
            ranks::receive::<(Result<T, FailureKind>, Vec<StoreSettings>)>(comm)?;
        object::adopt_settings(stores);
        return decision.map_err(|kind| SharedFailure(kind).into());
    }
    let decision = decide();
    // The plan contains no secrets, so the other ranks get them separately.
    let shared = (decision.as_ref().map_err(FailureKind::from_error), object::all_settings());
    ranks::broadcast(comm, &shared)?;
    decision.map_err(|error| {
        let shared_failure = SharedFailure(FailureKind::from_error(&error));
        error.context(shared_failure)
    })
}

/// Fails on all ranks if any rank has a refusal.
///
/// # Errors
/// Returns this rank's refusal, or on rank 0 another rank's if it has none itself.
pub fn refuse_if_any(ranks: &Ranks, refused: Option<anyhow::Error>) -> anyhow::Result<()> {
    let refusals = ranks.gather(&refused.as_ref().map(failure::describe))?;
    let mut other_ranks = refusals.into_iter().enumerate().skip(1);
    let other = other_ranks.find_map(|(rank, refused)| Some((rank, refused?)));
    decide_on_rank_0(&*ranks.comm, || match (refused, other) {
        (Some(refused), _) => Err(refused),
        (None, Some((rank, refused))) => bail!("rank {rank}: {refused}"),
        (None, None) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::TooManySteps;
    use feedrate_run::comm::{ClockOffset, RankNode};
    use std::sync::atomic::AtomicU32;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn accelerators_are_given_in_total_or_per_process() {
        for (processes, total, per_process, expected) in [
            (1, None, None, Some(None)),
            (4, None, None, Some(Some(4))),
            (4, Some(8), None, Some(Some(8))),
            (4, Some(3), None, None),
            (4, None, Some(2), Some(Some(8))),
            (2, None, Some(u32::MAX), Some(Some(u32::MAX))),
        ] {
            assert_eq!(accelerators(processes, total, per_process).ok(), expected);
        }
    }

    #[test]
    fn the_rank_timeout_is_positive_and_finite() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(rank_timeout(seconds).is_err(), "{seconds}");
        }
        assert_eq!(rank_timeout(0.5).unwrap(), Duration::from_millis(500));
    }

    /// One of three ranks, which are threads.
    struct Rank<'t> {
        rank: u32,
        all_ranks: &'t Barrier,
        message: &'t Mutex<Vec<u8>>,
        /// Number of times that ranks arrived at a barrier.
        arrivals: &'t AtomicU32,
    }

    impl Comm for Rank<'_> {
        fn rank(&self) -> u32 {
            self.rank
        }

        fn size(&self) -> u32 {
            3
        }

        fn node(&self) -> RankNode {
            RankNode { node: 0, nodes: 1, local_rank: self.rank, local_size: 3, local_size_max: 3 }
        }

        fn barrier(&self) -> Result<(), CommError> {
            self.arrivals.fetch_add(1, Relaxed);
            self.all_ranks.wait();
            Ok(())
        }

        fn gather(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
            unreachable!("no test gathers")
        }

        fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
            if self.rank == 0 {
                *self.message.lock().unwrap() = bytes.to_vec();
            }
            self.barrier()?;
            Ok(self.message.lock().unwrap().clone())
        }

        fn clock_offset(&self, _: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
            Ok(ClockOffset::default())
        }

        fn give_up(&self, _: End) {}
    }

    fn run_on_three_ranks(check: impl Fn(&Rank<'_>) + Sync) {
        let all_ranks = &Barrier::new(3);
        let (message, arrivals) = (&Mutex::default(), &AtomicU32::new(0));
        std::thread::scope(|scope| {
            for rank in 0..3 {
                let check = &check;
                scope.spawn(move || check(&Rank { rank, all_ranks, message, arrivals }));
            }
        });
    }

    #[test]
    fn all_ranks_do_what_rank_0_decides() {
        run_on_three_ranks(|rank| {
            assert_eq!(decide_on_rank_0(rank, || Ok(rank.rank() + 7)).unwrap(), 7)
        });
    }

    /// The barrier ends when all ranks have arrived, rank 0 after its report.
    #[test]
    fn no_rank_ends_before_rank_0_has_reported() {
        for number in 0..3 {
            let arrivals = AtomicU32::new(0);
            let (all_ranks, message) = (&Barrier::new(1), &Mutex::default());
            let rank = Rank { rank: number, all_ranks, message, arrivals: &arrivals };
            let mut arrivals_before_report = None;
            report_on_rank_0(&rank, || arrivals_before_report = Some(arrivals.load(Relaxed)));
            assert_eq!(arrivals_before_report, (number == 0).then_some(0));
            assert_eq!(arrivals.load(Relaxed), 1, "rank {number} waits");
        }
    }

    #[test]
    fn a_failed_decision_fails_on_all_ranks_with_its_kind() {
        run_on_three_ranks(|rank| {
            let decide = || Err::<u32, _>(TooManySteps { available: 4, wanted: 9 }.into());
            let error = decide_on_rank_0(rank, decide).unwrap_err();
            let kind = error.downcast_ref::<SharedFailure>().unwrap().0;
            assert_eq!(kind, FailureKind::TooManySteps);
            let text = failure::describe(&error.context("cannot begin"));
            let reason = if rank.rank() == 0 { ": the data has only 4 steps" } else { "" };
            assert!(text.starts_with(&format!("cannot begin{reason}")), "{text}");
            rank.barrier().unwrap();
        });
    }
}
