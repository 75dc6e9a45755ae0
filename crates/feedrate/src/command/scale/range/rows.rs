//! The rows of a search: a number as a row, and the dataset of a row that was run before a restart.

use super::{FILES, SearchRange};
use crate::command::study::chosen;
use feedrate_results::row::Row;
use feedrate_session::catalog;
use feedrate_session::failure::on_one_line;
use feedrate_spec::workload::canonical_key;
use feedrate_study::chooser::NumberRange;
use feedrate_study::search::ACCELERATORS;

impl NumberRange for SearchRange<'_> {
    fn max(&self) -> u64 {
        self.max
    }

    fn row(&self, number: u64) -> Option<Row> {
        let request = self.at(number).ok()?;
        let accelerators = request.accelerators.unwrap_or(self.resolved.plan.accelerators);
        chosen::row(&request, accelerators).ok()
    }

    fn number(&self, row: &Row) -> Option<u64> {
        if self.arguments.key == ACCELERATORS {
            return Some(row.accelerators.into());
        }
        let key = canonical_key(&self.arguments.key);
        let own = row.settings.iter().find(|setting| canonical_key(&setting.key) == key)?;
        own.value.as_ref()?.parse().ok()
    }

    fn client_leaves(&self, number: u64) -> Option<f64> {
        self.client_leaves_too_little(number).ok().flatten()
    }

    fn grow(&mut self, known: Option<&Row>) -> bool {
        if known.is_some_and(|row| self.take_dataset_of(row)) {
            return true;
        }
        self.extend().unwrap_or_else(|error| {
            self.why_max = on_one_line(&error);
            false
        })
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl SearchRange<'_> {
    /// Take the dataset of a row that was run before a restart, whatever has room now. False where the row has none.
    pub(in crate::command::scale) fn take_dataset_of(&mut self, row: &Row) -> bool {
        let files = row.settings.iter().find(|setting| setting.key == FILES);
        let files = files.and_then(|setting| setting.value.as_ref()?.parse().ok());
        if files.is_none() || files == self.files || !self.may_resize() {
            return false;
        }
        let mut sized = SearchRange { files, steps: None, ..self.clone() };
        let plan = sized.limit().and_then(|()| sized.plan(sized.max));
        let Ok(plan) = plan else { return false };
        sized.made_bytes += catalog::estimate(&plan).file_bytes;
        sized.notes.extend(sized.note_on_dataset(sized.max).ok());
        *self = sized;
        true
    }
}
