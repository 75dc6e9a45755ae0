//! The manifest of a dataset: the settings that determine its bytes, their fingerprint, the length of each file, and
//! whether the dataset is complete. Stored in the dataset's folder as [`FILE_NAME`].

use crate::error::DatasetError;
use crate::format::{self, Format};
use crate::storage::{self, Storage, StorageError};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the manifest in the dataset's folder.
pub const FILE_NAME: &str = "manifest.json";
/// Version of the manifest format.
const VERSION: u32 = 1;
/// Upper limit on the length of a manifest that is read.
pub(crate) const BYTES_MAX: u64 = 16 << 20;
/// Upper limit on the length runs in a manifest. Datasets with more of them list none.
const LENGTH_RUNS_MAX: u64 = 1 << 16;

/// A dataset's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest format.
    pub feedrate_dataset: u32,
    /// Whether the dataset is complete.
    pub state: State,
    /// Fingerprint of the settings.
    pub fingerprint: Fingerprint,
    /// [`Format::version`] with which the files were generated.
    pub content_version: u32,
    /// Every setting that determines the bytes of the dataset.
    pub settings: DatasetPlan,
    /// Bytes of all files. An estimate until the dataset is complete, if the format does not know lengths in advance.
    pub total_bytes: u64,
    /// Lengths of the files with their sidecars, in the order of the files; `None` if the list would be long, or if lengths
    /// are unknown before the files are generated.
    pub files: Option<Vec<LengthRun>>,
    /// The machines that generated the files; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_on: Vec<MachineFiles>,
    /// Set when the removal of a complete dataset begins. A separate field, because older versions only know the state
    /// [`State::Generating`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
}

/// The files that one machine generated or checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFiles {
    /// State of the machine when it began generating or checking.
    #[serde(flatten)]
    pub mark: DropMark,
    /// Number of training and evaluation files.
    pub files: u64,
}

/// Identifies a boot of a machine, and a period between two drops of its dentry and inode caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropMark {
    /// From `/proc/sys/kernel/random/boot_id`; unique for each boot of a machine.
    pub boot_id: String,
    /// Number of drops since boot.
    pub drops: u64,
}

/// Whether a dataset is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Some files may be missing.
    Generating,
    /// Every file was written and made durable.
    Complete,
}

/// Hash of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Hash algorithm.
    pub algorithm: String,
    /// 32 hexadecimal digits.
    pub hex: String,
}

/// Consecutive files of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthRun {
    /// Number of files.
    pub files: u64,
    /// Length of each file.
    pub bytes: u64,
    /// Length of each file without its sidecars; `None` without sidecars, or before the files are generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
}

impl LengthRun {
    /// A run of one file whose parts have these lengths, the data file first.
    pub(crate) fn from_parts(lengths: &[u64]) -> Self {
        LengthRun {
            files: 1,
            bytes: lengths.iter().fold(0, |all, bytes| all.saturating_add(*bytes)),
            data_bytes: if lengths.len() > 1 { lengths.first().copied() } else { None },
        }
    }

    /// Returns a function that finds the run of a file. It must be called with ascending numbers.
    pub(crate) fn finder(runs: Option<&[LengthRun]>) -> impl FnMut(u64) -> Option<LengthRun> {
        let ends = runs.unwrap_or_default().iter().scan(0_u64, |end, run| {
            *end = end.saturating_add(run.files);
            Some((*end, *run))
        });
        let mut ends = ends.peekable();
        move |file| {
            while ends.next_if(|(end, _)| *end <= file).is_some() {}
            ends.peek().map(|(_, run)| *run)
        }
    }

    /// Appends `next` to `runs`. Sets `runs` to `None` if there are too many.
    pub(crate) fn push(runs: &mut Option<Vec<LengthRun>>, next: LengthRun) {
        let Some(all) = runs else { return };
        let is_full = all.len() as u64 >= LENGTH_RUNS_MAX;
        match all.last_mut() {
            Some(run) if (run.bytes, run.data_bytes) == (next.bytes, next.data_bytes) => {
                run.files += next.files;
            }
            _ if is_full => *runs = None,
            _ => all.push(next),
        }
    }
}

