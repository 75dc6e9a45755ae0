//! Reports the progress of `feedrate study run`: a line for each event, and live lines about the current run.

use crate::messages;
use crate::progress::{self, LiveLines, Progress, Terminal};
use crate::text;
use feedrate_analysis::precision::NextStep;
use feedrate_session::progress_text::{SEPARATOR, join, rough_seconds};
use feedrate_spec::listener::Listener;
use feedrate_spec::{escape, units};
use feedrate_study::chooser::ChooserEvent;
use feedrate_study::machine::RunnerReporter;
use feedrate_study::runner::{RowPlace, RunnerEvent};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum columns of a run's name in its line; the rest is for its progress.
const NAME_COLUMNS: usize = 20;
/// Columns that a run's name keeps in its permanent line, even if the line is too long.
const NAME_COLUMNS_MIN: usize = 10;
/// Columns of a name that is never shortened, such as `run 12: 128 accelerators`.
const SHORT_NAME_COLUMNS: usize = 24;

/// Prints events and the live lines.
pub(super) struct Reporter {
    terminal: Terminal,
    lines: LiveLines,
    current: Arc<Mutex<CurrentRow>>,
}

/// The row that is running. Between rows its name is empty.
#[derive(Default)]
struct CurrentRow {
    name: String,
    place: Option<RowPlace>,
    start: Option<Instant>,
    /// Estimated time from `start` for this and all other pending rows, in seconds.
    left_s: f64,
    /// Preparation before the run; empty while it runs.
    preparation: String,
    /// File with the progress lines of the run's process.
    live_file: Option<PathBuf>,
}

impl CurrentRow {
    /// The line about the row, and the table of its run.
    fn lines(&self, elapsed: Duration) -> String {
        if self.name.is_empty() {
            return String::new();
        }
        let left_s = self.left_s - elapsed.as_secs_f64();
        let mut first = place_text(self.place);
        if 1.0 <= left_s {
            first += &format!("≈ {} left", rough_seconds(left_s));
        }
        let progress = progress::lines_in_file(self.live_file.as_deref(), elapsed);
        let (progress, table) = progress.split_once('\n').unwrap_or((&progress, ""));
        // The process names its action too.
        let action = self.preparation.split(' ').next().unwrap_or_default();
        let progress =
            progress.strip_prefix(action).filter(|_| !action.is_empty()).unwrap_or(progress);
        let progress = progress.trim_start_matches(SEPARATOR).to_string();
        let name = text::cut(&escape::one_line(&self.name), NAME_COLUMNS);
        let preparation = escape::one_line(&self.preparation);
        let first = first.trim_end().to_string();
        // In a narrow terminal the last parts are dropped first.
        let line = if preparation.is_empty() {
            join([first, name, progress])
        } else {
            join([first, preparation.into_owned(), progress, name])
        };
        if table.is_empty() { line } else { format!("{line}\n{table}") }
    }
}

impl Reporter {
    pub(super) fn new() -> Self {
        let current = Arc::new(Mutex::new(CurrentRow::default()));
        let shown = Arc::clone(&current);
        let text = move |_| {
            let row = shown.lock().unwrap_or_else(PoisonError::into_inner);
            row.lines(row.start.map_or(Duration::ZERO, |start| start.elapsed()))
        };
        let terminal = Terminal::new(Progress::Shown);
        let lines = terminal.start(Box::new(text));
        Reporter { terminal, lines, current }
    }

    fn current(&self) -> MutexGuard<'_, CurrentRow> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the preparation of the row, or clears it when the run starts.
    fn set_preparation(&self, preparation: String) {
        let mut row = self.current();
        row.preparation = preparation;
        row.live_file = None;
    }
}

impl RunnerReporter for Reporter {
    fn show(&mut self, event: &RunnerEvent) {
        let is_shown_live =
            matches!(event, RunnerEvent::Running { .. } | RunnerEvent::Generating { .. });
        let columns =
            messages::stderr_size().map_or(usize::MAX, |size| size.columns.saturating_sub(1));
        if let Some(line) = line(event, columns)
            && !(is_shown_live && self.lines.is_drawn())
        {
            self.show_message(&line);
        }
        match event {
            RunnerEvent::RowStarted { label, place, left_s } => {
                *self.current() = CurrentRow {
                    name: label.clone(),
                    place: *place,
                    start: Some(Instant::now()),
                    left_s: *left_s,
                    ..CurrentRow::default()
                };
            }
            RunnerEvent::Generating { .. } => self.set_preparation("generating its dataset".into()),
            RunnerEvent::Running { .. } => self.set_preparation(String::new()),
            RunnerEvent::Finished { .. }
            | RunnerEvent::Failed { .. }
            | RunnerEvent::Interrupted => {
                *self.current() = CurrentRow::default();
                // The drawing thread would leave the lines of the last row above what is printed next.
                self.lines.clear();
            }
            _ => {}
        }
    }

