//! The processes of a command: how they find each other, what rank 0 decides for all, and who tells what went wrong.

use crate::asked::{Asked, compare};
use crate::cli::LaunchArguments;
use crate::exit::{Exit, UsageError, code_of, refuse};
use crate::{interrupt, messages};
use anyhow::bail;
use feedrate_run::comm::mpi::{self, Launched, MpiLauncher, OnLoss};
use feedrate_run::comm::{Comm, CommError, End, Solo};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_run::{ranks, system};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a rank waits for the others, from seconds.
pub(crate) fn rank_timeout(seconds: f64) -> Result<Duration, UsageError> {
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
    timeout.ok_or_else(|| {
        let message = format!("a `--rank-timeout` of {seconds} s is no time to wait");
        UsageError::new(message, "give more than none, as `600s`")
    })
}

/// Whether this process is the one that speaks for all that a launcher started.
pub(crate) fn is_told() -> bool {
    mpi::launched(|name| std::env::var(name).ok()).is_none_or(|launched| launched.rank == 0)
}

/// Accelerators of a run of `processes`: `all` of them or so many `per_process`; `None` leaves it to the workload.
pub(crate) fn accelerators(
    processes: u32,
    all: Option<u32>,
    per_process: Option<u32>,
) -> Result<Option<u32>, UsageError> {
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

/// Run `work` as one of the processes that a launcher started, or as the only one. All have to be `asked` for the same. What goes
/// wrong in any of them is told once.
pub(crate) fn together(
    launch: &LaunchArguments,
    asked: impl FnOnce() -> Asked,
    work: impl FnOnce(&Arc<dyn Comm>, &Signals) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let rank_timeout = rank_timeout(launch.rank_timeout)?;
    let signals = interrupt::signals();
    let launched = mpi::launched(|name| std::env::var(name).ok());
    if let Some(launched) = launched.as_ref().filter(|of| is_plain_srun(of, launch)) {
        return if launched.rank == 0 { Err(plain_srun().into()) } else { Ok(Exit::Usage) };
    }
    // Each worker holds files, and rank 0 a connection to each other rank.
    system::raise_open_files();
    let told = Arc::new(AtomicBool::new(false));
    let options = mpi::Options {
        launched,
        library: launch.mpi_library.clone(),
        rank_timeout,
        stop: Arc::clone(&signals.interrupted),
        on_loss: Some(on_loss(&told, &signals)),
        on_wait: Some(Arc::new(|late| {
            messages::say(format!("note: {late}: alive, so the wait goes on"));
        })),
    };
    let comm: Arc<dyn Comm> = match mpi::connect(&options) {
        Ok(Some(comm)) => Arc::new(comm),
        Ok(None) => Arc::new(Solo),
        Err(error) if !error.tells() => return Ok(Exit::Usage),
        Err(error) => {
            return Err(UsageError { message: error.to_string(), hint: error.hint() }.into());
        }
    };
    let outcome = agree(&*comm, asked).and_then(|()| work(&comm, &signals));
    let Err(error) = outcome else { return outcome };
    if comm.size() == 1 {
        return Err(error);
    }
    if let Some(KnownToAll(code)) = error.downcast_ref() {
        if comm.rank() == 0 {
            // Some launchers end the others as soon as one has ended.
            messages::print_error(&error);
        }
        return Ok(*code);
    }
    let own = code_of(&error);
    comm.give_up(match own {
        Exit::Interrupted => End::Interrupted,
        _ => End::Failed(messages::told(&error)),
    });
    if told.load(Relaxed) {
        // The reason was told as soon as it was known; what was wanted by then may say more.
        if error.chain().len() > 1 {
            messages::say(&error);
        }
    } else if comm.rank() == 0 {
        // Before the ranks part, which may end this one.
        messages::print_error(&error);
    }
    // What ended the work of all is what ended this rank's, whatever it saw of it.
    Ok(match comm.ended() {
        Some(CommError::Lost { rank, .. }) if rank == comm.rank() => own,
        Some(loss) if loss.is_interruption() => Exit::Interrupted,
        Some(_) => Exit::Failed,
        None => own,
    })
}

/// Refuse to be one of several processes of a `command` that starts its runs by itself. One of them tells; the others have the code to end with.
pub(crate) fn refuse_company(command: &str) -> anyhow::Result<Option<Exit>> {
    let launched = mpi::launched(|name| std::env::var(name).ok());
    let Some(Launched { rank, size, .. }) = launched else { return Ok(None) };
    match (rank, size) {
        (1.., _) => Ok(Some(Exit::Usage)),
        (0, Some(2..)) => refuse(
            format!(
                "`feedrate {command}` makes its runs by itself, and was started several times over"
            ),
            "start it without mpirun or srun; `-n` says how many accelerators there are",
        ),
        _ => Ok(None),
    }
}

/// Refuse to begin where the processes were asked for different things.
fn agree(comm: &dyn Comm, asked: impl FnOnce() -> Asked) -> anyhow::Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    let all = comm.gather(&serde_json::to_vec(&asked())?)?;
    decided(comm, || {
        let all: Result<Vec<Asked>, _> =
            all.iter().map(|one| serde_json::from_slice(one)).collect();
        Ok(compare(&all?)?)
    })
}

