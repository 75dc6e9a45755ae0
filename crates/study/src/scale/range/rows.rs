//! Converts numbers to rows and back, and restores the dataset of a search after a restart.

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
        let request = self.request_at(number).ok()?;
        let accelerators = request.accelerators.unwrap_or(self.resolved.plan.accelerators);
        chosen::row(&request, accelerators).ok()
    }

    fn describe(&self, number: u64) -> String {
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
        let setting = row.settings.iter().find(|setting| canonical_key(&setting.key) == key)?;
        setting.value.as_ref()?.parse().ok()
    }

    fn client_limit(&self, number: u64) -> Option<f64> {
        self.insufficient_client_limit(number).ok().flatten()
    }

    fn grow(&mut self, earlier_row: Option<&Row>) -> bool {
        if earlier_row.is_some_and(|row| self.grow_to_dataset_of(row)) {
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
    /// Resumes a search with the dataset of its `first` row, even if another dataset would be chosen now. `generated_folders` are the folders of the
    /// datasets that the search generated.
    pub fn resume(
        &mut self,
        first: Option<&Row>,
        generated_folders: BTreeSet<PathBuf>,
    ) -> anyhow::Result<()> {
        self.generated_folders = generated_folders;
        let mut resumed = self.clone();
        resumed.notes.retain(|note| !note.starts_with("dataset: "));
        if first.is_some_and(|row| resumed.switch_to_dataset_of(row)) {
            *self = resumed;
        }
        self.generated_bytes = self.bytes_generated_for_search()?;
        Ok(())
    }

    /// Switches to the dataset of a row that was chosen before a restart. Returns false if the dataset is the same or cannot be used.
    fn switch_to_dataset_of(&mut self, row: &Row) -> bool {
        let setting = row.settings.iter().find(|setting| setting.key == FILES);
        let files = setting.and_then(|setting| setting.value.as_ref()?.parse().ok());
        if files == self.files || !self.may_resize() {
            return false;
        }
        let mut sized = SearchRange { files, steps: None, ..self.clone() };
        if sized.find_max().is_err() {
            // The dataset may have been chosen without a file for each worker.
            sized.needs_files_for_workers = false;
            if sized.find_max().is_err() {
                return false;
            }
        }
        if files.is_some() {
            sized.notes.extend(sized.note_on_dataset(sized.max).ok());
        }
        *self = sized;
        true
    }

    /// Switches to the larger dataset of a row. Returns false if the switch is not possible.
    fn grow_to_dataset_of(&mut self, row: &Row) -> bool {
        let mut larger = self.clone();
        let is_larger = larger.switch_to_dataset_of(row);
        let Some(bytes) = is_larger.then(|| larger.bytes_generated_for_search().ok()).flatten()
        else {
            return false;
        };
        larger.generated_bytes += bytes;
        *self = larger;
        true
    }
}
