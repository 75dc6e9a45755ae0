//! Looks at a folder of files that feedrate did not make, before it trusts them: are they enough, can they be read,
//! do they hold what the plan says.

use crate::error::DatasetError;
use crate::format::{self, Cursor, CursorOptions, Discard, Format, Need};
use crate::names::FileNames;
use crate::piece::Piece;
use crate::storage::{Handle, Storage, StorageError};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::FileShape;
use feedrate_spec::units;

/// Files that are opened, at most: the first, the last, and some between.
const PROBED_MAX: u64 = 16;
/// A small piece holds what is looked for, and passes by samples that are longer: data that is read here is in the page cache
/// when training begins.
const PIECE_BYTES: usize = 4096;
/// Mean sizes this far apart are worth a note.
const SIZE_TOLERANCE: f64 = 0.02;

/// Result of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// The files that were opened.
    pub files: Vec<Probed>,
    /// Differences from the plan that do no harm, each a sentence.
    pub notes: Vec<String>,
}

/// One file that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// Relative to the dataset's folder.
    pub path: String,
    /// Length of all its parts.
    pub bytes: u64,
    /// Shape that the file itself states, where its format does so.
    pub shape: Option<FileShape>,
}

/// Look at some files of a folder that feedrate did not make.
///
/// # Errors
/// Too few files, or one that cannot be read, or holds fewer samples than the plan says.
pub fn probe_foreign(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<Probe, DatasetError> {
    let format = FileNames::new(plan, layout)?.format;
    if format.member().has(Ability::NoFiles) {
        return Ok(Probe::default());
    }
    check_counts(storage, plan, layout)?;
    let mut probe = Probe::default();
    let options = CursorOptions {
        piece_bytes: PIECE_BYTES,
        check_crc: true,
        wants_payload: false,
        samples_alone: false,
        decodes_members: false,
    };
    let mut opener = Opener {
        storage,
        format,
        cursor: (format.cursor)(&options),
        piece: Piece::new(PIECE_BYTES),
        handles: Vec::new(),
    };
    for file in sampled(layout.files()) {
        let mut path = String::new();
        layout.write_path(file, &mut path);
        let probed = opener.probe(file, path, plan, layout);
        opener.close();
        probe.files.push(probed?);
    }
    probe.notes = notes(&probe.files, plan, layout, format);
    Ok(probe)
}

/// Files of the extension in the folders of the training files, and in those of the evaluation files.
///
/// # Errors
/// A folder cannot be listed.
pub fn files_there(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<[u64; 2], DatasetError> {
    let suffix = format!(".{}", plan.extension);
    let mut found = [0, 0];
    for folder in layout.folders() {
        let names = storage.list(&folder)?;
        let split = usize::from(folder.split('/').next() != Some("train"));
        found[split] += names.iter().filter(|name| name.ends_with(&suffix)).count() as u64;
    }
    Ok(found)
}

fn check_counts(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<(), DatasetError> {
    let [train, eval] = files_there(storage, plan, layout)?;
    for (split, found, wanted) in
        [("train", train, plan.files_train), ("valid", eval, plan.files_eval)]
    {
        if found < wanted {
            let (folder, extension) = (split.to_string(), plan.extension.clone());
            return Err(DatasetError::TooFew { folder, extension, wanted, found });
        }
    }
    Ok(())
}

/// Up to [`PROBED_MAX`] of `files`, spread evenly, the first and the last among them.
fn sampled(files: u64) -> impl Iterator<Item = u64> {
    let count = files.min(PROBED_MAX);
    (0..count).map(move |i| {
        let last = u128::from(files - 1);
        (last * u128::from(i) / u128::from((count - 1).max(1))) as u64
    })
}

fn notes(files: &[Probed], plan: &DatasetPlan, layout: &Layout, format: &Format) -> Vec<String> {
    let mut notes = Vec::new();
    let more = files
        .iter()
        .find(|file| file.shape.is_some_and(|shape| shape.samples > plan.samples_per_file));
    if let Some((file, shape)) = more.and_then(|file| Some((file, file.shape?))) {
        notes.push(format!(
            "`{}` holds {}, of which the plan reads {}",
            file.path,
            format::in_words(&shape),
            plan.samples_per_file
        ));
    }
    notes.extend(size_note(files, layout));
    if !format.entry.knows_bytes(&plan.encoding) {
        return notes;
    }
    let found: u128 = files.iter().map(|file| u128::from(file.bytes)).sum();
    let planned: u128 = sampled(layout.files())
        .map(|file| u128::from(format.file_bytes(&layout.shape(file), &plan.encoding)))
        .sum();
    let count = files.len().max(1) as f64;
    let (found, planned) = (found as f64 / count, planned as f64 / count);
    if (found - planned).abs() > SIZE_TOLERANCE * planned {
        notes.push(format!(
            "the files have {} on average, the plan says {}",
            units::bytes(found as u64),
            units::bytes(planned as u64)
        ));
    }
    notes
}

/// Samples are as long as the files say; the plan's length is what nominal rates are made of.
fn size_note(files: &[Probed], layout: &Layout) -> Option<String> {
    let shapes: Vec<(&Probed, FileShape)> =
        files.iter().filter_map(|file| Some((file, file.shape?))).collect();
    let found: u128 = shapes.iter().map(|(_, shape)| u128::from(shape.sample_bytes())).sum();
    let planned: u128 =
        sampled(layout.files()).map(|file| u128::from(layout.shape(file).sample_bytes())).sum();
    let differs = (found as f64 - planned as f64).abs() > SIZE_TOLERANCE * planned as f64;
    if !differs || shapes.len() != files.len() {
        return None;
    }
    let (file, shape) = shapes.first()?;
    Some(format!(
        "`{}` holds {}, the plan says {} a sample: nominal rates and the dataset's size are the plan's",
        file.path,
        format::in_words(shape),
        units::bytes((planned / files.len().max(1) as u128) as u64)
    ))
}

/// Opens one file after another, and reads it until its shape is known.
struct Opener<'o> {
    storage: &'o dyn Storage,
    format: &'static Format,
    cursor: Box<dyn Cursor>,
    piece: Piece,
    handles: Vec<Handle>,
}

impl Opener<'_> {
    fn probe(
        &mut self,
        file: u64,
        path: String,
        plan: &DatasetPlan,
        layout: &Layout,
    ) -> Result<Probed, DatasetError> {
        let last_sample = plan.samples_per_file.saturating_sub(1);
        let mut bytes = 0;
        for part in self.format.parts {
            let mut part_path = String::new();
            part.write_path(&path, &mut part_path);
            match self.storage.stat(&part_path)? {
                Some(part_bytes) => bytes += part_bytes,
                None if part.optional => continue,
                None => return Err(DatasetError::NoFile { path: part_path }),
            }
            if !part.optional {
                self.handles.push(self.storage.open(&part_path)?);
            }
        }
        let needs_plan = self.format.member().has(Ability::NeedsPlan);
        let shape = needs_plan.then(|| layout.shape(file));
        self.cursor.begin(file, last_sample, shape.as_ref());
        while self.cursor.found().is_none() {
            let need = match self.cursor.need() {
                Ok(Need::Done) => break,
                Ok(need) => need,
                Err(source) => return Err(DatasetError::Format { path, source }),
            };
            let len = self.fetch(need)?;
            if let Err(source) = self.cursor.feed(&self.piece[..len], &mut Discard) {
                return Err(DatasetError::Format { path, source });
            }
        }
        Ok(Probed { path, bytes, shape: self.cursor.found() })
    }

    /// Get the bytes that are needed into the piece: how many they are.
    fn fetch(&mut self, need: Need) -> Result<usize, StorageError> {
        match need {
            Need::Done | Need::Kept => Ok(0),
            Need::Length { part } => {
                let length = self.storage.len(&self.handles[part])?.to_le_bytes();
                self.piece[..length.len()].copy_from_slice(&length);
                Ok(length.len())
            }
            Need::Bytes { part, offset, len } | Need::Again { part, offset, len } => {
                self.storage.read_at(&self.handles[part], offset, &mut self.piece[..len])
            }
        }
    }

    fn close(&mut self) {
        self.handles.drain(..).for_each(|file| self.storage.close(file));
    }
}
