//! Assigns each file of a foreign dataset to a group by its extension and first bytes.

use super::{
    DESCRIPTIONS, FileGroup, FilePurpose, GROUP_SHIFT, GROUPS_MAX, Listing, PURPOSE_SHIFT,
};
use crate::error::DatasetError;
use crate::file_index::{NameWriter, PATH_BYTES_MAX};
use crate::format::{self, HEAD_BYTES, PACKED_EXTENSIONS};
use crate::manifest::{self, Manifest};
use crate::storage::{Storage, StorageError};
use feedrate_spec::catalog::Ability;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Upper limit on the files that are opened to recognise the format of an extension. Some may be broken.
const UNRECOGNISED_MAX: u8 = 16;
/// Upper limit on the extensions that are remembered. Files of further extensions are opened one by one.
const EXTENSIONS_MAX: usize = 1 << 16;

/// Adds files to a listing.
pub(super) struct Collector<'s> {
    pub(super) root: &'s Path,
    pub(super) storage: &'s dyn Storage,
    /// Group of each extension that has been found.
    extensions: HashMap<String, KnownExtension>,
    pub(super) listing: Listing,
}

#[derive(Clone, Copy)]
struct KnownExtension {
    group: u8,
    /// Number of files that were opened and not recognised.
    unrecognised: u8,
}

/// A folder of files.
pub(super) struct Folder {
    /// Relative to the root.
    pub(super) path: String,
    purpose: FilePurpose,
    /// Groups and purposes of the files in it.
    kinds: HashSet<(u8, FilePurpose)>,
}

impl Folder {
    pub(super) fn root() -> Self {
        Folder { path: String::new(), purpose: FilePurpose::Unknown, kinds: HashSet::new() }
    }

    pub(super) fn child(&self, name: &str) -> Self {
        let purpose = match self.purpose {
            FilePurpose::Unknown => FilePurpose::from_folder_name(name),
            known => known,
        };
        Folder { path: join(&self.path, name), purpose, kinds: HashSet::new() }
    }

    /// Whether `path` is this folder or one below it.
    pub(super) fn contains(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&*self.path);
        rest.is_some_and(|rest| self.path.is_empty() || rest.is_empty() || rest.starts_with('/'))
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

impl<'s> Collector<'s> {
    pub(super) fn new(
        root: &'s Path,
        storage: &'s dyn Storage,
        index: &Path,
    ) -> Result<Self, StorageError> {
        let names = NameWriter::create(index);
        let names = names.map_err(|error| StorageError::new("create", index, error))?;
        let listing = Listing {
            index: index.to_path_buf(),
            names,
            entries: Vec::new(),
            groups: Vec::new(),
            skipped: BTreeMap::new(),
            odd_names: None,
            generated_datasets: Vec::new(),
        };
        Ok(Collector { root, storage, extensions: HashMap::new(), listing })
    }

    pub(super) fn skip(&mut self, reason: &'static str) {
        *self.listing.skipped.entry(reason).or_default() += 1;
    }

    /// Counts an object whose name cannot be used as a path.
    pub(super) fn skip_odd_name(&mut self, name: &str) {
        self.listing.odd_names.get_or_insert_with(|| (name.to_string(), 0)).1 += 1;
    }

    /// Whether a name in a folder is not skipped.
    pub(super) fn accepts(&mut self, folder: &str, name: &str) -> bool {
        if name.starts_with('.') {
            self.skip("hidden");
            return false;
        }
        if folder.len() + 1 + name.len() > PATH_BYTES_MAX {
            self.skip("path too long");
            return false;
        }
        true
    }

