//! Whether a dataset has room on its storage, and which share of it has.

use crate::request::Request;
use crate::resolve::resolve_named;
use crate::{catalog, dataset};
use feedrate_data::{manifest, storage};
use feedrate_run::system;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// Largest share of the free space that is proposed.
const SHARE_MAX: f64 = 0.95;

/// Too little room for a dataset.
pub struct Shortage {
    needed_bytes: u64,
    /// Bytes that are left for the dataset.
    pub free_bytes: u64,
    /// `None` if `--max-data` is the limit, not the storage.
    root: Option<PathBuf>,
}

/// Room that a dataset must not take.
#[derive(Default)]
pub struct Reserved {
    /// Bytes for datasets that are made before it.
    pub taken_bytes: u64,
    /// Divisor of the free bytes whose quotient is reserved.
    pub part: Option<u64>,
    /// Bytes of `--max-data`, beyond which all is reserved.
    pub beyond_bytes: Option<u64>,
}

impl Shortage {
    /// Whether the storage is the limit, not `--max-data`.
    pub fn is_of_storage(&self) -> bool {
        self.root.is_some()
    }
}

impl Display for Shortage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [needed, free] = [self.needed_bytes, self.free_bytes].map(units::bytes);
        write!(f, "the dataset needs {needed}, but ")?;
        match &self.root {
            Some(root) => write!(f, "only {free} are free in `{}`", root.display()),
            None => write!(f, "`--max-data` leaves {free}"),
        }
    }
}

/// `None` if the dataset of `plan` has room below `root` beside what is reserved, or if the room is unknown.
pub fn shortage(plan: &Plan, root: &Path, reserved: &Reserved) -> Option<Shortage> {
    let needed_bytes = to_generate_bytes(plan, root);
    let free = free_bytes(plan, root).map(|free| {
        free.saturating_sub(reserved.part.map_or(0, |part| free / part) + reserved.taken_bytes)
    });
    let most = reserved.beyond_bytes.filter(|most| free.is_none_or(|free| *most < free));
    let free_bytes = most.or(free)?;
    let root = most.is_none().then(|| root.into());
    (free_bytes < needed_bytes).then_some(Shortage { needed_bytes, free_bytes, root })
}

/// Bytes of the dataset of `plan`; 0 if a part of it exists, which generation examines.
pub fn to_generate_bytes(plan: &Plan, root: &Path) -> u64 {
    let folder = dataset::folder(plan, root);
    if folder.is_ok_and(|folder| folder.join(manifest::FILE_NAME).exists()) {
        return 0;
    }
    catalog::estimate(plan).file_bytes
}

/// Free bytes on the storage of the datasets.
pub fn free_bytes(plan: &Plan, root: &Path) -> Option<u64> {
    if dataset::is_in_folder(plan) {
        return system::free_bytes(root);
    }
    storage::open(&plan.storage.kind, root).ok()?.free_bytes().ok()?
}

/// `/mnt/fs, which is not there yet: on / (ext4), 62.3 GB free`.
pub fn place(plan: &Plan, root: &Path) -> String {
    if !dataset::is_in_folder(plan) {
        return format!("storage `{}`", plan.storage.kind);
    }
    let absent = if root.exists() { "" } else { ", which is not there yet" };
    let on = system::mount_of(root).map_or(String::new(), |mount| {
        let free = units::bytes(mount.free_bytes);
        format!(": on {} ({}), {free} free", mount.point, mount.file_system)
    });
    format!("{}{absent}{on}", root.display())
}

/// Refuses a dataset that has no room.
///
/// # Errors
/// The shortage; the hint has the share that fits.
pub fn refuse_without(plan: &Plan, root: &Path, request: &Request) -> Result<(), Refusal> {
    match shortage(plan, root, &Reserved::default()) {
        Some(short) => Err(Refusal::new(short.to_string(), hint(request, &short))),
        None => Ok(()),
    }
}

/// Way out of a shortage.
pub fn hint(request: &Request, short: &Shortage) -> String {
    match fitting_scale(request, short.free_bytes) {
        Some(scale) => {
            format!("`--scale {scale}` fits; or free space there, or point `--data` elsewhere")
        }
        None => "free space there, point `--data` elsewhere, or use fewer accelerators".into(),
    }
}

/// The largest `--scale` of two digits with which the dataset fits; `None` if no run can be made of it.
pub fn fitting_scale(request: &Request, free_bytes: u64) -> Option<f64> {
    let bytes_at = |scale: f64| {
        let resolved = resolve_named(&Request { scale, ..request.clone() }).ok()?;
        Some(catalog::estimate(&resolved.plan).file_bytes as f64)
    };
    let free_bytes = free_bytes as f64 * SHARE_MAX;
    let share = free_bytes / bytes_at(request.scale)? * request.scale;
    let digit = 10_f64.powf(share.log10().floor() - 1.0);
    let most = (share / digit).floor() as u32;
    let scales = (1..=most).rev().map(|digits| format!("{:.9}", f64::from(digits) * digit));
    let mut scales = scales.filter_map(|text| text.parse().ok());
    scales.find(|&scale| {
        scale < request.scale && bytes_at(scale).is_some_and(|bytes| bytes <= free_bytes)
    })
}
