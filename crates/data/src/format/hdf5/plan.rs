//! Layout of a generated file: metadata and indexes first, then the records of each dataset and the labels.

use super::{Compression, Element, Encoding, FileShape, RANK_MAX, UnsupportedSetting, product};

/// Upper limit on the datasets that share a record: the metadata of all of them is in the file's head.
const DATASETS_MAX: u64 = 256;
/// Upper limit on the chunks of a dataset: their addresses are kept in memory until the file is complete.
const CHUNKS_MAX: u64 = 1 << 20;
/// Upper limit on the chunks with a part of one sample: their addresses are read for each sample.
const CHUNKS_OF_SAMPLE_MAX: u64 = 1 << 17;
/// Upper limit on the length of a chunk, which is stored in 32 bits. Deflate may add a few percent.
const CHUNK_BYTES_MAX: u64 = 0xf000_0000;

/// The layout that follows from shape and encoding.
pub(super) struct FilePlan {
    pub(super) shape: FileShape,
    /// Number of datasets `records_0`, `records_1`, …
    pub(super) datasets: u64,
    /// Dimensions of each dataset, the axis of samples first.
    pub(super) dims: Vec<u64>,
    /// Largest dimensions of each dataset; empty if the dataset cannot grow.
    pub(super) dims_max: Vec<u64>,
    /// Whether records are stored in chunks. Otherwise the records of a dataset are contiguous.
    pub(super) is_chunked: bool,
    pub(super) chunks: ChunkPlan,
    /// Compression level, if records are compressed.
    pub(super) level: Option<u32>,
}

/// Division of a dataset into chunks.
pub(super) struct ChunkPlan {
    pub(super) dims: Vec<u64>,
    /// Number of chunks along each dimension.
    pub(super) counts: Vec<u64>,
    /// Length of a chunk.
    pub(super) bytes: u64,
}

/// Addresses of the file's contents.
pub(super) struct FileAddresses {
    /// Address of each dataset's index; 0 if it has none.
    pub(super) index: Vec<u64>,
    pub(super) labels: u64,
    /// Address of each dataset's records. With compression only the first one is valid.
    pub(super) records: Vec<u64>,
    /// End of the file without compression.
    pub(super) end: u64,
}

impl ChunkPlan {
    fn new(dims: &[u64], chunk_dims: Vec<u64>, element: Element) -> Self {
        let counts =
            dims.iter().zip(&chunk_dims).map(|(dim, chunk)| dim.div_ceil((*chunk).max(1)).max(1));
        let bytes = product(&chunk_dims).saturating_mul(element.bytes());
        ChunkPlan { counts: counts.collect(), dims: chunk_dims, bytes }
    }

    pub(super) fn count(&self) -> u64 {
        product(&self.counts)
    }
}

impl FilePlan {
    pub(super) fn new(shape: &FileShape, encoding: &Encoding) -> Self {
        // `find_unsupported_setting` refuses other numbers. The limit keeps the computation for that refusal small.
        let datasets = encoding.datasets_per_record.clamp(1, DATASETS_MAX);
        let mut dims = vec![shape.samples];
        if let [first, rest @ ..] = shape.dims.as_slice() {
            // DLIO leaves out a first dimension of 1; the bytes stay the same.
            dims.extend(Some(first / datasets).filter(|first| *first != 1));
            dims.extend(rest);
        }
        let is_compressed = encoding.compression == Compression::Gzip;
        let is_chunked =
            is_compressed || !encoding.chunk_dims.is_empty() || !encoding.max_shape.is_empty();
        let chunk_dims = match &*encoding.chunk_dims {
            [] if is_chunked => [&[1], &dims[1..]].concat(),
            [] => dims.clone(),
            chunk_dims => chunk_dims.to_vec(),
        };
        FilePlan {
            shape: *shape,
            datasets,
            is_chunked,
            chunks: ChunkPlan::new(&dims, chunk_dims, shape.element),
            dims_max: dims_max(&encoding.max_shape, &dims),
            level: is_compressed.then_some(encoding.compression_level),
            dims,
        }
    }

    /// Length of a sample's part in one dataset.
    pub(super) fn part_bytes(&self) -> u64 {
        product(&self.dims[1..]).saturating_mul(self.shape.element.bytes())
    }

    /// Length of one dataset's records without compression.
    pub(super) fn dataset_bytes(&self) -> u64 {
        self.chunks.count().saturating_mul(self.chunks.bytes)
    }

    pub(super) fn labels_bytes(&self) -> u64 {
        self.shape.samples.saturating_mul(Element::Int64.bytes())
    }
}

