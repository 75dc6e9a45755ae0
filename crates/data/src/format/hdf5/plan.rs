//! How a file of ours is laid out: metadata, indexes and labels first, then the records of each dataset.

use super::{Compression, Element, Encoding, FileShape, RANK_MAX, Unfit};

/// Datasets that share a record, at most: they all have their metadata in the file's head.
const DATASETS_MAX: u64 = 256;
/// Upper limit on the chunks of a dataset: their places are kept in memory until the file is whole.
const CHUNKS_MAX: u64 = 1 << 20;
/// That hold a part of one sample, at most: where they lie is read for each sample.
const CHUNKS_OF_SAMPLE_MAX: u64 = 1 << 17;
/// A chunk's size has 32 bits; a few percent are left to what deflate adds.
const CHUNK_BYTES_MAX: u64 = 0xf000_0000;

/// Everything that shape and encoding decide.
pub(super) struct Plan {
    pub(super) shape: FileShape,
    /// `records_0` to one below.
    pub(super) datasets: u64,
    /// Dimensions of each dataset, the samples' axis first.
    pub(super) dims: Vec<u64>,
    /// The dimensions that they may grow to; empty where they stay.
    pub(super) dims_max: Vec<u64>,
    pub(super) chunks: Option<Chunks>,
    pub(super) level: Option<u32>,
}

/// Division of a dataset into chunks.
pub(super) struct Chunks {
    pub(super) dims: Vec<u64>,
    /// Chunks along each dimension.
    pub(super) counts: Vec<u64>,
    pub(super) bytes: u64,
}

/// Addresses in the file.
pub(super) struct Places {
    /// Address of each dataset's index, or 0 where it has none.
    pub(super) index: Vec<u64>,
    pub(super) labels: u64,
    /// Address of each dataset's records; those after the first are unknown where records are compressed.
    pub(super) records: Vec<u64>,
    /// The end of the file; with compression, what it would be without.
    pub(super) end: u64,
}

impl Chunks {
    fn new(dims: &[u64], chunk_dims: &[u64], element: Element) -> Self {
        let counts =
            dims.iter().zip(chunk_dims).map(|(dim, chunk)| dim.div_ceil((*chunk).max(1)).max(1));
        let bytes = product(chunk_dims).saturating_mul(element.bytes());
        Chunks { dims: chunk_dims.to_vec(), counts: counts.collect(), bytes }
    }

    pub(super) fn count(&self) -> u64 {
        product(&self.counts)
    }
}

impl Plan {
    pub(super) fn new(shape: &FileShape, encoding: &Encoding) -> Self {
        // More are unfit; their metadata must not be laid out to say so.
        let datasets = encoding.datasets_per_record.clamp(1, DATASETS_MAX);
        let mut dims = vec![shape.samples];
        match shape.dims.as_slice() {
            // DLIO drops this dimension; the bytes stay the same.
            [1, rest @ ..] if datasets == 1 && !rest.is_empty() => dims.extend(rest),
            [first, rest @ ..] => {
                dims.push(first / datasets);
                dims.extend(rest);
            }
            [] => {}
        }
        let packed = encoding.compression == Compression::Gzip;
        let chunk_dims = match (encoding.chunk_dims.is_empty(), encoding.max_shape.is_empty()) {
            (false, _) => Some(encoding.chunk_dims.clone()),
            (true, true) if !packed => None,
            (true, _) => Some([&[1], &dims[1..]].concat()),
        };
        Plan {
            shape: *shape,
            datasets,
            chunks: chunk_dims.map(|chunk| Chunks::new(&dims, &chunk, shape.element)),
            dims_max: encoding.max_shape.iter().map(|&max| unlimited(max)).collect(),
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
        match &self.chunks {
            Some(chunks) => chunks.count().saturating_mul(chunks.bytes),
            None => self.part_bytes().saturating_mul(self.shape.samples),
        }
    }

    pub(super) fn labels_bytes(&self) -> u64 {
        self.shape.samples.saturating_mul(Element::Int64.bytes())
    }
}

/// 0 stands for no limit.
fn unlimited(max: u64) -> u64 {
    if max == 0 { u64::MAX } else { max }
}

fn product(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim))
}

