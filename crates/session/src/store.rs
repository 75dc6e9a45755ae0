//! Stores of objects in a request: which URL names the data, how the store is reached, and whether it can be used.

use crate::surroundings::ProcessSurroundings;
use feedrate_data::storage::StorageError;
use feedrate_data::storage::object::{self, Access};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::plan::{ObjectPlan, Plan};
use feedrate_spec::problem::Problem;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{Content, Surroundings, Workload};
use std::path::{Path, PathBuf};

/// Python libraries for objects.
const LIBRARIES: [&str; 3] = ["s3dlio", "s3torchconnector", "minio"];
/// Keys by which workloads of DLIO and MLPerf Storage choose such a library.
const LIBRARY_KEYS: [&str; 3] =
    ["storage.storage_type", "storage.storage_library", "storage.storage_options.storage_library"];

/// Takes the storage from the URL of the data, if they have one, and places the checkpoints. The data are in `data` (`--data`), else in
/// `dataset.data_folder`.
///
/// # Errors
/// Refuses a URL without a bucket.
pub(crate) fn take_storage(workload: &mut Workload, data: Option<&Path>) -> Result<(), Refusal> {
    let url = parse_url(data.map_or(Path::new(&workload.dataset_data_folder), |data| data))?;
    if let Some(url) = &url {
        workload.storage_storage_type = url.storage.into();
    }
    place_checkpoints(workload, url.as_ref());
    Ok(())
}

/// The URL of the data; `None` if they are in a folder.
///
/// # Errors
/// Refuses a URL without a bucket.
pub(crate) fn parse_url(data: &Path) -> Result<Option<ObjectUrl>, Refusal> {
    let Some(text) = data.to_str().filter(|text| ObjectUrl::has_scheme(text)) else {
        return Ok(None);
    };
    match ObjectUrl::parse(text) {
        None => refuse(format!("`{text}` names no bucket"), "write `s3://bucket/prefix`"),
        url => Ok(url),
    }
}

/// The folder of a workload's datasets as a URL: `dataset.data_folder` in the bucket `storage.storage_root`. `None` for other storages.
pub(crate) fn data_url(workload: &Workload) -> Option<PathBuf> {
    let folder = &workload.dataset_data_folder;
    let url = ObjectUrl::parse(folder).or_else(|| in_storage_root(workload, folder));
    Some(url?.to_string().into())
}

/// Places checkpoints with a relative folder beside data in a store, as DLIO does: below `data`, the URL of the data, else in the bucket
/// `storage.storage_root`. Users' own data keep no checkpoints.
fn place_checkpoints(workload: &mut Workload, data: Option<&ObjectUrl>) {
    let folder = &workload.checkpoint_checkpoint_folder;
    let is_relative = !Path::new(folder).is_absolute() && !ObjectUrl::has_scheme(folder);
    if workload.dataset_foreign || !is_relative {
        return;
    }
    let url = match data {
        Some(data) => ObjectUrl::parse(&format!("{data}/{folder}")),
        None => in_storage_root(workload, folder),
    };
    if let Some(url) = url {
        workload.checkpoint_checkpoint_folder = url.to_string();
    }
}

/// The URL of a path in the bucket `storage.storage_root`. `None` for storages without buckets.
fn in_storage_root(workload: &Workload, path: &str) -> Option<ObjectUrl> {
    let root = &workload.storage_storage_root;
    let root = root.split_once("://").map_or(root.as_str(), |(_, path)| path);
    ObjectUrl::in_storage(&workload.storage_storage_type, &format!("{root}/{path}"))
}

/// Whether a path names objects in a store.
pub fn is_url(path: &Path) -> bool {
    ObjectUrl::is_written_in(path)
}

/// Configures the stores of a plan, those of its data and its checkpoints, and describes them in the plan. Returns warnings.
pub(crate) fn configure(plan: &mut Plan, workload: &Workload, root: &Path) -> Vec<Problem> {
    let mut options = workload.storage_storage_options.clone();
    options.extend(
        workload
            .storage_s3_force_path_style
            .map(|path_style| ("s3_force_path_style".into(), path_style.to_string())),
    );
    let data_url = root.to_str().and_then(ObjectUrl::parse);
    let data_url = data_url.filter(|url| plan.storage.kind == url.storage);
    let mut unused = None;
    if let Some(url) = &data_url {
        let (description, unused_by_data) = configure_bucket(url, &options);
        plan.storage.object = Some(description);
        unused = Some(unused_by_data);
    }
    if let Some(checkpoint) = &mut plan.checkpoint
        && let Some(url) = ObjectUrl::parse(&checkpoint.folder)
    {
        let (description, unused_by_checkpoints) = configure_bucket(&url, &options);
        checkpoint.object = Some(description);
        unused = Some(unused_by_checkpoints);
    }
    let Some(unused) = unused else { return Vec::new() };
    let mut warnings = Vec::from_iter(replaced_library(workload));
    if !unused.is_empty() {
        let names = unused.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = format!("no effect on a store: {names}");
        warnings.push(Problem::warning("storage.storage_options", message));
    }
    warnings
}

/// Warns of a library for objects that a workload names, because feedrate's own client replaces it.
fn replaced_library(workload: &Workload) -> Option<Problem> {
    LIBRARY_KEYS.iter().find_map(|key| match &workload.tree().node_at(key)?.content {
        Content::Scalar { text, .. } if LIBRARIES.contains(&text.as_str()) => {
            let message = format!("the library `{text}` is not used: feedrate has its own client");
            Some(Problem::warning(*key, message))
        }
        _ => None,
    })
}

/// Configures a bucket. Returns its description and the options without effect.
fn configure_bucket(url: &ObjectUrl, options: &[(String, String)]) -> (ObjectPlan, Vec<String>) {
    let variable = |name: &str| ProcessSurroundings::at_no_time().variable(name);
    object::configure(url, options, &variable);
    object::describe(url, options, &variable)
}

/// Configures the bucket of a URL that no workload uses, by the environment. Does nothing for a folder.
///
/// # Errors
/// Refuses a URL without a bucket.
pub fn configure_url(url: &Path) -> Result<(), Refusal> {
    if let Some(url) = parse_url(url)? {
        configure_bucket(&url, &[]);
    }
    Ok(())
}

/// As [`configure_url`], and checks that the bucket can be used.
///
/// # Errors
/// Refuses a URL without a bucket. Fails within seconds if the store cannot be reached or denies access.
pub fn open_url(url: &Path, access: Access) -> anyhow::Result<()> {
    configure_url(url)?;
    Ok(check(url, access)?)
}

/// Checks that the store of `root` can be used. Does nothing for a folder.
///
/// # Errors
/// Fails within seconds if the store cannot be reached or denies access.
pub(crate) fn check(root: &Path, access: Access) -> Result<(), StorageError> {
    match root.to_str().and_then(ObjectUrl::parse) {
        Some(url) => object::check(&url, access),
        None => Ok(()),
    }
}
