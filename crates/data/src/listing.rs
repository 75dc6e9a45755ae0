//! Lists the files of a foreign folder or the objects below a foreign prefix, with any names and in any subfolders, groups them by format,
//! and selects those that a run uses.
//!
//! Names are written to a [`FileIndex`](crate::file_index::FileIndex) as they are found. Memory holds only one number
//! per file, so that ten million files can be listed.

use crate::file_index::NameWriter;
use crate::foreign::UnfitFiles;
use crate::format::{self, Format};
use crate::storage::{Storage, StorageError};
use collector::Collector;
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::one_line;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

mod walk;
mod objects;
mod collector;
#[cfg(test)]
mod tests;

/// Lists all files of `storage`, which is rooted at `root`, and writes their names to a file at `index`.
///
/// # Errors
/// `root` cannot be listed, or the index cannot be written.
pub fn list(root: &Path, storage: &dyn Storage, index: &Path) -> Result<Listing, StorageError> {
    let collector = Collector::new(root, storage, index)?;
    if storage.member().has(Ability::InFolder) {
        walk::list_folders(collector)
    } else {
        objects::list_objects(collector)
    }
}

/// Upper limit on the file groups. Files of any further type share one extra group.
const GROUPS_MAX: usize = 200;

/// Purpose of a file, as the name of its folder suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FilePurpose {
    Train,
    Evaluation,
    Unknown,
}

/// Names of files that describe a dataset of TensorFlow, Hugging Face or MosaicML. They are not left out, as they hold no samples.
const DESCRIPTIONS: [&str; 5] =
    ["dataset_info.json", "features.json", "dataset_dict.json", "state.json", "index.json"];

const TRAIN: [&str; 2] = ["train", "training"];
const EVALUATION: [&str; 5] = ["valid", "val", "validation", "test", "eval"];

impl FilePurpose {
    /// The purpose of a folder such as `train` or `train2017`.
    fn from_folder_name(name: &str) -> Self {
        let word = name.trim_end_matches(|end: char| end.is_ascii_digit() || "_-".contains(end));
        let matches_any =
            |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(word));
        if matches_any(&TRAIN) {
            FilePurpose::Train
        } else if matches_any(&EVALUATION) {
            FilePurpose::Evaluation
        } else {
            FilePurpose::Unknown
        }
    }

    /// The purpose of a file such as `train.h5`, `train-00000-of-00004.parquet` as Hugging Face names it, or
    /// `digits-train.tfrecord-00000-of-00004` as TensorFlow Datasets does.
    fn from_file_name(name: &str) -> Self {
        let stem = name.split('.').next().unwrap_or_default();
        let words = stem.split_once("-0").map_or(stem, |(words, _)| words);
        let last_word = words.rsplit('-').next().unwrap_or(words);
        match FilePurpose::from_folder_name(words) {
            FilePurpose::Unknown => FilePurpose::from_folder_name(last_word),
            purpose => purpose,
        }
    }
}

/// Files of one format, or of one extension if their format is unknown.
struct FileGroup {
    name: String,
    format: Option<&'static Format>,
    /// Whether the files' content determined the format, not only their names.
    by_content: bool,
    /// One tally for each [`FilePurpose`].
    tallies: [FileTally; 3],
    /// Number of files that describe a dataset.
    descriptions: u64,
}

impl FileGroup {
    fn total(&self) -> FileTally {
        self.tallies.into_iter().fold(FileTally::default(), FileTally::merge)
    }

    /// Whether the group has both more files and more bytes than `other`.
    fn is_larger_than(&self, other: &FileGroup) -> bool {
        let total = self.total();
        let other_total = other.total();
        other_total.files < total.files && other_total.bytes < total.bytes
    }
}

/// Number and size of a set of files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTally {
    /// Number of files.
    pub files: u64,
    /// Total length.
    pub bytes: u64,
    /// Number of folders that contain the files.
    pub folders: u64,
    /// Lengths of the shortest and the longest file.
    pub lengths: Option<(u64, u64)>,
}

impl FileTally {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        // Sparse files can be as long as the file system allows.
        self.bytes = self.bytes.saturating_add(bytes);
        let (least, most) = self.lengths.unwrap_or((bytes, bytes));
        self.lengths = Some((least.min(bytes), most.max(bytes)));
    }

    fn merge(self, other: Self) -> Self {
        let lengths = [self.lengths, other.lengths].into_iter().flatten();
        FileTally {
            files: self.files + other.files,
            bytes: self.bytes.saturating_add(other.bytes),
            folders: self.folders + other.folders,
            lengths: lengths.reduce(|first, second| (first.0.min(second.0), first.1.max(second.1))),
        }
    }
}

