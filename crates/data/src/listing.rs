//! Lists a folder of files that others made, however they are named and wherever in it they lie, and tells their formats.
//!
//! Names go into a [`FileIndex`](crate::file_index::FileIndex) as they come: of ten million files no more is kept than a place each.

use crate::file_index::{NameWriter, PATH_BYTES_MAX};
use crate::foreign::UnfitFiles;
use crate::format::{self, Format, HEAD_BYTES};
use crate::manifest::{self, Manifest};
use crate::storage::StorageError;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// So many names of a folder are sorted together.
const SORTED_NAMES: usize = 1 << 20;
/// Files of an ending that are looked into until one tells its format: some may be broken.
const HEADS_MAX: u8 = 16;
/// Endings that are remembered: of more each file is looked into.
const ENDINGS_MAX: usize = 1 << 16;
/// Kinds of files that are told apart; further ones are of one kind more.
const GROUPS_MAX: usize = 200;

/// Use of a file, by the folder that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilePurpose {
    Train,
    Evaluation,
    Unknown,
}

const TRAIN: [&str; 2] = ["train", "training"];
const EVALUATION: [&str; 5] = ["valid", "val", "validation", "test", "eval"];

impl FilePurpose {
    /// By a folder's name: `train`, `train2017`.
    fn of_folder(name: &str) -> Self {
        let name = name.trim_end_matches(|end: char| end.is_ascii_digit() || "_-".contains(end));
        let is = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        if is(&TRAIN) {
            FilePurpose::Train
        } else if is(&EVALUATION) {
            FilePurpose::Evaluation
        } else {
            FilePurpose::Unknown
        }
    }

    /// By a file's name: `train.h5`, and `train-00000-of-00004.parquet` as Hugging Face has it.
    fn of_file(name: &str) -> Self {
        let stem = name.split('.').next().unwrap_or_default();
        let word = stem.split_once("-0").map_or(stem, |(word, _)| word);
        FilePurpose::of_folder(word)
    }
}

/// Files of one format, or of one ending where no format is known.
struct FileGroup {
    name: String,
    format: Option<&'static Format>,
    /// The files' bytes have told the format, not their names.
    by_content: bool,
    /// By purpose.
    of: [FileTally; 3],
}

impl FileGroup {
    fn all(&self) -> FileTally {
        self.of.into_iter().fold(FileTally::default(), FileTally::join)
    }

    fn is_more_than(&self, other: &FileGroup) -> bool {
        let [own, other] = [self.all(), other.all()];
        other.files < own.files && other.bytes < own.bytes
    }
}

/// Files that are alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTally {
    /// How many.
    pub files: u64,
    /// Length of all of them.
    pub bytes: u64,
    /// Folders that they lie in.
    pub folders: u64,
    /// Length of the shortest and of the longest.
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
            (self.last_folder, self.folders) = (folder, self.folders + 1);
        }
    }

    fn join(self, other: Self) -> Self {
        let lengths = [self.lengths, other.lengths].into_iter().flatten();
        FileTally {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            folders: self.folders + other.folders,
            lengths: lengths.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))),
            last_folder: 0,
        }
    }
}

/// All files below a folder, sorted by what they are.
pub struct Listing {
    index: PathBuf,
    names: NameWriter,
    /// The place of each name, with its group and its purpose above.
    entries: Vec<u64>,
    groups: Vec<FileGroup>,
    /// Files that are no data, by the reason.
    passed: BTreeMap<&'static str, u64>,
    /// Folders of datasets of ours.
    pub ours: Vec<PathBuf>,
}

/// The files of a listing that are used.
pub struct TakenFiles {
    index: PathBuf,
    names: NameWriter,
    places: Vec<u64>,
    /// Files to evaluate on.
    pub eval: u64,
    /// Those to train on.
    pub train: FileTally,
    /// Name of its files: their format, or their ending where that tells none.
    pub kind: String,
    /// Those that are not used, each kind with how many there are, the most first.
    pub left_out: Vec<(String, u64)>,
}

impl TakenFiles {
    fn write(&mut self) -> Result<(), StorageError> {
        let places = self.places.iter().copied();
        let written = self.names.choose(places, [self.train.files, self.eval]);
        written.map_err(|error| StorageError::new("write", &self.index, error))
    }

