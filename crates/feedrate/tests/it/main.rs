//! The real `feedrate`, run as users run it, in folders of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod evaluation;
mod harness;
/// Runs and what they leave.
mod advise;
mod answer;
mod schema;
mod run;
/// Bad input: each its own error, no panic.
mod bad_input;
/// Words of others, and what is not there.
mod meant;
mod exit_codes;
mod calibrate;
/// Plans, lists, descriptions.
mod describe;
mod command_line;
mod shell;
/// Samples inside the files of others.
mod members;
/// Folders that others filled.
mod folder;
/// Logs of other programs' I/O.
mod import;
/// Changed runs, predicted.
mod predict;
/// Changed runs, tried.
mod trials;
/// What happens to datasets.
mod data;
/// Whether storage or memory served a run.
mod page_cache;
/// What others have where feedrate writes.
mod owned;
/// Formats, loaders and engines with each other.
mod pairs;
/// Checkpoints.
mod checkpoints;
/// Their formats, and what a kill leaves of them.
mod checkpoint_files;
/// What happened when.
mod phases;
/// Steps on GPUs.
mod devices;
/// What the settings of a loader do.
mod loaders;
/// The ten applications of the I/O analysis.
mod applications;
mod darshan;
/// Batch scripts for Slurm.
mod slurm;
/// New studies.
mod study_new;
/// Several hosts.
mod hosts;
/// Jobs of a real Slurm.
mod cluster;
/// What DLIO generates.
mod dlio;
/// `dlio_benchmark` in DLIO's place.
mod dlio_benchmark;
/// Several runs at once, in one place.
mod races;
/// Runs of several processes.
mod mpi;
/// What DLIO's own tests ask for.
mod dlio_cases;
/// Runs of a study, and those that are killed.
mod supervise;
/// How the runs of a study are started.
mod launches;
/// The Python package.
mod wheel;
/// What it watches.
mod watched;
/// Its notebook.
mod notebook;
/// Studies of many runs.
mod study;
mod study_files;
/// Storage that does not answer.
mod hung;
/// Those that read for each other, or together.
mod sharing;

mod staging;
/// What a tracer sees of them.
mod traced;
/// What they write down themselves.
mod trace;
/// Results read back, and doubted.
mod analyze;
/// Results side by side.
mod compare;
/// The report, in a browser too.
mod report;
/// The largest number that holds.
mod scale;
mod diagnose;
/// What others have filled with anything.
mod hostile;
/// What is printed, and by whom it is heard.
mod talk;
/// Numbers that stay.
mod golden;
/// Plots of runs and studies.
mod plot;
/// Commands of the README and the book.
mod docs;
