//! Communication by MPI. The MPI library is opened at run time, and only under a launcher, so that MPI is not needed to build feedrate.
//!
//! `abi` has the constants of the libraries and `calls` their functions; `calls` and `files` have all unsafe code. Waits can be ended:
//! `control` is a channel beside MPI that detects ranks that die. This module prints nothing. It ends processes only with `MPI_Abort`.

mod launcher;
mod abi;
mod calls;
mod error;
mod library;
mod state;
mod wait;
mod shared_barrier;
mod control;
mod link;
mod topology;
mod peers;
mod files;

pub use error::ConnectError;
pub use launcher::{LaunchedRank, MpiLauncher, detect_launcher};
pub use state::OnLoss;

use self::control::{ControlChannel, Hub, OnTimeout};
use self::files::MpiFiles;
use self::link::Link;
use self::peers::MpiPeers;
use self::state::RankState;
use self::topology::Topology;
use self::wait::WaitPolicy;
use super::{ClockOffset, Comm, CommError, End, Peers, RankNode, SharedFiles};
use feedrate_spec::catalog::Member;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

pub(super) static MEMBER: Member = Member {
    name: "mpi",
    summary: "processes under mpirun or srun; the MPI library is opened at run time",
    abilities: &[],
};

/// Options of connecting and waiting.
#[derive(Clone)]
pub struct Options {
    /// The launcher's description of this process; see [`detect_launcher`].
    pub launched: Option<LaunchedRank>,
    /// The library to open; by default it is chosen by the launcher.
    pub library: Option<PathBuf>,
    /// Time after which a rank counts as missing: always in [`Comm::barrier_with_timeout`], in other waits only if it does not answer.
    pub rank_timeout: Duration,
    /// Set by the caller to interrupt this process: waits then end with [`CommError::Stopped`]. Also set by this module when another
    /// rank has ended.
    pub stop: Arc<AtomicBool>,
    /// Called once, from another thread, when ranks are lost or missing. It is called on the one rank that reports to the user: rank
    /// 0, or its deputy if rank 0 is lost.
    pub on_loss: Option<OnLoss>,
    /// Called on rank 0, from another thread, when the timeout has passed but the missing ranks are working and the wait continues.
    pub on_wait: Option<OnLoss>,
}

/// Set once MPI has been initialized, which is possible only once in a process.
static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// A rank of MPI. It must be dropped on the thread that connected, after the last operation; all ranks then end together. After an
/// error, dropping it notifies the other ranks. If operations are unfinished, or in a panic, it aborts their processes.
pub struct Mpi {
    link: Link,
    topology: Topology,
}

/// Connects to the ranks that a launcher started. Returns `None` without a launcher or with a single rank, unless a library is
/// given.
///
/// # Errors
/// There is no library that fits the launcher, or the ranks cannot connect.
pub fn connect(options: &Options) -> Result<Option<Mpi>, ConnectError> {
    let launched = options.launched;
    let is_single = launched.is_none_or(|launched| launched.size == Some(1));
    if is_single && options.library.is_none() {
        return Ok(None);
    }
    let opened = open(options)?;
    let library = format!("{} ({})", opened.path.display(), opened.calls.version());
    if let Some(launched) = launched
        && opened.calls.abi.is_foreign(launched.launcher)
    {
        let problem = format!("belongs to another MPI: {library}");
        return Err(ConnectError::WrongLibrary { launched, problem });
    }
    if INITIALIZED.swap(true, SeqCst) {
        return Err(ConnectError::AlreadyConnected);
    }
    let calls = opened.calls;
    let granted = calls.init()?;
    let (rank, size) = calls.rank_and_size(calls.world())?;
    if let Some(launched) = launched
        && (launched.rank != rank || launched.size.unwrap_or(size) != size)
    {
        calls.finalize();
        let problem = format!("reports rank {rank} of {size}: {library}");
        return Err(ConnectError::WrongLibrary { launched, problem });
    }
    let levels = calls.abi.threads;
    if granted < levels.funneled {
        calls.finalize();
        return Err(ConnectError::NoThreadSupport { library });
    }
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let state = RankState::new(
        rank,
        Arc::clone(&options.stop),
        options.on_loss.clone(),
        options.on_wait.clone(),
    );
    let mut link = Link {
        calls,
        rank,
        size,
        policy: WaitPolicy::new(size, cpus),
        thread: (granted < levels.multiple).then(|| std::thread::current().id()),
        timeout: options.rank_timeout,
        state: Arc::new(state),
        barriers: None,
        control: None,
    };
    match join(&mut link, cpus, launched.and_then(|launched| launched.local_size)) {
        Ok(topology) => Ok(Some(Mpi { link, topology })),
        Err(error) => {
            // Reported now, since the abort may end this process.
            link.state.report(&error);
            calls.abort(1);
            Err(error.into())
        }
    }
}

