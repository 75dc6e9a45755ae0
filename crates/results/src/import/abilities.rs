//! Abilities of DLIO's loaders and formats, by the names that its configs use. Source: DLIO's readers, `torch_data_loader.py`,
//! `tf_data_loader.py` and `dali_data_loader.py`.

use DlioAbility::*;

/// A property of a loader or a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DlioAbility {
    /// The loader reads files in the order of their names regardless of the shuffle settings, and divides its prefetch size among its workers.
    KeepsOrder,
    /// The loader reads ahead as many batches as its threads need.
    ReadsAhead,
    /// All ranks read the same files, unless the format shards them.
    SharesFiles,
    /// All ranks read the first files of the dataset.
    SharesFirstFiles,
    /// The size of a file is the size of its samples plus headers.
    IsPlain,
    /// Each file is one image with 8-bit channels; the configured samples per file and element type do not matter.
    IsImage,
    /// Files may be compressed.
    IsCompressed,
    /// The config has a section for the format, with compression levels and chunks.
    HasOwnSection,
    /// The format's reader has settings in the config and shards files.
    HasOwnReader,
    /// Files are memory-mapped, and their pages are never touched.
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

/// Returns whether the loader or format `name` has an ability.
pub(crate) fn dlio_has(name: &str, ability: DlioAbility) -> bool {
    ABILITIES.iter().any(|(known, all)| *known == name && all.contains(&ability))
}
