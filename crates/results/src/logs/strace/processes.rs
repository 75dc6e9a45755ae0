//! Processes and threads of a strace log, their parents, and the descriptors that they share.

use super::super::process_tree::ProcessTree;
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
    /// Index of the file with its lines; `None` if it has none so far.
    pub(super) part: Option<usize>,
    /// Unique number. Process IDs can be reused.
    pub(super) serial: u64,
    /// Serial of the first thread of its process.
    first_thread: u64,
    /// Serial of its first ancestor in the log.
    pub(super) root: u64,
}

/// The family of a new thread or process. By default, it is unknown.
#[derive(Clone, Copy, Default)]
struct Family {
    /// Serial of the first thread of its process, if it is a further thread.
    first_thread: Option<u64>,
    /// Serial of its first ancestor in the log, if it has one.
    root: Option<u64>,
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

/// The running processes, and the tree of all.
#[derive(Default)]
pub(super) struct Processes {
    alive: HashMap<u64, Shared<Process>>,
    /// Number of processes and threads so far.
    started: u64,
    pub(super) tree: ProcessTree,
    /// Numbers of processes with access to data, by the serial of their first thread.
    numbers: HashMap<u64, u32>,
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
        let serial = self.add(pid, Descriptors::default(), Family::default(), false);
        serial.into_iter().for_each(|serial| self.tree.add(serial, None));
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
        let is_thread = text.contains("CLONE_THREAD");
        let first_thread = is_thread.then_some(parent.first_thread);
        let family = Family { first_thread, root: Some(parent.root) };
        let serial = self.add(child, files, family, parent.is_complete);
        if let Some(serial) = serial.filter(|_| !is_thread) {
            self.tree.add(serial, Some(parent.first_thread));
        }
    }

    /// Adds a thread of a known or a new process. Returns its serial; `None` beyond the limit.
    fn add(
        &mut self,
        pid: u64,
        files: Descriptors,
        family: Family,
        is_complete: bool,
    ) -> Option<u64> {
        if self.alive.len() >= PROCESSES_MAX {
            return None;
        }
        let serial = self.started;
        self.started += 1;
        let process = Process {
            files,
            last_ns: 0,
            is_complete,
            part: None,
            serial,
            first_thread: family.first_thread.unwrap_or(serial),
            root: family.root.unwrap_or(serial),
        };
        self.alive.insert(pid, Rc::new(RefCell::new(process)));
        Some(serial)
    }

    /// Handles the execution of another program.
    pub(super) fn execute(&mut self, process: &Shared<Process>, arguments: &[&str]) {
        process.borrow_mut().is_complete = true;
        if !arguments.iter().any(|text| text.contains("multiprocessing")) {
            self.tree.set_program(process.borrow().first_thread);
        }
    }

    /// Removes a process that has ended, since its ID may be reused.
    pub(super) fn remove(&mut self, pid: u64) {
        self.alive.remove(&pid);
    }

    /// Returns the number of processes and threads that have lines in the log and no end.
    pub(super) fn running(&self) -> u64 {
        self.alive.values().filter(|process| process.borrow().part.is_some()).count() as u64
    }

    /// Returns the caller for a thread. Its rank is the number of its process until the tree of processes is complete. Processes are numbered in the
    /// order of their first access to data.
    pub(super) fn caller(&mut self, process: &Shared<Process>) -> Caller {
        let Process { serial, first_thread, .. } = *process.borrow();
        let next = self.numbers.len() as u32;
        let rank = match self.numbers.get(&first_thread) {
            Some(&known) => known,
            None if next < RANKS_MAX => *self.numbers.entry(first_thread).or_insert(next),
            None => RANKS_MAX,
        };
        Caller { rank, thread: serial, is_first: None }
    }

    /// Returns the first thread of each process with access to data, by its number.
    pub(super) fn first_threads(&self) -> Vec<u64> {
        let mut by_number: Vec<(u32, u64)> =
            self.numbers.iter().map(|(&thread, &number)| (number, thread)).collect();
        by_number.sort_unstable();
        by_number.into_iter().map(|(_, thread)| thread).collect()
    }
}
