//! What plug-in families tell the planner: names, abilities, sizes. Data, no behaviour of theirs.

use crate::shape::FileShape;

/// Something a member can do or needs. The planner matches these once, before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// One sample of many can be read without reading the whole file.
    RandomAccess,
    /// The file stays open between samples (a shared file with an index).
    KeepsOpen,
    /// The format checks its content as it reads.
    ChecksContent,
    /// The storage holds real bytes: what was written comes back.
    KeepsBytes,
    /// The storage has a page cache that can be evicted and looked at.
    PageCache,
    /// The storage can be written.
    Writable,
    /// No files are made or opened.
    NoFiles,
    /// Files lie in a folder of this machine, where others find them again.
    InFolder,
}

impl Ability {
    /// The name shown by `feedrate list`.
    pub fn name(self) -> &'static str {
        match self {
            Ability::RandomAccess => "random_access",
            Ability::KeepsOpen => "keeps_open",
            Ability::ChecksContent => "checks_content",
            Ability::KeepsBytes => "keeps_bytes",
            Ability::PageCache => "page_cache",
            Ability::Writable => "writable",
            Ability::NoFiles => "no_files",
            Ability::InFolder => "in_folder",
        }
    }
}

/// One member of a plug-in family.
#[derive(Debug)]
pub struct Member {
    /// The name users write.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What it can do or needs.
    pub abilities: &'static [Ability],
}

impl Member {
    /// Whether it has `ability`.
    pub fn has(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }
}

/// A format, as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct FormatEntry {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Exact bytes of the files made for one file of this shape, sidecars included.
    pub file_bytes: fn(&FileShape) -> u64,
}

/// A loader, as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct LoaderEntry {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Batches in flight or finished and not yet taken, of one accelerator: (read_threads, prefetch_size).
    pub stock_batches: fn(u32, u32) -> u32,
}

/// All that is built in, collected by the binary from the families' tables.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// File formats.
    pub formats: Vec<FormatEntry>,
    /// Storages.
    pub storages: Vec<&'static Member>,
    /// Loaders.
    pub loaders: Vec<LoaderEntry>,
}

impl Catalog {
    /// The format of that name.
    pub fn format(&self, name: &str) -> Option<&FormatEntry> {
        self.formats.iter().find(|f| f.member.name == name)
    }

    /// The storage of that name.
    pub fn storage(&self, name: &str) -> Option<&'static Member> {
        self.storages.iter().copied().find(|m| m.name == name)
    }

    /// The loader of that name.
    pub fn loader(&self, name: &str) -> Option<&LoaderEntry> {
        self.loaders.iter().find(|l| l.member.name == name)
    }
}
