//! Looks at a folder of files that feedrate did not make, before it trusts them: are they enough, can they be read,
//! do they hold what the plan says.

use crate::format::{self, Cursor, CursorOptions, Discard, Format, FormatError, Need};
use crate::piece::{PIECE_BYTES, Piece};
use crate::storage::{Handle, Storage, StorageError};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::FileShape;
use feedrate_spec::units;

/// Files that are opened, at most: the first, the last, and some between.
const PROBED_MAX: u64 = 16;
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

/// Reason to refuse a foreign dataset.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The plan names a format that is not built in.
    #[error("there is no format `{0}`")]
    NoFormat(String),
    /// The storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There are not enough files.
    #[error("the plan wants {wanted} files `*.{format}` under `{folder}`, and there are {found}")]
    TooFew {
        /// `train` or `valid`.
        folder: String,
        /// The suffix looked for.
        format: String,
        /// By the plan.
        wanted: u64,
        /// Files in the folder.
        found: u64,
    },
    /// A file has another name than DLIO gives it.
    #[error("there is no `{path}`; files must be named as DLIO names them")]
    NoFile {
        /// Relative to the dataset's folder.
        path: String,
    },
    /// A file cannot be read as its format.
    #[error("`{path}`: {source}")]
    Format {
        /// Relative to the dataset's folder.
        path: String,
        /// The error in the file.
        source: FormatError,
    },
}

impl ForeignError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ForeignError::Storage(error) => error.hint(),
            ForeignError::TooFew { .. } => {
                Some("set `dataset.num_files_train` and `dataset.num_files_eval` to what is there")
            }
            ForeignError::NoFile { .. } => Some(
                "numbers of files and subfolders are part of the names: set them to what is there",
            ),
            ForeignError::Format { .. } => {
                Some("set `dataset.format` and `dataset.num_samples_per_file` to what is there")
            }
            ForeignError::NoFormat(_) => None,
        }
    }
}

/// Look at some files of a folder that feedrate did not make.
///
/// # Errors
/// Too few files, or one that cannot be read, or holds fewer samples than the plan says.
pub fn probe_foreign(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<Probe, ForeignError> {
    let format =
        format::find(&plan.format).ok_or_else(|| ForeignError::NoFormat(plan.format.clone()))?;
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
    };
    let mut opener = Opener {
        storage,
        format,
        cursor: format.cursor(&options),
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

fn check_counts(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<(), ForeignError> {
    let suffix = format!(".{}", plan.extension);
    let folders = layout.folders();
    for (split, wanted) in [("train", plan.files_train), ("valid", plan.files_eval)] {
        let mut found = 0;
        for folder in folders.iter().filter(|folder| folder.split('/').next() == Some(split)) {
            let names = storage.list(folder)?;
            found += names.iter().filter(|name| name.ends_with(&suffix)).count() as u64;
        }
        if found < wanted {
            let (folder, format) = (split.to_string(), plan.extension.clone());
            return Err(ForeignError::TooFew { folder, format, wanted, found });
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

fn notes(
    files: &[Probed],
    plan: &DatasetPlan,
    layout: &Layout,
    format: &dyn Format,
) -> Vec<String> {
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
    if !format.entry().knows_bytes(&plan.encoding) {
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

/// Opens one file after another, as far as its header.
struct Opener<'o> {
    storage: &'o dyn Storage,
    format: &'static dyn Format,
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
    ) -> Result<Probed, ForeignError> {
        let last_sample = plan.samples_per_file.saturating_sub(1);
        let mut bytes = 0;
        for part in self.format.parts() {
            let mut part_path = String::new();
            part.write_path(&path, &mut part_path);
            match self.storage.stat(&part_path)? {
                Some(part_bytes) => bytes += part_bytes,
                None if part.optional => continue,
                None => return Err(ForeignError::NoFile { path: part_path }),
            }
            if !part.optional {
                self.handles.push(self.storage.open(&part_path)?);
            }
        }
        let needs_plan = self.format.member().has(Ability::NeedsPlan);
        let shape = needs_plan.then(|| layout.shape(file));
        self.cursor.begin(file, last_sample, shape.as_ref());
        while self.cursor.found().is_none() {
            match self.step() {
                Ok(Step::More) => {}
                Ok(Step::Done) => break,
                Err(Stop::Storage(source)) => return Err(source.into()),
                Err(Stop::Format(source)) => return Err(ForeignError::Format { path, source }),
            }
        }
        Ok(Probed { path, bytes, shape: self.cursor.found() })
    }

    fn step(&mut self) -> Result<Step, Stop> {
        match self.cursor.need()? {
            Need::Done => return Ok(Step::Done),
            Need::Kept => self.cursor.feed(&[], &mut Discard)?,
            Need::Length { part } => {
                let length = self.storage.len(self.handles[part])?;
                self.cursor.feed(&length.to_le_bytes(), &mut Discard)?;
            }
            Need::Bytes { part, offset, len } | Need::Again { part, offset, len } => {
                let piece = &mut self.piece[..len];
                let came = self.storage.read_at(self.handles[part], offset, piece)?;
                self.cursor.feed(&piece[..came], &mut Discard)?;
            }
        }
        Ok(Step::More)
    }

    fn close(&mut self) {
        self.handles.drain(..).for_each(|file| self.storage.close(file));
    }
}

enum Step {
    More,
    Done,
}

enum Stop {
    Storage(StorageError),
    Format(FormatError),
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        Stop::Storage(error)
    }
}

impl From<FormatError> for Stop {
    fn from(error: FormatError) -> Self {
        Stop::Format(error)
    }
}
