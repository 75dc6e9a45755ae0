//! Reports the progress of `feedrate study run`: a line an event, and in a terminal a live line below them.

use crate::{messages, progress};
use feedrate_analysis::precision::NextStep;
use feedrate_spec::{escape, units};
use feedrate_study::runner::RunnerEvent;
use indicatif::{ProgressBar, ProgressStyle};

/// Tells the user.
pub(super) struct Reporter {
    line: ProgressBar,
}

impl Reporter {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg} · {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        Reporter { line: progress::waiting("").with_style(style) }
    }

    /// Without a live line.
    pub(super) fn hidden() -> Self {
        Reporter { line: ProgressBar::hidden() }
    }

    /// Tell of one event.
    pub(super) fn tell(&self, event: &RunnerEvent) {
        let line = line(event);
        let live = match event {
            RunnerEvent::Running { left_s, .. } => {
                format!("{line}; all that is left, about {}", units::seconds(*left_s))
            }
            RunnerEvent::Generating { .. } => line.clone(),
            _ => String::new(),
        };
        if live.is_empty() || self.line.is_hidden() {
            self.say(&line);
        }
        self.line.reset_elapsed();
        self.line.set_message(escape::one_line(&live).into_owned());
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        self.line.suspend(|| messages::note(text));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.line.finish_and_clear();
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
