//! Reports the progress of `feedrate study run`: a line an event, and one of what goes on.

use crate::progress::{self, LiveLine, Progress, TERMINAL};
use crate::text;
use feedrate_analysis::precision::NextStep;
use feedrate_session::progress_text::{join, rough_seconds};
use feedrate_spec::listener::Listener;
use feedrate_spec::{escape, units};
use feedrate_study::chooser::ChooserEvent;
use feedrate_study::machine::RunnerReporter;
use feedrate_study::runner::{RowPlace, RunnerEvent};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Columns of a run's name in the live line, so that its steps have room.
const NAME_COLUMNS: usize = 20;

/// Tells the user.
pub(super) struct Reporter {
    line: LiveLine,
    now: Arc<Mutex<Now>>,
}

/// The row that is run; none where it has no name.
#[derive(Default)]
struct Now {
    name: String,
    place: Option<RowPlace>,
    since: Option<Instant>,
    /// Estimated duration of it and all other pending runs from `since` on.
    left_s: f64,
    /// Work before the run; empty while it runs.
    doing: String,
    /// Progress of the process at work.
    live_file: Option<PathBuf>,
}

impl Now {
    fn line(&self, elapsed: Duration) -> String {
        if self.name.is_empty() {
            return String::new();
        }
        let left_s = self.left_s - elapsed.as_secs_f64();
        let mut first = at(self.place);
        if 1.0 <= left_s {
            first += &format!("≈ {} left", rough_seconds(left_s));
        }
        let progress = progress::line_in_file(self.live_file.as_deref(), elapsed);
        let [name, doing] = [&self.name, &self.doing].map(|text| escape::one_line(text));
        let name = text::cut(&name, NAME_COLUMNS);
        let first = first.trim_end().to_string();
        // The last parts go first where there is no room.
        if doing.is_empty() {
            join([first, name, progress])
        } else {
            join([first, doing.into_owned(), progress, name])
        }
    }
}

impl Reporter {
    pub(super) fn new() -> Self {
        let now = Arc::new(Mutex::new(Now::default()));
        let shown = Arc::clone(&now);
        let text = move |_| {
            let now = shown.lock().unwrap_or_else(PoisonError::into_inner);
            now.line(now.since.map_or(Duration::ZERO, |since| since.elapsed()))
        };
        let line = LiveLine::start(Progress::Shown, Box::new(text));
        Reporter { line, now }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work of the row from here on.
    fn doing(&self, doing: String) {
        let mut now = self.now();
        (now.doing, now.live_file) = (doing, None);
    }
}

impl RunnerReporter for Reporter {
    fn show(&mut self, event: &RunnerEvent) {
        let is_shown_live =
            matches!(event, RunnerEvent::Running { .. } | RunnerEvent::Generating { .. });
        if let Some(line) = line(event)
            && !(is_shown_live && self.line.is_drawn())
        {
            self.show_message(&line);
        }
        match event {
            RunnerEvent::Begun { label, place, left_s } => {
                *self.now() = Now {
                    name: label.clone(),
                    place: *place,
                    since: Some(Instant::now()),
                    left_s: *left_s,
                    ..Now::default()
                };
            }
            RunnerEvent::Generating { .. } => self.doing("making its dataset".into()),
            RunnerEvent::Running { .. } => self.doing(String::new()),
            RunnerEvent::Finished { .. } | RunnerEvent::Failed { .. } => {
                *self.now() = Now::default();
            }
            _ => {}
        }
    }

    fn show_message(&self, text: &str) {
        self.line.say(text);
    }

    fn follow(&self, live_file: PathBuf) {
        self.now().live_file = Some(live_file);
    }

