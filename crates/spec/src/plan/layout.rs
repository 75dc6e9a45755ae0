//! Path and shape of each file of a dataset, as DLIO generates them (`data_generator.py:74-121`). Both are computed from the file's
//! index, so that no list of names is stored.

use super::DatasetPlan;
use super::sizes::DrawnSizes;
use crate::shape::{Dims, FileShape};
use std::fmt::Write;

/// The layout of one dataset: training files first, then evaluation files.
pub struct Layout {
    extension: String,
    prefix: String,
    samples_per_file: u64,
    /// Samples in the training files, if the numbers differ.
    file_samples: Option<Box<[u64]>>,
    element: crate::shape::Element,
    train: Split,
    eval: Split,
    dims: FileDims,
}

struct Split {
    folder: &'static str,
    files: u64,
    /// Number of files that the file names give, as in `img_0_of_168`.
    named_files: u64,
    file_digits: usize,
    subfolders: u64,
    subfolder_digits: usize,
}

enum FileDims {
    Constant(Dims),
    Drawn(DrawnSizes),
}

impl Layout {
    /// Creates the layout of `plan`.
    pub fn new(plan: &DatasetPlan) -> Self {
        Layout {
            extension: plan.extension.clone(),
            prefix: plan.prefix.clone(),
            samples_per_file: plan.samples_per_file,
            file_samples: plan.unequal_samples().map(Into::into),
            element: plan.element,
            train: Split::new("train", plan.files_train, plan.named_train, plan.subfolders_train),
            eval: Split::new("valid", plan.files_eval, plan.named_eval, plan.subfolders_eval),
            dims: file_dims(plan),
        }
    }

    /// Returns the number of training and evaluation files.
    pub fn files(&self) -> u64 {
        self.train.files + self.eval.files
    }

    /// Returns the number of training files, which come first.
    pub fn files_train(&self) -> u64 {
        self.train.files
    }

    /// Returns the number of samples in each file; their mean if the numbers differ.
    pub fn samples_per_file(&self) -> u64 {
        self.samples_per_file
    }

    /// Returns the shape of file number `file`.
    pub fn shape(&self, file: u64) -> FileShape {
        let dims = match &self.dims {
            FileDims::Constant(dims) => *dims,
            FileDims::Drawn(drawn) => two_dims(drawn.dims_of(file)),
        };
        self.with_dims(dims, self.samples_of(file))
    }

    /// Returns the number of samples in file number `file`.
    fn samples_of(&self, file: u64) -> u64 {
        let unequal = self.file_samples.as_ref().zip(usize::try_from(file).ok());
        unequal
            .and_then(|(samples, file)| samples.get(file).copied())
            .unwrap_or(self.samples_per_file)
    }

    /// Returns the shapes of files `0..files` in order, each with the number of consecutive files that have it.
    pub fn shapes(&self, files: u64) -> impl Iterator<Item = (FileShape, u64)> {
        let unequal_files = self.file_samples.as_ref().map_or(0, |samples| samples.len() as u64);
        let (constant, drawn) = match &self.dims {
            FileDims::Constant(dims) => (Some(*dims), None),
            FileDims::Drawn(drawn) => (None, Some(drawn.iter(files))),
        };
        let single_files = constant.map_or(0, |_| unequal_files.min(files));
        let single = (0..single_files).map(|file| (self.shape(file), 1));
        let equal = constant
            .map(|dims| (self.with_dims(dims, self.samples_per_file), files - single_files));
        let drawn = (0..).zip(drawn.into_iter().flatten());
        let drawn =
            drawn.map(|(file, dims)| (self.with_dims(two_dims(dims), self.samples_of(file)), 1));
        single.chain(equal.filter(|(_, files)| *files > 0)).chain(drawn)
    }

    /// Returns the sum of `measure` over files `0..files`, in constant time if all files have the same shape.
    pub fn sum(&self, files: u64, measure: impl Fn(&FileShape) -> u64) -> u128 {
        let shapes = self.shapes(files);
        shapes.map(|(shape, files)| u128::from(measure(&shape)) * u128::from(files)).sum()
    }

    /// Returns the shape of all files; `None` if sizes are drawn or numbers of samples differ.
    pub fn common_shape(&self) -> Option<FileShape> {
        match &self.dims {
            FileDims::Constant(dims) if self.file_samples.is_none() => {
                Some(self.with_dims(*dims, self.samples_per_file))
            }
            FileDims::Constant(_) | FileDims::Drawn(_) => None,
        }
    }

    /// Writes the path of file number `file` relative to the dataset's folder, such as `train/img_000_of_168.npz`.
    pub fn write_path(&self, file: u64, path: &mut String) {
        let (split, i) = if file < self.train.files {
            (&self.train, file)
        } else {
            (&self.eval, file - self.train.files)
        };
        path.clear();
        path.push_str(split.folder);
        path.push('/');
        // Writing to a String cannot fail.
        if split.subfolders > 1 {
            let _ = write!(path, "{:0w$}/", i % split.subfolders, w = split.subfolder_digits);
        }
        let _ = write!(
            path,
            "{}_{:0w$}_of_{}.{}",
            self.prefix,
            i,
            split.named_files,
            self.extension,
            w = split.file_digits
        );
    }

    /// Returns the folders of files relative to the dataset's folder. `train` and `valid` are always among them.
    pub fn folders(&self) -> Vec<String> {
        let mut folders = Vec::new();
        for split in [&self.train, &self.eval] {
            folders.push(split.folder.to_string());
            if split.subfolders > 1 {
                folders
                    .extend((0..split.subfolders).map(|i| {
                        format!("{}/{:0w$}", split.folder, i, w = split.subfolder_digits)
                    }));
            }
        }
        folders
    }

