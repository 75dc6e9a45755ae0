//! Description of a dataset: every setting that changes its bytes, a fingerprint of them, the length of each file, and
//! whether all of it is there. Lies beside the dataset as [`FILE_NAME`].

use crate::error::DatasetError;
use crate::format::{self, Format};
use crate::storage::{self, Storage, StorageError};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::path::Path;

/// Name of the manifest in the dataset's folder.
pub const FILE_NAME: &str = "manifest.json";
/// Version of the manifest's own form.
const VERSION: u32 = 1;
/// The longest manifest that is read.
pub(crate) const BYTES_MAX: u64 = 16 << 20;
/// Datasets of more runs of equal lengths name none.
const RUNS_MAX: u64 = 1 << 16;

/// A dataset's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest's own form.
    pub feedrate_dataset: u32,
    /// Whether all files are there.
    pub state: State,
    /// Fingerprint of the settings.
    pub fingerprint: Fingerprint,
    /// [`Format::version`] of the feedrate that made it.
    pub content_version: u32,
    /// Every setting that changes bytes.
    pub settings: DatasetPlan,
    /// Bytes of all files; about right until all are made, where a format cannot tell beforehand.
    pub total_bytes: u64,
    /// Bytes of each file with its sidecars, in the files' order; `None` where that would be a long list, or cannot be told before they are made.
    pub files: Option<Vec<FileRun>>,
    /// The machines that made them; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_on: Vec<MadeOn>,
    /// All files were there, and some may have been removed since. Beside [`State::Generating`], which older versions know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
}

/// Files that one machine made, or looked at when it completed a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeOn {
    /// The machine when it began.
    #[serde(flatten)]
    pub mark: DropMark,
    /// How many, those for evaluation among them.
    pub files: u64,
}

/// A machine from one drop of its dentries and inodes to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropMark {
    /// From `/proc/sys/kernel/random/boot_id`: no two machines have the same.
    pub boot_id: String,
    /// Drops since it was booted.
    pub drops: u64,
}

/// Whether a dataset is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Some files may be missing.
    Generating,
    /// Every file was written, and made durable.
    Complete,
}

/// Equal for equal settings, and practically only for those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Algorithm that made it.
    pub algorithm: String,
    /// 32 hexadecimal digits.
    pub hex: String,
}

/// Files of the same length, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRun {
    /// Number of files.
    pub files: u64,
    /// Length of each.
    pub bytes: u64,
    /// That without its sidecars, where it has any and all are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
}

impl FileRun {
    /// A file whose parts have these lengths, that of its data first.
    pub(crate) fn from_parts(lengths: &[u64]) -> Self {
        FileRun {
            files: 1,
            bytes: lengths.iter().fold(0, |all, bytes| all.saturating_add(*bytes)),
            data_bytes: if lengths.len() > 1 { lengths.first().copied() } else { None },
        }
    }

    /// Each file of `runs`, as a run of its own.
    pub(crate) fn each(runs: Option<&[FileRun]>) -> impl Iterator<Item = FileRun> {
        let runs = runs.into_iter().flatten();
        runs.flat_map(|run| repeat_n(*run, run.files as usize))
    }

    /// Add one to `runs`, which are none when they are too many.
    pub(crate) fn push(runs: &mut Option<Vec<FileRun>>, next: FileRun) {
        let Some(all) = runs else { return };
        let is_long = all.len() as u64 >= RUNS_MAX;
        match all.last_mut() {
            Some(run) if (run.bytes, run.data_bytes) == (next.bytes, next.data_bytes) => {
                run.files += next.files;
            }
            _ if is_long => *runs = None,
            _ => all.push(next),
        }
    }
}

impl Manifest {
    /// The manifest of a dataset of which nothing is there yet.
    pub fn new(plan: &DatasetPlan, layout: &Layout, format: &Format) -> Self {
        let entry = format.entry;
        let total_bytes = layout.sum(layout.files(), |shape| plan.file_bytes(&entry, shape));
        Manifest {
            feedrate_dataset: VERSION,
            state: State::Generating,
            fingerprint: Fingerprint {
                algorithm: "fnv1a-128 of the canonical settings".to_string(),
                hex: Self::fingerprint_of(plan),
            },
            content_version: format.version,
            settings: plan.clone(),
            total_bytes: u64::try_from(total_bytes).unwrap_or(u64::MAX),
            files: runs(plan, layout, format),
            made_on: Vec::new(),
            removing: false,
        }
    }

    /// Name of the folder of the dataset of `plan`, where datasets lie side by side.
    pub fn folder_name(plan: &DatasetPlan) -> String {
        format!("{}-{:.12}", plan.format, Self::fingerprint_of(plan))
    }

    /// 32 hexadecimal digits that stand for the settings of `plan`.
    pub fn fingerprint_of(plan: &DatasetPlan) -> String {
        let settings = settings(plan);
        let told = settings.iter().filter(|(key, value)| !is_as_before(key, value));
        let settings: Vec<String> = told.map(|(key, value)| format!("{key}={value}")).collect();
        // Of all versions, so that older datasets are found under their folder's name.
        let text = format!("content=1\n{}", settings.join("\n"));
        format!("{:032x}", fnv1a_128(text.as_bytes()))
    }

    /// The manifest of the dataset of ours in `folder`; `None` where there is none that can be read.
    pub fn own_in(folder: &Path) -> Option<Self> {
        let storage = storage::open("file", folder).ok()?;
        Self::read(&*storage).ok().flatten()
    }