/// Several processes of `srun` without help for MPI, which some libraries answer by ending them.
fn is_plain_srun(launched: &Launched, launch: &LaunchArguments) -> bool {
    let many = launched.size.is_none_or(|size| size > 1);
    launched.by == MpiLauncher::Slurm && many && launch.mpi_library.is_none()
}

fn plain_srun() -> UsageError {
    UsageError::new(
        "`srun` started several processes without telling MPI of it",
        "start with `srun --mpi=pmix` for Open MPI, `srun --mpi=pmi2` for MPICH and its family; `srun --mpi=list` \
             tells what there is. A library that needs neither is named by `--mpi-library PATH`",
    )
}

/// Whoever tells of a lost rank does so at once, and stops.
fn on_loss(told: &Arc<AtomicBool>, signals: &Signals) -> OnLoss {
    let (told, interrupted) = (Arc::clone(told), Arc::clone(&signals.interrupted));
    Arc::new(move |loss| {
        // Rank 0 tells its own end by itself, and an interruption of all.
        let own = matches!(loss, CommError::Lost { rank: 0, end: End::Failed(_), .. });
        if !own && !loss.is_interruption() {
            told.store(true, Relaxed);
            messages::say(format!("error: {loss}"));
        }
        interrupted.store(true, Relaxed);
    })
}

/// All ranks know of this failure and end with this code: none has to tell the others. Has no words beside those of the error.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct KnownToAll(Exit);

/// Make rank 0's decision on all ranks; its failure to decide fails on all, and rank 0 tells more of it.
pub(crate) fn decided<T: Serialize + DeserializeOwned>(
    comm: &dyn Comm,
    decide: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if comm.size() == 1 {
        return decide();
    }
    if comm.rank() > 0 {
        return ranks::told::<Result<T, Exit>>(comm)?.map_err(|code| KnownToAll(code).into());
    }
    let own = decide();
    ranks::tell(comm, &own.as_ref().map_err(code_of))?;
    own.map_err(|error| {
        let known = KnownToAll(code_of(&error));
        error.context(known)
    })
}

/// Go on together or not at all: where one rank is refused something all are, and rank 0 tells why.
pub(crate) fn agreed(ranks: &Ranks, refused: Option<anyhow::Error>) -> anyhow::Result<()> {
    let told = ranks.gather(&refused.as_ref().map(messages::told))?;
    let mut others = told.into_iter().enumerate().skip(1);
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
    use crate::exit::TooManySteps;
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
            assert_eq!(error.downcast_ref::<KnownToAll>().unwrap().0, Exit::TooManySteps);
            let told = messages::told(&error.context("cannot begin"));
            let words = if rank.rank() == 0 { ": only 4 steps" } else { "" };
            assert!(told.starts_with(&format!("cannot begin{words}")), "{told}");
            rank.barrier().unwrap();
        });
    }
}
