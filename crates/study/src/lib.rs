//! Experiment designs and studies: creates the rows of a study, chooses the next row and runs the pending ones. Each run is a process of its own,
//! which this crate starts and supervises. It does not print to a terminal or choose exit codes.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

pub mod random;
pub mod factor;
pub mod keys;
pub mod design;
pub mod randomization;
pub mod design_file;
pub mod resolved_design;
pub mod bash;
pub mod launch;
pub mod supervise;
pub mod datasets;
pub mod search;
pub mod select;
pub mod chooser;
pub mod runner;
pub mod failure;
pub mod settings;
pub mod row_command;
pub mod own_datasets;
pub mod machine;
pub mod ledger;
pub mod precision;
pub mod chosen;
pub mod scale;
pub mod reader_settings;
pub mod trial_candidates;