    /// Leave out these files.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn leave_out(&mut self, all: &[UnfitFiles]) -> Result<(), StorageError> {
        let numbers: HashSet<u64> = all.iter().flat_map(|left| left.numbers.clone()).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let mut number = 0..;
        self.places.retain(|_| number.next().is_some_and(|number| !numbers.contains(&number)));
        self.train.files -= numbers.len() as u64;
        for UnfitFiles { numbers, bytes, why } in all.iter().filter(|left| !left.numbers.is_empty())
        {
            self.train.bytes = self.train.bytes.saturating_sub(*bytes);
            self.left_out.push((why.clone(), numbers.len() as u64));
        }
        self.write()
    }
}

const PURPOSE_SHIFT: u32 = 48;
const GROUP_SHIFT: u32 = 56;

impl Listing {
    /// The format that is read where nobody says which.
    pub fn commonest(&self) -> Option<&'static Format> {
        let group = &self.groups[self.chosen()?];
        Some(group.format.unwrap_or_else(format::plain))
    }

    /// The group of most files, of those whose format the files' bytes tell where there are such; formats that only names tell may be of
    /// what goes with them, unless they are more of the files and bytes. Files of no known format, as plain bytes, come before what names
    /// tell where they are more of the bytes, and before others where they are more of both.
    fn chosen(&self) -> Option<usize> {
        let groups = &self.groups;
        let [told, named] = [true, false].map(|by_content| {
            let numbers = 0..groups.len();
            let is_known = |of: &FileGroup| of.format.is_some() && of.by_content == by_content;
            let known = numbers.filter(|&number| is_known(&groups[number]));
            known.max_by_key(|&number| groups[number].all().files)
        });
        let known = match (told, named) {
            (Some(told), Some(named)) if groups[named].is_more_than(&groups[told]) => Some(named),
            (told, named) => told.or(named),
        };
        let plain = self.largest(|group| group.format.is_none());
        let (Some(plain), Some(known)) = (plain, known) else { return known.or(plain) };
        let [bare, other] = [plain, known].map(|number| &groups[number]);
        let is_named = !other.by_content && other.all().bytes < bare.all().bytes;
        Some(if bare.is_more_than(other) || is_named { plain } else { known })
    }

    /// The group with the most bytes of those that `is_one`; files of many endings are none.
    fn largest(&self, is_one: fn(&FileGroup) -> bool) -> Option<usize> {
        let numbers = 0..self.groups.len().min(GROUPS_MAX);
        let some = numbers.filter(|number| is_one(&self.groups[*number]));
        some.max_by_key(|number| self.groups[*number].all().bytes)
    }

    /// Kinds of files, each with how many there are, the most first.
    pub fn kinds(&self) -> Vec<(String, u64)> {
        self.left_out(None, false)
    }

    /// Choose the files of `format`. Where all of them lie in folders such as `train` and `val`, these tell what they are for.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn take(mut self, format: &Format) -> Result<TakenFiles, StorageError> {
        let number = self.group_of(format);
        let of = number.map_or_else(Default::default, |number| self.groups[number].of);
        let [train, eval, unknown] = of;
        let is_split = train.files > 0 && unknown.files == 0;
        let left_out = self.left_out(number, is_split);
        let mut places = std::mem::take(&mut self.entries);
        places.retain(|entry| number == Some((entry >> GROUP_SHIFT) as usize));
        if is_split {
            // In their order, but for this.
            places.sort_by_key(|entry| entry >> PURPOSE_SHIFT);
        }
        places.iter_mut().for_each(|entry| *entry &= (1 << PURPOSE_SHIFT) - 1);
        let kind = number.map_or_else(String::new, |number| self.groups[number].name.clone());
        let Listing { index, names, .. } = self;
        let train = if is_split { train } else { train.join(eval).join(unknown) };
        let eval = if is_split { eval.files } else { 0 };
        let mut taken = TakenFiles { index, names, places, eval, train, kind, left_out };
        taken.write()?;
        Ok(taken)
    }

    /// Those of `format`: the chosen ones where they can be read so, as every file can as plain bytes that does not tell another format.
    fn group_of(&self, format: &Format) -> Option<usize> {
        let name = format.member().name;
        let is_plain = name == format::plain().member().name;
        let is_of = |group: &FileGroup| group.format.is_some_and(|of| of.member().name == name);
        let fits = |of: &FileGroup| is_of(of) || is_plain && !of.by_content;
        let chosen = self.chosen().filter(|&number| fits(&self.groups[number]));
        let chosen = chosen.or_else(|| self.groups.iter().position(is_of));
        chosen.or_else(|| is_plain.then(|| self.largest(|group| !group.by_content))?)
    }

    fn left_out(&self, taken: Option<usize>, is_split: bool) -> Vec<(String, u64)> {
        let others = self.groups.iter().enumerate().filter(|(i, _)| Some(*i) != taken);
        let mut all: Vec<(String, u64)> =
            others.map(|(_, group)| (group.name.clone(), group.all().files)).collect();
        if let (Some(taken), true) = (taken, is_split) {
            all.push(("to evaluate on".into(), self.groups[taken].of[1].files));
        }
        all.extend(self.passed.iter().map(|(why, files)| (why.to_string(), *files)));
        all.retain(|(_, files)| *files > 0);
        all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all
    }
}