/// Largest dimensions of a dataset, from the setting `max_shape`, where 0 means no limit. In workloads of DLIO the setting
/// lacks the axis of samples, which cannot grow then.
fn dims_max(max_shape: &[u64], dims: &[u64]) -> Vec<u64> {
    let lacks_samples = max_shape.len() + 1 == dims.len() && !max_shape.is_empty();
    let samples = if lacks_samples { &dims[..1] } else { &[] };
    let limits = max_shape.iter().map(|&max| if max == 0 { u64::MAX } else { max });
    samples.iter().copied().chain(limits).collect()
}

/// Reason why files of this shape and encoding cannot be written.
pub(super) fn find_unsupported_setting(
    shape: &FileShape,
    encoding: &Encoding,
) -> Option<UnsupportedSetting> {
    check_datasets(shape, encoding.datasets_per_record).or_else(|| {
        let plan = FilePlan::new(shape, encoding);
        check_ranks(&plan, encoding)
            .or_else(|| check_dims(&plan, encoding))
            .or_else(|| check_sizes(&plan))
    })
}

const CHUNK_KEY: &str = "dataset.hdf5.chunk_dims";
const MAX_KEY: &str = "dataset.hdf5.max_shape";

fn check_datasets(shape: &FileShape, datasets: u64) -> Option<UnsupportedSetting> {
    let key = "dataset.hdf5.num_dset_per_record";
    let first = shape.dims.as_slice().first().copied().unwrap_or(1);
    if datasets == 0 || datasets > DATASETS_MAX {
        let message = format!("`{datasets}` datasets share a record");
        Some(UnsupportedSetting { key, message, hint: format!("give 1 to {DATASETS_MAX}") })
    } else if first % datasets != 0 || first == 0 {
        let message = format!("`{datasets}` datasets cannot share a first dimension of {first}");
        let hint = "give a number that divides the record's first dimension";
        Some(UnsupportedSetting { key, message, hint: hint.to_string() })
    } else {
        None
    }
}

fn check_ranks(plan: &FilePlan, encoding: &Encoding) -> Option<UnsupportedSetting> {
    let rank = plan.dims.len();
    let chunk = (CHUNK_KEY, "dimensions of a chunk", encoding.chunk_dims.len());
    let max = (MAX_KEY, "dimensions of a largest shape", plan.dims_max.len());
    let (key, name, given) =
        [chunk, max].into_iter().find(|(_, _, given)| *given > 0 && *given != rank)?;
    let hint = "give the samples' axis first, then one for each dimension of a record, \
                without a first one of 1";
    let message = format!("`{given}` {name}, where the dataset has {rank}");
    Some(UnsupportedSetting { key, message, hint: hint.to_string() })
}

fn check_dims(plan: &FilePlan, encoding: &Encoding) -> Option<UnsupportedSetting> {
    if let Some(axis) = plan.dims_max.iter().zip(&plan.dims).position(|(max, dim)| max < dim) {
        let max = plan.dims_max[axis];
        let dim = plan.dims[axis];
        let message = format!("at most `{max}` along dimension {axis}, which is {dim} long");
        let hint = "give at least the dataset's shape; 0 means no limit".to_string();
        return Some(UnsupportedSetting { key: MAX_KEY, message, hint });
    }
    let limits = if plan.dims_max.is_empty() { &plan.dims } else { &plan.dims_max };
    let chunk_dims = &encoding.chunk_dims;
    let axis = chunk_dims
        .iter()
        .zip(limits)
        .position(|(chunk_dim, limit)| *chunk_dim == 0 || chunk_dim > limit)?;
    let chunk = chunk_dims[axis];
    let limit = limits[axis];
    let message = format!("chunks of `{chunk}` along dimension {axis}, which has at most {limit}");
    let hint = "give 1 to the dataset's dimension, or a larger `dataset.hdf5.max_shape`";
    Some(UnsupportedSetting { key: CHUNK_KEY, message, hint: hint.to_string() })
}

fn check_sizes(plan: &FilePlan) -> Option<UnsupportedSetting> {
    debug_assert!(plan.dims.len() <= RANK_MAX);
    let chunks = &plan.chunks;
    if !plan.is_chunked {
        return None;
    }
    if chunks.bytes > CHUNK_BYTES_MAX {
        let message = format!("chunks of `{}` bytes", chunks.bytes);
        let hint = format!("give at most {CHUNK_BYTES_MAX} bytes");
        return Some(UnsupportedSetting { key: CHUNK_KEY, message, hint });
    }
    let chunks_per_sample = product(&chunks.counts[1..]).saturating_mul(plan.datasets);
    let limits = [
        (chunks.count(), CHUNKS_MAX, "in a dataset"),
        (chunks_per_sample, CHUNKS_OF_SAMPLE_MAX, "per sample"),
    ];
    let (count, max, scope) = limits.into_iter().find(|(count, max, _)| count > max)?;
    let hint = format!("give larger chunks, so that there are at most {max}");
    Some(UnsupportedSetting { key: CHUNK_KEY, message: format!("`{count}` chunks {scope}"), hint })
}
