//! Stands for `object/` in a build without the feature `object`. No storage needs it, because the planner refuses those of objects.

use super::{Explained, StorageError};
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::plan::ObjectPlan;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// Options of a bucket; none exist in this build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {}

/// Whether the objects below a URL are only read, or also written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are only read.
    Read,
    /// They are read, written and removed.
    Write,
}

/// Does nothing.
pub fn configure(
    _url: &ObjectUrl,
    _options: &[(String, String)],
    _variable: &dyn Fn(&str) -> Option<String>,
) {
}

/// Returns nothing.
pub fn all_settings() -> Vec<StoreSettings> {
    Vec::new()
}

/// Does nothing.
pub fn adopt_settings(_all: Vec<StoreSettings>) {}

/// Describes the bucket only.
pub fn describe(
    url: &ObjectUrl,
    _options: &[(String, String)],
    _variable: &dyn Fn(&str) -> Option<String>,
) -> (ObjectPlan, Vec<String>) {
    (ObjectPlan { bucket: url.bucket_url(), ..ObjectPlan::default() }, Vec::new())
}

/// Refuses every store.
///
/// # Errors
/// Always.
pub fn check(url: &ObjectUrl, _access: Access) -> Result<(), StorageError> {
    let message = "this build has no object stores".to_string();
    let hint = Some("build feedrate with the feature `object`");
    let source = std::io::Error::new(ErrorKind::Unsupported, Explained { message, hint });
    Err(StorageError::new("open", url.to_string(), source))
}
