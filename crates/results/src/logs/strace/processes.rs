//! Processes of a strace log: who began whom, which descriptors they share, and which rank of the job they belong to.

use super::super::tally::{Caller, Position, RANKS_MAX};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Processes and threads at a time.
const PROCESSES_MAX: usize = 1 << 14;
/// Descriptors of a process.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// An open file, which several descriptors may share.
pub(super) struct Description {
    /// `None` of what is no data.
    pub(super) file: Option<u32>,
    pub(super) name: String,
    pub(super) position: Position,
}

impl Description {
    /// Whether it may be called so: a path of the call may be relative.
    pub(super) fn is_named(&self, path: &str) -> bool {
        self.name == path || !self.name.starts_with('/')
    }
}

pub(super) type Shared<T> = Rc<RefCell<T>>;

type Descriptors = Shared<HashMap<i64, Shared<Description>>>;

/// A process or thread.
pub(super) struct Process {
    pub(super) files: Descriptors,
    pub(super) last_ns: u64,
    /// Whether its beginning is in the log, and so the opening of all that it reads.
    pub(super) is_whole: bool,
    /// No two have the same, though numbers of processes come again.
    serial: u64,
    /// The serial of the process that a rank of the job began with.
    root: u64,
}

impl Process {
    pub(super) fn find(&self, number: i64) -> Option<Shared<Description>> {
        self.files.borrow().get(&number).cloned()
    }

    pub(super) fn keep(&self, number: i64, open: Shared<Description>) {
        let mut files = self.files.borrow_mut();
        if files.len() < DESCRIPTORS_MAX || files.contains_key(&number) {
            files.insert(number, open);
        }
    }

    /// A descriptor was made another's copy.
    pub(super) fn copied(&self, of: &str, number: i64) {
        let open = super::line::descriptor(of).0.and_then(|of| self.find(of));
        match open {
            Some(open) => self.keep(number, open),
            None => drop(self.files.borrow_mut().remove(&number)),
        }
    }
}

/// Those that are alive.
#[derive(Default)]
pub(super) struct Processes {
    alive: HashMap<u64, Shared<Process>>,
    begun: u64,
    /// Ranks by their roots.
    ranks: HashMap<u64, u32>,
}

/// Whether a call, or its beginning, makes a process or thread.
pub(super) fn is_fork(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default();
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

impl Processes {
    pub(super) fn has(&self, pid: u64) -> bool {
        self.alive.contains_key(&pid)
    }

    pub(super) fn find(&self, pid: u64) -> Option<Shared<Process>> {
        self.alive.get(&pid).cloned()
    }

    /// A process of which nobody knows who began it.
    pub(super) fn found(&mut self, pid: u64) {
        self.add(pid, Descriptors::default(), None, false);
    }

    /// A process or thread was begun by `parent`.
    pub(super) fn forked(&mut self, parent: u64, child: i64, text: &str) {
        let (Some(parent), Ok(child)) = (self.alive.get(&parent).cloned(), u64::try_from(child))
        else {
            return;
        };
        if self.alive.contains_key(&child) {
            return;
        }
        let parent = parent.borrow();
        let files = if text.contains("CLONE_FILES") {
            parent.files.clone()
        } else {
            Rc::new(RefCell::new(parent.files.borrow().clone()))
        };
        self.add(child, files, Some(parent.root), parent.is_whole);
    }

    fn add(&mut self, pid: u64, files: Descriptors, root: Option<u64>, is_whole: bool) {
        if self.alive.len() >= PROCESSES_MAX {
            return;
        }
        let serial = self.begun;
        self.begun += 1;
        // One whose beginning is not in the log counts as a worker of the first.
        let root = root.unwrap_or(0);
        let process = Process { files, last_ns: 0, is_whole, serial, root };
        self.alive.insert(pid, Rc::new(RefCell::new(process)));
    }

    /// It runs another program: a rank of its own, but for the processes that Python's loaders start, and helpers of a rank that
    /// reads already.
    pub(super) fn became(&mut self, process: &Shared<Process>, arguments: &[&str]) {
        let mut process = process.borrow_mut();
        process.is_whole = true;
        let is_helper = self.ranks.contains_key(&process.root)
            || arguments.iter().any(|text| text.contains("multiprocessing"));
        if !is_helper {
            process.root = process.serial;
        }
    }

    /// It is no more; its number may come again.
    pub(super) fn ended(&mut self, pid: u64) {
        self.alive.remove(&pid);
    }

    /// Ranks are numbered as they first touch data.
    pub(super) fn caller(&mut self, process: &Shared<Process>) -> Caller {
        let process = process.borrow();
        let next = self.ranks.len() as u32;
        let rank = match self.ranks.get(&process.root) {
            Some(&known) => known,
            None if next < RANKS_MAX => *self.ranks.entry(process.root).or_insert(next),
            None => RANKS_MAX,
        };
        Caller { rank, thread: process.serial, is_first: Some(process.serial == process.root) }
    }
}
