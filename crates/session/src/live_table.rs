//! The table about a run in progress: what each accelerator's loader has ready, and a doubt that is known by now.

use feedrate_measure::doubt::{self, Severity};
use feedrate_run::driver::WorkProgress;
use feedrate_run::live::LiveLoader;
use feedrate_spec::plan::PlanDoubt;
use feedrate_spec::units;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of accelerators that have a row each.
const ROWS_MAX: usize = 8;
/// Number of rows if there are more accelerators: of those with the fewest batches ready.
const SLOWEST: usize = 5;

/// The doubt that is shown during a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveDoubt(Arc<Mutex<Option<String>>>);

impl LiveDoubt {
    /// Shows the latest doubt about measured numbers, if there is any.
    pub(crate) fn set(&self, doubts: &[PlanDoubt]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = doubt_line(doubts);
    }

    pub(crate) fn line(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn doubt_line(doubts: &[PlanDoubt]) -> Option<String> {
    let is_note = |doubt: &&PlanDoubt| {
        doubt::find(&doubt.name).is_some_and(|kind| kind.severity == Severity::Note)
    };
    let relevant: Vec<&PlanDoubt> = doubts.iter().filter(|doubt| !is_note(doubt)).collect();
    let (last, earlier) = relevant.split_last()?;
    let more =
        if earlier.is_empty() { String::new() } else { format!(" and {} more", earlier.len()) };
    Some(format!("doubt {}{more}: {}", last.name, last.evidence))
}

/// The loaders of a process, with their rates since the previous reading.
pub(crate) struct Loaders {
    work: WorkProgress,
    last: Option<(u64, Vec<LiveLoader>)>,
}

/// An accelerator's loader.
#[derive(Clone, Copy, Debug)]
struct LoaderRow {
    accelerator: u32,
    /// `None` at the first reading.
    bytes_per_second: Option<f64>,
    loader: LiveLoader,
}

impl Loaders {
    pub(crate) fn new(work: WorkProgress) -> Self {
        Loaders { work, last: None }
    }

    /// Reads the counters, and returns the lines of the table.
    pub(crate) fn table(&mut self, now_ns: u64) -> Vec<String> {
        let (first, loaders) = self.work.loaders();
        let last = self.last.replace((now_ns, loaders.clone()));
        let rows =
            loaders.into_iter().zip(first..).enumerate().map(|(i, (loader, accelerator))| {
                let rate = last.as_ref().and_then(|(last_ns, last)| {
                    let elapsed_ns = now_ns.checked_sub(*last_ns).filter(|ns| *ns > 0)?;
                    let bytes = loader.read_bytes.saturating_sub(last.get(i)?.read_bytes);
                    Some(bytes as f64 * 1e9 / elapsed_ns as f64)
                });
                LoaderRow { accelerator, bytes_per_second: rate, loader }
            });
        table(rows.collect())
    }
}

/// A row for each loader. Of many, one for all and one for each of the slowest.
fn table(mut rows: Vec<LoaderRow>) -> Vec<String> {
    let count = rows.len();
    let mut lines = vec![line("accelerator", "rate", "batches ready", "threads busy")];
    if count > 1 {
        let sum = |part: fn(&LiveLoader) -> u64| rows.iter().map(|row| part(&row.loader)).sum();
        let all = LiveLoader {
            read_bytes: 0,
            ready_batches: sum(|loader| loader.ready_batches),
            batches_in_flight: sum(|loader| loader.batches_in_flight),
            busy_threads: sum(|loader| loader.busy_threads.into()) as u32,
            threads: sum(|loader| loader.threads.into()) as u32,
        };
        let rate = rows.iter().map(|row| row.bytes_per_second).sum();
        lines.push(loader_line(&format!("all {count}"), rate, &all));
    }
    if count > ROWS_MAX {
        let share = |loader: &LiveLoader| {
            loader.ready_batches as f64 / loader.batches_in_flight.max(1) as f64
        };
        let speed = |row: &LoaderRow| row.bytes_per_second.unwrap_or(0.0);
        rows.sort_by(|a, b| {
            share(&a.loader).total_cmp(&share(&b.loader)).then(speed(a).total_cmp(&speed(b)))
        });
        rows.truncate(SLOWEST);
        lines.push(format!("the {SLOWEST} with the fewest batches ready:"));
    }
    lines.extend(
        rows.iter().map(|row| {
            loader_line(&row.accelerator.to_string(), row.bytes_per_second, &row.loader)
        }),
    );
    lines
}

fn loader_line(name: &str, bytes_per_second: Option<f64>, loader: &LiveLoader) -> String {
    let rate = bytes_per_second.map_or("-".into(), units::bytes_per_second_rounded);
    let ready = format!("{} of {}", loader.ready_batches, loader.batches_in_flight);
    let busy = format!("{} of {}", loader.busy_threads, loader.threads);
    line(name, &rate, &ready, &busy)
}

fn line(name: &str, rate: &str, ready: &str, busy: &str) -> String {
    format!("{name:<11}  {rate:>9}  {ready:>13}  {busy:>12}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(accelerator: u32, megabytes_per_second: u64, ready_batches: u64) -> LoaderRow {
        LoaderRow {
            accelerator,
            bytes_per_second: Some(megabytes_per_second as f64 * 1e6),
            loader: LiveLoader {
                read_bytes: 1,
                ready_batches,
                batches_in_flight: 4,
                busy_threads: 3,
                threads: 8,
            },
        }
    }

    #[test]
    fn an_accelerator_has_a_row() {
        let unknown = LoaderRow { bytes_per_second: None, ..row(0, 0, 2) };
        insta::assert_snapshot!(table(vec![unknown]).join("\n"), @r"
        accelerator       rate  batches ready  threads busy
        0                    -         2 of 4        3 of 8
        ");
    }

    #[test]
    fn several_accelerators_have_a_sum() {
        insta::assert_snapshot!(table(vec![row(0, 1400, 4), row(1, 900, 0)]).join("\n"), @r"
        accelerator       rate  batches ready  threads busy
        all 2         2.3 GB/s         4 of 8       6 of 16
        0             1.4 GB/s         4 of 4        3 of 8
        1             900 MB/s         0 of 4        3 of 8
        ");
    }

    #[test]
    fn of_many_accelerators_the_slowest_are_shown() {
        let rows = (0..64).map(|i| row(i, 100 + u64::from(i), u64::from(i < 60) + 1)).collect();
        insta::assert_snapshot!(table(rows).join("\n"), @r"
        accelerator       rate  batches ready  threads busy
        all 64       8.42 GB/s     124 of 256    192 of 512
        the 5 with the fewest batches ready:
        60            160 MB/s         1 of 4        3 of 8
        61            161 MB/s         1 of 4        3 of 8
        62            162 MB/s         1 of 4        3 of 8
        63            163 MB/s         1 of 4        3 of 8
        0             100 MB/s         2 of 4        3 of 8
        ");
    }

    #[test]
    fn the_latest_doubt_is_shown_without_notes() {
        let doubt = |name: &str| PlanDoubt {
            name: name.into(),
            evidence: "40 % busy".into(),
            advice: String::new(),
        };
        for (names, expected) in [
            (&[][..], None),
            (&["scaled"], None),
            (&["not_cold", "scaled"], Some("doubt not_cold: 40 % busy")),
            (&["not_cold", "not_warm"], Some("doubt not_warm and 1 more: 40 % busy")),
        ] {
            let doubts: Vec<PlanDoubt> = names.iter().map(|name| doubt(name)).collect();
            assert_eq!(doubt_line(&doubts).as_deref(), expected, "{names:?}");
        }
    }
}
