//! The rows of a search: a number as a row, and the dataset of a row that was run before a restart.

use super::{FILES, SearchRange};
use crate::chooser::NumberRange;
use crate::chosen;
use crate::search::ACCELERATORS;
use feedrate_results::row::Row;
use feedrate_session::failure::on_one_line;
use feedrate_spec::units;
use feedrate_spec::workload::canonical_key;
use std::collections::BTreeSet;
use std::path::PathBuf;

impl NumberRange for SearchRange<'_> {
    fn max(&self) -> u64 {
        self.max
    }

    fn row(&self, number: u64) -> Option<Row> {
        let request = self.at(number).ok()?;
        let accelerators = request.accelerators.unwrap_or(self.resolved.plan.accelerators);
        chosen::row(&request, accelerators).ok()
    }

    fn words(&self, number: u64) -> String {
        match self.options.key.as_str() {
            ACCELERATORS => units::counted(number, "accelerator"),
            key => format!("{key}={number}"),
        }
    }

    fn number(&self, row: &Row) -> Option<u64> {
        if self.options.key == ACCELERATORS {
            return Some(row.accelerators.into());
        }
        let key = canonical_key(&self.options.key);
        let own = row.settings.iter().find(|setting| canonical_key(&setting.key) == key)?;
        own.value.as_ref()?.parse().ok()
    }

    fn client_leaves(&self, number: u64) -> Option<f64> {
        self.client_leaves_too_little(number).ok().flatten()
    }

    fn grow(&mut self, known: Option<&Row>) -> bool {
        if known.is_some_and(|row| self.grow_to_dataset_of(row)) {
            return true;
        }
        self.extend().unwrap_or_else(|error| {
            self.max_reason = on_one_line(&error);
            false
        })
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl SearchRange<'_> {
    /// Go on with the dataset of the `first` row of a search, even if another would fit now. `made` are the folders of datasets that it made.
    pub fn resume(&mut self, first: Option<&Row>, made: BTreeSet<PathBuf>) -> anyhow::Result<()> {
        self.made = made;
        let mut resumed = self.clone();
        resumed.notes.retain(|note| !note.starts_with("dataset: "));
        if first.is_some_and(|row| resumed.take_dataset_of(row)) {
            *self = resumed;
        }
        self.made_bytes = self.dataset_bytes_made()?;
        Ok(())
    }

    /// Take the dataset of a row that was chosen before a restart, even if another would fit now. False where it is the same.
    fn take_dataset_of(&mut self, row: &Row) -> bool {
        let files = row.settings.iter().find(|setting| setting.key == FILES);
        let files = files.and_then(|setting| setting.value.as_ref()?.parse().ok());
        if files == self.files || !self.may_resize() {
            return false;
        }
        let mut sized = SearchRange { files, steps: None, ..self.clone() };
        if sized.limit().is_err() {
            return false;
        }
        if files.is_some() {
            sized.notes.extend(sized.note_on_dataset(sized.max).ok());
        }
        *self = sized;
        true
    }

    fn grow_to_dataset_of(&mut self, row: &Row) -> bool {
        let mut larger = self.clone();
        let is_larger = larger.take_dataset_of(row);
        let Some(bytes) = is_larger.then(|| larger.dataset_bytes_made().ok()).flatten() else {
            return false;
        };
        larger.made_bytes += bytes;
        *self = larger;
        true
    }
}
