//! Ranks of MPI, whose library is opened at run time, and only under a launcher: nothing of MPI is needed to build.
//!
//! `abi` has the libraries' constants, `calls` their functions: with `files` the only unsafe code. A wait can end: see
//! `control`, the channel beside MPI that tells of ranks that die. Prints nothing, ends no process but by `MPI_Abort`.

mod launcher;
mod abi;
mod calls;
mod error;
mod library;
mod state;
mod wait;
mod gate;
mod control;
mod link;
mod topology;
mod peers;
mod files;

pub use error::ConnectError;
pub use launcher::{Launched, MpiLauncher, launched};
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

/// The way in which ranks find each other and wait.
#[derive(Clone)]
pub struct Options {
    /// The launcher's word about this process; see [`launched`].
    pub launched: Option<Launched>,
    /// This library, whatever the launcher.
    pub library: Option<PathBuf>,
    /// A rank that is waited for this long is missing, in a barrier that is to be in time; elsewhere if it does not answer.
    pub rank_timeout: Duration,
    /// Set when this process was told to stop: what waits then ends with [`CommError::Stopped`]. Set here when another rank has
    /// ended.
    pub stop: Arc<AtomicBool>,
    /// Called once, from another thread and as soon as it is known, when ranks are lost or missing; on one rank only, which is
    /// the one to tell the user: rank 0, or its deputy if rank 0 is the lost one.
    pub on_loss: Option<OnLoss>,
    /// Called on rank 0, as above, when the timeout has passed and those who did not come are at work: the wait goes on.
    pub on_wait: Option<OnLoss>,
}

/// MPI is initialized once a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A rank of MPI. Drop it on the thread that connected, when the last operation has returned: all ranks then end together. After
/// an error the drop tells the others to end; where that leaves operations undone, or in a panic, it ends their processes.
pub struct Mpi {
    link: Link,
    topology: Topology,
}

/// Join the ranks that a launcher started; nothing where no launcher did, or only one rank, and no library was named.
///
/// # Errors
/// There is no library that fits the launcher, or ranks do not find each other.
pub fn connect(options: &Options) -> Result<Option<Mpi>, ConnectError> {
    let launched = options.launched;
    let alone = launched.is_none_or(|launched| launched.size == Some(1));
    if alone && options.library.is_none() {
        return Ok(None);
    }
    let opened = open(options)?;
    let library = format!("{} ({})", opened.path.display(), opened.calls.version());
    if let Some(launched) = launched
        && opened.calls.abi.is_foreign(launched.by)
    {
        let says = format!("is not of its kind: {library}");
        return Err(ConnectError::Unfit { launched, says });
    }
    if TAKEN.swap(true, SeqCst) {
        return Err(ConnectError::Again);
    }
    let calls = opened.calls;
    let granted = calls.init()?;
    let (rank, size) = calls.place(calls.world())?;
    if let Some(launched) = launched
        && (launched.rank != rank || launched.size.unwrap_or(size) != size)
    {
        calls.finalize();
        let says = format!("says rank {rank} of {size}: {library}");
        return Err(ConnectError::Unfit { launched, says });
    }
    let levels = calls.abi.threads;
    if granted < levels.funneled {
        calls.finalize();
        return Err(ConnectError::Threads { library });
    }
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let (stop, on_wait) = (Arc::clone(&options.stop), options.on_wait.clone());
    let mut link = Link {
        calls,
        rank,
        size,
        policy: WaitPolicy::new(size, cpus),
        thread: (granted < levels.multiple).then(|| std::thread::current().id()),
        timeout: options.rank_timeout,
        state: Arc::new(RankState::new(rank, stop, options.on_loss.clone(), on_wait)),
        gates: None,
        control: None,
    };
    match join(&mut link, cpus, launched.and_then(|launched| launched.local_size)) {
        Ok(topology) => Ok(Some(Mpi { link, topology })),
        Err(error) => {
            // Nothing can be told after the abort.
            link.state.tell(&error);
            calls.abort(1);
            Err(error.into())
        }
    }
}

fn open(options: &Options) -> Result<library::OpenedLibrary, ConnectError> {
    let launched = options.launched;
    let candidates = match &options.library {
        Some(path) => vec![path.clone()],
        None => library::candidates(launched.map(|l| l.by), &library::beside_launcher()),
    };
    library::open_first(candidates).map_err(|tried| ConnectError::NoLibrary { launched, tried })
}

/// Find out where everyone is, and begin to watch over them.
fn join(link: &mut Link, cpus: u32, local_size: Option<u32>) -> Result<Topology, CommError> {
    let (topology, gates) = Topology::find(link, local_size)?;
    link.policy = WaitPolicy::new(topology.node.local_size, cpus);
    link.gates = gates;
    let _ = link.state.deputy.set(topology.deputy());
    let mut hub = None;
    let mut meeting = None;
    if link.rank == 0 {
        let started = Hub::start(&topology.hosts, topology.node.nodes == 1);
        let (own, place) = started.map_err(|error| CommError::Library {
            call: "the channel between ranks",
            reason: error.to_string(),
        })?;
        (hub, meeting) = (Some(own), Some(place));
    }
    if let Some(Some(meeting)) = link.share(meeting)?.first() {
        // A rank that cannot reach rank 0 takes part all the same; only its death would not be seen.
        let (hosts, state) = (&topology.hosts, &link.state);
        link.control = ControlChannel::connect(link.rank, hosts, meeting, state, hub).ok();
    }
    // None may leave before all have come.
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

    fn apart(&self) -> Option<&str> {
        self.topology.apart.as_deref()
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.link.barrier(OnTimeout::Waits)
    }

    fn barrier_in_time(&self) -> Result<(), CommError> {
        self.link.barrier(OnTimeout::Ends)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.link.gather(bytes)
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.link.broadcast(bytes)
    }

    fn clock(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        self.topology.clock(&self.link, now_ns)
    }

    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Ok(Arc::new(MpiPeers::new(&self.link)?))
    }

    fn files(&self) -> Result<Box<dyn SharedFiles>, CommError> {
        Ok(Box::new(MpiFiles::new(&self.link)?))
    }

    fn ended(&self) -> Option<CommError> {
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
            state.undone.set();
            self.give_up(End::Failed("panicked".to_owned()));
        } else if let Some(end) = state.untold() {
            self.give_up(end);
        }
        let orderly = !state.has_failed() && self.link.barrier(OnTimeout::Waits).is_ok();
        if let Some(control) = &self.link.control {
            control.leave(orderly);
        }
        state.over.set();
        if orderly || state.all_idle.is_set() {
            self.link.calls.finalize();
        } else if state.must_report() {
            self.link.calls.abort(state.code());
        }
    }
}
