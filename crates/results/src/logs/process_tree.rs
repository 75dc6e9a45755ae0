//! Assigns the processes of a log to the ranks of its job.
//!
//! A log does not name ranks. A process is a rank if it reads data and was started as a program, or if its children read for it: forked processes and
//! those of Python's `multiprocessing` are workers of the process that started them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of processes, including those that ended.
const PROCESSES_MAX: usize = 1 << 18;
/// Maximum number of ancestors that are followed.
const DEPTH_MAX: usize = 64;
/// Share of the mean bytes of all reading processes from which a process is a reader. Others only inspect files.
const READER_SHARE_MIN: f64 = 0.1;

/// The processes of a log whose ranks are not known until it ends. Until then, the rank of a call is the number of its process.
#[derive(Default)]
pub(super) struct NumberedProcesses {
    pub(super) tree: ProcessTree,
    /// The first thread of each process, by its number.
    pub(super) first_threads: Vec<u64>,
}

/// The processes of a log, by the number of their first thread.
#[derive(Default)]
pub(super) struct ProcessTree {
    processes: HashMap<u64, ProcessStart>,
}

#[derive(Clone, Copy, Default)]
struct ProcessStart {
    parent: Option<u64>,
    /// Whether it executed a program that is not a worker of Python's `multiprocessing`.
    is_program: bool,
}

impl ProcessTree {
    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub(super) fn add(&mut self, process: u64, parent: Option<u64>) {
        if self.processes.len() < PROCESSES_MAX {
            self.processes.insert(process, ProcessStart { parent, is_program: false });
        }
    }

    /// Notes that a process executed a program.
    pub(super) fn set_program(&mut self, process: u64) {
        if let Some(start) = self.processes.get_mut(&process) {
            start.is_program = true;
        }
    }

    /// Returns the first process of the rank of each process. `read_bytes` are the bytes that each process read.
    pub(super) fn rank_roots(&self, read_bytes: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
        let mean = read_bytes.values().sum::<u64>() as f64 / read_bytes.len().max(1) as f64;
        let is_reader = |process: u64| {
            read_bytes.get(&process).is_some_and(|&bytes| READER_SHARE_MIN * mean <= bytes as f64)
        };
        // The first reader among the ancestors of each reader. Its descendants read for it.
        let heads: BTreeMap<u64, u64> = read_bytes
            .keys()
            .filter(|process| is_reader(**process))
            .map(|&process| {
                let ancestors = self.ancestors(process).filter(|ancestor| is_reader(*ancestor));
                (process, ancestors.last().unwrap_or(process))
            })
            .collect();
        let heads_with_workers: BTreeSet<u64> = heads
            .iter()
            .filter(|(reader, head)| reader != head && !self.start(**reader).is_program)
            .map(|(_, &head)| head)
            .collect();
        let mut roots: BTreeMap<u64, u64> = heads
            .values()
            .map(|&head| {
                let start = self.start(head);
                let is_root = start.is_program || heads_with_workers.contains(&head);
                // A process whose start is not in the log counts as a worker of the first process.
                (head, if is_root { head } else { start.parent.unwrap_or(0) })
            })
            .collect();
        // Several programs that each of several processes started are workers too.
        let mut programs: BTreeMap<u64, usize> = BTreeMap::new();
        for parent in roots.keys().filter_map(|&head| self.start(head).parent) {
            *programs.entry(parent).or_default() += 1;
        }
        programs.retain(|_, count| 1 < *count);
        if 1 < programs.len() {
            for (&head, root) in &mut roots {
                let parent = self.start(head).parent;
                *root = parent.filter(|parent| programs.contains_key(parent)).unwrap_or(*root);
            }
        }
        let first_root = roots.values().next().copied().unwrap_or(0);
        let all_roots: BTreeSet<u64> = roots.values().copied().collect();
        let root_of = |process: u64| match heads.get(&process) {
            Some(head) => roots[head],
            None => {
                let mut related = [process].into_iter().chain(self.ancestors(process));
                related.find(|process| all_roots.contains(process)).unwrap_or(first_root)
            }
        };
        read_bytes.keys().map(|&process| (process, root_of(process))).collect()
    }

    fn start(&self, process: u64) -> ProcessStart {
        self.processes.get(&process).copied().unwrap_or_default()
    }

    /// Returns the parent of a process, the parent's parent, and so on.
    fn ancestors(&self, process: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.start(process).parent, |&parent| self.start(parent).parent)
            .take(DEPTH_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the root of each reader in a tree of (process, parent, whether it is a program). Processes in `readers` read 1000 bytes.
    fn check(tree: &[(u64, u64, bool)], readers: &[u64], roots: &[u64]) {
        let mut processes = ProcessTree::default();
        processes.add(0, None);
        processes.set_program(0);
        for &(process, parent, is_program) in tree {
            processes.add(process, Some(parent));
            if is_program {
                processes.set_program(process);
            }
        }
        let read_bytes = readers.iter().map(|&process| (process, 1000)).collect();
        let found = processes.rank_roots(&read_bytes);
        assert_eq!(found.into_values().collect::<Vec<u64>>(), roots, "{tree:?}");
    }

    #[test]
    fn workers_belong_to_the_process_that_started_them() {
        check(&[(1, 0, false), (2, 0, false)], &[1, 2], &[0, 0]);
        check(&[(1, 0, false), (2, 0, false)], &[0, 1, 2], &[0, 0, 0]);
        let launched = [(1, 0, true), (2, 0, true), (3, 1, false), (4, 1, false), (5, 2, false)];
        check(&launched, &[3, 4, 5], &[1, 1, 2]);
        check(&launched, &[1, 2], &[1, 2]);
        let forked = launched.map(|(process, parent, _)| (process, parent, false));
        check(&forked, &[3, 4, 5], &[1, 1, 2]);
        check(&forked, &[1, 2, 3, 4, 5], &[1, 2, 1, 1, 2]);
        let programs =
            [(1, 0, true), (2, 0, true), (3, 1, true), (4, 1, true), (5, 2, true), (6, 2, true)];
        check(&programs, &[3, 4, 5, 6], &[1, 1, 2, 2]);
        let wrapped = [(1, 0, true), (2, 0, true), (3, 1, true), (4, 2, true)];
        check(&wrapped, &[3, 4], &[3, 4]);
        check(&[(1, 0, true)], &[0, 1], &[0, 0]);
    }
}
