//! Advises another I/O engine: direct I/O if the page cache serves no reads and copies out of it keep the processors busy, or a
//! memory map if reads are so small that system calls take longer than the copies.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::CONSECUTIVE;
use feedrate_measure::waits::WaitCause;

/// Request size above which the copy out of the page cache costs more than the system call.
const LARGE_BYTES: f64 = (1 << 20) as f64;
/// Request size below which the system call costs more than the copy.
const SMALL_BYTES: f64 = 16_384.0;
/// Longest duration of a read that is served from memory.
const CALL_MAX_S: f64 = 2e-5;
/// Share of busy processors above which copies may slow down the run.
const BUSY_SHARE_MIN: f64 = 0.8;
/// Share of bytes from the page cache below which the cache counts as useless.
const CACHED_SHARE_MAX: f64 = 0.05;

pub(super) static RULE: Rule = Rule {
    name: "engine",
    source: "MLPerf Storage, reader.odirect; DALI, mapped files",
    sees: "large uncached requests on busy processors, or many small ones",
    proposes: "`storage.engine`",
    change: "",
    why: "requests of {request_bytes} take {read_s} each by {engine}, {cached_percent:.0} % of the bytes were in the page cache",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::page_cache_copies,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let engine = case.plan().storage.engine.as_deref()?;
    let request_bytes = case.request_bytes()?;
    let read_s = case.sample()?.read_s / case.sample()?.reads;
    let cached_share = case.derived.cached_share()?;
    let epochs = case.derived.record.epochs.iter();
    let busy_share = epochs.filter_map(|epoch| epoch.host.cpu_busy_share).fold(0.0, f64::max);
    let copies_dominate = LARGE_BYTES <= request_bytes
        && cached_share <= CACHED_SHARE_MAX
        && BUSY_SHARE_MIN <= busy_share;
    let is_consecutive = case.derived.value(&CONSECUTIVE).is_some_and(|share| 0.5 <= share);
    let calls_dominate = request_bytes <= SMALL_BYTES && read_s <= CALL_MAX_S && is_consecutive;
    let (proposed, risk) = if copies_dominate {
        ("direct", Risk::NoPageCache)
    } else if calls_dominate {
        ("mmap", Risk::None)
    } else {
        return None;
    };
    let evidence = Facts::new()
        .with("request_bytes", request_bytes as u64)
        .with("read_s", read_s)
        .with("busy_percent", 100.0 * busy_share)
        .with("cached_percent", 100.0 * cached_share)
        .with("engine", engine);
    let overrides = [format!("storage.engine={proposed}")];
    (engine != proposed).then(|| Proposal { risk, ..RULE.proposal(&overrides, lost_s, evidence) })
}
