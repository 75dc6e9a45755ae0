//! Descriptions of plug-in members for the planner: names, abilities and sizes. Other crates implement the members.

use crate::library::Library;
use crate::names;
use crate::shape::{Compression, Element, Encoding, FileShape};

names! {
    /// A capability or a need of a member. The planner checks abilities before a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Ability {
        /// One sample of many can be read without reading the whole file.
        RandomAccess = "random_access",
        /// The file stays open between samples (a shared file with an index).
        KeepsOpen = "keeps_open",
        /// The format checks its content as it reads.
        ChecksContent = "checks_content",
        /// The storage holds real bytes: reads return what was written.
        KeepsBytes = "keeps_bytes",
        /// The storage has a page cache that can be evicted and inspected.
        PageCache = "page_cache",
        /// The storage reaches no device: it serves reads from memory or returns nothing.
        NoDevice = "no_device",
        /// The storage can be written.
        Writable = "writable",
        /// No files are created or opened.
        NoFiles = "no_files",
        /// Files are stored in a folder of this machine, where other programs find them.
        InFolder = "in_folder",
        /// Files are in a store that is reached by requests over a network. It keeps them after the process ends, and has no folders.
        Remote = "remote",
        /// The length of a file is unknown before it is written.
        EstimatedSize = "estimated_size",
        /// Data read back resembles what was written but is not equal to it.
        Lossy = "lossy",
        /// The file does not describe its content: only its length can be compared with a plan.
        Undescribed = "undescribed",
        /// The positions of samples in a file follow from the plan alone, also in files that feedrate did not generate.
        NeedsPlan = "needs_plan",
        /// A file without its last few bytes can look complete.
        LooseEnd = "loose_end",
        /// All samples of a file take the same number of reads, if nothing is compressed or chunked and one read can hold a sample.
        EvenReads = "even_reads",
        /// Samples of foreign files can be embedded files, such as images. Readers decode them.
        HoldsFiles = "holds_files",
        /// Files are encoded samples, such as images. Without decoding (`reader.decode`), they are plain bytes.
        EncodesSamples = "encodes_samples",
        /// A dataset file comes with further files, such as an index.
        Sidecars = "sidecars",
        /// Files consist of row groups, each of which can be read in one request.
        RowGroups = "row_groups",
        /// Files contain samples and nothing else.
        PlainBytes = "plain_bytes",
        /// Samples of foreign files can consist of some of their named members (`dataset.members`).
        ChoosesMembers = "chooses_members",
        /// A foreign file is read from its start up to the requested sample.
        Sequential = "sequential",
        /// Files are read and never generated.
        ReadOnly = "read_only",
        /// Decoding allocates memory for each sample.
        DecoderAllocates = "decoder_allocates",
        /// Loaders with decode threads decode samples of this format, by default with their default number of threads.
        DecodedByLoader = "decoded_by_loader",
        /// Reading goes through a memory map.
        Mapped = "mapped",
        /// Reads bypass the page cache, in whole blocks.
        BypassesPageCache = "bypasses_page_cache",
        /// Engine: it serves samples through a library of their format, not bytes of files. Format: it has such a library.
        ServesSamples = "serves_samples",
        /// The storage's files can be read by different engines.
        Engines = "engines",
        /// The loader's threads read several files at the same time, and their samples alternate.
        Interleaves = "interleaves",
        /// It is known in advance which of the loader's workers reads which batch.
        OwnBatches = "own_batches",
        /// The loader shuffles samples in a buffer as they arrive; the order of reading does not change.
        ShuffleBuffer = "shuffle_buffer",
        /// The loader decodes in separate threads (`reader.computation_threads`).
        DecodeThreads = "decode_threads",
        /// Steps take no time; the configured compute time is ignored.
        TakesNoTime = "takes_no_time",
        /// Steps run on devices of this machine.
        NeedsDevices = "needs_devices",
        /// Runs are steps of the Slurm job that starts them, and use that job's tasks.
        JobSteps = "job_steps",
        /// Runs do not execute on the machine that starts them.
        Elsewhere = "elsewhere",
    }
}

/// One member of a plug-in family.
#[derive(Debug)]
pub struct Member {
    /// The name users write.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Abilities and needs.
    pub abilities: &'static [Ability],
}