/// All files below a folder, grouped by format.
pub struct Listing {
    index: PathBuf,
    names: NameWriter,
    /// For each file the offset of its name in the index, with its group and purpose in the upper bits.
    entries: Vec<u64>,
    groups: Vec<FileGroup>,
    /// Number of skipped files for each reason.
    skipped: BTreeMap<&'static str, u64>,
    /// The first object name that cannot be used as a path, and the number of such objects. They are skipped.
    odd_names: Option<(String, u64)>,
    /// Folders of datasets that feedrate generated.
    pub generated_datasets: Vec<PathBuf>,
}

/// The files of a listing that a run uses.
pub struct SelectedFiles {
    index: PathBuf,
    names: NameWriter,
    name_offsets: Vec<u64>,
    /// Number of evaluation files.
    pub eval: u64,
    /// Training files.
    pub train: FileTally,
    /// Format of the files, or their extension if the format is unknown.
    pub file_type: String,
    /// Types of the unused files with their counts, in descending order of count.
    pub left_out: Vec<(String, u64)>,
    /// Total length of the files of other formats.
    pub other_bytes: u64,
}

impl SelectedFiles {
    fn write(&mut self) -> Result<(), StorageError> {
        let offsets = self.name_offsets.iter().copied();
        let written = self.names.write_selection(offsets, [self.train.files, self.eval]);
        written.map_err(|error| StorageError::new("write", &self.index, error))
    }

    /// Removes unfit files from the selection.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn leave_out(&mut self, unfit: &[UnfitFiles]) -> Result<(), StorageError> {
        let numbers: HashSet<u64> = unfit.iter().flat_map(|files| files.numbers.clone()).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let mut number = 0..;
        self.name_offsets
            .retain(|_| number.next().is_some_and(|number| !numbers.contains(&number)));
        self.train.files -= numbers.len() as u64;
        for files in unfit.iter().filter(|files| !files.numbers.is_empty()) {
            self.train.bytes = self.train.bytes.saturating_sub(files.bytes);
            self.left_out.push((files.reason.clone(), files.numbers.len() as u64));
        }
        self.write()
    }
}

const PURPOSE_SHIFT: u32 = 48;
const GROUP_SHIFT: u32 = 56;

/// Whether files with this extension are parts of the files of `format`.
fn has_part(format: &Format, extension: &str) -> bool {
    let mut parts = format.parts.iter().filter(|part| part.replaces_extension);
    parts.any(|part| part.suffix.trim_start_matches('.') == extension)
}

