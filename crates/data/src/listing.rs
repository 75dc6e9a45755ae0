//! Lists the files of a foreign folder, with any names and in any subfolders, and recognises their formats.
//!
//! Names are written to a [`FileIndex`](crate::file_index::FileIndex) as they are found. Memory holds only one number
//! per file, so that ten million files can be listed.

use crate::file_index::{NameWriter, PATH_BYTES_MAX};
use crate::foreign::UnfitFiles;
use crate::format::{self, Format, HEAD_BYTES};
use crate::manifest::{self, Manifest};
use crate::storage::StorageError;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Number of names in a folder that are sorted together.
const SORTED_NAMES: usize = 1 << 20;
/// Upper limit on the files of an extension that are opened to recognise its format: the first ones may be broken.
const HEADS_MAX: u8 = 16;
/// Upper limit on the extensions that are remembered. Files of further extensions are opened one by one.
const EXTENSIONS_MAX: usize = 1 << 16;
/// Upper limit on the groups of files. Files of further kinds share one more group.
const GROUPS_MAX: usize = 200;

/// Purpose of a file, as the name of its folder suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilePurpose {
    Train,
    Evaluation,
    Unknown,
}

const TRAIN: [&str; 2] = ["train", "training"];
const EVALUATION: [&str; 5] = ["valid", "val", "validation", "test", "eval"];

impl FilePurpose {
    /// The purpose of a folder such as `train` or `train2017`.
    fn from_folder_name(name: &str) -> Self {
        let word = name.trim_end_matches(|end: char| end.is_ascii_digit() || "_-".contains(end));
        let is_any = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(word));
        if is_any(&TRAIN) {
            FilePurpose::Train
        } else if is_any(&EVALUATION) {
            FilePurpose::Evaluation
        } else {
            FilePurpose::Unknown
        }
    }

    /// The purpose of a file such as `train.h5`, or `train-00000-of-00004.parquet` as Hugging Face names it.
    fn from_file_name(name: &str) -> Self {
        let stem = name.split('.').next().unwrap_or_default();
        let word = stem.split_once("-0").map_or(stem, |(word, _)| word);
        FilePurpose::from_folder_name(word)
    }
}

/// Files of one format, or of one extension if their format is unknown.
struct FileGroup {
    name: String,
    format: Option<&'static Format>,
    /// Whether the format was recognised by the files' content. Otherwise by their names.
    by_content: bool,
    /// One tally for each [`FilePurpose`].
    tallies: [FileTally; 3],
}

impl FileGroup {
    fn total(&self) -> FileTally {
        self.tallies.into_iter().fold(FileTally::default(), FileTally::join)
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
    last_folder: u64,
}

impl FileTally {
    fn add(&mut self, bytes: u64, folder: u64) {
        self.files += 1;
        self.bytes += bytes;
        let (least, most) = self.lengths.unwrap_or((bytes, bytes));
        self.lengths = Some((least.min(bytes), most.max(bytes)));
        if self.last_folder != folder {
            self.last_folder = folder;
            self.folders += 1;
        }
    }

