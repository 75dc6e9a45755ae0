//! Reports the progress of `feedrate study run`: a line an event, and one of what goes on.

use crate::progress::{self, BETWEEN, LiveLine, NAME_COLUMNS, Viewer};
use crate::text;
use feedrate_analysis::precision::NextStep;
use feedrate_spec::{escape, units};
use feedrate_study::runner::RunnerEvent;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells the user.
pub(super) struct Reporter {
    line: LiveLine,
    now: Arc<Mutex<Now>>,
}

/// The work that goes on.
struct Now {
    /// Nothing where it is empty.
    text: String,
    since: Instant,
    /// All that is pending took so long from then on, as far as can be told.
    left_s: Option<f64>,
    /// Where the process at work tells how far it is.
    live_file: Option<PathBuf>,
}

impl Now {
    fn line(&self, elapsed: Duration) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let left_s = self.left_s.map(|left_s| left_s - elapsed.as_secs_f64());
        let left = left_s.filter(|&left_s| left_s >= 1.0);
        let left = left.map(|left_s| format!("all: ≈ {} left", progress::rough_seconds(left_s)));
        let told = progress::told(self.live_file.as_deref(), elapsed);
        let parts = [Some(escape::one_line(&self.text).into_owned()), left, Some(told)];
        Vec::from_iter(parts.into_iter().flatten()).join(BETWEEN)
    }
}

impl Reporter {
    pub(super) fn new(viewer: Viewer) -> Self {
        let now = Now { text: String::new(), since: Instant::now(), left_s: None, live_file: None };
        let now = Arc::new(Mutex::new(now));
        let shown = Arc::clone(&now);
        let line = LiveLine::start(viewer, move |_| {
            let now = shown.lock().unwrap_or_else(PoisonError::into_inner);
            now.line(now.since.elapsed())
        });
        Reporter { line, now }
    }

    /// Tell of one event.
    pub(super) fn tell(&self, event: &RunnerEvent) {
        let line = line(event);
        let (live, left_s) = match event {
            RunnerEvent::Running { label, number, of, left_s, .. } => {
                (format!("[{number}/{of}] {}", text::cut(label, NAME_COLUMNS)), Some(*left_s))
            }
            RunnerEvent::Generating { .. } => ("making its dataset".into(), None),
            _ => (String::new(), None),
        };
        if live.is_empty() || !self.line.is_drawn() {
            self.say(&line);
        }
        self.show(live, left_s);
    }

    /// Something else goes on from here.
    pub(super) fn show(&self, text: String, left_s: Option<f64>) {
        let now = Now { text, since: Instant::now(), left_s, live_file: None };
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The same goes on, in other words.
    pub(super) fn change(&self, text: String) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).text = text;
    }

    /// A process tells of it in this file.
    pub(super) fn follow(&self, live_file: PathBuf) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).live_file = Some(live_file);
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        self.line.say(text);
    }
}

fn line(event: &RunnerEvent) -> String {
    match event {
        RunnerEvent::Running { label, number, of, expected_s, .. } => {
            format!("[{number}/{of}] {label}: running, about {}", units::seconds(*expected_s))
        }
        RunnerEvent::Generating { folder, bytes } => {
            format!("generating {} in {}", units::bytes(*bytes), folder.display())
        }
        RunnerEvent::Recovered { label, is_whole: true } => {
            format!("{label}: a runner died, and the results were whole")
        }
        RunnerEvent::Recovered { label, is_whole: false } => {
            format!("{label}: a runner died before the results were whole; to be run again")
        }
        RunnerEvent::Superseded { label, folder } => {
            format!("{label}: set back; the older result is in {}", folder.display())
        }
        RunnerEvent::Deleted { folder, bytes } => {
            format!("deleting {} in {}", units::bytes(*bytes), folder.display())
        }
        RunnerEvent::Finished { label, duration_s, doubts, .. } => {
            let doubts = match doubts.as_slice() {
                [] => String::new(),
                doubts => format!(", doubts: {}", doubts.join(", ")),
            };
            format!("{label}: done in {}{doubts}", units::seconds(*duration_s))
        }
        RunnerEvent::Failed { label, reason } => {
            format!("{label}: failed: {}", reason.trim().replace('\n', "\n    "))
        }
        RunnerEvent::RowIsGone { label, run_dir } => {
            format!(
                "{label}: its row is no longer in the CSV; the results are in {}",
                run_dir.display()
            )
        }
        RunnerEvent::Known { label, silent_runs, .. } if *silent_runs > 0 => {
            let runs = units::counted(*silent_runs as u64, "run");
            format!("{label}: of {runs} the response cannot be known, so none is added")
        }
        RunnerEvent::SetBackMeanwhile { label } => {
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
        RunnerEvent::Known { label, standing, .. } => {
            let known = match standing.half_width {
                Some(share) => format!("known to ± {:.1} %", 100.0 * share),
                None => "not known to any width".into(),
            };
            let runs = units::counted(standing.replicates, "run");
            match standing.next {
                NextStep::OutOfReach => format!("{label}: {known} by {runs}; not within reach"),
                NextStep::Enough | NextStep::Another => format!("{label}: {known} by {runs}"),
            }
        }
        RunnerEvent::OutOfTime { label, expected_s } => {
            format!(
                "{label}: takes about {}, more than is left of the time",
                units::seconds(*expected_s)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_is_left_of_all_and_how_far_the_run_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live");
        let live_file = Some(file.clone());
        let text = "[3/40] resnet50".to_string();
        let now = Now { text, since: Instant::now(), left_s: Some(700.0), live_file };
        let after = Duration::from_secs;
        assert_eq!(now.line(after(5)), "[3/40] resnet50 · all: ≈ 12 min left · 5 s");
        std::fs::write(&file, "epoch 1/2 step 3/9 · AU 50.0 %").unwrap();
        assert_eq!(
            now.line(after(650)),
            "[3/40] resnet50 · all: ≈ 50 s left · epoch 1/2 step 3/9 · AU 50.0 %"
        );
        // It takes longer than was thought: what is left is not known any more.
        assert_eq!(now.line(after(701)), "[3/40] resnet50 · epoch 1/2 step 3/9 · AU 50.0 %");
    }
}