    fn listener(&self) -> &dyn Listener {
        &TERMINAL
    }
}

/// `[3/12] `, or `[3] ` where rows are added; nothing for a run of an earlier runner.
fn at(place: Option<RowPlace>) -> String {
    match place {
        Some(RowPlace { number, count: Some(count) }) => format!("[{number}/{count}] "),
        Some(RowPlace { number, count: None }) => format!("[{number}] "),
        None => String::new(),
    }
}

/// The line that stays of an event.
fn line(event: &RunnerEvent) -> Option<String> {
    Some(match event {
        RunnerEvent::Begun { .. } => return None,
        RunnerEvent::Running { label, place } => format!("{}{label}: running", at(*place)),
        RunnerEvent::Generating { folder, bytes } => {
            format!("generating {} in {}", units::bytes(*bytes), folder.display())
        }
        RunnerEvent::Recovered { label, is_complete: true } => {
            format!("{label}: a runner died, and the results were whole")
        }
        RunnerEvent::Recovered { label, is_complete: false } => {
            format!("{label}: a runner died before the results were whole; to be run again")
        }
        RunnerEvent::Superseded { label, folder } => {
            format!("{label}: set back; the older result is in {}", folder.display())
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
            format!("{}{label}: {result}{}{doubts}", at(*place), units::seconds(*duration_s))
        }
        RunnerEvent::Failed { label, place, reason } => {
            format!("{}{label}: failed: {}", at(*place), reason.trim().replace('\n', "\n    "))
        }
        RunnerEvent::RowRemoved { label, run_dir } => {
            format!("{label}: its row left the CSV; the results are in {}", run_dir.display())
        }
        RunnerEvent::Chooser(ChooserEvent::ReplicationEnded {
            label, runs_without_value, ..
        }) if *runs_without_value > 0 => {
            let runs = units::counted(*runs_without_value as u64, "run");
            format!("{label}: of {runs} the response cannot be known, so none is added")
        }
        RunnerEvent::Chooser(ChooserEvent::Note(note)) => format!("note: {note}"),
        RunnerEvent::MarkOverwritten { label } => {
            format!(
                "{label}: was set back to `N` after this runner had done it, and is left to the next `study run`"
            )
        }
        RunnerEvent::Busy { label, folder, holder } => {
            format!("{label} waits for its dataset in {}: {holder}", folder.display())
        }
        RunnerEvent::InUse { folder } => {
            format!("{}: somebody reads it, so it is not deleted", folder.display())
        }
        RunnerEvent::Chooser(ChooserEvent::ReplicationEnded { label, status, .. }) => {
            let known = match status.half_width {
                Some(share) => format!("known to ± {:.1} %", 100.0 * share),
                None => "not known to any width".into(),
            };
            let runs = units::counted(status.replicates, "run");
            match status.next {
                NextStep::OutOfReach => format!("{label}: {known} by {runs}; not within reach"),
                NextStep::Enough | NextStep::Another => format!("{label}: {known} by {runs}"),
            }
        }
        RunnerEvent::OutOfTime { label, expected_s } => {
            let time = units::seconds(*expected_s);
            format!("{label}: takes about {time}, more than is left of the time")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ended_tells_its_place_time_and_utilisation() {
        let place = Some(RowPlace { number: 3, count: Some(12) });
        let doubts = vec!["device_not_quiet".into()];
        let mut event = RunnerEvent::Finished {
            label: "w/2".into(),
            place,
            duration_s: 13.0,
            result: Some("AU 55.0 %".into()),
            doubts,
        };
        let told = "[3/12] w/2: AU 55.0 %, 13 s, doubts: device_not_quiet";
        assert_eq!(line(&event).unwrap(), told);
        if let RunnerEvent::Finished { place, result, doubts, .. } = &mut event {
            *place = None;
            *result = None;
            doubts.clear();
        }
        assert_eq!(line(&event).unwrap(), "w/2: 13 s");
    }

    #[test]
    fn the_line_tells_what_is_left_of_all_and_how_far_the_run_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let live_file = Some(file.clone());
        let place = Some(RowPlace { number: 3, count: Some(40) });
        let name = "2_read_threads_1 replicate 1".to_string();
        let mut now = Now { name, place, left_s: 700.0, live_file, ..Now::default() };
        let after = Duration::from_secs;
        assert_eq!(now.line(after(5)), "[3/40] ≈ 12 min left · 2_read_threads_1 … · 5 s");
        std::fs::write(&file, "epoch 1/2 step 13/99 · AU 50.0 %").unwrap();
        let runs = "[3/40] ≈ 50 s left · 2_read_threads_1 … · epoch 1/2 step 13/99 · AU 50.0 %";
        assert_eq!(now.line(after(650)), runs);
        assert!(runs.chars().count() < 80);
        // It takes longer than was thought: what is left is not known any more.
        let longer = "[3/40] · 2_read_threads_1 … · epoch 1/2 step 13/99 · AU 50.0 %";
        assert_eq!(now.line(after(701)), longer);
        (now.doing, now.live_file) = ("making its dataset".into(), None);
        let makes = "[3/40] ≈ 12 min left · making its dataset · 2 s · 2_read_threads_1 …";
        assert_eq!(now.line(after(2)), makes);
    }
}