    fn join(self, other: Self) -> Self {
        let lengths = [self.lengths, other.lengths].into_iter().flatten();
        FileTally {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            folders: self.folders + other.folders,
            lengths: lengths.reduce(|first, second| (first.0.min(second.0), first.1.max(second.1))),
            last_folder: 0,
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
    pub kind: String,
    /// Number of unused files of each kind, in descending order.
    pub left_out: Vec<(String, u64)>,
}

impl SelectedFiles {
    fn write(&mut self) -> Result<(), StorageError> {
        let offsets = self.name_offsets.iter().copied();
        let written = self.names.write_selection(offsets, [self.train.files, self.eval]);
        written.map_err(|error| StorageError::new("write", &self.index, error))
    }

    /// Remove unfit files from the selection.
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

impl Listing {
    /// The format to read if the user specifies none.
    pub fn main_format(&self) -> Option<&'static Format> {
        let group = &self.groups[self.main_group()?];
        Some(group.format.unwrap_or_else(format::plain))
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
        let (Some(unknown), Some(known)) = (unknown, known) else { return known.or(unknown) };
        let unknown_group = &groups[unknown];
        let known_group = &groups[known];
        let outweighs_names =
            !known_group.by_content && known_group.total().bytes < unknown_group.total().bytes;
        let prefers_unknown = unknown_group.is_larger_than(known_group) || outweighs_names;
        Some(if prefers_unknown { unknown } else { known })
    }

    /// The group with the most bytes among those that satisfy `accepts`, without the group of mixed extensions.
    fn largest_group(&self, accepts: fn(&FileGroup) -> bool) -> Option<usize> {
        let numbers = 0..self.groups.len().min(GROUPS_MAX);
        let accepted = numbers.filter(|number| accepts(&self.groups[*number]));
        accepted.max_by_key(|number| self.groups[*number].total().bytes)
    }

    /// Kinds of files with their numbers, in descending order.
    pub fn kinds(&self) -> Vec<(String, u64)> {
        self.left_out(None, false)
    }

    /// Select the files of `format`. If all of them are in folders such as `train` and `val`, the folder names determine
    /// their purposes. Otherwise all are training files.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn select(mut self, format: &Format) -> Result<SelectedFiles, StorageError> {
        let number = self.group_with_format(format);
        let [train, eval, unknown] =
            number.map_or_else(Default::default, |number| self.groups[number].tallies);
        let is_split = train.files > 0 && unknown.files == 0;
        let left_out = self.left_out(number, is_split);
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
            train: if is_split { train } else { train.join(eval).join(unknown) },
            kind: number.map_or_else(String::new, |number| self.groups[number].name.clone()),
            left_out,
        };
        files.write()?;
        Ok(files)
    }

    /// The group to read as `format`. The main group is preferred if it has this format. As plain bytes, any group can be
    /// read whose content was not recognised as another format.
    fn group_with_format(&self, format: &Format) -> Option<usize> {
        let name = format.member().name;
        let is_plain = name == format::plain().member().name;
        let has_format =
            |group: &FileGroup| group.format.is_some_and(|format| format.member().name == name);
        let is_readable = |group: &FileGroup| has_format(group) || is_plain && !group.by_content;
        self.main_group()
            .filter(|&number| is_readable(&self.groups[number]))
            .or_else(|| self.groups.iter().position(has_format))
            .or_else(|| is_plain.then(|| self.largest_group(|group| !group.by_content))?)
    }

    /// Kinds of files outside of the selected group with their numbers, in descending order. With `is_split`, the
    /// evaluation files of the selected group are included.
    fn left_out(&self, selected: Option<usize>, is_split: bool) -> Vec<(String, u64)> {
        let others = self.groups.iter().enumerate().filter(|(i, _)| Some(*i) != selected);
        let mut kinds: Vec<(String, u64)> =
            others.map(|(_, group)| (group.name.clone(), group.total().files)).collect();
        if let (Some(selected), true) = (selected, is_split) {
            let eval = self.groups[selected].tallies[FilePurpose::Evaluation as usize];
            kinds.push(("to evaluate on".into(), eval.files));
        }
        kinds.extend(self.skipped.iter().map(|(reason, files)| (reason.to_string(), *files)));
        kinds.retain(|(_, files)| *files > 0);
        kinds.sort_by(|(a_name, a_files), (b_name, b_files)| {
            b_files.cmp(a_files).then_with(|| a_name.cmp(b_name))
        });
        kinds
    }
}

/// List all files below `root` and write their names to a file at `index`. Links to files and folders are followed; each
/// folder is listed once.
///
/// # Errors
/// `root` cannot be read, or the index cannot be written.
pub fn list(root: &Path, index: &Path) -> Result<Listing, StorageError> {
    let names = NameWriter::create(index);
    let names = names.map_err(|error| StorageError::new("create", index, error))?;
    let mut walk = FolderWalk {
        root,
        seen: HashSet::new(),
        extensions: HashMap::new(),
        folder: 0,
        chunk: Vec::new(),
        text: String::new(),
        listing: Listing {
            index: index.to_path_buf(),
            names,
            entries: Vec::new(),
            groups: Vec::new(),
            skipped: BTreeMap::new(),
            generated_datasets: Vec::new(),
        },
    };
    let mut folders = vec![(String::new(), FilePurpose::Unknown)];
    while let Some((folder, purpose)) = folders.pop() {
        let listed = walk.list_folder(&folder, purpose, &mut folders);
        listed.map_err(|error| StorageError::new("list", root.join(&folder), error))?;
    }
    Ok(walk.listing)
}

struct FolderWalk<'r> {
    root: &'r Path,
    /// Device and inode of the folders that have been listed.
    seen: HashSet<(u64, u64)>,
    /// What is known about each extension.
    extensions: HashMap<String, KnownExtension>,
    /// Number of the current folder.
    folder: u64,
    /// Names of the current folder that have not been sorted and written yet.
    chunk: Vec<ListedName>,
    /// Text of the names in `chunk`.
    text: String,
    listing: Listing,
}

