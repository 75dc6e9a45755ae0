//! What is known of a study beside its CSV: a journal of what was begun and what came of it, and what follows from it for each row.

mod event;
mod journal;
mod history;
mod status;
#[cfg(test)]
mod tests;

pub use event::{Event, Launching, Settings};
pub use history::{Attempt, Dataset, History, Outcome, RowId, row_ids};
pub use journal::{Journal, JournalError};
pub use status::{Status, status};
