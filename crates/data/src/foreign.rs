//! Looks at a folder of files that feedrate did not make, before it trusts them: are they enough, can they be read,
//! do they hold what the plan says.

use crate::error::DatasetError;
use crate::format::{self, Cursor, CursorOptions, Discard, FormatError, Need};
use crate::names::FileNames;
use crate::piece::Piece;
use crate::storage::{Handle, Storage, StorageError};
use crate::walk::{self, Watch};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Element, FileShape};
use feedrate_spec::units;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

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

/// Look at some files of a folder that feedrate did not make. `there` are the files to train and to evaluate on.
///
/// # Errors
/// Too few files, or one that cannot be read, or holds fewer samples than the plan says.
pub fn probe_foreign(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
    there: [u64; 2],
) -> Result<Probe, DatasetError> {
    let names = FileNames::new(plan, layout)?;
    if names.format.member().has(Ability::NoFiles) {
        return Ok(Probe::default());
    }
    check_counts(there, plan)?;
    let mut opener = Opener::new(storage, names, false);
    let last_sample = plan.samples_per_file.saturating_sub(1);
    let needs_plan = names.format.member().has(Ability::NeedsPlan) && plan.samples_per_file > 1;
    let probed = sampled(layout.files()).map(|file| {
        let shape = needs_plan.then(|| layout.shape(file));
        opener.probe(file, last_sample, shape.as_ref())
    });
    let files = probed.collect::<Result<Vec<_>, _>>()?;
    let notes = notes(&files, names);
    Ok(Probe { files, notes })
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

fn check_counts(there: [u64; 2], plan: &DatasetPlan) -> Result<(), DatasetError> {
    let [train, eval] = there;
    for (purpose, found, wanted) in
        [("train", train, plan.files_train), ("evaluate", eval, plan.files_eval)]
    {
        if found < wanted {
            let extension = plan.extension.clone();
            return Err(DatasetError::TooFew { purpose, extension, wanted, found });
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

fn notes(files: &[Probed], FileNames { plan, layout, format }: FileNames<'_>) -> Vec<String> {
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
    if !format.entry.has_exact_size(&plan.encoding) {
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

/// Samples of files, of which nothing was known but the format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSamples {
    /// Samples of each file, but for those that hold fewer.
    pub per_file: u64,
    /// Training files that hold fewer samples, and those that cannot be read.
    pub left: Vec<UnfitFiles>,
    /// Dimensions of a sample, in the mean over the files that were opened; empty where they are not known.
    pub dims: Vec<u64>,
    /// Whether all of those have these.
    pub is_even: bool,
    /// Type of their elements, where it is known.
    pub element: Option<Element>,
    /// Files that were opened.
    pub probed_files: u64,
}

/// Files that cannot be trained on as the others are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnfitFiles {
    /// Their numbers, ascending.
    pub numbers: Vec<u64>,
    /// Their length.
    pub bytes: u64,
    /// The reason, as it stands behind their number.
    pub why: String,
}

impl UnfitFiles {
    fn new(
        storage: &dyn Storage,
        layout: &Layout,
        numbers: Vec<u64>,
        why: String,
    ) -> Result<Self, DatasetError> {
        let mut bytes = 0;
        for &file in &numbers {
            bytes += storage.stat(&path_of(layout, file))?.unwrap_or_default();
        }
        Ok(UnfitFiles { numbers, bytes, why })
    }
}

/// Look at training files of `plan`, of which nothing but the format and the number is known: some for what their samples are, all
/// for how many they hold, where that can be several: then those that cannot be read are left out where they are fewer than the others.
///
/// # Errors
/// A file cannot be read.
pub fn find_samples(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    threads: usize,
) -> Result<FoundSamples, DatasetError> {
    let layout = Layout::new(plan);
    let names = FileNames::new(plan, &layout)?;
    let holds_many = names.format.member().has(Ability::KeepsOpen);
    let is_text = names.format.member().has(Ability::Undescribed);
    let mut opener = Opener::new(storage, names, true);
    let mut shapes = Vec::new();
    for file in sampled(plan.files_train) {
        match opener.probe(file, 0, None) {
            Err(DatasetError::Format { .. }) if holds_many => {}
            probed => shapes.extend(probed?.shape),
        }
    }
    let mut found = mean_shape(&shapes);
    found.per_file = 1;
    found.probed_files =
        if holds_many { plan.files_train } else { plan.files_train.min(PROBED_MAX) };
    if holds_many {
        let counted = Mutex::new((vec![0; plan.files_train as usize], BTreeMap::new()));
        let cancel = AtomicBool::new(false);
        let watch = Watch::new(&|_, _| {}, &cancel);
        let opener = || Opener::new(storage, names, false);
        walk::for_each(plan.files_train, threads, &watch, opener, |opener, file| {
            // Of text the first row tells whether it is a table: any text has lines.
            let begins = if is_text { opener.probe(file, 0, None).err() } else { None };
            let samples = begins.map_or_else(|| opener.count(file), Err);
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            match samples {
                Err(error @ DatasetError::Format { .. }) => {
                    counted.1.insert(file, error);
                }
                samples => counted.0[file as usize] = samples?,
            }
            Ok::<(), DatasetError>(())
        })?;
        let (counts, mut broken) = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.per_file = most_samples(&counts);
        let short = (0..).zip(&counts).filter(|(_, samples)| **samples < found.per_file);
        let short = short.map(|(file, _)| file).filter(|file| !broken.contains_key(file)).collect();
        let numbers: Vec<u64> = broken.keys().copied().collect();
        let mut why = String::new();
        if let Some((_, error)) = broken.pop_first() {
            if plan.files_train <= 2 * numbers.len() as u64 {
                return Err(error);
            }
            why = format!("unreadable ({error})");
        }
        let few = "with fewer samples than the others".to_string();
        for (numbers, why) in [(numbers, why), (short, few)] {
            found.left.push(UnfitFiles::new(storage, &layout, numbers, why)?);
        }
    }
    Ok(found)
}

fn path_of(layout: &Layout, file: u64) -> String {
    let mut path = String::new();
    layout.write_path(file, &mut path);
    path
}

/// Samples of each file such that those which have as many hold the most together.
fn most_samples(counts: &[u64]) -> u64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    let best = sorted.iter().zip(1..).max_by_key(|(samples, files)| **samples * files);
    best.map_or(0, |(samples, _)| *samples)
}

/// A file that is one sample, though its array has an axis that could be one of samples.
fn whole(shape: FileShape) -> FileShape {
    if shape.samples == 1 {
        return shape;
    }
    format::as_one_sample(&shape).unwrap_or(FileShape { samples: 1, ..shape })
}

fn mean_shape(shapes: &[FileShape]) -> FoundSamples {
    let Some(first) = shapes.first() else { return FoundSamples::default() };
    let axes = first.dims.as_slice().len();
    let is_alike = shapes.iter().all(|shape| shape.dims.as_slice().len() == axes);
    let means = (0..axes).map(|axis| {
        let sum: u64 = shapes.iter().map(|shape| shape.dims.as_slice()[axis]).sum();
        (sum as f64 / shapes.len() as f64).round() as u64
    });
    FoundSamples {
        dims: if is_alike { means.collect() } else { Vec::new() },
        is_even: shapes.iter().all(|shape| shape.dims == first.dims),
        element: Some(first.element),
        ..FoundSamples::default()
    }
}

/// Opens one file after another, and reads it until its shape is known.
struct Opener<'o> {
    storage: &'o dyn Storage,
    names: FileNames<'o>,
    cursor: Box<dyn Cursor>,
    piece: Piece,
    handles: Vec<Handle>,
}

impl<'o> Opener<'o> {
    fn new(storage: &'o dyn Storage, names: FileNames<'o>, decodes_members: bool) -> Self {
        let options = CursorOptions {
            piece_bytes: PIECE_BYTES,
            check_crc: true,
            wants_payload: false,
            samples_alone: false,
            decodes_members,
        };
        let (cursor, piece) = (names.format.reader(&options), Piece::new(PIECE_BYTES));
        Opener { storage, names, cursor, piece, handles: Vec::new() }
    }

    /// Read a file up to the shape of a sample.
    fn probe(
        &mut self,
        file: u64,
        sample: u64,
        expected: Option<&FileShape>,
    ) -> Result<Probed, DatasetError> {
        let FileNames { plan, layout, format } = self.names;
        let path = path_of(layout, file);
        let probed = self.open(&path).and_then(|bytes| {
            self.cursor.begin(file, sample, expected);
            Ok((bytes, self.read()?))
        });
        self.close();
        let (bytes, read) = probed?;
        match read {
            Ok(()) => {
                let mut shape = self.cursor.decoded().or_else(|| self.cursor.found());
                if plan.samples_per_file <= 1 && !format.member().has(Ability::KeepsOpen) {
                    shape = shape.map(whole);
                }
                Ok(Probed { path: self.storage.name_of(&path), bytes, shape })
            }
            Err(source) => Err(DatasetError::Format { path: self.storage.name_of(&path), source }),
        }
    }

    /// Samples of a file: what it says when it is asked for one that it cannot have.
    fn count(&mut self, file: u64) -> Result<u64, DatasetError> {
        match self.probe(file, u64::MAX - 1, None) {
            Ok(_) => Ok(1),
            Err(DatasetError::Format { source, .. }) if source.samples.is_some() => {
                Ok(source.samples.unwrap_or_default())
            }
            Err(error) => Err(error),
        }
    }

    /// Open all parts of a file: the length of all.
    fn open(&mut self, path: &str) -> Result<u64, DatasetError> {
        let mut bytes = 0;
        for part in self.names.format.parts {
            let mut part_path = String::new();
            part.write_path(path, &mut part_path);
            match self.storage.stat(&part_path)? {
                Some(part_bytes) => bytes += part_bytes,
                None if part.optional => continue,
                None => return Err(DatasetError::NoFile { path: part_path }),
            }
            if !part.optional {
                self.handles.push(self.storage.open(&part_path)?);
            }
        }
        Ok(bytes)
    }

    fn read(&mut self) -> Result<Result<(), FormatError>, StorageError> {
        while self.cursor.found().is_none() {
            let need = match self.cursor.need() {
                Ok(Need::Done) => break,
                Ok(need) => need,
                Err(source) => return Ok(Err(source)),
            };
            let len = self.fetch(need)?;
            if let Err(source) = self.cursor.feed(&self.piece[..len], &mut Discard) {
                return Ok(Err(source));
            }
        }
        Ok(Ok(()))
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
