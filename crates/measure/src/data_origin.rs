//! Decides where the bytes of a run came from: from the device or from memory. An unknown count is neither 0 nor all bytes: it gives an
//! upper limit of the share that memory served.

/// What is known about the reads of a run. `None` means unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadEvidence {
    /// Bytes that read calls returned.
    pub read_bytes: u64,
    /// Whether reads bypass the page cache.
    pub passes_page_cache: bool,
    /// Bytes that the kernel counted for the processes of the run.
    pub process_bytes: Option<u64>,
    /// Bytes that the disk delivered to all processes.
    pub disk_bytes: Option<u64>,
    /// Memory of the machines.
    pub memory_bytes: Option<u64>,
    /// Whether memory outside of the page cache may serve reads.
    pub has_hidden_caches: bool,
    /// The epochs.
    pub epochs: Vec<EpochEvidence>,
}

/// What is known about the reads of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochEvidence {
    /// Bytes that read calls returned.
    pub read_bytes: u64,
    /// Bytes of the files that were read at least once; `None` if unknown.
    pub distinct_bytes: Option<u64>,
    /// Dataset bytes that were in the page cache when the epoch began; `None` if unknown.
    pub resident_bytes: Option<u64>,
}

/// Where the bytes of a run came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataOrigin {
    /// The kernel counted the bytes from the device.
    Counted {
        /// Share of the bytes that memory served.
        cached_share: f64,
    },
    /// The kernel did not count the bytes from the device, so other evidence limits the share of memory.
    Uncounted {
        /// Upper limit of the share of the bytes that the page cache served.
        cached_share_max: f64,
        /// Upper limit of the share of the bytes that any memory of the machines served.
        memory_share_max: f64,
    },
}

impl DataOrigin {
    /// Decides by the evidence; `None` if nothing was read.
    pub fn new(evidence: &ReadEvidence) -> Option<Self> {
        if evidence.read_bytes == 0 {
            return None;
        }
        let share_without = |device_bytes: u64| {
            1.0 - device_bytes.min(evidence.read_bytes) as f64 / evidence.read_bytes as f64
        };
        if let Some(process_bytes) = evidence.process_bytes {
            return Some(DataOrigin::Counted { cached_share: share_without(process_bytes) });
        }
        // No cache is larger than the memory.
        let memory_bytes = evidence.memory_bytes.unwrap_or(u64::MAX);
        let share_with = |held_bytes: &dyn Fn(&EpochEvidence) -> u64| {
            let served_bytes = |epoch: &EpochEvidence| {
                // Bytes that an epoch reads again may come from memory.
                let distinct_bytes = epoch.distinct_bytes.unwrap_or(epoch.read_bytes);
                let repeated_bytes = epoch.read_bytes.saturating_sub(distinct_bytes);
                held_bytes(epoch).saturating_add(repeated_bytes).min(epoch.read_bytes)
            };
            let sum: u64 = evidence.epochs.iter().map(served_bytes).sum();
            sum as f64 / evidence.read_bytes as f64
        };
        let cached_share_max = if evidence.passes_page_cache {
            0.0
        } else {
            // The disk delivered the rest at most, even if nothing else used it.
            let not_from_disk_share = evidence.disk_bytes.map_or(0.0, share_without);
            let resident_share = share_with(&|epoch| epoch.resident_bytes.unwrap_or(memory_bytes));
            resident_share.max(not_from_disk_share)
        };
        let hidden_share_max =
            if evidence.has_hidden_caches { share_with(&|_| memory_bytes) } else { 0.0 };
        let memory_share_max = cached_share_max.max(hidden_share_max);
        Some(DataOrigin::Uncounted { cached_share_max, memory_share_max })
    }

    /// Upper limit of the share of the bytes that the page cache served.
    pub fn cached_share_max(self) -> f64 {
        match self {
            DataOrigin::Counted { cached_share } => cached_share,
            DataOrigin::Uncounted { cached_share_max, .. } => cached_share_max,
        }
    }

