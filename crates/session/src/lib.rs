//! Carries out one request: resolves the workload, prepares its dataset, executes the run and writes its result folder.
//!
//! It reports to a [`feedrate_spec::listener::Listener`] and refuses with a [`feedrate_spec::refusal::Refusal`]. Command lines, exit codes and
//! terminals belong to the binary.

pub mod failure;
pub mod output;
pub mod catalog;
pub mod request;
pub mod log_files;
pub mod recognise;
pub mod result_folder;
pub mod surroundings;
pub mod store;
pub mod resolve;
pub mod progress_text;
pub mod hung;
pub mod agreement;
pub mod launch;
pub mod folder;
pub mod dataset_lock;
pub mod dataset;
pub mod room;
pub mod generate;
pub mod mlperf;
pub mod rehearsal;
pub mod template;
mod staging;
mod sharing;
pub mod execute;
pub mod run;
pub mod ceilings;
pub mod logs;
pub mod dlio;
pub mod cleaning;

/// Number of threads for work that is not measured: one per core.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
