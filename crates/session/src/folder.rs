//! A folder of files that others made: what is in it, and the workload that trains on it.

use crate::bundled::{Bundled, WORKLOADS};
use crate::request::Request;
use crate::resolve::{self, Resolved, WorkloadSource, resolve_source};
use crate::threads;
use anyhow::Context;
use feedrate_data::error::DatasetError;
use feedrate_data::file_index::{FileIndex, NamedFiles};
use feedrate_data::format::{self, Format};
use feedrate_data::generate::{FoundSamples, find_samples};
use feedrate_data::listing::{self, Listing, SelectedFiles};
use feedrate_data::manifest::Manifest;
use feedrate_data::storage;
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::{self, Strictness, yaml_text};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Reading threads of all accelerators together, at most.
const WORKERS_MAX: u64 = 8;
const BATCH: u64 = 32;
/// Steps of an accelerator, at least: a small folder is over in a moment.
const STEPS_LEAST: u64 = 50;
/// Number of kinds of files, and of datasets, that a message lists.
const LISTED_MAX: usize = 8;

/// Content of a folder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundFolder {
    /// Where.
    pub folder: PathBuf,
    /// Name of the format.
    pub format: &'static str,
    /// Name of the files: their format, or their ending where no format is known and they are read as plain bytes.
    kind: String,
    /// Files to train on.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Folders that these lie in.
    folders: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples of one file.
    pub samples_per_file: u64,
    /// Dimensions of a sample, in the mean over files that were opened; `None` where they are not known.
    dims: Option<Vec<u64>>,
    /// Whether all samples of the files that were opened have these.
    dims_are_even: bool,
    element: Option<&'static str>,
    left_out: Vec<FilesLeft>,
    /// Files that were opened to see what they hold.
    pub probed_files: u64,
}

/// Files that are not trained on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FilesLeft {
    what: String,
    files: u64,
}

/// List the files of `format` below `root` into the file `names`: how many are there to train and to evaluate on.
/// Where there are more than `plan` wants, those of fewer samples than the others are left out, as when the folder was looked at.
pub fn list(plan: &DatasetPlan, root: &Path, names: &Path) -> anyhow::Result<[u64; 2]> {
    let format = format::find(&plan.format).context("the plan's format is not built in")?;
    let mut taken = listing::list(root, names)?.select(format)?;
    if plan.files_train < taken.train.files && format.member().has(Ability::KeepsOpen) {
        leave_short(&mut taken, plan, root, names)?;
    }
    Ok([taken.train.files, taken.eval])
}

/// Resolves a request, which may name a folder of files instead of a workload. Reports warnings and assumptions.
///
/// # Errors
/// There is no such workload or folder, or it cannot be planned.
pub fn resolve(request: &Request, listener: &dyn Listener) -> anyhow::Result<Resolved> {
    match &request.data {
        Some(folder) if request.workload.is_empty() => {
            let names = tempfile::tempdir().context("cannot make a temporary folder")?;
            let names = names.path().join(NAMES_FILE);
            Ok(resolve_found(request, folder, &names, listener)?.1)
        }
        _ => {
            let resolved = resolve::resolve(request)?;
            resolved.report_warnings(listener);
            Ok(resolved)
        }
    }
}

/// Looks through `folder`, and plans the workload that trains on it. Reports warnings and assumptions.
///
/// # Errors
/// The folder has no files to train on, or cannot be read.
pub fn resolve_found(
    request: &Request,
    folder: &Path,
    names: &Path,
    listener: &dyn Listener,
) -> anyhow::Result<(FoundFolder, Resolved)> {
    let found = scan(folder, names)?;
    let source = found.source(&request.overrides, request.accelerators.unwrap_or(1));
    let resolved = resolve_source(&source, request)?;
    resolved.report_warnings(listener);
    let assumptions = found.assumptions(&request.overrides, resolved.plan.accelerators);
    assumptions.into_iter().chain(found.notes()).for_each(|note| listener.note(note));
    Ok((found, resolved))
}