    /// Counts a file. Returns its group and purpose, in the upper bits of an entry; `None` if it is left out.
    ///
    /// # Errors
    /// A store failed.
    pub(super) fn count(
        &mut self,
        folder: &mut Folder,
        name: &str,
        bytes: u64,
    ) -> Result<Option<u64>, StorageError> {
        if name == manifest::FILE_NAME {
            match Manifest::read_in(self.storage, &folder.path) {
                Ok(Some(_)) => {
                    self.listing.generated_datasets.push(self.root.join(&folder.path));
                    return Ok(None);
                }
                Err(DatasetError::Storage(error)) if self.is_in_store() => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        if bytes == 0 {
            self.skip("empty");
            return Ok(None);
        }
        let group = self.find_group(&folder.path, name)?;
        let purpose = match folder.purpose {
            FilePurpose::Unknown => FilePurpose::from_file_name(name),
            known => known,
        };
        let found = &mut self.listing.groups[usize::from(group)];
        let is_new_kind = folder.kinds.insert((group, purpose));
        let tally = &mut found.tallies[purpose as usize];
        tally.add(bytes);
        tally.folders += u64::from(is_new_kind);
        found.descriptions += u64::from(DESCRIPTIONS.contains(&name));
        Ok(Some(u64::from(group) << GROUP_SHIFT | (purpose as u64) << PURPOSE_SHIFT))
    }

    /// Whether the files are in a store. If a read fails there, the listing fails, because the store or a permission is at fault. In a folder, only
    /// the file counts as not recognised.
    fn is_in_store(&self) -> bool {
        self.storage.member().has(Ability::Remote)
    }

    /// Writes the name of a counted file to the index.
    pub(super) fn write(
        &mut self,
        folder: &str,
        name: &str,
        bytes: u64,
        group_and_purpose: u64,
    ) -> Result<(), StorageError> {
        let Listing { names, entries, index, .. } = &mut self.listing;
        let offset = names.push(folder, name, bytes);
        let offset = offset.map_err(|error| StorageError::new("write", index, error))?;
        entries.push(offset | group_and_purpose);
        Ok(())
    }

    /// The group of a file. All files of an extension are in one group. The first file that is recognised determines the
    /// format of the group.
    fn find_group(&mut self, folder: &str, name: &str) -> Result<u8, StorageError> {
        let extension = listed_extension(name);
        let known = self.extensions.get(&extension).copied();
        if let Some(known) = known
            && (known.unrecognised == UNRECOGNISED_MAX
                || self.listing.groups[usize::from(known.group)].format.is_some())
        {
            return Ok(known.group);
        }
        let head = match read_head(self.storage, &join(folder, name)) {
            Err(error) if self.is_in_store() => return Err(error),
            head => head.ok(),
        };
        let groups = &mut self.listing.groups;
        let recognised = head.and_then(|head| format::recognise(&head, &extension));
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
        Ok(group as u8)
    }
}

/// The extension of a file without the number of its shard, in lower case. Compressed files have two, as in `jsonl.gz`, if
/// the first one is that of a format.
fn listed_extension(name: &str) -> String {
    let lower_extension = |name: &str| {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        extension.unwrap_or_default().to_ascii_lowercase()
    };
    let mut extension = lower_extension(name);
    // As in `digits-train.tfrecord-00000-of-00004`.
    if let Some((word, shard)) = extension.split_once('-')
        && shard.split_once("-of-").is_some_and(|(shard, shards)| {
            [shard, shards].iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    {
        extension.truncate(word.len());
    }
    if PACKED_EXTENSIONS.contains(&extension.as_str()) {
        let inner = lower_extension(&name[..name.len() - 1 - extension.len()]);
        if format::named(&inner).next().is_some() {
            return format!("{inner}.{extension}");
        }
    }
    extension
}

/// The first bytes of a file, as many as recognise its format.
fn read_head(storage: &dyn Storage, path: &str) -> Result<Vec<u8>, StorageError> {
    let file = storage.open(path)?;
    let mut head = vec![0; HEAD_BYTES];
    let read = storage.read_at(&file, 0, &mut head).and_then(|mut read_bytes| {
        head.truncate(read_bytes);
        let wanted_bytes = format::head_bytes(&head);
        if read_bytes == HEAD_BYTES && read_bytes < wanted_bytes {
            head.resize(wanted_bytes, 0);
            read_bytes += storage.read_at(&file, HEAD_BYTES as u64, &mut head[HEAD_BYTES..])?;
            head.truncate(read_bytes);
        }
        Ok(())
    });
    storage.close(file);
    read.map(|()| head)
}
