//! Folders of data as time goes on: the runs that used them, and what is judged of each. Whether two runs used the same folder, as far as hosts and paths tell.

use super::asked::AskedFiles;
use super::similarity::{SAME_MAX, Shape, apart, differs, shape};
use crate::run::Run;
use std::collections::HashMap;
use std::path::Path;

/// The dataset that a run read instead of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The run whose dataset it was, as an index.
    pub of: usize,
    /// Key of `dataset`, what this run says, what the files are.
    pub differs: Vec<(String, String, String)>,
    /// The kind of evidence.
    pub evidence: Evidence,
    /// The run of that dataset whose steps waited most alike.
    pub like: Option<Like>,
    /// By results: a run whose waiting fits that of the other by their bytes, and not this one's.
    pub unlike: Option<usize>,
    /// How far waits for first batches miss the bytes of the run's own dataset, and of the other, as shares.
    pub fits: Option<(f64, f64)>,
    /// Whether it has no config, so that its name and runs beside it told what it asks for.
    pub is_assumed: bool,
}

/// The kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The last generation made other files.
    Generation,
    /// A run of another sample size waited as long.
    Results,
}

/// A run, and by which share its waits differ, step by step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Like {
    /// The run, as an index.
    pub of: usize,
    /// By which share.
    pub apart: f64,
}

impl Like {
    /// Whether they differ by no more than where the same was read.
    pub fn is_same(&self) -> bool {
        self.apart <= SAME_MAX
    }
}

/// A run that may have read the dataset of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsure {
    /// The run of another sample size that waited alike.
    pub like: Like,
    /// A run whose waiting fits that of the other by their bytes, and not this one's; without one it may as well be the other that read the wrong files.
    pub unlike: Option<usize>,
}

/// Judgements on a run.
#[derive(Clone, Default)]
pub(super) struct Judgement {
    /// Evidence that it read the dataset of another.
    pub(super) stale: Option<Stale>,
    /// Signs that it may have, where that cannot be told.
    pub(super) unsure: Option<Unsure>,
    /// Whether what was made last before it is its own dataset.
    pub(super) has_own: bool,
}

/// Files of one format, as time goes on.
pub(super) struct Store<'a> {
    pub(super) runs: &'a [Run],
    pub(super) asked: &'a [Option<AskedFiles>],
    /// Runs that made files or removed them, in the order of time.
    pub(super) changed: Vec<FolderChange>,
    /// Runs that can be compared, by what must be the same: of those of one dataset that waited about as long, the last one.
    pub(super) by_shape: HashMap<Shape<'a>, Vec<usize>>,
    /// Runs that waited alike for samples of different size: the later, and the earlier.
    pub(super) pairs: Vec<(usize, Like)>,
}

/// A change of a folder.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FolderChange {
    /// This run made files.
    Made(usize),
    /// This run removed them at its end.
    Removed(usize),
    /// This run read its own dataset, though another was made last that is known: somebody had made its own again.
    Read(usize),
}

/// How near two folders are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Near {
    /// The same folder; what is not known of one does not tell them apart in one source.
    Same,
    /// The same path on another host, which is the same folder where hosts share the file system.
    OtherHost,
}

/// Beginnings of paths that each host has for itself.
const OF_ONE_HOST: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/"];
/// Its first or second name, with or without digits after it, where disks of a host are mounted.
const DISKS: [&str; 6] = ["local", "localscratch", "local_scratch", "localdisk", "nvme", "ssd"];

impl<'a> Store<'a> {
    pub(super) fn asked(&self, index: usize) -> Option<&'a AskedFiles> {
        self.asked[index].as_ref()
    }

    /// Runs that can be compared with this one.
    pub(super) fn known(&self, index: usize) -> &[usize] {
        let shape = self.asked(index).map(|asked| shape(&self.runs[index], asked));
        shape.and_then(|shape| self.by_shape.get(&shape)).map_or(&[], Vec::as_slice)
    }

    /// The same with how alike they waited.
    pub(super) fn likes(&self, index: usize) -> impl Iterator<Item = Like> {
        self.known(index).iter().filter_map(move |&of| {
            let apart = apart(&self.runs[index], &self.runs[of])?;
            Some(Like { of, apart })
        })
    }

    pub(super) fn is_of_one_dataset(&self, index: usize, other: usize) -> bool {
        let both = self.asked(index).zip(self.asked(other));
        both.is_some_and(|(one, two)| differs(one, two).is_empty())
    }

    /// How near the folders of two runs are; `None` where they used different ones.
    pub(super) fn near(&self, index: usize, other: usize) -> Option<Near> {
        let (a, b) = (&self.runs[index], &self.runs[other]);
        let (a_asked, b_asked) = self.asked(index).zip(self.asked(other))?;
        let is_one_source = a.source == b.source;
        let is_one_folder = match (&a_asked.path, &b_asked.path) {
            (Some(a), Some(b)) => a == b,
            _ => is_one_source && ends_alike(a_asked, b_asked),
        };
        match (&a.hostname, &b.hostname) {
            _ if !is_one_folder => None,
            (Some(a_host), Some(b_host)) if a_host == b_host => Some(Near::Same),
            (Some(_), Some(_)) => (is_one_source && is_shared(a_asked)).then_some(Near::OtherHost),
            _ => is_one_source.then_some(Near::Same),
        }
    }
}

/// Compare ends of paths, where the job's folder of one is not known.
fn ends_alike(a: &AskedFiles, b: &AskedFiles) -> bool {
    let [a, b] = [a, b].map(|one| Path::new(one.path.as_ref().unwrap_or(&one.folder)));
    a.ends_with(b) || b.ends_with(a)
}

/// Whether other hosts may see the folder: a path that is known, and not below a folder of one host.
fn is_shared(asked: &AskedFiles) -> bool {
    asked.path.as_ref().is_some_and(|path| {
        let whole = format!("{path}/");
        let mut names = path.split('/').skip(1).take(2);
        !OF_ONE_HOST.iter().any(|folder| whole.starts_with(folder))
            && !names
                .any(|name| DISKS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit())))
    })
}