/// Look at the `taken` files of `plan`'s format below `root`, and leave those out that cannot be read or hold fewer samples than the others.
fn leave_short(
    taken: &mut SelectedFiles,
    plan: &DatasetPlan,
    root: &Path,
    names: &Path,
) -> anyhow::Result<FoundSamples> {
    let all = DatasetPlan { files_train: taken.train.files, ..plan.clone() };
    let files = NamedFiles::new(storage::open("file", root)?, FileIndex::open(names)?, &all);
    let found = find_samples(&files, &all, threads())?;
    taken.leave_out(&found.unfit_files)?;
    Ok(found)
}

/// Examines the files below `folder`. Writes the names of those to train on into the file `names`.
///
/// # Errors
/// The folder holds no files that can be read, or datasets of ours.
pub fn scan(folder: &Path, names: &Path) -> anyhow::Result<FoundFolder> {
    if !folder.is_dir() {
        return refuse(
            format!("`{}` is no folder", folder.display()),
            "give the folder that the files lie in",
        );
    }
    let listing = listing::list(folder, names)?;
    refuse_ours(&listing)?;
    let Some(format) = listing.main_format() else {
        let kinds = list_of_kinds(&listing.kinds());
        let there = if kinds.is_empty() { String::new() } else { format!(": {kinds}") };
        return refuse(
            format!("`{}` holds no files that can be read{there}", folder.display()),
            "give the folder that the files to train on lie in, or one above it",
        );
    };
    let (format, taken, found) = match look(listing.select(format)?, format, folder, names) {
        // Text of another kind: the format was chosen by the file's name only.
        Err(error) if format.member().has(Ability::Undescribed) && is_of_files(&error) => {
            let plain = format::plain();
            look(listing::list(folder, names)?.select(plain)?, plain, folder, names)?
        }
        looked => looked.map_err(|error| unreadable(error, format))?,
    };
    let dims = (!found.dims.is_empty()).then_some(found.dims);
    let left_out = taken.left_out.iter();
    Ok(FoundFolder {
        folder: std::path::absolute(folder)?,
        format: format.member().name,
        kind: taken.kind,
        files: taken.train.files,
        bytes: taken.train.bytes,
        folders: taken.train.folders,
        samples: taken.train.files * found.per_file,
        samples_per_file: found.per_file,
        dims,
        dims_are_even: found.has_equal_dims,
        element: found.element.map(|element| element.name()),
        probed_files: found.probed_files,
        left_out: left_out
            .map(|(what, files)| FilesLeft { what: what.clone(), files: *files })
            .collect(),
    })
}

/// Look at files of `format`.
fn look(
    mut taken: SelectedFiles,
    format: &'static Format,
    folder: &Path,
    names: &Path,
) -> anyhow::Result<(&'static Format, SelectedFiles, FoundSamples)> {
    if format.member().has(Ability::NeedsPlan) {
        let found = whole_files(&taken);
        return Ok((format, taken, found));
    }
    let plan = DatasetPlan {
        format: format.member().name.into(),
        extension: format.entry.extension.into(),
        prefix: "img".into(),
        ..DatasetPlan::default()
    };
    let found = leave_short(&mut taken, &plan, folder, names)?;
    Ok((format, taken, found))
}

/// Whether a file holds something else than its format has.
fn is_of_files(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DatasetError::Format { .. }))
}

/// Files that begin as those of `format` and cannot be read: no key would help.
fn unreadable(error: anyhow::Error, format: &Format) -> anyhow::Error {
    if !is_of_files(&error) {
        return error;
    }
    let Member { name, summary, .. } = format.member();
    let hint = format!(
        "remove the file if it is broken, else convert the files: of {name} this is read: {}",
        summary.trim_end_matches('.')
    );
    Refusal::new(error.to_string(), hint).into()
}

/// Files that only a plan describes: each is one sample.
fn whole_files(taken: &SelectedFiles) -> FoundSamples {
    let length = taken.train.lengths.filter(|(least, most)| least == most);
    FoundSamples {
        per_file: 1,
        dims: length.map_or_else(Vec::new, |(least, _)| vec![least]),
        has_equal_dims: length.is_some(),
        ..FoundSamples::default()
    }
}