    fn show_message(&self, text: &str) {
        self.listener().note(text);
    }

    fn follow(&self, live_file: PathBuf) {
        self.current().live_file = Some(live_file);
    }

    fn listener(&self) -> &dyn Listener {
        &self.terminal
    }
}

/// `[3/12] `, or `[3] ` if the total is unknown; empty for a run of an earlier runner.
fn place_text(place: Option<RowPlace>) -> String {
    match place {
        Some(RowPlace { number, count: Some(count) }) => format!("[{number}/{count}] "),
        Some(RowPlace { number, count: None }) => format!("[{number}] "),
        None => String::new(),
    }
}

/// A line about a run. If it is too long, a long name is shortened first, then the end.
fn run_line(place: Option<RowPlace>, name: &str, says: &str, columns: usize) -> String {
    let place = place_text(place);
    let other_columns = place.chars().count() + 2 + says.chars().count();
    let name_columns = match name.chars().count() {
        count @ ..=SHORT_NAME_COLUMNS => count,
        _ => columns.saturating_sub(other_columns).max(NAME_COLUMNS_MIN),
    };
    let name = text::cut(name, name_columns);
    text::cut(&format!("{place}{name}: {says}"), columns)
}

/// The permanent line for an event.
fn line(event: &RunnerEvent, columns: usize) -> Option<String> {
    Some(match event {
        RunnerEvent::RowStarted { .. } | RunnerEvent::Interrupted => return None,
        RunnerEvent::Running { label, place } => run_line(*place, label, "running", columns),
        RunnerEvent::Generating { folder, bytes } => {
            format!("generating {} in {}", units::bytes(*bytes), folder.display())
        }
        RunnerEvent::Recovered { label, is_complete: true } => {
            format!("{label}: an earlier runner died, but the results are complete")
        }
        RunnerEvent::Recovered { label, is_complete: false } => {
            format!("{label}: an earlier runner died during the run, so it is run again")
        }
        RunnerEvent::Unplanned { count, others } => {
            let rows = units::counted(*count as u64, "row");
            let others = units::counted(*others as u64, "other row");
            format!("{rows} cannot run, for the reasons below; {others} can")
        }
        RunnerEvent::Superseded { label, folder } => {
            format!("{label}: marked to run again; the old result is in {}", folder.display())
        }
        RunnerEvent::Deleted { folder, bytes } => {
            format!("deleting {} in {}", units::bytes(*bytes), folder.display())
        }
        RunnerEvent::Finished { label, place, duration_s, result, doubts } => {
            let result = result.as_ref().map_or(String::new(), |result| format!("{result}, "));
            let doubts = match doubts.as_slice() {
                [] => String::new(),
                doubts => format!(", doubts: {}", doubts.join(", ")),
            };
            let time = units::seconds(*duration_s);
            run_line(*place, label, &format!("{result}{time}{doubts}"), columns)
        }
        RunnerEvent::Failed { label, place, reason } => {
            let reason = reason.trim().replace('\n', "\n    ");
            format!("{}{label}: failed: {reason}", place_text(*place))
        }
        RunnerEvent::RowRemoved { label, run_dir } => {
            format!("{label}: no longer in the CSV; the results are in {}", run_dir.display())
        }
        RunnerEvent::Chooser(ChooserEvent::ReplicationEnded {
            label, runs_without_value, ..
        }) if *runs_without_value > 0 => {
            let runs = units::counted(*runs_without_value as u64, "run");
            format!("{label}: the metric is unknown in {runs}, so no runs are added")
        }
        RunnerEvent::Chooser(ChooserEvent::Note(note)) => format!("note: {note}"),
        RunnerEvent::MarkOverwritten { label } => {
            format!(
                "{label}: marked to run again while this study ran; the next `study run` runs it"
            )
        }
        RunnerEvent::Busy { label, folder, holder } => {
            format!("{label}: waiting for its dataset in {}: {holder}", folder.display())
        }
        RunnerEvent::InUse { folder } => {
            format!("not deleting {}: another process reads it", folder.display())
        }
        RunnerEvent::Chooser(ChooserEvent::ReplicationEnded { label, status, .. }) => {
            let known = match status.half_width {
                Some(share) => format!("known to ± {:.1} %", 100.0 * share),
                None => "precision unknown".into(),
            };
            let runs = units::counted(status.replicates, "run");
            match status.next {
                NextStep::OutOfReach => {
                    format!("{label}: {known} after {runs}; the target is out of reach")
                }
                NextStep::Enough | NextStep::RunAgain => format!("{label}: {known} after {runs}"),
            }
        }
        RunnerEvent::OutOfTime { label, expected_s } => {
            let time = units::seconds(*expected_s);
            format!("{label}: needs about {time}, more than is left of the time budget")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::COLUMNS;

    #[test]
    fn a_finished_run_shows_its_place_time_and_utilisation() {
        let place = Some(RowPlace { number: 3, count: Some(12) });
        let doubts = vec!["device_not_quiet".into()];
        let mut event = RunnerEvent::Finished {
            label: "w/2".into(),
            place,
            duration_s: 13.0,
            result: Some("AU 55.0 %".into()),
            doubts,
        };
        let expected = "[3/12] w/2: AU 55.0 %, 13 s, doubts: device_not_quiet";
        assert_eq!(line(&event, COLUMNS).unwrap(), expected);
        if let RunnerEvent::Finished { place, result, doubts, .. } = &mut event {
            *place = None;
            *result = None;
            doubts.clear();
        }
        assert_eq!(line(&event, COLUMNS).unwrap(), "w/2: 13 s");
    }

    #[test]
    fn the_line_of_a_run_fits_a_terminal() {
        let place = Some(RowPlace { number: 3, count: Some(12) });
        let check = |says: &str, expected: &str| {
            let name = "unet3d_h100_custom/8_batch_size=1,read_threads=2";
            let shown = run_line(place, name, says, COLUMNS);
            assert_eq!(shown, expected);
            assert!(shown.chars().count() <= COLUMNS, "{shown}");
        };
        check("running", "[3/12] unet3d_h100_custom/8_batch_size=1,read_threads=2: running");
        check(
            "AU 55.0 %, 13 s, doubts: device_not_quiet",
            "[3/12] unet3d_h100_custom/8_batch_s…: AU 55.0 %, 13 s, doubts: device_not_quiet",
        );
        check(
            "AU 55.0 %, 13 s, doubts: window_shorter_than_stock, other_io, throttled",
            "[3/12] unet3d_h1…: AU 55.0 %, 13 s, doubts: window_shorter_than_stock, …",
        );
    }

    #[test]
    fn a_short_name_stays_whole() {
        let says = "AU 100.0 %, reaches 90 %, 3.23 s, doubts: device_not_quiet, other_io";
        let shown = run_line(None, "run 2: 1 accelerator", says, COLUMNS);
        let expected = "run 2: 1 accelerator: AU 100.0 %, reaches 90 %, 3.23 s, doubts: ";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.chars().count() <= COLUMNS, "{shown}");
    }

    #[test]
    fn the_live_line_shows_the_time_left_and_the_runs_progress() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let live_file = Some(file.clone());
        let place = Some(RowPlace { number: 3, count: Some(40) });
        let name = "2_read_threads_1 replicate 1".to_string();
        let mut row = CurrentRow { name, place, left_s: 700.0, live_file, ..CurrentRow::default() };
        let seconds = Duration::from_secs;
        assert_eq!(row.lines(seconds(5)), "[3/40] ≈ 12 min left · 2_read_threads_1 … · 5 s");
        std::fs::write(&file, "epoch 1/2 step 13/99 · AU 50.0 %\naccelerator\n0").unwrap();
        let line = "[3/40] ≈ 50 s left · 2_read_threads_1 … · epoch 1/2 step 13/99 · AU 50.0 %";
        let runs = &format!("{line}\naccelerator\n0");
        assert_eq!(row.lines(seconds(650)), *runs);
        assert!(line.chars().count() < 80);
        // After the estimate is exceeded, the time left is unknown.
        let longer = "[3/40] · 2_read_threads_1 … · epoch 1/2 step 13/99 · AU 50.0 %";
        assert_eq!(row.lines(seconds(701)).lines().next(), Some(longer));
        row.preparation = "generating its dataset".into();
        row.live_file = None;
        let generates = "[3/40] ≈ 12 min left · generating its dataset · 2 s · 2_read_threads_1 …";
        assert_eq!(row.lines(seconds(2)), generates);
        std::fs::write(&file, "generating · 1 GB of ≈ 4 GB").unwrap();
        row.live_file = Some(file.clone());
        let generates =
            "[3/40] ≈ 12 min left · generating its dataset · 1 GB of ≈ 4 GB · 2_read_threads_1 …";
        assert_eq!(row.lines(seconds(2)), generates);
    }
}
