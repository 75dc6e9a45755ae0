//! Ranks of MPI, whose library is opened at run time, and only under a launcher: nothing of MPI is needed to build.
//!
//! `abi` has the libraries' constants, `calls` their functions: with `files` the only unsafe code. A wait can end: see
//! `watch`, the channel beside MPI that tells of ranks that die. Prints nothing, ends no process but by `MPI_Abort`.

mod abi;
mod calls;
mod error;
mod files;
mod gate;
mod launcher;
mod library;
mod link;
mod peers;
mod place;
mod shared;
mod wait;
mod watch;

pub use error::ConnectError;
pub use files::{MpiFile, MpiFiles};
pub use launcher::{Launched, Launcher, launched};

use self::calls::Calls;
use self::link::{Late, Link};
use self::place::Places;
use self::wait::Manners;
use self::watch::State;
use super::{ClockOffset, Comm, CommError, End, Node, Peers, SharedFiles};
use feedrate_spec::catalog::Member;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) static MEMBER: Member = Member {
    name: "mpi",
    summary: "processes under mpirun or srun; the MPI library is opened at run time",
    abilities: &[],
};

/// How ranks find each other and wait.
#[derive(Clone)]
pub struct Options {
    /// This library, whatever the launcher.
    pub library: Option<PathBuf>,
    /// A rank that is waited for this long is missing, in a barrier that is to be in time; elsewhere if it does not answer.
    pub rank_timeout: Duration,
    /// Set when this process was told to stop: what waits then ends with [`CommError::Stopped`]. Set here when another rank has
    /// ended.
    pub stop: Arc<AtomicBool>,
    /// Called once, from another thread and as soon as it is known, when ranks are lost or missing; on one rank only, which is
    /// the one to tell the user: rank 0, or rank 1 if rank 0 is the lost one.
    pub on_loss: Option<OnLoss>,
    /// Called on rank 0, as above, when the timeout has passed and those who did not come are at work: the wait goes on.
    pub on_wait: Option<OnLoss>,
}

/// Takes what happened.
pub type OnLoss = Arc<dyn Fn(&CommError) + Send + Sync>;

/// MPI is initialized once a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A rank of MPI. Drop it on the thread that connected, when the last operation has returned: all ranks then end together. After
/// an error the drop tells the others to end; where that leaves operations undone, or in a panic, it ends their processes.
pub struct Mpi {
    link: Link,
    places: Places,
    library: String,
}

/// Join the ranks that a launcher started; nothing where no launcher did, or only one rank, and no library was named.
///
/// # Errors
/// There is no library that fits the launcher, or ranks do not find each other.
pub fn connect(options: &Options) -> Result<Option<Mpi>, ConnectError> {
    let launched = launched(|name| std::env::var(name).ok());
    let alone = launched.is_none_or(|launched| launched.size == Some(1));
    if alone && options.library.is_none() {
        return Ok(None);
    }
    let opened = open(options, launched)?;
    let library = format!("{} ({})", opened.path.display(), opened.calls.version());
    if let Some(launched) = launched.filter(|launched| opened.calls.abi.is_foreign(launched.by)) {
        return Err(ConnectError::Foreign { launched, library });
    }
    if TAKEN.swap(true, SeqCst) {
        return Err(ConnectError::Again);
    }
    let calls = opened.calls;
    let granted = calls.init()?;
    let (rank, size) = calls.place(calls.world())?;
    if let Some(launched) = launched.filter(|l| l.rank != rank || l.size.unwrap_or(size) != size) {
        calls.finalize();
        return Err(ConnectError::Mismatch { launched, library, rank, size });
    }
    let levels = calls.abi.threads;
    if granted < levels.funneled {
        calls.finalize();
        return Err(ConnectError::Threads { library });
    }
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let link = Link {
        calls,
        rank,
        size,
        manners: Manners::new(size, cpus),
        threads: granted >= levels.multiple,
        thread: (granted < levels.serialized).then(|| std::thread::current().id()),
        stop: Arc::clone(&options.stop),
        timeout: options.rank_timeout,
        state: Arc::new(State::new(rank, options)),
        gates: None,
        voice: OnceLock::new(),
    };
    join(link, cpus, library).map(Some)
}