    fn with_dims(&self, dims: Dims, samples: u64) -> FileShape {
        FileShape { dims, element: self.element, samples }
    }
}

impl Split {
    fn new(folder: &'static str, files: u64, named: Option<u64>, subfolders: u64) -> Self {
        let named_files = named.unwrap_or(files);
        Split {
            folder,
            files,
            named_files,
            file_digits: digits(named_files),
            subfolders,
            subfolder_digits: digits(subfolders),
        }
    }
}

fn digits(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |d| d as usize + 1)
}

fn two_dims(dims: [u64; 2]) -> Dims {
    Dims::new(&dims).unwrap_or_else(|| unreachable!("two dimensions fit"))
}

/// Returns the dimensions of samples without `record_dims`. DLIO uses a square of `isqrt(record length)` elements and draws each side such
/// that the area has about the configured standard deviation (`config.py:446-470`). Unlike in DLIO, the bytes are divided by the element's
/// size.
fn file_dims(plan: &DatasetPlan) -> FileDims {
    if let Some(dims) = Dims::new(&plan.record_dims).filter(|d| !d.as_slice().is_empty()) {
        return FileDims::Constant(dims);
    }
    let element_bytes = plan.element.bytes() as f64;
    let elements = plan.record_bytes / element_bytes;
    let side = (elements as u64).isqrt().max(1);
    if plan.record_stdev_bytes == 0.0 {
        return FileDims::Constant(two_dims([side, side]));
    }
    let stdev = plan.record_stdev_bytes / element_bytes / 2.0 / elements.sqrt();
    let files = plan.files_train + plan.files_eval;
    FileDims::Drawn(DrawnSizes::new(side as f64, stdev, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DatasetPlan;
    use crate::shape::{Element, Encoding, Redundancy};

    fn plan() -> DatasetPlan {
        DatasetPlan {
            format: "npz".into(),
            extension: "npz".into(),
            files_train: 168,
            files_eval: 3,
            named_train: None,
            named_eval: None,
            samples_per_file: 1,
            file_samples: vec![],
            subfolders_train: 0,
            subfolders_eval: 2,
            prefix: "img".into(),
            record_bytes: 146_600_628.0,
            record_stdev_bytes: 68_341_808.0,
            record_dims: vec![],
            element: Element::Uint8,
            encoding: Encoding::default(),
            content_seed: 10,
            redundancy: Redundancy::default(),
            stored_sample_bytes: None,
            members: vec![],
        }
    }

    fn path(layout: &Layout, file: u64) -> String {
        let mut path = String::new();
        layout.write_path(file, &mut path);
        path
    }

    #[test]
    fn file_names_match_dlio() {
        let layout = Layout::new(&plan());
        assert_eq!(path(&layout, 0), "train/img_000_of_168.npz");
        assert_eq!(path(&layout, 167), "train/img_167_of_168.npz");
        assert_eq!(path(&layout, 169), "valid/1/img_1_of_3.npz");
        assert_eq!(layout.folders(), ["train", "valid", "valid/0", "valid/1"]);
    }

    /// From numpy: `np.random.seed(10); np.random.normal(isqrt(146600628), 68341808/2/sqrt(146600628), 342)`.
    #[test]
    fn sizes_of_unet3d_match_dlio() {
        let layout = Layout::new(&plan());
        let first: Vec<Vec<u64>> =
            (0..10).map(|i| layout.shape(i).dims.as_slice().to_vec()).collect();
        assert_eq!(first, UNET3D_FIRST_TEN);
    }

    const UNET3D_FIRST_TEN: [[u64; 2]; 10] = [
        [15865, 14125],
        [7745, 12083],
        [13860, 10074],
        [12856, 12413],
        [12119, 11614],
        [13329, 15502],
        [9383, 15009],
        [12752, 13363],
        [8899, 12488],
        [16296, 9059],
    ];

    #[test]
    fn files_of_other_programs_have_their_own_numbers_of_samples() {
        let unequal = DatasetPlan {
            files_train: 3,
            samples_per_file: 5,
            file_samples: vec![4, 9, 2, 100],
            record_bytes: 65536.0,
            record_stdev_bytes: 0.0,
            ..plan()
        };
        let layout = Layout::new(&unequal);
        let samples: Vec<u64> = (0..6).map(|file| layout.shape(file).samples).collect();
        assert_eq!(samples, [4, 9, 2, 5, 5, 5], "evaluation files have the mean");
        let shapes: Vec<(u64, u64)> =
            layout.shapes(layout.files()).map(|(shape, files)| (shape.samples, files)).collect();
        assert_eq!(shapes, [(4, 1), (9, 1), (2, 1), (5, 3)]);
        assert_eq!(layout.sum(3, |shape| shape.samples), u128::from(unequal.samples_train()));
        assert_eq!((unequal.samples_train(), layout.common_shape()), (15, None));
        let equal = DatasetPlan { files_train: 5, ..unequal };
        assert_eq!(equal.samples_train(), 25, "numbers of other files are not used");
    }

    #[test]
    fn element_size_divides_the_record() {
        let layout = Layout::new(&DatasetPlan {
            element: Element::Float32,
            record_bytes: 65536.0,
            record_stdev_bytes: 0.0,
            ..plan()
        });
        assert_eq!(layout.shape(5).sample_bytes(), 65536);
    }
}
