//! How a file of ours is laid out: metadata and indexes first, then the records of each dataset and the labels.

use super::{Compression, Element, Encoding, FileShape, RANK_MAX, Unfit, product};

/// Datasets that share a record, at most: they all have their metadata in the file's head.
const DATASETS_MAX: u64 = 256;
/// Upper limit on the chunks of a dataset: their places are kept in memory until the file is whole.
const CHUNKS_MAX: u64 = 1 << 20;
/// That hold a part of one sample, at most: where they lie is read for each sample.
const CHUNKS_OF_SAMPLE_MAX: u64 = 1 << 17;
/// A chunk's size has 32 bits; a few percent are left to what deflate adds.
const CHUNK_BYTES_MAX: u64 = 0xf000_0000;

/// Everything that shape and encoding decide.
pub(super) struct FilePlan {
    pub(super) shape: FileShape,
    /// `records_0` to one below.
    pub(super) datasets: u64,
    /// Dimensions of each dataset, the samples' axis first.
    pub(super) dims: Vec<u64>,
    /// The dimensions that they may grow to; empty where they stay.
    pub(super) dims_max: Vec<u64>,
    /// The records of a dataset lie in one piece where they are not chunked.
    pub(super) is_chunked: bool,
    pub(super) chunks: ChunkPlan,
    pub(super) level: Option<u32>,
}

/// Division of a dataset into chunks.
pub(super) struct ChunkPlan {
    pub(super) dims: Vec<u64>,
    /// Chunks along each dimension.
    pub(super) counts: Vec<u64>,
    pub(super) bytes: u64,
}

/// Addresses in the file.
pub(super) struct FilePlaces {
    /// Address of each dataset's index, or 0 where it has none.
    pub(super) index: Vec<u64>,
    pub(super) labels: u64,
    /// Address of each dataset's records; those after the first are unknown where records are compressed.
    pub(super) records: Vec<u64>,
    /// The end of the file; with compression, what it would be without.
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
        // More are unfit; their metadata must not be laid out to say so.
        let datasets = encoding.datasets_per_record.clamp(1, DATASETS_MAX);
        let mut dims = vec![shape.samples];
        if let [first, rest @ ..] = shape.dims.as_slice() {
            // DLIO leaves out a first dimension of 1; the bytes stay the same.
            dims.extend(Some(first / datasets).filter(|first| *first != 1));
            dims.extend(rest);
        }
        let packed = encoding.compression == Compression::Gzip;
        let is_chunked =
            packed || !encoding.chunk_dims.is_empty() || !encoding.max_shape.is_empty();
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
            level: packed.then_some(encoding.compression_level),
            dims,
        }
    }

    /// Bytes of a sample's part in one dataset.
    pub(super) fn part_bytes(&self) -> u64 {
        product(&self.dims[1..]).saturating_mul(self.shape.element.bytes())
    }

    /// Bytes of one dataset's records, not compressed.
    pub(super) fn dataset_bytes(&self) -> u64 {
        self.chunks.count().saturating_mul(self.chunks.bytes)
    }

    pub(super) fn labels_bytes(&self) -> u64 {
        self.shape.samples.saturating_mul(Element::Int64.bytes())
    }
}

/// DLIO's have no axis of samples, which then does not grow. 0 stands for no limit.
fn dims_max(told: &[u64], dims: &[u64]) -> Vec<u64> {
    let samples = if told.len() + 1 == dims.len() && !told.is_empty() { &dims[..1] } else { &[] };
    let told = told.iter().map(|&max| if max == 0 { u64::MAX } else { max });
    samples.iter().copied().chain(told).collect()
}

/// Reason that files of this shape and encoding cannot be written.
pub(super) fn unfit(shape: &FileShape, encoding: &Encoding) -> Option<Unfit> {
    let unfit = unfit_datasets(shape, encoding.datasets_per_record);
    let (key, message, hint) = unfit.or_else(|| {
        let plan = FilePlan::new(shape, encoding);
        unfit_ranks(&plan, encoding)
            .or_else(|| unfit_dims(&plan, encoding))
            .or_else(|| unfit_sizes(&plan))
    })?;
    Some(Unfit { key, message, hint })
}