fn open(options: &Options, launched: Option<Launched>) -> Result<library::Opened, ConnectError> {
    let candidates = match &options.library {
        Some(path) => vec![path.clone()],
        None => library::candidates(launched.map(|l| l.by), &library::beside_launcher()),
    };
    library::open_first(candidates).map_err(|tried| ConnectError::NoLibrary { launched, tried })
}

/// Find out where everyone is, and begin to watch over them.
fn join(mut link: Link, cpus: u32, library: String) -> Result<Mpi, ConnectError> {
    let joined = Places::find(&link).and_then(|places| {
        link.manners = Manners::new(places.node().local_size, cpus);
        link.gates = places.gates(&link)?;
        watch::begin(&link, &places).map(|voice| (places, voice))
    });
    match joined {
        Ok((places, voice)) => {
            let _ = link.voice.set(voice);
            Ok(Mpi { link, places, library })
        }
        Err(error) => {
            // Nothing can be told after the abort.
            link.state.tell(&error);
            link.calls.abort(1);
            Err(error.into())
        }
    }
}

impl Mpi {
    /// Path and words of the library.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// The machine of each rank.
    pub fn hosts(&self) -> &[String] {
        self.places.hosts()
    }

    /// Why this rank's death would not be noticed, if so: it cannot reach rank 0 but by MPI.
    pub fn unwatched(&self) -> Option<&str> {
        self.link.voice.get().and_then(watch::Voice::unheard)
    }

    /// The library's own barrier, which cannot be interrupted: to compare with.
    ///
    /// # Errors
    /// The library's.
    pub fn library_barrier(&self) -> Result<(), CommError> {
        self.link.calls.barrier()
    }

    /// Files that all ranks read together, in a group of its own, so that one other thread of each rank may do so. Collective.
    ///
    /// # Errors
    /// The library's; or it was built without files, or without calls from other threads.
    pub fn mpi_files(&self) -> Result<MpiFiles, CommError> {
        MpiFiles::new(&self.link)
    }

    fn calls(&self) -> &Calls {
        &self.link.calls
    }
}

impl Comm for Mpi {
    fn rank(&self) -> u32 {
        self.link.rank
    }

    fn size(&self) -> u32 {
        self.link.size
    }

    fn node(&self) -> Node {
        self.places.node()
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.link.barrier(Late::Waits)
    }

    fn barrier_in_time(&self) -> Result<(), CommError> {
        self.link.barrier(Late::Ends)
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.link.gather(bytes)
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.link.broadcast(bytes)
    }

    fn clock(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        self.places.clock(&self.link, now_ns)
    }

    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Ok(Arc::new(peers::MpiPeers::new(&self.link)?))
    }

    fn files(&self) -> Result<Box<dyn SharedFiles>, CommError> {
        Ok(Box::new(shared::Numbered::new(MpiFiles::new(&self.link)?)))
    }

    fn ended(&self) -> Option<CommError> {
        self.link.state.end()
    }

    fn give_up(&self, end: End) {
        self.link.state.gave_up.store(true, Release);
        if let Some(voice) = self.link.voice.get() {
            voice.give_up(end);
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.link.state.leave_undone();
            self.give_up(End::Failed("panicked".to_owned()));
        } else if let Some(end) = self.link.state.untold() {
            self.give_up(end);
        }
        let orderly = !self.link.state.has_failed() && self.link.barrier(Late::Waits).is_ok();
        if let Some(voice) = self.link.voice.get() {
            voice.leave(orderly);
        }
        self.link.state.set_over();
        if orderly || self.link.state.are_all_idle() {
            self.calls().finalize();
        } else if self.link.state.tells() {
            self.calls().abort(self.link.state.code());
        }
    }
}
