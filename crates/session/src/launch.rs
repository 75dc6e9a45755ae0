//! The processes of a request: how they connect, what rank 0 decides for all, and how a failure is reported once.

use crate::agreement::{RankArguments, compare};
use crate::failure::{self, AlreadyReported, FailureKind};
use anyhow::bail;
use feedrate_run::comm::mpi::{self, Launched, MpiLauncher, OnLoss};
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

/// How the processes of a run find each other. Without a launcher there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchOptions {
    /// What the launcher says of this process, in variables of the environment.
    pub launched: Option<Launched>,
    /// Emulated accelerators of each process.
    pub accelerators_per_rank: Option<u32>,
    /// The MPI library to load; `None` for the one that is found.
    pub mpi_library: Option<PathBuf>,
    /// Time that a process waits for the others in a step.
    pub rank_timeout_s: f64,
}

impl LaunchOptions {
    /// Default of `rank_timeout_s`.
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

/// Time that a rank waits for the others.
///
/// # Errors
/// The time is not positive.
pub fn rank_timeout(seconds: f64) -> Result<Duration, Refusal> {
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
    timeout.ok_or_else(|| {
        let message = format!("a `--rank-timeout` of {seconds} s is no time to wait");
        Refusal::new(message, "give more than none, as `600s`")
    })
}

/// Number of accelerators of a run of `processes`: `all` together, or `per_process` each; `None` leaves it to the workload.
///
/// # Errors
/// Some processes would have no accelerator.
pub fn accelerators(
    processes: u32,
    all: Option<u32>,
    per_process: Option<u32>,
) -> Result<Option<u32>, Refusal> {
    match (all, per_process) {
        (Some(all), _) if all < processes => refuse(
            format!("{processes} processes cannot share `{all}` accelerators"),
            "start as many processes as accelerators, or fewer",
        ),
        (Some(all), _) => Ok(Some(all)),
        (None, Some(each)) => Ok(Some(each.saturating_mul(processes))),
        (None, None) => Ok((processes > 1).then_some(processes)),
    }
}

/// Runs `work` as one of the processes that a launcher started, or as the only one. The arguments of all must agree.
///
/// # Errors
/// What went wrong in any process. It is reported once; processes that need not report it have [`AlreadyReported`].
pub fn together<T>(
    options: &LaunchOptions,
    signals: &Signals,
    listener: &Arc<dyn Listener>,
    arguments: impl FnOnce() -> RankArguments,
    work: impl FnOnce(&Arc<dyn Comm>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let rank_timeout = rank_timeout(options.rank_timeout_s)?;
    let launched = options.launched;
    if let Some(launched) = launched.as_ref().filter(|by| is_plain_srun(by, options)) {
        return Err(if launched.rank == 0 {
            plain_srun().into()
        } else {
            AlreadyReported(FailureKind::Refused).into()
        });
    }
    // Each worker holds files, and rank 0 a connection to each other rank.
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
            late_listener.important(format!("note: {late}: alive, so the wait goes on"));
        })),
    };
    let comm: Arc<dyn Comm> = match mpi::connect(&mpi_options) {
        Ok(Some(comm)) => Arc::new(comm),
        Ok(None) => Arc::new(Solo),
        Err(error) if !error.must_report() => {
            return Err(AlreadyReported(FailureKind::Refused).into());
        }
        Err(error) => {
            return Err(Refusal { message: error.to_string(), hint: error.hint() }.into());
        }
    };
    let outcome = agree(&*comm, arguments).and_then(|()| work(&comm));
    let Err(error) = outcome else { return outcome };
    if comm.size() == 1 {
        return Err(error);
    }
    if let Some(KnownToAll(kind)) = error.downcast_ref() {
        if comm.rank() == 0 {
            // Some launchers end the others as soon as one has ended.
            listener.important(failure::message(&error));
        }
        return Err(AlreadyReported(*kind).into());
    }
    let kind = FailureKind::from_error(&error);
    comm.give_up(match kind {
        FailureKind::Interrupted => End::Interrupted,
        _ => End::Failed(failure::describe(&error)),
    });
    if is_reported.load(Relaxed) {
        // The loss was reported when it happened; the context of the error adds what was tried.
        if error.chain().len() > 1 {
            listener.important(&error);
        }
    } else if comm.rank() == 0 {
        // Before the ranks part, which may end this one.
        listener.important(failure::message(&error));
    }
    // The rank that ended the work of all decides the kind for all.
    Err(AlreadyReported(match comm.ended() {
        Some(CommError::Lost { rank, .. }) if rank == comm.rank() => kind,
        Some(loss) if loss.is_interruption() => FailureKind::Interrupted,
        Some(_) => FailureKind::Failed,
        None => kind,
    })
    .into())
}

/// Refuses to be one of several processes of a `command` that starts its runs by itself.
///
/// # Errors
/// There are several. One of them reports it.
pub fn refuse_company(launched: Option<&Launched>, command: &str) -> anyhow::Result<()> {
    let Some(Launched { rank, size, .. }) = launched else { return Ok(()) };
    match (rank, size) {
        (1.., _) => Err(AlreadyReported(FailureKind::Refused).into()),
        (0, Some(2..)) => refuse(
            format!(
                "`feedrate {command}` makes its runs by itself, and was started several times over"
            ),
            "start it without mpirun or srun; `-n` says how many accelerators there are",
        ),
        _ => Ok(()),
    }
}

/// Refuses to begin if the arguments of the processes differ.
fn agree(comm: &dyn Comm, arguments: impl FnOnce() -> RankArguments) -> anyhow::Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    let all = comm.gather(&serde_json::to_vec(&arguments())?)?;
    decided(comm, || {
        let all: Result<Vec<RankArguments>, _> =
            all.iter().map(|bytes| serde_json::from_slice(bytes)).collect();
        Ok(compare(&all?)?)
    })
}

