//! Stores of objects in a request: which URL names the data, how the store is reached, and whether it can be used.

use crate::surroundings::ProcessSurroundings;
use feedrate_data::storage::StorageError;
use feedrate_data::storage::object::{self, Access};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::plan::Plan;
use feedrate_spec::problem::Problem;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::workload::{Surroundings, Workload};
use std::path::{Path, PathBuf};

/// Takes the storage from the URL of the data, if they have one: `data` (`--data`), else `dataset.data_folder`.
///
/// # Errors
/// Refuses a URL without a bucket.
pub(crate) fn take_storage(workload: &mut Workload, data: Option<&Path>) -> Result<(), Refusal> {
    let folder = data.map_or(Path::new(&workload.dataset_data_folder), |data| data);
    if let Some(url) = parse_url(folder)? {
        workload.storage_storage_type = url.storage.into();
    }
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
    let url = ObjectUrl::parse(folder).or_else(|| {
        let root = &workload.storage_storage_root;
        let root = root.split_once("://").map_or(root.as_str(), |(_, path)| path);
        ObjectUrl::in_storage(&workload.storage_storage_type, &format!("{root}/{folder}"))
    });
    Some(url?.to_string().into())
}

/// Whether a path names objects in a store.
pub fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(ObjectUrl::has_scheme)
}

/// Configures the store of a plan, if it uses one, and describes it in the plan. Returns warnings.
pub(crate) fn configure(plan: &mut Plan, workload: &Workload, root: &Path) -> Vec<Problem> {
    let Some(url) = root.to_str().and_then(ObjectUrl::parse) else { return Vec::new() };
    if plan.storage.kind != url.storage {
        return Vec::new();
    }
    let mut options = workload.storage_storage_options.clone();
    options.extend(
        workload
            .storage_s3_force_path_style
            .map(|path_style| ("s3_force_path_style".into(), path_style.to_string())),
    );
    object::configure(&url, &options);
    let variable = |name: &str| ProcessSurroundings::at_no_time().variable(name);
    let (description, unused) = object::describe(&url, &options, &variable);
    plan.storage.object = Some(description);
    if unused.is_empty() {
        return Vec::new();
    }
    let names = unused.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let message = format!("no effect on storage `{}`: {names}", url.storage);
    vec![Problem::warning("storage.storage_options", message)]
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