    /// The manifest at the root of `storage`; `None` where there is none.
    ///
    /// # Errors
    /// The storage refused, what is there is no manifest, or it is somebody else's.
    pub fn read(storage: &dyn Storage) -> Result<Option<Self>, DatasetError> {
        let Some(bytes) = storage.stat(FILE_NAME)? else { return Ok(None) };
        if bytes == 0 {
            // Pipes have no length either, and would be waited for.
            return Err(broken("it is empty".into()));
        }
        if bytes > BYTES_MAX {
            return Err(broken(format!("it has {bytes} bytes, more than {BYTES_MAX}")));
        }
        let text = read_file(storage, FILE_NAME, bytes)?;
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        // Others have files of this name too.
        let Some(version) = value.get("feedrate_dataset") else {
            return Err(DatasetError::Strangers { path: FILE_NAME.to_string() });
        };
        if version.as_u64() != Some(VERSION.into()) {
            return Err(broken(format!(
                "it is of version {version}, this feedrate knows {VERSION}"
            )));
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| broken(error.to_string()))?;
        match refusal(&manifest.settings) {
            Some(reason) => Err(broken(reason)),
            None => Ok(Some(manifest)),
        }
    }

    /// Write it to the root of `storage`, durably, in place of the one that is there.
    ///
    /// # Errors
    /// The storage refused.
    pub fn write(&self, storage: &dyn Storage) -> Result<(), DatasetError> {
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| broken(error.to_string()))?;
        text.push('\n');
        Ok(write_file(storage, FILE_NAME, text.as_bytes())?)
    }

    /// One line for each setting in which the dataset and `plan` differ; none if it can be read for it. A whole dataset of
    /// an older version is read as it is.
    pub fn differences(&self, plan: &DatasetPlan) -> Vec<String> {
        let (has, wants) = (settings(&self.settings), settings(plan));
        let mut lines: Vec<String> = wants
            .iter()
            .filter_map(|(key, wanted)| {
                let held = has.get(key).unwrap_or(&Value::Null);
                (held != wanted)
                    .then(|| format!("{key}: dataset has {held}, the plan wants {wanted}"))
            })
            .collect();
        let is_readable =
            self.state == State::Complete && self.content_version < version(&self.settings);
        if !is_readable {
            lines.extend(self.other_version());
        }
        lines
    }

    /// A line where files of it are not made the way that this feedrate makes them.
    pub fn other_version(&self) -> Option<String> {
        let (held, made) = (self.content_version, version(&self.settings));
        (held != made)
            .then(|| format!("content_version: dataset has {held}, this feedrate makes {made}"))
    }
}

/// The first `bytes` bytes of a file.
pub(crate) fn read_file(
    storage: &dyn Storage,
    path: &str,
    bytes: u64,
) -> Result<Vec<u8>, StorageError> {
    let file = storage.open(path)?;
    let mut text = vec![0; bytes as usize];
    let came = storage.read_at(&file, 0, &mut text);
    storage.close(file);
    text.truncate(came?);
    Ok(text)
}

/// Write a file durably, in place of the one that is there.
pub(crate) fn write_file(
    storage: &dyn Storage,
    path: &str,
    text: &[u8],
) -> Result<(), StorageError> {
    let mut file = storage.create(path)?;
    file.write(text)?;
    file.sync()?;
    file.commit()
}

fn version(plan: &DatasetPlan) -> u32 {
    format::find(&plan.format).map_or(0, |format| format.version)
}

/// Whether a file that is named by it lies in the folder that it is meant for.
pub fn is_part_of_name(text: &str) -> bool {
    !text.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
}

/// The settings by name, in the alphabet's order, those of the encoding as
/// `encoding.compression`. A dataset plan is plain data: it is always an object.
fn settings(plan: &DatasetPlan) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    for (key, value) in object(serde_json::to_value(plan)) {
        match value {
            Value::Object(fields) => {
                settings.extend(fields.into_iter().map(|(field, v)| (format!("{key}.{field}"), v)));
            }
            value => {
                settings.insert(key, value);
            }
        }
    }
    settings
}

/// Settings that came later, as they were before: they leave older fingerprints what they are.
fn is_as_before(key: &str, value: &Value) -> bool {
    key.starts_with("redundancy.") && value == &Value::from(0)
}

fn object(value: serde_json::Result<Value>) -> serde_json::Map<String, Value> {
    match value {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}

/// A reason not to name files by settings that were read: none may lie outside the dataset's folder.
pub(crate) fn refusal(settings: &DatasetPlan) -> Option<String> {
    let names = [("prefix", &settings.prefix), ("extension", &settings.extension)];
    let other = names.into_iter().find(|(_, name)| !is_part_of_name(name));
    let other =
        other.map(|(what, name)| format!("its {what} `{name}` is no part of a file's name"));
    settings.limit_violation().or(other)
}

fn broken(reason: String) -> DatasetError {
    DatasetError::BrokenManifest { reason }
}

fn runs(plan: &DatasetPlan, layout: &Layout, format: &Format) -> Option<Vec<FileRun>> {
    if !format.entry.has_exact_size(&plan.encoding) {
        return None;
    }
    if let Some(shape) = layout.common_shape() {
        return Some(vec![FileRun {
            files: layout.files(),
            bytes: format.file_bytes(&shape, &plan.encoding),
            data_bytes: None,
        }]);
    }
    if layout.files() > RUNS_MAX {
        return None;
    }
    let mut runs = Some(Vec::new());
    for file in 0..layout.files() {
        let bytes = format.file_bytes(&layout.shape(file), &plan.encoding);
        FileRun::push(&mut runs, FileRun { files: 1, bytes, data_bytes: None });
    }
    runs
}

/// Fowler, Noll, Vo: FNV-1a of 128 bits.
pub(crate) fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