/// Several processes of `srun` without help for MPI, which some libraries answer by ending them.
fn is_plain_srun(launched: &Launched, options: &LaunchOptions) -> bool {
    let are_several = launched.size.is_none_or(|size| size > 1);
    launched.launcher == MpiLauncher::Slurm && are_several && options.mpi_library.is_none()
}

fn plain_srun() -> Refusal {
    Refusal::new(
        "`srun` started several processes without MPI",
        "start with `srun --mpi=pmix` for Open MPI, `srun --mpi=pmi2` for MPICH and its family; `srun --mpi=list` \
             lists what there is. A library that needs neither is named by `--mpi-library PATH`",
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
        // Rank 0 reports its own failure itself, and the interruption of all.
        let is_of_first = matches!(loss, CommError::Lost { rank: 0, end: End::Failed(_), .. });
        if !is_of_first && !loss.is_interruption() {
            is_reported.store(true, Relaxed);
            listener.important(format!("error: {loss}"));
        }
        interrupted.store(true, Relaxed);
    })
}

/// A failure that all ranks know. Its text is that of the error around it.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct KnownToAll(FailureKind);

/// Makes rank 0's decision on all ranks.
///
/// # Errors
/// Rank 0 could not decide: all ranks fail alike, and rank 0 has the reason.
pub fn decided<T: Serialize + DeserializeOwned>(
    comm: &dyn Comm,
    decide: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if comm.size() == 1 {
        return decide();
    }
    if comm.rank() > 0 {
        return ranks::receive::<Result<T, FailureKind>>(comm)?
            .map_err(|kind| KnownToAll(kind).into());
    }
    let decision = decide();
    ranks::broadcast(comm, &decision.as_ref().map_err(FailureKind::from_error))?;
    decision.map_err(|error| {
        let known = KnownToAll(FailureKind::from_error(&error));
        error.context(known)
    })
}

/// Goes on only if no rank is refused something.
///
/// # Errors
/// The refusal of this rank, or on rank 0 that of another.
pub fn agreed(ranks: &Ranks, refused: Option<anyhow::Error>) -> anyhow::Result<()> {
    let refusals = ranks.gather(&refused.as_ref().map(failure::describe))?;
    let mut others = refusals.into_iter().enumerate().skip(1);
    let other = others.find_map(|(rank, refused)| Some((rank, refused?)));
    decided(&*ranks.comm, || match (refused, other) {
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
    use std::sync::{Barrier, Mutex};

    #[test]
    fn processes_share_accelerators_or_have_some_each() {
        for (processes, all, per_process, expected) in [
            (1, None, None, Some(None)),
            (4, None, None, Some(Some(4))),
            (4, Some(8), None, Some(Some(8))),
            (4, Some(3), None, None),
            (4, None, Some(2), Some(Some(8))),
            (2, None, Some(u32::MAX), Some(Some(u32::MAX))),
        ] {
            assert_eq!(accelerators(processes, all, per_process).ok(), expected);
        }
    }

    #[test]
    fn a_wait_takes_time_and_ends() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(rank_timeout(seconds).is_err(), "{seconds}");
        }
        assert_eq!(rank_timeout(0.5).unwrap(), Duration::from_millis(500));
    }

    /// One of three ranks, which are threads.
    struct Rank<'t> {
        rank: u32,
        together: &'t Barrier,
        told: &'t Mutex<Vec<u8>>,
    }

    impl Comm for Rank<'_> {
        fn rank(&self) -> u32 {
            self.rank
        }

        fn size(&self) -> u32 {
            3
        }

        fn node(&self) -> RankNode {
            RankNode { node: 0, nodes: 1, local_rank: self.rank, local_size: 3 }
        }

        fn barrier(&self) -> Result<(), CommError> {
            self.together.wait();
            Ok(())
        }

        fn gather(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
            unreachable!("nobody gathers")
        }

        fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
            if self.rank == 0 {
                *self.told.lock().unwrap() = bytes.to_vec();
            }
            self.barrier()?;
            Ok(self.told.lock().unwrap().clone())
        }

        fn clock(&self, _: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
            Ok(ClockOffset::default())
        }

        fn give_up(&self, _: End) {}
    }

    fn on_three_ranks(check: impl Fn(&Rank<'_>) + Sync) {
        let (together, told) = (&Barrier::new(3), &Mutex::default());
        std::thread::scope(|scope| {
            for rank in 0..3 {
                let check = &check;
                scope.spawn(move || check(&Rank { rank, together, told }));
            }
        });
    }

    #[test]
    fn all_ranks_do_what_rank_0_decides() {
        on_three_ranks(|rank| assert_eq!(decided(rank, || Ok(rank.rank() + 7)).unwrap(), 7));
    }

    #[test]
    fn a_failure_to_decide_ends_all_ranks_with_its_code_and_leaves_them_together() {
        on_three_ranks(|rank| {
            let decide = || Err::<u32, _>(TooManySteps { available: 4, wanted: 9 }.into());
            let error = decided(rank, decide).unwrap_err();
            let kind = error.downcast_ref::<KnownToAll>().unwrap().0;
            assert_eq!(kind, FailureKind::TooManySteps);
            let text = failure::describe(&error.context("cannot begin"));
            let reason = if rank.rank() == 0 { ": only 4 steps" } else { "" };
            assert!(text.starts_with(&format!("cannot begin{reason}")), "{text}");
            rank.barrier().unwrap();
        });
    }
}
