//! Checks whether a dataset fits on its storage, and finds a scale that fits.

use crate::request::Request;
use crate::resolve::resolve_named;
use crate::{catalog, dataset, store};
use feedrate_data::storage;
use feedrate_data::storage::object::Access;
use feedrate_run::system;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// Maximum share of the free space for a proposed dataset.
const SHARE_MAX: f64 = 0.95;

/// A shortage of space for a dataset.
pub struct Shortage {
    needed_bytes: u64,
    /// Bytes available for the dataset.
    pub free_bytes: u64,
    /// Folder of the datasets; `None` if `--max-data` is the limit.
    root: Option<PathBuf>,
}

/// Limits on the space for a dataset.
#[derive(Default)]
pub struct Reserved {
    /// Bytes of datasets that are generated before this one.
    pub taken_bytes: u64,
    /// Part of the free bytes that is reserved: the free bytes divided by this number.
    pub part: Option<u64>,
    /// Maximum bytes of the dataset (`--max-data`).
    pub limit_bytes: Option<u64>,
}

impl Shortage {
    /// Whether the storage is the limit, rather than `--max-data`.
    pub fn is_limited_by_storage(&self) -> bool {
        self.root.is_some()
    }
}

impl Display for Shortage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let needed = units::bytes(self.needed_bytes);
        let free = units::bytes(self.free_bytes);
        write!(f, "the dataset needs {needed}, but ")?;
        match &self.root {
            Some(root) => write!(f, "only {free} are free in `{}`", root.display()),
            None => write!(f, "`--max-data` leaves {free}"),
        }
    }
}

/// Returns the shortage of space for the dataset of `plan` below `root`. `None` if the dataset fits, or if the free space is unknown.
pub fn shortage(plan: &Plan, root: &Path, reserved: &Reserved) -> Option<Shortage> {
    let free = free_bytes(plan, root).map(|free| {
        free.saturating_sub(reserved.part.map_or(0, |part| free / part) + reserved.taken_bytes)
    });
    let limit = reserved.limit_bytes.filter(|limit| free.is_none_or(|free| *limit < free));
    let free_bytes = limit.or(free)?;
    // Sends a request if the storage is a store, whose free space is unknown.
    let needed_bytes = missing_bytes(plan, root);
    let storage_root = limit.is_none().then(|| root.into());
    let shortage = Shortage { needed_bytes, free_bytes, root: storage_root };
    (free_bytes < needed_bytes).then_some(shortage)
}

/// Returns the bytes to generate for the dataset of `plan`. Returns 0 if a part of the dataset exists, because generation examines it.
pub fn missing_bytes(plan: &Plan, root: &Path) -> u64 {
    let is_begun = || -> anyhow::Result<bool> {
        // Gives up within seconds if there is no store; other requests are repeated for longer.
        store::check(root, Access::Read)?;
        let folder = dataset::dataset_folder(plan, root)?;
        Ok(dataset::has_manifest(plan, &folder)?)
    };
    if is_begun().unwrap_or(false) {
        return 0;
    }
    catalog::estimate(plan).file_bytes
}

/// Returns the free bytes on the storage of the datasets.
pub fn free_bytes(plan: &Plan, root: &Path) -> Option<u64> {
    if dataset::is_in_folder(plan) {
        return system::free_bytes(root);
    }
    storage::open(&plan.storage.kind, root).ok()?.free_bytes().ok()?
}

/// Describes a data folder: `/mnt/fs, which does not exist yet: on / (ext4), 62.3 GB free`.
pub fn describe_location(plan: &Plan, root: &Path) -> String {
    if dataset::is_remote(plan) {
        return root.display().to_string();
    }
    if !dataset::is_in_folder(plan) {
        return format!("storage `{}`", plan.storage.kind);
    }
    let absent = if root.exists() { "" } else { ", which does not exist yet" };
    let mount = system::mount_of(root).map_or(String::new(), |mount| {
        let free = units::bytes(mount.free_bytes);
        format!(": on {} ({}), {free} free", mount.point, mount.file_system)
    });
    format!("{}{absent}{mount}", root.display())
}

/// Refuses a dataset that does not fit on its storage.
///
/// # Errors
/// Returns a refusal with the shortage, and a hint with a scale that fits.
pub fn refuse_shortage(plan: &Plan, root: &Path, request: &Request) -> Result<(), Refusal> {
    match shortage(plan, root, &Reserved::default()) {
        Some(short) => Err(Refusal::new(short.to_string(), hint(request, &short))),
        None => Ok(()),
    }
}

/// Returns a hint how to remedy a shortage.
pub fn hint(request: &Request, short: &Shortage) -> String {
    match fitting_scale(request, short.free_bytes) {
        Some(scale) => {
            format!("`--scale {scale}` fits; or free space there, or point `--data` elsewhere")
        }
        None => "free space there, point `--data` elsewhere, or use fewer accelerators".into(),
    }
}

/// Returns the largest `--scale` with two digits at which the dataset fits; `None` if no such scale can be planned.
pub fn fitting_scale(request: &Request, free_bytes: u64) -> Option<f64> {
    let bytes_at = |scale: f64| {
        let resolved = resolve_named(&Request { scale, ..request.clone() }).ok()?;
        Some(catalog::estimate(&resolved.plan).file_bytes as f64)
    };
    let bytes_max = free_bytes as f64 * SHARE_MAX;
    let share = bytes_max / bytes_at(request.scale)? * request.scale;
    let digit = 10_f64.powf(share.log10().floor() - 1.0);
    let digits_max = (share / digit).floor() as u32;
    let texts = (1..=digits_max).rev().map(|digits| format!("{:.9}", f64::from(digits) * digit));
    let mut scales = texts.filter_map(|text| text.parse().ok());
    scales.find(|&scale| {
        scale < request.scale && bytes_at(scale).is_some_and(|bytes| bytes <= bytes_max)
    })
}
