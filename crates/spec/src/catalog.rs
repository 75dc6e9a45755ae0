//! Data about the members of plug-in families for the planner: names, abilities, sizes.

use crate::names;
use crate::shape::{Compression, Element, Encoding, FileShape};

names! {
    /// Something a member can do or needs. The planner matches these once, before anything runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Ability {
        /// One sample of many can be read without reading the whole file.
        RandomAccess = "random_access",
        /// The file stays open between samples (a shared file with an index).
        KeepsOpen = "keeps_open",
        /// The format checks its content as it reads.
        ChecksContent = "checks_content",
        /// The storage holds real bytes: what was written comes back.
        KeepsBytes = "keeps_bytes",
        /// The storage has a page cache that can be evicted and looked at.
        PageCache = "page_cache",
        /// The storage can be written.
        Writable = "writable",
        /// No files are made or opened.
        NoFiles = "no_files",
        /// Files lie in a folder of this machine, where others find them again.
        InFolder = "in_folder",
        /// The length of a file cannot be told before it is made.
        EstimatedSize = "estimated_size",
        /// Data read back resembles what was written, and is not equal.
        Lossy = "lossy",
        /// The file does not say what it holds: only its length can be compared with a plan.
        Undescribed = "undescribed",
        /// Only the plan says where one of several samples of a file lies: files that others made are read by it too.
        NeedsPlan = "needs_plan",
        /// A file that ends a few bytes early can look whole.
        LooseEnd = "loose_end",
        /// All samples of a file take equally many reads, where nothing is compressed or in chunks and a read may be as long as the
        /// sample.
        EvenReads = "even_reads",
        /// Samples of files that others made can be files of their own, such as pictures, which readers decode.
        HoldsFiles = "holds_files",
        /// A file that others made is read from its start on, up to the sample that is wanted.
        Sequential = "sequential",
        /// Decoding allocates memory for each sample.
        DecoderAllocates = "decoder_allocates",
        /// Its samples are decoded by a loader that has threads for it, with as many as it has by default.
        DecodedByLoader = "decoded_by_loader",
        /// Reading goes through a memory map.
        Mapped = "mapped",
        /// Reads go past the page cache, in whole blocks.
        BypassesPageCache = "bypasses_page_cache",
        /// An engine serves samples by a library of their format, and not the bytes of files; a format has such a library.
        ServesSamples = "serves_samples",
        /// The storage's files are read by an engine of choice.
        Engines = "engines",
        /// The loader's threads read files side by side, and their samples alternate.
        Interleaves = "interleaves",
        /// The loader shuffles samples in a buffer as they come, instead of the order in which they are read.
        ShuffleBuffer = "shuffle_buffer",
        /// The loader decodes in threads of their own (`reader.computation_threads`).
        DecodeThreads = "decode_threads",
        /// Steps take no time, whatever is asked for.
        TakesNoTime = "takes_no_time",
        /// Steps are carried out on devices of this machine.
        NeedsDevices = "needs_devices",
        /// Its runs are steps of the Slurm job that starts them, and use the tasks of that job.
        JobSteps = "job_steps",
        /// It runs on other machines than the one that asks for it.
        Elsewhere = "elsewhere",
    }
}

/// One member of a plug-in family.
#[derive(Debug)]
pub struct Member {
    /// The name users write.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Abilities and needs.
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
    /// Element types that its files can hold, the first in place of others; all where it is empty.
    pub elements: &'static [Element],
    /// Dimensions of a record that DLIO takes, at most; `None` is any number.
    pub dlio_dims_max: Option<usize>,
    /// Extension of the data file, without the dot.
    pub extension: &'static str,
    /// Compressions it takes, beside none.
    pub compressions: &'static [Compression],
    /// Keys of the encoding, beside `dataset.compression`, that it heeds: `dataset.hdf5.chunk_dims`.
    pub heeds: &'static [&'static str],
    /// Bytes of the files made for one file of this shape, sidecars included: exact, but with a compression or the
    /// ability `EstimatedSize` about right for incompressible content.
    pub file_bytes: fn(&FileShape, &Encoding) -> u64,
    /// Bytes read at once where nobody says how many; `None` takes what is fastest.
    pub piece_bytes: Option<u64>,
    /// The reason why files of this shape and encoding cannot be written; `None` where they can.
    pub unfit: fn(&FileShape, &Encoding) -> Option<Unfit>,
}

/// A setting that a format cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// `dataset.num_samples_per_file`.
    pub key: &'static str,
    /// A lowercase fragment with the value in backticks: "`3` samples in an image".
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl FormatEntry {
    /// A format whose files are called by its name, without compression, that takes every shape.
    pub const fn new(
        member: &'static Member,
        file_bytes: fn(&FileShape, &Encoding) -> u64,
    ) -> Self {
        FormatEntry {
            member,
            elements: &[],
            dlio_dims_max: None,
            extension: member.name,
            compressions: &[],
            heeds: &[],
            file_bytes,
            piece_bytes: None,
            unfit: |_, _| None,
        }
    }

    /// Whether [`FormatEntry::file_bytes`] is exact.
    pub fn knows_bytes(&self, encoding: &Encoding) -> bool {
        encoding.compression == Compression::None && !self.member.has(Ability::EstimatedSize)
    }
}

/// A loader, as the planner sees it.
#[derive(Clone, Copy, Debug)]
pub struct LoaderEntry {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Batches in flight or finished and not yet taken, of one accelerator: (read_threads, prefetch_size, batch_size).
    pub batches_in_flight: fn(u32, u32, u64) -> u32,
}

/// All that is built in, collected by the binary from the families' tables.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// File formats.
    pub formats: Vec<FormatEntry>,
    /// Storages.
    pub storages: Vec<&'static Member>,
    /// Engines of storages that have the ability.
    pub engines: Vec<&'static Member>,
    /// Formats of checkpoints.
    pub checkpoints: Vec<&'static Member>,
    /// Loaders.
    pub loaders: Vec<LoaderEntry>,
    /// Ways to carry steps out.
    pub computes: Vec<&'static Member>,
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

    /// The engine of that name.
    pub fn engine(&self, name: &str) -> Option<&'static Member> {
        self.engines.iter().copied().find(|m| m.name == name)
    }

    /// The format of checkpoints of that name.
    pub fn checkpoint(&self, name: &str) -> Option<&'static Member> {
        self.checkpoints.iter().copied().find(|m| m.name == name)
    }

    /// The compute of that name.
    pub fn compute(&self, name: &str) -> Option<&'static Member> {
        self.computes.iter().copied().find(|m| m.name == name)
    }

    /// The loader of that name.
    pub fn loader(&self, name: &str) -> Option<&LoaderEntry> {
        self.loaders.iter().find(|l| l.member.name == name)
    }
}
