//! Abilities of DLIO's loaders and formats, by their names in configs, as its readers and `torch_data_loader.py`, `tf_data_loader.py`, `dali_data_loader.py` have it.

use DlioAbility::*;

/// Something that sets a loader or a format apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DlioAbility {
    /// A loader that reads in the order of names, whatever is set, and divides what it prefetches among its workers.
    KeepsOrder,
    /// A loader that reads as far ahead as its threads need for whole batches.
    ReadsAhead,
    /// A loader with which all ranks read the same files, unless the format shards them.
    SharesFiles,
    /// A loader with which all ranks read the first files.
    SharesFirstFiles,
    /// A format whose files are as long as the samples in them, but for headers.
    IsPlain,
    /// A format of pictures: one a file, of bytes.
    IsImage,
    /// A format whose files may be compressed.
    IsCompressed,
    /// A format with levels of compression, chunks and settings of its own.
    HasOwnSection,
    /// A format whose reader has settings of its own, and shards files.
    HasOwnReader,
    /// A format that is mapped and never touched.
    IsNeverRead,
}

const ABILITIES: [(&str, &[DlioAbility]); 13] = [
    ("pytorch", &[KeepsOrder]),
    ("tensorflow", &[ReadsAhead, SharesFiles]),
    ("native_dali", &[SharesFirstFiles]),
    ("npz", &[IsPlain]),
    ("npy", &[IsPlain]),
    ("hdf5", &[IsPlain, IsCompressed, HasOwnSection]),
    ("csv", &[IsCompressed]),
    ("tfrecord", &[IsPlain, HasOwnReader]),
    ("png", &[IsPlain, IsImage]),
    ("jpeg", &[IsImage]),
    ("indexed_binary", &[IsPlain]),
    ("mmap_indexed_binary", &[IsPlain, IsNeverRead]),
    ("raw", &[IsPlain]),
];

/// Whether the loader or format of this name has an ability.
pub(crate) fn dlio_has(name: &str, ability: DlioAbility) -> bool {
    ABILITIES.iter().any(|(known, all)| *known == name && all.contains(&ability))
}