impl Manifest {
    /// The manifest of a dataset without files.
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
            files: planned_runs(plan, layout, format),
            made_on: Vec::new(),
            removing: false,
        }
    }

    /// Folder name of the dataset of `plan`, for folders that contain several datasets.
    pub fn folder_name(plan: &DatasetPlan) -> String {
        format!("{}-{:.12}", plan.format, Self::fingerprint_of(plan))
    }

    /// Fingerprint of the settings of `plan`, 32 hexadecimal digits.
    pub fn fingerprint_of(plan: &DatasetPlan) -> String {
        let lines: Vec<String> = settings(plan)
            .iter()
            .filter(|(key, value)| !is_default_of_newer_setting(key, value))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        // All versions use `content=1`, so that folder names of older datasets stay valid.
        let text = format!("content=1\n{}", lines.join("\n"));
        format!("{:032x}", fnv1a_128(text.as_bytes()))
    }

    /// The manifest in `folder`; `None` if there is none or it cannot be read.
    pub fn find_in(folder: &Path) -> Option<Self> {
        let storage = storage::open("file", folder).ok()?;
        Self::read(&*storage).ok().flatten()
    }

    /// The manifest at the root of `storage`; `None` if there is none.
    ///
    /// # Errors
    /// The storage failed, or the file of this name is not a valid manifest of feedrate.
    pub fn read(storage: &dyn Storage) -> Result<Option<Self>, DatasetError> {
        Self::read_in(storage, "")
    }

    /// The manifest in a folder of `storage`; `None` if there is none.
    pub(crate) fn read_in(
        storage: &dyn Storage,
        folder: &str,
    ) -> Result<Option<Self>, DatasetError> {
        let slash = if folder.is_empty() { "" } else { "/" };
        let path = format!("{folder}{slash}{FILE_NAME}");
        let Some(bytes) = storage.stat(&path)? else { return Ok(None) };
        if bytes == 0 {
            // A pipe has length 0 too, and reading it would block.
            return Err(broken("it is empty".into()));
        }
        if bytes > BYTES_MAX {
            return Err(broken(format!("it has {bytes} bytes, more than {BYTES_MAX}")));
        }
        let text = read_file(storage, &path, bytes)?;
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        // Other programs use this file name too.
        let Some(version) = value.get("feedrate_dataset") else {
            return Err(DatasetError::ForeignFiles { path });
        };
        if version.as_u64() != Some(VERSION.into()) {
            return Err(broken(format!(
                "it has version {version}, but this feedrate reads version {VERSION}"
            )));
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| broken(error.to_string()))?;
        match reason_to_refuse(&manifest.settings) {
            Some(reason) => Err(broken(reason)),
            None => Ok(Some(manifest)),
        }
    }

    /// Writes the manifest to the root of `storage`, durably, and replaces an existing one.
    ///
    /// # Errors
    /// The storage failed.
    pub fn write(&self, storage: &dyn Storage) -> Result<(), DatasetError> {
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| broken(error.to_string()))?;
        text.push('\n');
        Ok(write_file(storage, FILE_NAME, text.as_bytes())?)
    }

    /// One line for each setting in which the dataset and `plan` differ; empty if a run of `plan` can read the dataset. A
    /// complete dataset of an older version can be read.
    pub fn differences(&self, plan: &DatasetPlan) -> Vec<String> {
        let stored = settings(&self.settings);
        let mut lines: Vec<String> = settings(plan)
            .iter()
            .filter_map(|(key, wanted)| {
                let value = stored.get(key).unwrap_or(&Value::Null);
                (value != wanted)
                    .then(|| format!("{key}: dataset has {value}, the plan has {wanted}"))
            })
            .collect();
        let is_readable =
            self.state == State::Complete && self.content_version < current_version(&self.settings);
        if !is_readable {
            lines.extend(self.other_version());
        }
        lines
    }

    /// A line that describes the difference if the files were generated by another version of their format.
    pub fn other_version(&self) -> Option<String> {
        let stored = self.content_version;
        let current = current_version(&self.settings);
        (stored != current).then(|| {
            format!("content_version: dataset has {stored}, this feedrate generates {current}")
        })
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
    let read_bytes = storage.read_at(&file, 0, &mut text);
    storage.close(file);
    text.truncate(read_bytes?);
    Ok(text)
}

/// Writes a file durably and replaces an existing one.
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

fn current_version(plan: &DatasetPlan) -> u32 {
    format::find(&plan.format).map_or(0, |format| format.version)
}

/// Whether `text` can be part of a file name: it contains no path separator and no control character.
pub fn is_part_of_name(text: &str) -> bool {
    !text.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
}

/// The settings by name, in alphabetical order. Nested settings have names such as `encoding.compression`. A dataset
/// plan is plain data, so it always serializes to an object.
fn settings(plan: &DatasetPlan) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    for (key, value) in into_object(serde_json::to_value(plan)) {
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

/// Whether the setting was added later and has its default. Such settings are not part of the fingerprint, so that
/// fingerprints of older datasets stay valid.
fn is_default_of_newer_setting(key: &str, value: &Value) -> bool {
    key.starts_with("redundancy.") && value == &Value::from(0)
}

fn into_object(value: serde_json::Result<Value>) -> serde_json::Map<String, Value> {
    match value {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}

/// Reason to refuse settings read from a file: file names made from them could be outside the dataset's folder, or
/// numbers are beyond all limits.
pub(crate) fn reason_to_refuse(settings: &DatasetPlan) -> Option<String> {
    let names = [("prefix", &settings.prefix), ("extension", &settings.extension)];
    let bad_name = names
        .into_iter()
        .find(|(_, name)| !is_part_of_name(name))
        .map(|(key, name)| format!("its {key} `{name}` cannot be part of a file name"));
    settings.limit_violation().or(bad_name)
}

fn broken(reason: String) -> DatasetError {
    DatasetError::BrokenManifest { reason }
}

/// The planned lengths of all files; `None` if unknown, or if the list would be long.
fn planned_runs(plan: &DatasetPlan, layout: &Layout, format: &Format) -> Option<Vec<LengthRun>> {
    if !format.entry.has_exact_size(&plan.encoding) {
        return None;
    }
    if let Some(shape) = layout.common_shape() {
        return Some(vec![LengthRun {
            files: layout.files(),
            bytes: format.file_bytes(&shape, &plan.encoding),
            data_bytes: None,
        }]);
    }
    if layout.files() > LENGTH_RUNS_MAX {
        return None;
    }
    let mut runs = Some(Vec::new());
    for file in 0..layout.files() {
        let bytes = format.file_bytes(&layout.shape(file), &plan.encoding);
        LengthRun::push(&mut runs, LengthRun { files: 1, bytes, data_bytes: None });
    }
    runs
}

/// The 128-bit FNV-1a hash (Fowler, Noll, Vo).
pub(crate) fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
