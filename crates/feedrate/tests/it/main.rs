//! Integration tests: run the program `feedrate` in temporary folders.

#![expect(clippy::disallowed_methods, reason = "tests list intact folders")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod evaluation;
mod harness;
mod advise;
mod answer;
/// One answer in all commands.
mod agreement;
mod schema;
mod run;
/// Errors for bad input.
mod bad_input;
/// Words of other tools, files of other kinds, and missing folders.
mod meant;
mod exit_codes;
mod calibrate;
/// Commands that run nothing.
mod describe;
mod command_line;
mod shell;
/// Samples inside foreign containers.
mod members;
/// Folders of foreign files.
mod folder;
/// Failures of the system.
mod faults;
/// Folders of files that the formats' libraries wrote.
mod library_files;
/// Folders of parquet.
mod parquet;
/// I/O logs of other programs.
mod import;
/// Predictions of changed runs.
mod predict;
/// Trials of changed runs.
mod trials;
/// Files of which a part is not read.
mod unread;
/// Requests for rows of HDF5 files.
mod hdf5_requests;
mod library_requests;
/// Generation and reuse of datasets.
mod data;
/// Detection of reads from the page cache.
mod page_cache;
/// Protection of the user's files.
mod owned;
/// All combinations of formats, loaders and engines.
mod pairs;
/// Checkpoints.
mod checkpoints;
/// Formats of checkpoints, and checkpoints of killed runs.
mod checkpoint_files;
/// Timelines and phases.
mod phases;
/// Steps on GPUs.
mod devices;
/// Submissions to MLPerf Storage, as its own tools leave them.
mod submission;
/// Reads of whole files and row groups.
mod requests;
/// Settings of loaders.
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
/// Jobs in a real Slurm cluster.
mod cluster;
/// Datasets that DLIO generated.
mod dlio;
/// `dlio_benchmark` as a replacement of DLIO's program.
mod dlio_benchmark;
/// What DLIO's users expect of it.
mod dlio_drop_in;
/// Several processes in the same folder.
mod races;
/// Servers of object stores.
mod object_servers;
/// A proxy that injects faults.
mod fault_proxy;
/// Datasets in buckets.
mod objects;
/// Checkpoints in buckets, and cleaning of buckets.
mod objects_checkpoints;
/// Requests to a bucket that fail.
mod objects_faults;
/// Utilisations with stores of known rates.
mod objects_speed;
/// Workloads of DLIO and MLPerf Storage for stores.
mod objects_workloads;
/// Runs of several processes.
mod mpi;
/// DLIO's own tests.
mod dlio_cases;
/// Supervision of a study's runs.
mod supervise;
/// Launch methods of studies.
mod launches;
/// The Python package.
mod wheel;
/// Loops that the Python package watches.
mod watched;
/// The notebook of the Python package.
mod notebook;
/// Studies of many runs.
mod study;
mod study_files;
/// Storage that does not answer.
mod hung;
/// Processes that share reads.
mod sharing;
mod staging;
/// Runs compared with the log of a tracer.
mod traced;
/// Traces that runs write.
mod trace;
/// Results read back, and their doubts.
mod analyze;
/// Comparison of results.
mod compare;
/// Reports, also in a browser.
mod report;
/// Rehearsals of submissions to MLPerf Storage.
mod rehearse;
/// Repeated runs.
mod repeat;
/// Files for other programs.
mod export;
/// Searches for the largest number of accelerators.
mod scale;
mod diagnose;
/// Malicious files.
mod hostile;
/// Output, closed pipes and full devices.
mod talk;
/// Snapshots of numbers.
mod golden;
/// Plots of runs and studies.
mod plot;
/// Commands of the README and the book.
mod docs;