/// List all files below `root`; their names go into a file called `index`. Links to files and folders are followed, each folder
/// once.
///
/// # Errors
/// A folder cannot be read, or the index not be written.
pub fn list(root: &Path, index: &Path) -> Result<Listing, StorageError> {
    let names = NameWriter::create(index);
    let names = names.map_err(|error| StorageError::new("create", index, error))?;
    let mut walk = FolderWalk {
        root,
        seen: HashSet::new(),
        endings: HashMap::new(),
        folder: 0,
        chunk: Vec::new(),
        text: String::new(),
        listing: Listing {
            index: index.to_path_buf(),
            names,
            entries: Vec::new(),
            groups: Vec::new(),
            passed: BTreeMap::new(),
            ours: Vec::new(),
        },
    };
    let mut folders = vec![(String::new(), FilePurpose::Unknown)];
    while let Some((folder, purpose)) = folders.pop() {
        let read = walk.folder(&folder, purpose, &mut folders);
        read.map_err(|error| StorageError::new("list", root.join(&folder), error))?;
    }
    Ok(walk.listing)
}

struct FolderWalk<'r> {
    root: &'r Path,
    /// Device and inode of the folders that were read.
    seen: HashSet<(u64, u64)>,
    /// Each ending, as far as it is known.
    endings: HashMap<String, ListedEnding>,
    /// Number of the folder that is read.
    folder: u64,
    /// Names that are sorted next: where they begin and end in the text, with the upper part of their entries.
    chunk: Vec<ListedName>,
    text: String,
    listing: Listing,
}

#[derive(Clone, Copy)]
struct ListedEnding {
    group: u8,
    /// Files that were looked into and did not tell.
    heads: u8,
}

struct ListedName {
    start: u32,
    end: u32,
    kind: u64,
}

