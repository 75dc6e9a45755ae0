//! Workloads as users write them: YAML with DLIO's keys, and overrides in Hydra's syntax. The planner turns them into plans.

mod time;
mod tree;
mod yaml;
mod scalar;
mod braces;
mod value;
mod overrides;
mod keys;
mod words;
mod apply;
mod interpolation;
mod parse;
mod write;
mod suggest;
#[cfg(test)]
mod tests;

pub use apply::canonical_key;
pub use interpolation::{NoSurroundings, Surroundings, interpolate_text};
pub use keys::{
    CREDENTIALS, Effect, KEYS, KeyInfo, Origin, SECTION_ALIASES, Workload, client_costs,
};
pub use overrides::{Override, overridden_key};
pub use parse::{Strictness, parse, parse_in};
pub use suggest::{alternatives, nearest, similar_names};
pub use time::TimeSpec;
pub use tree::{Content, Entry, Node};
pub(crate) use value::FOLDERS_MAX;
pub use value::{EPOCHS_MAX, Framework, Shuffle, WriteInterface};
pub use words::with_full_key;
pub use write::{
    composed_yaml, given_json, given_values, override_without_secret, resolved_package_yaml,
    resolved_yaml, yaml_at, yaml_text,
};
pub use yaml::json_from_yaml;