fn open(options: &Options) -> Result<library::OpenedLibrary, ConnectError> {
    let launched = options.launched;
    let candidates = match &options.library {
        Some(path) => vec![path.clone()],
        None => library::candidates(
            launched.map(|launched| launched.launcher),
            &library::launcher_folders(),
        ),
    };
    library::open_first(candidates).map_err(|tried| ConnectError::NoLibrary { launched, tried })
}

/// Finds the machines of all ranks and connects the control channel.
fn join(link: &mut Link, cpus: u32, local_size: Option<u32>) -> Result<Topology, CommError> {
    let (topology, barriers) = Topology::find(link, local_size)?;
    link.policy = WaitPolicy::new(topology.node.local_size, cpus);
    link.barriers = barriers;
    let _ = link.state.deputy.set(topology.deputy());
    let mut hub = None;
    let mut local_address = None;
    if link.rank == 0 {
        let started = Hub::start(&topology.hosts, topology.node.nodes == 1, link.timeout);
        let (started_hub, address) = started.map_err(|error| CommError::Library {
            call: "the channel between ranks",
            reason: error.to_string(),
        })?;
        hub = Some(started_hub);
        local_address = Some(address);
    }
    if let Some(Some(address)) = link.share(local_address)?.first() {
        // A rank that cannot reach rank 0 takes part as well, but its death would not be detected.
        let (hosts, state, timeout) = (&topology.hosts, &link.state, link.timeout);
        link.control = ControlChannel::connect(link.rank, hosts, address, state, timeout, hub).ok();
    }
    // No rank may leave before all have connected.
    link.barrier(OnTimeout::Ends)?;
    Ok(topology)
}

impl Comm for Mpi {
    fn rank(&self) -> u32 {
        self.link.rank
    }

    fn size(&self) -> u32 {
        self.link.size
    }

    fn node(&self) -> RankNode {
        self.topology.node
    }

    fn slow_barrier_reason(&self) -> Option<&str> {
        self.topology.slow_barrier_reason.as_deref()
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.link.barrier(OnTimeout::Waits)
    }

    fn barrier_with_timeout(&self) -> Result<(), CommError> {
        self.link.barrier(OnTimeout::Ends)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.link.gather(bytes)
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.link.broadcast(bytes)
    }

    fn clock_offset(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        self.topology.clock_offset(&self.link, now_ns)
    }

    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Ok(Arc::new(MpiPeers::new(&self.link)?))
    }

    fn files(&self) -> Result<Box<dyn SharedFiles>, CommError> {
        Ok(Box::new(MpiFiles::new(&self.link)?))
    }

    fn end_reason(&self) -> Option<CommError> {
        self.link.state.end()
    }

    fn give_up(&self, end: End) {
        self.link.state.gave_up.set();
        if let Some(control) = &self.link.control {
            control.give_up(end);
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let state = &self.link.state;
        if std::thread::panicking() {
            state.unfinished.set();
            self.give_up(End::Failed("panicked".to_owned()));
        } else if let Some(end) = state.unreported_end() {
            self.give_up(end);
        }
        let orderly = !state.has_failed() && self.link.barrier(OnTimeout::Waits).is_ok();
        if let Some(control) = &self.link.control {
            control.leave(orderly);
        }
        state.finalized.set();
        if orderly || state.all_idle.is_set() {
            self.link.calls.finalize();
        } else if state.must_report() {
            self.link.calls.abort(state.exit_code());
        }
    }
}
