//! The names of the files of a checkpoint.

use super::{NamedContent, find};
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use std::collections::BTreeSet;

/// Returns the names of all files of each checkpoint of `plan`.
pub(super) fn planned_files(plan: &CheckpointPlan) -> BTreeSet<String> {
    let state = &plan.state;
    let files = (0..state.writers()).flat_map(|rank| state.files(rank));
    let names = files.flat_map(|state| file_names(plan, &state));
    names.chain(overview(plan).map(|overview| overview.file.name)).collect()
}

/// Returns the names of the files of a state.
pub(super) fn file_names(plan: &CheckpointPlan, state: &StateFile) -> Vec<String> {
    find(&plan.format).map_or_else(Vec::new, |format| format.file_names(&state.name))
}

/// The file that names one state for all.
pub(super) struct Overview {
    pub(super) file: NamedContent,
    pub(super) state: StateFile,
}

/// Returns the file of a checkpoint that rank 0 writes beside those of its states, if the format has one.
pub(super) fn overview(plan: &CheckpointPlan) -> Option<Overview> {
    let state = plan.state.files(0).into_iter().next()?;
    Some(Overview { file: find(&plan.format)?.overview(&state.name)?, state })
}
