//! Another way to read files: past the page cache where it serves nothing and costs processors, through a memory map where calls cost
//! more than what they bring.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::CONSECUTIVE;
use feedrate_measure::waits::WaitCause;

/// From here on copies out of the page cache cost more than calls.
const LARGE_BYTES: f64 = (1 << 20) as f64;
/// Up to here a call costs more than its copy.
const SMALL_BYTES: f64 = 16_384.0;
/// A call that waits for no device takes less.
const CALL_MAX_S: f64 = 2e-5;
/// Share of all processors.
const BUSY_SHARE_MIN: f64 = 0.8;
/// Share of the bytes out of the page cache.
const CACHED_SHARE_MAX: f64 = 0.05;

pub(super) static RULE: Rule = Rule {
    name: "engine",
    source: "MLPerf Storage, reader.odirect; DALI, mapped files",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::copies,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Read])?;
    let (engine, request_bytes) = (case.plan().storage.engine.as_deref()?, case.request_bytes()?);
    let read_s = case.sample()?.read_s / case.sample()?.reads;
    let cached = case.derived.cached_share()?;
    let busy = case.derived.record.epochs.iter().filter_map(|epoch| epoch.host.cpu_busy_share);
    let busy = busy.fold(0.0, f64::max);
    let copies =
        LARGE_BYTES <= request_bytes && cached <= CACHED_SHARE_MAX && BUSY_SHARE_MIN <= busy;
    let is_consecutive = case.derived.value(&CONSECUTIVE).is_some_and(|share| 0.5 <= share);
    let calls = request_bytes <= SMALL_BYTES && read_s <= CALL_MAX_S && is_consecutive;
    let (wanted, risk) = if copies {
        ("direct", Risk::NoPageCache)
    } else if calls {
        ("mmap", Risk::None)
    } else {
        return None;
    };
    let evidence = Facts::new()
        .with("request_bytes", request_bytes as u64)
        .with("read_s", read_s)
        .with("busy_percent", 100.0 * busy)
        .with("cached_percent", 100.0 * cached)
        .with("engine", engine);
    let overrides = [format!("storage.engine={wanted}")];
    (engine != wanted).then(|| Proposal { risk, ..RULE.proposal(&overrides, lost_s, evidence) })
}