/// Refuses datasets of ours: they are run by their workload.
fn refuse_ours(listing: &Listing) -> anyhow::Result<()> {
    if listing.generated_datasets.is_empty() {
        return Ok(());
    }
    let commands =
        listing.generated_datasets.iter().take(LISTED_MAX).map(|folder| {
            format!("feedrate run {} --data {}", workload_of(folder), folder.display())
        });
    let more = listing.generated_datasets.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    let commands: Vec<String> = commands.chain(more).collect();
    let found = match listing.generated_datasets.len() {
        1 => "a dataset that feedrate made, which is",
        _ => "datasets that feedrate made, which are each",
    };
    refuse(format!("the folder holds {found} run by its workload"), commands.join("\n      "))
}

/// The bundled workload whose dataset is in `folder`, else a placeholder.
fn workload_of(folder: &Path) -> String {
    let Some(manifest) = Manifest::find_in(folder) else { return "WORKLOAD".into() };
    let settings = &manifest.settings;
    let makes_it = |bundled: &&Bundled| {
        let parsed = workload::parse(&bundled.file(), bundled.yaml, &[], Strictness::Error);
        let may_make_it = parsed.is_ok_and(|(workload, _)| {
            workload.dataset_format == settings.format
                && workload.dataset_num_files_train == settings.files_train
        });
        let request = Request::for_workload(bundled.name);
        may_make_it
            && resolve::resolve_named(&request)
                .is_ok_and(|made| manifest.differences(&made.plan.dataset).is_empty())
    };
    WORKLOADS.iter().find(makes_it).map_or("WORKLOAD", |workload| workload.name).into()
}

/// The value that `overrides` give a key.
fn given<'a>(overrides: &'a [String], key: &str) -> Option<&'a str> {
    let given = overrides.iter().rev().find(|text| workload::overridden_key(text) == key)?;
    given.split_once('=').map(|(_, value)| value)
}

fn list_of_kinds(kinds: &[(String, u64)]) -> String {
    let listed = kinds.iter().take(LISTED_MAX);
    let mut listed: Vec<String> =
        listed.map(|(what, files)| format!("{} {what}", units::count(*files))).collect();
    if kinds.len() > LISTED_MAX {
        listed.push(units::counted((kinds.len() - LISTED_MAX) as u64, "more kind"));
    }
    listed.join(", ")
}

impl FoundFolder {
    /// `2,000 jpeg, 105 MB, 10 folders, 400 × 400 in the mean`.
    pub fn line(&self) -> String {
        let mut words = vec![
            format!("{} {}", units::count(self.files), self.kind),
            units::bytes(self.bytes),
            units::counted(self.folders, "folder"),
        ];
        if self.samples_per_file > 1 {
            let each = if self.files > 1 { " each" } else { "" };
            words.push(format!("{}{each}", units::counted(self.samples_per_file, "sample")));
        }
        words.extend(self.dims.as_ref().map(|dims| {
            // Height and width say enough of a picture.
            let is_picture = dims.len() == 3 && dims[2] <= 4;
            let shown = if is_picture { &dims[..2] } else { dims };
            let sides: Vec<String> = shown.iter().map(u64::to_string).collect();
            let mean = if self.dims_are_even { "" } else { " in the mean" };
            format!("{}{mean}", sides.join(" × "))
        }));
        words.join(", ")
    }

    /// A note on files of an unknown format; `None` for known ones.
    fn as_bytes(&self) -> Option<String> {
        (self.kind != self.format).then(|| {
            format!(
                "assumed: each file is one sample, read whole and not decoded: `{}` is of no format that is known",
                self.kind
            )
        })
    }

    /// A note on files that are left out; `None` if none are.
    pub fn left_out(&self) -> Option<String> {
        let all: Vec<(String, u64)> =
            self.left_out.iter().map(|left| (left.what.clone(), left.files)).collect();
        (!all.is_empty()).then(|| format!("left out: {}", list_of_kinds(&all)))
    }