/// Key, message and hint of an [`Unfit`].
type Why = (&'static str, String, String);

const CHUNK_KEY: &str = "dataset.hdf5.chunk_dims";
const MAX_KEY: &str = "dataset.hdf5.max_shape";

fn unfit_datasets(shape: &FileShape, datasets: u64) -> Option<Why> {
    let key = "dataset.hdf5.num_dset_per_record";
    let first = shape.dims.as_slice().first().copied().unwrap_or(1);
    if datasets == 0 || datasets > DATASETS_MAX {
        let hint = format!("give 1 to {DATASETS_MAX}");
        Some((key, format!("`{datasets}` datasets share a record"), hint))
    } else if first % datasets != 0 || first == 0 {
        let message = format!("`{datasets}` datasets cannot share a first dimension of {first}");
        let hint = "give a number that divides the record's first dimension";
        Some((key, message, hint.to_string()))
    } else {
        None
    }
}

fn unfit_ranks(plan: &FilePlan, encoding: &Encoding) -> Option<Why> {
    let rank = plan.dims.len();
    let chunk = (CHUNK_KEY, "dimensions of a chunk", encoding.chunk_dims.len());
    let max = (MAX_KEY, "dimensions of a largest shape", plan.dims_max.len());
    let (key, what, given) =
        [chunk, max].into_iter().find(|(_, _, given)| *given > 0 && *given != rank)?;
    let hint = "give the samples' axis first, then one for each dimension of a record, \
                without a first one of 1";
    Some((key, format!("`{given}` {what}, where the dataset has {rank}"), hint.to_string()))
}

fn unfit_dims(plan: &FilePlan, encoding: &Encoding) -> Option<Why> {
    if let Some(at) = plan.dims_max.iter().zip(&plan.dims).position(|(max, dim)| max < dim) {
        let (max, dim) = (plan.dims_max[at], plan.dims[at]);
        let message = format!("at most `{max}` along dimension {at}, which is {dim} long");
        let hint = "give at least the dataset's shape; 0 means no limit";
        return Some((MAX_KEY, message, hint.to_string()));
    }
    let most = if plan.dims_max.is_empty() { &plan.dims } else { &plan.dims_max };
    let chunk = &encoding.chunk_dims;
    let at = chunk.iter().zip(most).position(|(chunk, most)| *chunk == 0 || chunk > most)?;
    let (chunk, most) = (chunk[at], most[at]);
    let message = format!("chunks of `{chunk}` along dimension {at}, which has at most {most}");
    let hint = "give 1 to the dataset's dimension, or a larger `dataset.hdf5.max_shape`";
    Some((CHUNK_KEY, message, hint.to_string()))
}

fn unfit_sizes(plan: &FilePlan) -> Option<Why> {
    debug_assert!(plan.dims.len() <= RANK_MAX);
    let chunks = &plan.chunks;
    if !plan.is_chunked {
        return None;
    }
    if chunks.bytes > CHUNK_BYTES_MAX {
        let message = format!("chunks of `{}` bytes", chunks.bytes);
        return Some((CHUNK_KEY, message, format!("give at most {CHUNK_BYTES_MAX} bytes")));
    }
    let of_sample = product(&chunks.counts[1..]).saturating_mul(plan.datasets);
    let limits = [
        (chunks.count(), CHUNKS_MAX, "in a dataset"),
        (of_sample, CHUNKS_OF_SAMPLE_MAX, "a sample"),
    ];
    let (count, max, place) = limits.into_iter().find(|(count, max, _)| count > max)?;
    let hint = format!("give larger chunks, so that there are at most {max}");
    Some((CHUNK_KEY, format!("`{count}` chunks {place}"), hint))
}
