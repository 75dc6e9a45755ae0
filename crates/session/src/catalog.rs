//! Collects the built-in members of all families for the planner.

use feedrate_data::storage::engine;
use feedrate_data::{format, storage};
use feedrate_engine::loader;
use feedrate_run::{checkpoint, compute};
use feedrate_spec::catalog::Catalog;
use feedrate_spec::plan::{self, Estimate, Plan};

/// Returns the catalog of all built-in members.
pub fn catalog() -> Catalog {
    Catalog {
        formats: format::entries(),
        storages: storage::STORAGES.iter().map(|storage| storage.member).collect(),
        engines: engine::ENGINES.iter().map(|engine| engine.member()).collect(),
        checkpoints: checkpoint::CHECKPOINTS.iter().map(|format| format.member()).collect(),
        loaders: loader::LOADERS.iter().map(|loader| loader.entry()).collect(),
        computes: compute::COMPUTES.iter().map(|compute| compute.member).collect(),
    }
}

/// Computes the files, bytes, steps and rates of a plan.
pub fn estimate(plan: &Plan) -> Estimate {
    plan::estimate(plan, &catalog())
}
