//! What is known of a study beside its CSV: a journal of what was begun and what came of it, and what follows from it for each row.

mod event;
mod journal;
mod history;
mod status;
#[cfg(test)]
mod tests;

pub use event::{Checked, Event, Launching, Settings};
pub use history::{Attempt, Dataset, History, IsCopy, Outcome, RowId};
pub use journal::{Journal, JournalError};
pub use status::{Place, Status, places};
