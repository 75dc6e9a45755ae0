//! What a runner finds that an earlier one could not bring to an end.

use super::host::News;
use super::{Rows, Runner, RunnerError, aside};
use feedrate_results::place::INCOMPLETE;
use feedrate_results::state::{Attempt, Checked, Event, Outcome, Status, places};

impl Runner<'_> {
    /// Bring to an end what an earlier runner could not.
    pub(super) fn recover(&mut self) -> Result<(), RunnerError> {
        self.remove_half_deleted()?;
        let open = |attempt: &&Attempt| {
            let is_unmarked = attempt.is_finished() && !attempt.marked && !attempt.superseded;
            attempt.outcome == Outcome::Unknown || is_unmarked
        };
        let open: Vec<Attempt> = self.history.attempts.iter().filter(open).cloned().collect();
        for attempt in open {
            self.recover_attempt(&attempt)?;
        }
        Ok(())
    }

    fn recover_attempt(&mut self, attempt: &Attempt) -> Result<(), RunnerError> {
        let rows = Rows::of(self.files, &self.history)?;
        let is_its =
            |status: &Status| status.attempt().is_some_and(|of| of.number == attempt.number);
        let places = places(&rows.all, &self.history);
        let index = places.iter().position(|place| is_its(&place.status));
        drop(places);
        let label = index.map_or_else(|| attempt.row.key.0.clone(), |index| rows.label(index));
        let checked = index.and_then(|index| self.check_left(&rows, index, attempt));
        let is_begun = attempt.outcome == Outcome::Unknown;
        match (checked, index) {
            (Some(checked), Some(index)) if is_begun => {
                self.host.tell(News::Recovered { label, is_whole: true });
                self.finish((&rows, index), attempt.number, &attempt.run_dir, checked)
            }
            (Some(_), Some(_)) => self.mark(attempt.number, &label, &attempt.run_dir),
            // Its row was deleted, and its result is nobody's to judge.
            (None, None) if !is_begun => Ok(()),
            _ => {
                self.host.tell(News::Recovered { label, is_whole: false });
                aside(&attempt.run_dir, INCOMPLETE)?;
                Ok(self.add(Event::BrokenOff { attempt: attempt.number })?)
            }
        }
    }

    /// What an attempt came to whose runner did not live to tell.
    fn check_left(&mut self, rows: &Rows, index: usize, attempt: &Attempt) -> Option<Checked> {
        let row = &rows.all[index];
        let plan = self.host.plan(row, &self.settings).ok()?;
        self.host.check(&attempt.run_dir, row, &plan).ok()
    }
}