#[derive(Clone, Copy)]
struct KnownExtension {
    group: u8,
    /// Number of files that were opened and not recognised.
    heads: u8,
}

struct ListedName {
    /// Range of the name in [`FolderWalk::text`].
    start: u32,
    end: u32,
    /// Group and purpose, in the upper bits of an entry.
    group_and_purpose: u64,
}

impl FolderWalk<'_> {
    /// List the files of one folder and push its subfolders to `folders`.
    fn list_folder(
        &mut self,
        folder: &str,
        purpose: FilePurpose,
        folders: &mut Vec<(String, FilePurpose)>,
    ) -> io::Result<()> {
        let path = self.root.join(folder);
        let opened = fs::metadata(&path).and_then(|found| Ok((found, fs::read_dir(&path)?)));
        let (found, entries) = match opened {
            Err(_) if !folder.is_empty() => {
                self.skip("unreadable folder");
                return Ok(());
            }
            opened => opened?,
        };
        if !self.seen.insert((found.dev(), found.ino())) {
            return Ok(());
        }
        self.folder += 1;
        let mut subfolders = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(name) = self.listable_name(&entry, folder) else { continue };
            let is_link = entry.file_type()?.is_symlink();
            let metadata = if is_link { fs::metadata(entry.path()) } else { entry.metadata() };
            match metadata {
                Ok(metadata) if metadata.is_dir() => subfolders.push(name),
                Ok(metadata) if metadata.is_file() => {
                    self.add_file(&name, &entry, &metadata, folder, purpose)?
                }
                Ok(_) => self.skip("no file"),
                Err(_) => self.skip("broken link"),
            }
        }
        self.flush(folder)?;
        // `folders` is a stack, so the first subfolder is pushed last.
        subfolders.sort_unstable_by_key(|name| Reverse(name.clone()));
        folders.extend(subfolders.into_iter().map(|name| {
            let named_purpose = FilePurpose::from_folder_name(&name);
            let is_unknown = purpose == FilePurpose::Unknown;
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            (path, if is_unknown { named_purpose } else { purpose })
        }));
        Ok(())
    }

    fn skip(&mut self, reason: &'static str) {
        *self.listing.skipped.entry(reason).or_default() += 1;
    }

    /// The name of an entry; `None` if it is skipped.
    fn listable_name(&mut self, entry: &DirEntry, folder: &str) -> Option<String> {
        let Ok(name) = entry.file_name().into_string() else {
            self.skip("name not in UTF-8");
            return None;
        };
        if name.starts_with('.') {
            self.skip("hidden");
            return None;
        }
        if folder.len() + 1 + name.len() > PATH_BYTES_MAX {
            self.skip("path too long");
            return None;
        }
        Some(name)
    }

    fn add_file(
        &mut self,
        name: &str,
        entry: &DirEntry,
        metadata: &Metadata,
        folder: &str,
        folder_purpose: FilePurpose,
    ) -> io::Result<()> {
        if name == manifest::FILE_NAME {
            let path = self.root.join(folder);
            if Manifest::find_in(&path).is_some() {
                self.listing.generated_datasets.push(path);
                return Ok(());
            }
        }
        if metadata.len() == 0 {
            self.skip("empty");
            return Ok(());
        }
        let group = self.group_of(name, entry);
        let purpose = match folder_purpose {
            FilePurpose::Unknown => FilePurpose::from_file_name(name),
            known => known,
        };
        let tallies = &mut self.listing.groups[usize::from(group)].tallies;
        tallies[purpose as usize].add(metadata.len(), self.folder);
        let start = self.text.len() as u32;
        self.text.push_str(name);
        let group_and_purpose = u64::from(group) << GROUP_SHIFT | (purpose as u64) << PURPOSE_SHIFT;
        let end = self.text.len() as u32;
        self.chunk.push(ListedName { start, end, group_and_purpose });
        if self.chunk.len() >= SORTED_NAMES {
            self.flush(folder)?;
        }
        Ok(())
    }

    /// The group of a file. All files of an extension are in one group; its format is that of the first file that is
    /// recognised.
    fn group_of(&mut self, name: &str, entry: &DirEntry) -> u8 {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let groups = &mut self.listing.groups;
        let known = self.extensions.get(&extension).copied();
        if let Some(known) = known
            && (known.heads == HEADS_MAX || groups[usize::from(known.group)].format.is_some())
        {
            return known.group;
        }
        let recognised =
            read_head(&entry.path()).and_then(|head| format::recognise(&head, &extension));
        let group_name = match (recognised, extension.as_str()) {
            (Some((format, _)), _) => format.member().name.to_string(),
            (None, "") => "without ending".into(),
            (None, extension) => extension.to_string(),
        };
        let (format, by_content) = recognised.unzip();
        let is_same_kind = |group: &FileGroup| {
            group.name == group_name && group.format.is_some() == format.is_some()
        };
        let group = groups.iter().position(is_same_kind).unwrap_or_else(|| {
            let new = FileGroup {
                name: group_name,
                format,
                by_content: by_content.unwrap_or(false),
                tallies: Default::default(),
            };
            match known {
                None if groups.len() > GROUPS_MAX => GROUPS_MAX,
                None if groups.len() == GROUPS_MAX => {
                    let name = "others".into();
                    groups.push(FileGroup { name, format: None, by_content: false, ..new });
                    GROUPS_MAX
                }
                Some(known) => {
                    // The extension is recognised now: its group gets the format and keeps its files.
                    let number = usize::from(known.group);
                    groups[number] = FileGroup { tallies: groups[number].tallies, ..new };
                    number
                }
                None => {
                    groups.push(new);
                    groups.len() - 1
                }
            }
        });
        let heads = match group {
            // The group of mixed extensions has no format, so no further files are opened.
            GROUPS_MAX => HEADS_MAX,
            _ => known.map_or(0, |known| known.heads) + u8::from(recognised.is_none()),
        };
        if known.is_some() || self.extensions.len() < EXTENSIONS_MAX {
            self.extensions.insert(extension, KnownExtension { group: group as u8, heads });
        }
        group as u8
    }

    /// Sort the collected names and write them to the index.
    fn flush(&mut self, folder: &str) -> io::Result<()> {
        let text = &self.text;
        let text_of = |name: &ListedName| &text[name.start as usize..name.end as usize];
        self.chunk.sort_unstable_by(|a, b| text_of(a).cmp(text_of(b)));
        let Listing { names, entries, .. } = &mut self.listing;
        for name in &self.chunk {
            entries.push(names.push(folder, text_of(name))? | name.group_and_purpose);
        }
        self.chunk.clear();
        self.text.clear();
        Ok(())
    }
}

/// The first bytes of a file; `None` if it cannot be read.
fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    File::open(path).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(head)
}