impl FolderWalk<'_> {
    fn folder(
        &mut self,
        folder: &str,
        purpose: FilePurpose,
        folders: &mut Vec<(String, FilePurpose)>,
    ) -> io::Result<()> {
        let path = self.root.join(folder);
        let entries = fs::metadata(&path).and_then(|found| Ok((found, fs::read_dir(&path)?)));
        let (found, entries) = match entries {
            Err(_) if !folder.is_empty() => {
                self.pass("unreadable folder");
                return Ok(());
            }
            entries => entries?,
        };
        if !self.seen.insert((found.dev(), found.ino())) {
            return Ok(());
        }
        self.folder += 1;
        let mut inner = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(name) = self.name(&entry, folder) else { continue };
            let kind = entry.file_type()?;
            let found =
                if kind.is_symlink() { fs::metadata(entry.path()) } else { entry.metadata() };
            match found {
                Ok(found) if found.is_dir() => inner.push(name),
                Ok(found) if found.is_file() => {
                    self.file(&name, &entry, &found, folder, purpose)?
                }
                Ok(_) => self.pass("no file"),
                Err(_) => self.pass("broken link"),
            }
        }
        self.flush(folder)?;
        inner.sort_unstable_by(|one, other| other.cmp(one));
        folders.extend(inner.into_iter().map(|name| {
            let own = FilePurpose::of_folder(&name);
            let purpose = if purpose == FilePurpose::Unknown { own } else { purpose };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            (path, purpose)
        }));
        Ok(())
    }

    fn pass(&mut self, why: &'static str) {
        *self.listing.passed.entry(why).or_default() += 1;
    }

    /// A name that can be listed.
    fn name(&mut self, entry: &DirEntry, folder: &str) -> Option<String> {
        let Ok(name) = entry.file_name().into_string() else {
            self.pass("name not in UTF-8");
            return None;
        };
        if name.starts_with('.') {
            self.pass("hidden");
            return None;
        }
        if folder.len() + 1 + name.len() > PATH_BYTES_MAX {
            self.pass("path too long");
            return None;
        }
        Some(name)
    }

    fn file(
        &mut self,
        name: &str,
        entry: &DirEntry,
        found: &Metadata,
        folder: &str,
        purpose: FilePurpose,
    ) -> io::Result<()> {
        if name == manifest::FILE_NAME {
            let own = self.root.join(folder);
            if Manifest::own_in(&own).is_some() {
                self.listing.ours.push(own);
                return Ok(());
            }
        }
        if found.len() == 0 {
            self.pass("empty");
            return Ok(());
        }
        let group = self.group(name, entry);
        let is_known = purpose != FilePurpose::Unknown;
        let purpose = if is_known { purpose } else { FilePurpose::of_file(name) } as usize;
        self.listing.groups[usize::from(group)].of[purpose].add(found.len(), self.folder);
        let start = self.text.len() as u32;
        self.text.push_str(name);
        let kind = u64::from(group) << GROUP_SHIFT | (purpose as u64) << PURPOSE_SHIFT;
        self.chunk.push(ListedName { start, end: self.text.len() as u32, kind });
        if self.chunk.len() >= SORTED_NAMES {
            self.flush(folder)?;
        }
        Ok(())
    }

    /// The group of files that end so. What the first of them that is of a format begins with tells that of all.
    fn group(&mut self, name: &str, entry: &DirEntry) -> u8 {
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
        let ending = ending.unwrap_or_default().to_ascii_lowercase();
        let groups = &mut self.listing.groups;
        let known = self.endings.get(&ending).copied();
        if let Some(of) = known
            && (of.heads == HEADS_MAX || groups[usize::from(of.group)].format.is_some())
        {
            return of.group;
        }
        let found = head(&entry.path()).and_then(|head| format::recognise(&head, &ending));
        let own = match (found, ending.as_str()) {
            (Some((format, _)), _) => format.member().name.to_string(),
            (None, "") => "without ending".into(),
            (None, ending) => ending.to_string(),
        };
        let (format, by_content) = found.unzip();
        let by_content = by_content.unwrap_or(false);
        let mut earlier = groups.iter().map(|of| (&of.name, of.format.is_some()));
        let group = earlier.position(|of| of == (&own, format.is_some())).unwrap_or_else(|| {
            let new = FileGroup { name: own, format, by_content, of: Default::default() };
            match known {
                None if groups.len() > GROUPS_MAX => GROUPS_MAX,
                None if groups.len() == GROUPS_MAX => {
                    let name = "others".into();
                    groups.push(FileGroup { name, format: None, by_content: false, ..new });
                    GROUPS_MAX
                }
                Some(of) => {
                    let earlier = &mut groups[usize::from(of.group)];
                    *earlier = FileGroup { of: earlier.of, ..new };
                    usize::from(of.group)
                }
                None => {
                    groups.push(new);
                    groups.len() - 1
                }
            }
        });
        let heads = known.map_or(0, |of| of.heads) + u8::from(found.is_none());
        // What is not told apart is not looked into again.
        let heads = if group == GROUPS_MAX { HEADS_MAX } else { heads };
        if known.is_some() || self.endings.len() < ENDINGS_MAX {
            self.endings.insert(ending, ListedEnding { group: group as u8, heads });
        }
        group as u8
    }

    /// Sort the names that came, and write them.
    fn flush(&mut self, folder: &str) -> io::Result<()> {
        let text = &self.text;
        let name = |of: &ListedName| &text[of.start as usize..of.end as usize];
        self.chunk.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        let Listing { names, entries, .. } = &mut self.listing;
        for one in &self.chunk {
            entries.push(names.push(folder, name(one))? | one.kind);
        }
        self.chunk.clear();
        self.text.clear();
        Ok(())
    }
}

/// The first bytes of a file; `None` where it cannot be read.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    File::open(path).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(head)
}
