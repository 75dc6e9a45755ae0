//! Replaces the numbers of processes in a tally by ranks, once the log has ended.

use super::process_tree::NumberedProcesses;
use super::tally::{Caller, Tally};
use std::collections::HashMap;

impl Tally {
    /// Replaces the numbers of processes by ranks, for calls on files of the kind `data`.
    pub(super) fn assign_ranks(&mut self, data: usize) {
        let NumberedProcesses { tree, first_threads } = std::mem::take(&mut self.processes);
        if tree.is_empty() {
            return;
        }
        let kind = &mut self.kinds[data];
        let thread = |number: u32| first_threads.get(number as usize).copied().unwrap_or_default();
        let read_bytes =
            kind.ranks.iter().map(|(&number, io)| (thread(number), io.read_bytes)).collect();
        let roots = tree.rank_roots(&read_bytes);
        let mut ranks_by_root: HashMap<u64, u32> = HashMap::new();
        let mut ranks: HashMap<u32, u32> = HashMap::new();
        for &number in kind.ranks.keys() {
            let next = ranks_by_root.len() as u32;
            let rank = *ranks_by_root.entry(roots[&thread(number)]).or_insert(next);
            ranks.insert(number, rank);
        }
        let rank_of = |number: u32| ranks.get(&number).copied().unwrap_or(0);
        for (number, io) in std::mem::take(&mut kind.ranks) {
            kind.ranks.entry(rank_of(number)).or_default().add(&io);
        }
        kind.ranges.iter_mut().for_each(|range| range.set_reader(rank_of(range.reader())));
        for ((file_kind, caller), log) in std::mem::take(&mut self.readers) {
            let is_first = roots.get(&thread(caller.rank)).map(|&root| root == caller.thread);
            let reader = Caller { rank: rank_of(caller.rank), is_first, ..caller };
            self.readers.insert((file_kind, reader), log);
        }
        if let Some(by_rank_and_file) = &mut self.read_bytes {
            for ((number, file), bytes) in std::mem::take(by_rank_and_file) {
                *by_rank_and_file.entry((rank_of(number), file)).or_default() += bytes;
            }
        }
    }
}