/// Reason that files of this shape and encoding cannot be written.
pub(super) fn unfit(shape: &FileShape, encoding: &Encoding) -> Option<Unfit> {
    unfit_datasets(shape, encoding.datasets_per_record).or_else(|| {
        let rank = Plan::new(shape, &Encoding::default()).dims.len();
        let rank = if encoding.datasets_per_record == 1 { rank } else { rank_undropped(shape) };
        unfit_ranks(rank, encoding)
            .or_else(|| unfit_dims(&Plan::new(shape, encoding), encoding))
            .or_else(|| unfit_sizes(&Plan::new(shape, encoding)))
    })
}

fn rank_undropped(shape: &FileShape) -> usize {
    shape.dims.as_slice().len() + 1
}

fn unfit_datasets(shape: &FileShape, datasets: u64) -> Option<Unfit> {
    let key = "dataset.hdf5.num_dset_per_record";
    if datasets == 0 || datasets > DATASETS_MAX {
        let message = format!("`{datasets}` datasets share a record");
        return Some(Unfit { key, message, hint: format!("give 1 to {DATASETS_MAX}") });
    }
    let first = shape.dims.as_slice().first().copied().unwrap_or(1);
    (first % datasets != 0 || first == 0).then(|| Unfit {
        key,
        message: format!("`{datasets}` datasets cannot share a first dimension of {first}"),
        hint: "give a number that divides the record's first dimension".to_string(),
    })
}

fn unfit_ranks(rank: usize, encoding: &Encoding) -> Option<Unfit> {
    let (chunk, max) = (&encoding.chunk_dims, &encoding.max_shape);
    for (key, what, dims) in [
        ("dataset.hdf5.chunk_dims", "dimensions of a chunk", chunk),
        ("dataset.hdf5.max_shape", "dimensions of a largest shape", max),
    ] {
        if !dims.is_empty() && dims.len() != rank {
            return Some(Unfit {
                key,
                message: format!("`{}` {what}, where the dataset has {rank}", dims.len()),
                hint: "give the samples' axis first, then one for each dimension of a record, \
                       without a first one of 1"
                    .to_string(),
            });
        }
    }
    None
}

fn unfit_dims(plan: &Plan, encoding: &Encoding) -> Option<Unfit> {
    if let Some(at) = plan.dims_max.iter().zip(&plan.dims).position(|(max, dim)| max < dim) {
        let (max, dim) = (plan.dims_max[at], plan.dims[at]);
        return Some(Unfit {
            key: "dataset.hdf5.max_shape",
            message: format!("at most `{max}` along dimension {at}, which is {dim} long"),
            hint: "give at least the dataset's shape; 0 means no limit".to_string(),
        });
    }
    let most = if plan.dims_max.is_empty() { &plan.dims } else { &plan.dims_max };
    let chunk = &encoding.chunk_dims;
    let at = chunk.iter().zip(most).position(|(chunk, most)| *chunk == 0 || chunk > most)?;
    Some(Unfit {
        key: "dataset.hdf5.chunk_dims",
        message: format!(
            "chunks of `{}` along dimension {at}, which has at most {}",
            chunk[at], most[at]
        ),
        hint: "give 1 to the dataset's dimension, or a larger `dataset.hdf5.max_shape`".to_string(),
    })
}

fn unfit_sizes(plan: &Plan) -> Option<Unfit> {
    debug_assert!(plan.dims.len() <= RANK_MAX);
    let chunks = plan.chunks.as_ref()?;
    let key = "dataset.hdf5.chunk_dims";
    if chunks.bytes > CHUNK_BYTES_MAX {
        let message = format!("chunks of `{}` bytes", chunks.bytes);
        return Some(Unfit { key, message, hint: format!("give at most {CHUNK_BYTES_MAX} bytes") });
    }
    let of_sample = product(&chunks.counts[1..]).saturating_mul(plan.datasets);
    for (count, max, place) in [
        (chunks.count(), CHUNKS_MAX, "in a dataset"),
        (of_sample, CHUNKS_OF_SAMPLE_MAX, "a sample"),
    ] {
        if count > max {
            let message = format!("`{count}` chunks {place}");
            let hint = format!("give larger chunks, so that there are at most {max}");
            return Some(Unfit { key, message, hint });
        }
    }
    None
}