    /// Upper limit of the share of the bytes that any memory of the machines served.
    pub fn memory_share_max(self) -> f64 {
        match self {
            DataOrigin::Counted { cached_share } => cached_share,
            DataOrigin::Uncounted { memory_share_max, .. } => memory_share_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two epochs of 100 bytes each.
    fn check(change: fn(&mut ReadEvidence), expected: DataOrigin) {
        let epoch =
            EpochEvidence { read_bytes: 100, resident_bytes: Some(0), ..EpochEvidence::default() };
        let mut evidence =
            ReadEvidence { read_bytes: 200, epochs: vec![epoch; 2], ..ReadEvidence::default() };
        change(&mut evidence);
        assert_eq!(DataOrigin::new(&evidence), Some(expected), "{evidence:?}");
    }

    fn set_residency(evidence: &mut ReadEvidence, bytes: [Option<u64>; 2]) {
        for (epoch, resident_bytes) in evidence.epochs.iter_mut().zip(bytes) {
            epoch.resident_bytes = resident_bytes;
        }
    }

    #[test]
    fn the_count_of_the_processes_decides() {
        let counted = |cached_share| DataOrigin::Counted { cached_share };
        check(|e| e.process_bytes = Some(50), counted(0.75));
        check(|e| e.process_bytes = Some(0), counted(1.0));
        check(|e| (e.process_bytes, e.disk_bytes) = (Some(1 << 40), Some(0)), counted(0.0));
    }

    #[test]
    fn without_a_count_other_evidence_limits_the_share_of_memory() {
        let limit = |share_max| DataOrigin::Uncounted {
            cached_share_max: share_max,
            memory_share_max: share_max,
        };
        check(|_| {}, limit(0.0));
        check(|e| set_residency(e, [Some(0), Some(1 << 40)]), limit(0.5));
        check(|e| set_residency(e, [Some(100), Some(100)]), limit(1.0));
        // Residency is unknown: memory holds all bytes, or no more than its size.
        check(|e| set_residency(e, [None, Some(0)]), limit(0.5));
        check(
            |e| {
                set_residency(e, [None, None]);
                e.memory_bytes = Some(20);
            },
            limit(0.2),
        );
        // A disk that delivered few bytes to all processes shows that memory served the rest, and one that delivered many shows nothing.
        check(|e| e.disk_bytes = Some(20), limit(0.9));
        check(
            |e| {
                set_residency(e, [None, None]);
                e.disk_bytes = Some(200);
            },
            limit(1.0),
        );
        check(
            |e| {
                set_residency(e, [None, None]);
                e.passes_page_cache = true;
            },
            limit(0.0),
        );
    }

    /// A dataset of 50 bytes is read twice in an epoch.
    #[test]
    fn bytes_that_are_read_again_may_have_come_from_memory() {
        let twice = |evidence: &mut ReadEvidence| {
            evidence.epochs.iter_mut().for_each(|epoch| epoch.distinct_bytes = Some(50));
        };
        let limit = |share_max| DataOrigin::Uncounted {
            cached_share_max: share_max,
            memory_share_max: share_max,
        };
        check(twice, limit(0.5));
        let cached = |evidence: &mut ReadEvidence| {
            evidence.epochs.iter_mut().for_each(|epoch| {
                (epoch.distinct_bytes, epoch.resident_bytes) = (Some(50), Some(50));
            });
        };
        check(cached, limit(1.0));
    }

    #[test]
    fn memory_limits_what_hidden_caches_may_have_served() {
        let limits = |cached_share_max, memory_share_max| DataOrigin::Uncounted {
            cached_share_max,
            memory_share_max,
        };
        check(|e| e.has_hidden_caches = true, limits(0.0, 1.0));
        check(|e| (e.has_hidden_caches, e.memory_bytes) = (true, Some(20)), limits(0.0, 0.2));
        check(|e| (e.has_hidden_caches, e.passes_page_cache) = (true, true), limits(0.0, 1.0));
        let counted = DataOrigin::Counted { cached_share: 0.75 };
        check(|e| (e.has_hidden_caches, e.process_bytes) = (true, Some(50)), counted);
    }

    #[test]
    fn a_run_that_read_nothing_has_no_origin() {
        assert_eq!(DataOrigin::new(&ReadEvidence::default()), None);
    }
}