impl Listing {
    /// The format to read if the user specifies none.
    pub fn main_format(&self) -> Option<&'static Format> {
        let group = &self.groups[self.main_group()?];
        Some(group.format.unwrap_or_else(format::plain_bytes))
    }

    /// Number of the group that most likely holds the samples.
    ///
    /// This is the largest group whose format was recognised by content. A group recognised only by name may be metadata
    /// of the samples, so it is preferred only if it has both more files and more bytes. Files of unknown format are
    /// preferred to a group recognised by content if they have more files and bytes, and to a group recognised by name
    /// if they have more bytes.
    fn main_group(&self) -> Option<usize> {
        let groups = &self.groups;
        let most_files = |by_content: bool| {
            let is_known =
                |group: &FileGroup| group.format.is_some() && group.by_content == by_content;
            let numbers = (0..groups.len()).filter(|&number| is_known(&groups[number]));
            numbers.max_by_key(|&number| groups[number].total().files)
        };
        let known = match (most_files(true), most_files(false)) {
            (Some(by_content), Some(by_name))
                if groups[by_name].is_larger_than(&groups[by_content]) =>
            {
                Some(by_name)
            }
            (by_content, by_name) => by_content.or(by_name),
        };
        let unknown = self.largest_group(|group| group.format.is_none());
        // Parts of known files, such as the tokens beside an index, are not samples of their own.
        let is_part_of = |known: usize, part: usize| {
            groups[known].format.is_some_and(|format| has_part(format, &groups[part].name))
        };
        let unknown = unknown.filter(|part| known.is_none_or(|known| !is_part_of(known, *part)));
        let (Some(unknown), Some(known)) = (unknown, known) else { return known.or(unknown) };
        let unknown_group = &groups[unknown];
        let known_group = &groups[known];
        let has_more_bytes_than_named =
            !known_group.by_content && known_group.total().bytes < unknown_group.total().bytes;
        let prefers_unknown =
            unknown_group.is_larger_than(known_group) || has_more_bytes_than_named;
        Some(if prefers_unknown { unknown } else { known })
    }

    /// The group with the most bytes among those that satisfy `accepts`, without the group of mixed extensions.
    fn largest_group(&self, accepts: fn(&FileGroup) -> bool) -> Option<usize> {
        let numbers = 0..self.groups.len().min(GROUPS_MAX);
        let accepted = numbers.filter(|number| accepts(&self.groups[*number]));
        accepted.max_by_key(|number| self.groups[*number].total().bytes)
    }

    /// File types with their counts, in descending order of count.
    pub fn counts_by_type(&self) -> Vec<(String, u64)> {
        self.left_out(None, false)
    }

    /// Selects the files of `format`. If all of them are in folders such as `train` and `val`, the folder names determine
    /// their purposes. Otherwise all are training files.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn select(mut self, format: &Format) -> Result<SelectedFiles, StorageError> {
        let number = self.group_with_format(format);
        let [train, eval, unknown] =
            number.map_or_else(Default::default, |number| self.groups[number].tallies);
        let is_split = train.files > 0 && unknown.files == 0;
        let mut left_out = self.left_out(number, is_split);
        // Parts of the selected files are not left out.
        let selected_files = number.map_or(0, |number| self.groups[number].total().files);
        for (_, files) in left_out.iter_mut().filter(|(name, _)| has_part(format, name)) {
            *files = files.saturating_sub(selected_files);
        }
        left_out.retain(|(_, files)| *files > 0);
        let others = self.groups.iter().enumerate().filter(|(i, _)| Some(*i) != number);
        let others = others.filter(|(_, group)| !has_part(format, &group.name));
        let other_bytes = others.map(|(_, group)| group.total().bytes);
        let other_bytes = other_bytes.fold(0, u64::saturating_add);
        let mut selected = std::mem::take(&mut self.entries);
        selected.retain(|entry| number == Some((entry >> GROUP_SHIFT) as usize));
        if is_split {
            // A stable sort: training files first, each purpose in the order of the listing.
            selected.sort_by_key(|entry| entry >> PURPOSE_SHIFT);
        }
        selected.iter_mut().for_each(|entry| *entry &= (1 << PURPOSE_SHIFT) - 1);
        let mut files = SelectedFiles {
            index: self.index,
            names: self.names,
            name_offsets: selected,
            eval: if is_split { eval.files } else { 0 },
            train: if is_split { train } else { train.merge(eval).merge(unknown) },
            file_type: number.map_or_else(String::new, |number| self.groups[number].name.clone()),
            left_out,
            other_bytes,
        };
        files.write()?;
        Ok(files)
    }

    /// The group to read as `format`. The main group is preferred if it can be read so. Any group whose content was not
    /// recognised can be read as plain bytes, or as another format of its extension.
    fn group_with_format(&self, format: &Format) -> Option<usize> {
        let name = format.member().name;
        let is_plain = name == format::plain_bytes().member().name;
        let has_format =
            |group: &FileGroup| group.format.is_some_and(|format| format.member().name == name);
        let is_named = |group: &FileGroup| {
            let extension = group.format.map(|format| format.entry.extension);
            extension.is_some_and(|extension| format.reads_extension(extension))
        };
        let is_readable = |group: &FileGroup| {
            has_format(group) || !group.by_content && (is_plain || is_named(group))
        };
        self.main_group()
            .filter(|&number| is_readable(&self.groups[number]))
            .or_else(|| self.groups.iter().position(has_format))
            .or_else(|| self.groups.iter().position(is_readable).filter(|_| !is_plain))
            .or_else(|| is_plain.then(|| self.largest_group(|group| !group.by_content))?)
    }

    /// Types of the files outside the selected group with their counts, in descending order of count. With `is_split`, the
    /// evaluation files of the selected group are included.
    fn left_out(&self, selected: Option<usize>, is_split: bool) -> Vec<(String, u64)> {
        let others = self.groups.iter().enumerate().filter(|(i, _)| Some(*i) != selected);
        let mut counts: Vec<(String, u64)> = others
            .map(|(_, group)| (group.name.clone(), group.total().files - group.descriptions))
            .collect();
        if let (Some(selected), true) = (selected, is_split) {
            let eval = self.groups[selected].tallies[FilePurpose::Evaluation as usize];
            counts.push(("to evaluate on".into(), eval.files));
        }
        counts.extend(self.skipped.iter().map(|(reason, files)| (reason.to_string(), *files)));
        let odd_names = self.odd_names.iter();
        counts.extend(odd_names.map(|(first, files)| {
            (format!("with an unusable name (`{}`)", one_line(first)), *files)
        }));
        counts.retain(|(_, files)| *files > 0);
        counts.sort_by(|(a_name, a_files), (b_name, b_files)| {
            b_files.cmp(a_files).then_with(|| a_name.cmp(b_name))
        });
        counts
    }
}