impl Member {
    /// Whether the member has `ability`.
    pub fn has(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }
}

/// Description of a format for the planner.
#[derive(Clone, Copy, Debug)]
pub struct FormatEntry {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Element types that its files can hold; the first one replaces unsupported types. Empty if all types are supported.
    pub elements: &'static [Element],
    /// Maximum number of dimensions of a record in DLIO; `None` for any number.
    pub dlio_dims_max: Option<usize>,
    /// Extension of the data file, without the dot.
    pub extension: &'static str,
    /// Supported compressions, besides none.
    pub compressions: &'static [Compression],
    /// Encoding keys that the format supports besides `dataset.compression`, such as `dataset.hdf5.chunk_dims`.
    pub encoding_keys: &'static [&'static str],
    /// Bytes on storage of one file of this shape, sidecars included. With compression or the ability
    /// `EstimatedSize`, an estimate for incompressible content; otherwise exact.
    pub file_bytes: fn(&FileShape, &Encoding) -> u64,
    /// Default number of bytes per read; `None` for [`crate::plan::PIECE_BYTES`].
    pub piece_bytes: Option<u64>,
    /// The format's usual library; `None` if its requests are not known, or equal reads of `piece_bytes`.
    pub library: Option<Library>,
    /// Returns the setting that prevents writing files of this shape and encoding; `None` if they can be written.
    pub unsupported_setting: fn(&FileShape, &Encoding) -> Option<UnsupportedSetting>,
}

/// A setting that a format does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedSetting {
    /// The key, such as `dataset.num_samples_per_file`.
    pub key: &'static str,
    /// A lowercase fragment with the value in backticks, such as "`3` samples in an image".
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl FormatEntry {
    /// Creates the entry of a format that supports every shape and no compression. Its name is also the files' extension.
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
            encoding_keys: &[],
            file_bytes,
            piece_bytes: None,
            library: None,
            unsupported_setting: |_, _| None,
        }
    }

    /// Whether [`FormatEntry::file_bytes`] is exact.
    pub fn has_exact_size(&self, encoding: &Encoding) -> bool {
        encoding.compression == Compression::None && !self.member.has(Ability::EstimatedSize)
    }
}

/// Description of a loader for the planner.
#[derive(Clone, Copy, Debug)]
pub struct LoaderEntry {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Number of batches per accelerator that are in flight or finished but not yet taken, as a function of `read_threads`,
    /// `prefetch_size` and `batch_size`.
    pub batches_in_flight: fn(u32, u32, u64) -> u32,
}

/// All built-in members. The binary collects them from the families' tables.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// File formats.
    pub formats: Vec<FormatEntry>,
    /// Storages.
    pub storages: Vec<&'static Member>,
    /// Engines, for storages with the ability `Engines`.
    pub engines: Vec<&'static Member>,
    /// Formats of checkpoints.
    pub checkpoints: Vec<&'static Member>,
    /// Loaders.
    pub loaders: Vec<LoaderEntry>,
    /// Members that execute the compute of steps.
    pub computes: Vec<&'static Member>,
}

impl Catalog {
    /// Returns the format called `name`.
    pub fn format(&self, name: &str) -> Option<&FormatEntry> {
        self.formats.iter().find(|entry| entry.member.name == name)
    }

    /// Returns the storage called `name`.
    pub fn storage(&self, name: &str) -> Option<&'static Member> {
        self.storages.iter().copied().find(|member| member.name == name)
    }

    /// Returns the engine called `name`.
    pub fn engine(&self, name: &str) -> Option<&'static Member> {
        self.engines.iter().copied().find(|member| member.name == name)
    }

    /// Returns the checkpoint format called `name`.
    pub fn checkpoint(&self, name: &str) -> Option<&'static Member> {
        self.checkpoints.iter().copied().find(|member| member.name == name)
    }

    /// Returns the compute called `name`.
    pub fn compute(&self, name: &str) -> Option<&'static Member> {
        self.computes.iter().copied().find(|member| member.name == name)
    }

    /// Returns the loader called `name`.
    pub fn loader(&self, name: &str) -> Option<&LoaderEntry> {
        self.loaders.iter().find(|entry| entry.member.name == name)
    }
}