    /// The workload that trains on them, by `accelerators`.
    pub fn source(&self, overrides: &[String], accelerators: u32) -> WorkloadSource {
        let name = resolve::stem(&self.folder);
        let workers = self.workers(accelerators);
        let batch = self.batch(accelerators);
        let mut yaml = format!(
            "model:\n  name: {}\nframework: pytorch\nworkflow:\n  train: True\n{}\
             reader:\n  data_loader: pytorch\n  batch_size: {batch}\n  read_threads: {workers}\n  file_shuffle: seed\n",
            yaml_text(&name),
            self.dataset(),
        );
        // One after another is how such files are read.
        if !self.has(Ability::HoldsFiles) {
            yaml += "  sample_shuffle: seed\n";
        }
        yaml += &format!("train:\n  epochs: {}\n", self.epochs(overrides, accelerators));
        WorkloadSource { name, file: self.folder.display().to_string(), yaml }
    }

    /// The files, as the part `dataset` of a workload.
    pub fn dataset(&self) -> String {
        let mut yaml = format!(
            "dataset:\n  data_folder: {}\n  foreign: True\n  format: {}\n  num_files_train: {}\n  num_samples_per_file: {}\n",
            yaml_text(&self.folder.display().to_string()),
            self.format,
            self.files,
            self.samples_per_file,
        );
        // The plan's bytes of a picture are those of its pixels.
        let is_plain = self.dims_are_even && !self.has(Ability::HoldsFiles);
        let is_dims = is_plain || self.has(Ability::EstimatedSize);
        match &self.dims {
            Some(dims) if is_dims => {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                yaml += &format!("  record_dims: [{}]\n", dims.join(", "));
            }
            _ => {
                let bytes = self.bytes / self.samples.max(1);
                yaml += &format!("  record_length_bytes: {}\n", bytes.max(1));
            }
        }
        if let Some(element) = self.element {
            yaml += &format!("  record_element_type: {element}\n");
        }
        yaml
    }

    fn has(&self, ability: Ability) -> bool {
        format::find(self.format).is_some_and(|format| format.member().has(ability))
    }

    /// No larger than what an accelerator has.
    fn batch(&self, accelerators: u32) -> u64 {
        BATCH.min(self.samples / u64::from(accelerators.max(1))).max(1)
    }

    /// As many as make enough steps.
    fn epochs(&self, overrides: &[String], accelerators: u32) -> u64 {
        let batch = given(overrides, "reader.batch_size").and_then(|text| text.parse().ok());
        let batch = batch.unwrap_or_else(|| self.batch(accelerators));
        let each = batch.saturating_mul(accelerators.into()).max(1);
        STEPS_LEAST.div_ceil((self.samples / each).max(1))
    }

    fn workers(&self, accelerators: u32) -> u64 {
        (WORKERS_MAX.min(threads() as u64) / u64::from(accelerators.max(1))).max(1)
    }

    /// The assumptions about keys that `overrides` do not give; `None` if they give all.
    fn assumptions(&self, overrides: &[String], accelerators: u32) -> Option<String> {
        let epochs = match self.epochs(overrides, accelerators) {
            1 => "one epoch".into(),
            epochs => format!("{epochs} epochs, for {STEPS_LEAST} steps or more"),
        };
        let workers = units::counted(self.workers(accelerators), "worker");
        let assumed = [
            (
                "reader.read_threads",
                format!("{workers}, as many as cores (`--workers` is your `num_workers`)"),
            ),
            ("reader.batch_size", format!("batches of {} (`--batch`)", self.batch(accelerators))),
            ("train.epochs", epochs),
        ];
        let assumed = assumed.into_iter().filter(|(key, _)| given(overrides, key).is_none());
        let assumed: Vec<String> = assumed.map(|(_, text)| text).collect();
        (!assumed.is_empty()).then(|| format!("assumed: {}", assumed.join(", ")))
    }

    /// Notes on how files are read, and on those that are left out.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.as_bytes().into_iter().chain(self.left_out())
    }
}
