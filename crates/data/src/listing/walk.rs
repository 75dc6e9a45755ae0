//! Walks the folders of a foreign dataset and assigns each file to a group by its extension and first bytes.

use super::{
    DESCRIPTIONS, FileGroup, FilePurpose, GROUP_SHIFT, GROUPS_MAX, Listing, PURPOSE_SHIFT,
};
use crate::file_index::{NameWriter, PATH_BYTES_MAX};
use crate::folder;
use crate::format::{self, HEAD_BYTES, PACKED_EXTENSIONS};
use crate::manifest::{self, Manifest};
use crate::storage::StorageError;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Number of names in a folder that are sorted together.
const SORTED_NAMES: usize = 1 << 20;
/// Upper limit on the files that are opened to recognise the format of an extension. Some may be broken.
const UNRECOGNISED_MAX: u8 = 16;
/// Upper limit on the extensions that are remembered. Files of further extensions are opened one by one.
const EXTENSIONS_MAX: usize = 1 << 16;

/// Lists all files below `root` and writes their names to a file at `index`. Links to files and folders are followed; each
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
        folder_number: 0,
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
    /// Group of each extension that has been found.
    extensions: HashMap<String, KnownExtension>,
    /// Number of the current folder.
    folder_number: u64,
    /// Names in the current folder that have not been sorted and written yet.
    chunk: Vec<ListedName>,
    /// Text of the names in `chunk`.
    text: String,
    listing: Listing,
}

#[derive(Clone, Copy)]
struct KnownExtension {
    group: u8,
    /// Number of files that were opened and not recognised.
    unrecognised: u8,
}

struct ListedName {
    /// Range of the name in [`FolderWalk::text`].
    start: u32,
    end: u32,
    /// Group and purpose, in the upper bits of an entry.
    group_and_purpose: u64,
}

impl FolderWalk<'_> {
    /// Lists the files of one folder and pushes its subfolders to `folders`.
    fn list_folder(
        &mut self,
        folder: &str,
        purpose: FilePurpose,
        folders: &mut Vec<(String, FilePurpose)>,
    ) -> io::Result<()> {
        let path = self.root.join(folder);
        let opened = fs::metadata(&path).and_then(|found| Ok((found, folder::entries(&path)?)));
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
        self.folder_number += 1;
        let mut subfolders = Vec::new();
        for entry in entries {
            let Some(name) = self.listable_name(entry?, folder) else { continue };
            let file = path.join(&name);
            match fs::metadata(&file) {
                Ok(metadata) if metadata.is_dir() => subfolders.push(name),
                Ok(metadata) if metadata.is_file() => {
                    self.add_file(&name, &file, &metadata, folder, purpose)?
                }
                Ok(_) => self.skip("not a regular file"),
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
    fn listable_name(&mut self, name: OsString, folder: &str) -> Option<String> {
        let Ok(name) = name.into_string() else {
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
        file: &Path,
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
        let group = self.group_of(name, file);
        let purpose = match folder_purpose {
            FilePurpose::Unknown => FilePurpose::from_file_name(name),
            known => known,
        };
        let found = &mut self.listing.groups[usize::from(group)];
        found.tallies[purpose as usize].add(metadata.len(), self.folder_number);
        found.descriptions += u64::from(DESCRIPTIONS.contains(&name));
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

    /// The group of a file. All files of an extension are in one group. The first file that is recognised determines the
    /// format of the group.
    fn group_of(&mut self, name: &str, file: &Path) -> u8 {
        let extension = listed_extension(name);
        let groups = &mut self.listing.groups;
        let known = self.extensions.get(&extension).copied();
        if let Some(known) = known
            && (known.unrecognised == UNRECOGNISED_MAX
                || groups[usize::from(known.group)].format.is_some())
        {
            return known.group;
        }
        let recognised = read_head(file).and_then(|head| format::recognise(&head, &extension));
        let group_name = match (recognised, extension.as_str()) {
            (Some((format, true)), _) => format.member().name.to_string(),
            // Several formats can have the extension, and none is known yet.
            (Some((format, false)), _) => format.entry.extension.to_string(),
            (None, "") => "without extension".into(),
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
                descriptions: 0,
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
                    let FileGroup { tallies, descriptions, .. } = groups[number];
                    groups[number] = FileGroup { tallies, descriptions, ..new };
                    number
                }
                None => {
                    groups.push(new);
                    groups.len() - 1
                }
            }
        });
        let unrecognised = match group {
            // The group of mixed extensions has no format, so no further files are opened.
            GROUPS_MAX => UNRECOGNISED_MAX,
            _ => known.map_or(0, |known| known.unrecognised) + u8::from(recognised.is_none()),
        };
        if known.is_some() || self.extensions.len() < EXTENSIONS_MAX {
            self.extensions.insert(extension, KnownExtension { group: group as u8, unrecognised });
        }
        group as u8
    }

    /// Sorts the collected names and writes them to the index.
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

/// The extension of a file without the number of its shard, in lower case. Compressed files have two, as in `jsonl.gz`, if
/// the first one is that of a format.
fn listed_extension(name: &str) -> String {
    let extension_of = |name: &str| {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        extension.unwrap_or_default().to_ascii_lowercase()
    };
    let mut extension = extension_of(name);
    // As in `digits-train.tfrecord-00000-of-00004`.
    if let Some((word, shard)) = extension.split_once('-')
        && shard.split_once("-of-").is_some_and(|(shard, shards)| {
            [shard, shards].iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    {
        extension.truncate(word.len());
    }
    if PACKED_EXTENSIONS.contains(&extension.as_str()) {
        let inner = extension_of(&name[..name.len() - 1 - extension.len()]);
        if format::named(&inner).next().is_some() {
            return format!("{inner}.{extension}");
        }
    }
    extension
}

/// The first bytes of a file; `None` if it cannot be read.
fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let mut file = File::open(path).ok()?;
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    let missing_bytes = format::head_bytes(&head).saturating_sub(HEAD_BYTES);
    file.take(missing_bytes as u64).read_to_end(&mut head).ok()?;
    Some(head)
}
