//! Processes of a strace log: their parents, the descriptors they share, and the rank of the job to which they belong.

use super::super::tally::{Caller, Position, RANKS_MAX};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum number of processes and threads at one time.
const PROCESSES_MAX: usize = 1 << 14;
/// Maximum number of descriptors of a process.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// An open file, which several descriptors may share.
pub(super) struct OpenFile {
    /// Number of the file; `None` if it is not data.
    pub(super) file: Option<u32>,
    pub(super) path: String,
    pub(super) position: Position,
}

impl OpenFile {
    /// Returns whether this may be the file at `path`. A relative path may belong to any file.
    pub(super) fn may_have_path(&self, path: &str) -> bool {
        self.path == path || !self.path.starts_with('/')
    }
}

pub(super) type Shared<T> = Rc<RefCell<T>>;

type Descriptors = Shared<HashMap<i64, Shared<OpenFile>>>;

/// A process or thread.
pub(super) struct Process {
    pub(super) files: Descriptors,
    /// Start time of its last call.
    pub(super) last_ns: u64,
    /// Whether the log contains the start of the process, and therefore the opening of all files that it reads.
    pub(super) is_complete: bool,
    /// Unique number. Process IDs can be reused.
    pub(super) serial: u64,
    /// Serial of the first process of its rank.
    root: u64,
}

impl Process {
    pub(super) fn find(&self, number: i64) -> Option<Shared<OpenFile>> {
        self.files.borrow().get(&number).cloned()
    }

    pub(super) fn insert_file(&self, number: i64, open: Shared<OpenFile>) {
        let mut files = self.files.borrow_mut();
        if files.len() < DESCRIPTORS_MAX || files.contains_key(&number) {
            files.insert(number, open);
        }
    }

    /// Makes descriptor `number` a duplicate of the descriptor in the argument `original`.
    pub(super) fn duplicate(&self, original: &str, number: i64) {
        let open = super::line::parse_descriptor(original).0.and_then(|number| self.find(number));
        match open {
            Some(open) => self.insert_file(number, open),
            None => drop(self.files.borrow_mut().remove(&number)),
        }
    }
}

/// The running processes, and the ranks of the job.
#[derive(Default)]
pub(super) struct Processes {
    alive: HashMap<u64, Shared<Process>>,
    /// Number of processes so far.
    started: u64,
    /// Ranks by the serial of their first process.
    ranks: HashMap<u64, u32>,
}

/// Returns whether a call, complete or not, creates a process or thread.
pub(super) fn is_fork(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default();
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

/// Returns whether a path that `-y` adds is a pipe or socket, such as `pipe:[1234]`.
pub(super) fn is_connection(path: &str) -> bool {
    !path.starts_with('/') && path.contains(":[")
}

impl Processes {
    pub(super) fn has(&self, pid: u64) -> bool {
        self.alive.contains_key(&pid)
    }

    pub(super) fn find(&self, pid: u64) -> Option<Shared<Process>> {
        self.alive.get(&pid).cloned()
    }

    /// Adds a process whose start is not in the log.
    pub(super) fn add_without_parent(&mut self, pid: u64) {
        self.add(pid, Descriptors::default(), None, false);
    }

    /// Adds a process or thread that `parent_pid` created by the call `text`.
    pub(super) fn fork(&mut self, parent_pid: u64, child: i64, text: &str) {
        let Some(parent) = self.find(parent_pid) else { return };
        let Ok(child) = u64::try_from(child) else { return };
        if self.alive.contains_key(&child) {
            return;
        }
        let parent = parent.borrow();
        let files = if text.contains("CLONE_FILES") {
            parent.files.clone()
        } else {
            Rc::new(RefCell::new(parent.files.borrow().clone()))
        };
        self.add(child, files, Some(parent.root), parent.is_complete);
    }

    fn add(&mut self, pid: u64, files: Descriptors, root: Option<u64>, is_complete: bool) {
        if self.alive.len() >= PROCESSES_MAX {
            return;
        }
        let serial = self.started;
        self.started += 1;
        // A process whose start is not in the log counts as a worker of the first process.
        let root = root.unwrap_or(0);
        let process = Process { files, last_ns: 0, is_complete, serial, root };
        self.alive.insert(pid, Rc::new(RefCell::new(process)));
    }

    /// Handles the execution of another program. The process becomes the first of a new rank, unless a Python loader started it or it belongs to a rank
    /// that already reads data.
    pub(super) fn execute(&mut self, process: &Shared<Process>, arguments: &[&str]) {
        let mut process = process.borrow_mut();
        process.is_complete = true;
        let is_helper = self.ranks.contains_key(&process.root)
            || arguments.iter().any(|text| text.contains("multiprocessing"));
        if !is_helper {
            process.root = process.serial;
        }
    }

    /// Removes a process that has ended, since its ID may be reused.
    pub(super) fn remove(&mut self, pid: u64) {
        self.alive.remove(&pid);
    }

    /// Returns the caller for a process. Ranks are numbered in the order of their first access to data.
    pub(super) fn caller(&mut self, process: &Shared<Process>) -> Caller {
        let Process { serial, root, .. } = *process.borrow();
        let next = self.ranks.len() as u32;
        let rank = match self.ranks.get(&root) {
            Some(&known) => known,
            None if next < RANKS_MAX => *self.ranks.entry(root).or_insert(next),
            None => RANKS_MAX,
        };
        Caller { rank, thread: serial, is_first: Some(serial == root) }
    }
}
