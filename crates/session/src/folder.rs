//! Folders of foreign files, or prefixes of foreign objects: examines their content, and writes a workload that trains on them.
//!
//! Long because it contains every field of a scan, and the words and keys that follow from it.

use crate::output::refuse_below;
use crate::request::Request;
use crate::resolve::{self, Resolved, WorkloadSource, resolve_source};
use crate::result_folder;
use crate::store;
use crate::threads;
use anyhow::Context;
use feedrate_data::error::DatasetError;
use feedrate_data::file_index::{FileIndex, NamedFiles};
use feedrate_data::format::{self, FileMember, Format};
use feedrate_data::generate::{FoundMembers, FoundSamples, find_samples};
use feedrate_data::listing::{self, Listing, SelectedFiles};
use feedrate_data::manifest::Manifest;
use feedrate_data::storage::object::Access;
use feedrate_data::storage::{self, StorageError};
use feedrate_measure::record::file::NAMES_FILE;
use feedrate_measure::record::{AlikeMembers, FileMembers, NamedMember, READ_SHARE_MIN};
use feedrate_spec::bundled::{Bundled, WORKLOADS};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::{DatasetPlan, PlanDoubt};
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape};
use feedrate_spec::units;
use feedrate_spec::workload::{self, Strictness, yaml_text};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Maximum number of reading threads of all accelerators together.
const WORKERS_MAX: u64 = 8;
/// Default batch size.
const BATCH_SIZE: u64 = 32;
/// Minimum number of steps of an accelerator, so that runs on small folders are not too short.
const STEPS_MIN: u64 = 50;
/// Maximum number of kinds of files, and of datasets, in a message.
const LISTED_MAX: usize = 8;
/// Keys that choose the members of files.
const MEMBER_KEYS: [&str; 2] = ["dataset.members", "dataset.parquet.columns"];
/// Start of the keys that say how a store is reached.
const STORE_KEYS: &str = "storage.";

/// Content of a folder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundFolder {
    /// Path of the folder, or its URL.
    pub folder: PathBuf,
    /// Name of the format.
    pub format: &'static str,
    /// Kind of the files: their format, or their extension if the format is unknown and they are read as plain bytes.
    kind: String,
    /// Number of training files.
    pub files: u64,
    /// Bytes of the training files.
    pub bytes: u64,
    /// Number of folders that contain them.
    folders: u64,
    /// Number of samples in them.
    pub samples: u64,
    /// Number of samples in each file; their mean if the numbers differ.
    pub samples_per_file: u64,
    /// Number of samples in each file, if the numbers differ.
    #[serde(skip)]
    unequal_samples: Vec<u64>,
    /// Dimensions of a sample: the mean over the opened files; `null` if unknown.
    dims: Option<Vec<u64>>,
    /// Whether all samples of the opened files have these dimensions.
    dims_are_even: bool,
    /// Element type of samples; `null` if unknown.
    element: Option<&'static str>,
    /// Datasets, arrays or columns in the files; `null` if the format has none.
    pub members: Option<FileMembers>,
    /// Names of the members that are read in each file; empty if each file decides.
    #[serde(skip)]
    choice: Vec<String>,
    /// Files that are left out.
    left_out: Vec<FilesLeft>,
    /// Bytes of the files of other kinds than the training files.
    other_bytes: u64,
    /// Number of files that were opened to examine them.
    pub probed_files: u64,
}

/// Files of one kind that are left out of training.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FilesLeft {
    /// Kind of the files.
    #[serde(rename = "what")]
    kind: String,
    /// Number of files.
    files: u64,
}

/// Writes the names of the files of the plan's format below `root` into the file `names`. Returns the numbers of training and evaluation
/// files. If there are more training files than in the plan, unreadable files and files with too few samples are left out, as in
/// [`scan`].
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn list(plan: &DatasetPlan, root: &Path, names: &Path) -> anyhow::Result<[u64; 2]> {
    let format = format::find(&plan.format).context("the plan's format is not built in")?;
    let mut selected = list_files(root, names)?.select(format)?;
    if plan.files_train < selected.train.files && !format.member().has(Ability::NeedsPlan) {
        leave_out_unfit(&mut selected, plan, root, names)?;
    }
    Ok([selected.train.files, selected.eval])
}

/// Lists the files below `root`.
fn list_files(root: &Path, names: &Path) -> Result<Listing, StorageError> {
    listing::list(root, &*storage::open_root(root)?, names)
}

/// Resolves a request, which may name a folder of files instead of a workload. Reports warnings and assumptions.
///
/// # Errors
/// Fails if the workload or folder does not exist or cannot be planned.
pub fn resolve(request: &Request, listener: &dyn Listener) -> anyhow::Result<Resolved> {
    match &request.data {
        Some(folder) if request.workload.is_empty() => {
            let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
            let names = temporary.path().join(NAMES_FILE);
            Ok(resolve_found(request, folder, &names, listener)?.1)
        }
        _ => {
            let resolved = resolve::resolve(request)?;
            resolved.report_warnings(listener);
            Ok(resolved)
        }
    }
}

impl Resolved {
    /// Returns the folder of all results: the requested one, or that of the workload.
    ///
    /// # Errors
    /// Returns a refusal for the root of the file system, and for a folder below the user's own data.
    pub fn results_root(&self, requested: Option<&Path>) -> anyhow::Result<PathBuf> {
        let root = result_folder::root(requested, &self.workload)?;
        if self.workload.dataset_foreign {
            refuse_below(&root, &self.data_root, "--results")?;
        }
        Ok(root)
    }
}

/// Returns the folder of the user's own data that a request reads; `None` if feedrate generates the data, or if the workload cannot be read.
pub fn foreign_data(request: &Request) -> Option<PathBuf> {
    if request.workload.is_empty() {
        return request.data.clone();
    }
    // It can be read only once.
    if request.workload == resolve::STDIN {
        return None;
    }
    let resolved = resolve::resolve(request).ok()?;
    resolved.workload.dataset_foreign.then_some(resolved.data_root)
}

/// Examines `folder`, and plans the workload that trains on it. Reports warnings and assumptions.
///
/// # Errors
/// Fails if the folder has no files to train on, or cannot be read.
pub fn resolve_found(
    request: &Request,
    folder: &Path,
    names: &Path,
    listener: &dyn Listener,
) -> anyhow::Result<(FoundFolder, Resolved)> {
    let found = scan(folder, names, &examined_members(request)?)?;
    let source = found.source(&request.overrides, request.accelerators.unwrap_or(1));
    let mut resolved = resolve_source(&source, request)?;
    resolved.plan.doubts.extend(found.left_out_doubt());
    resolved.report_warnings(listener);
    let assumptions = found.assumptions(&request.overrides, resolved.plan.accelerators);
    assumptions.into_iter().chain(found.notes()).for_each(|note| listener.note(note));
    Ok((found, resolved))
}

/// Examines the selected files of the plan's format below `root`. Leaves out files that cannot be read or have fewer samples than the plan.
fn leave_out_unfit(
    selected: &mut SelectedFiles,
    plan: &DatasetPlan,
    root: &Path,
    names: &Path,
) -> anyhow::Result<FoundSamples> {
    let full_plan = DatasetPlan { files_train: selected.train.files, ..plan.clone() };
    let files = NamedFiles::new(storage::open_root(root)?, FileIndex::open(names)?, &full_plan);
    // The plan's numbers of samples belong to the files that are not left out.
    let samples_min = if plan.file_samples.is_empty() { plan.samples_per_file } else { 1 };
    let full_plan =
        DatasetPlan { samples_per_file: samples_min, file_samples: Vec::new(), ..full_plan };
    let found = find_samples(&files, &full_plan, threads())?;
    selected.leave_out(&found.unfit_files)?;
    Ok(found)
}

/// Applies the overrides that concern the examination of the files: configures their store, and returns the names of the members that the
/// user chose.
fn examined_members(request: &Request) -> anyhow::Result<Vec<String>> {
    let is_applied = |text: &&String| {
        let key = workload::overridden_key(text);
        MEMBER_KEYS.contains(&key) || key.starts_with(STORE_KEYS)
    };
    let overrides: Vec<String> = request.overrides.iter().filter(is_applied).cloned().collect();
    let is_in_store = request.data.as_deref().is_some_and(store::is_url);
    if overrides.is_empty() && !is_in_store {
        return Ok(overrides);
    }
    let yaml = "dataset:\n  foreign: True\n".to_string();
    let source = WorkloadSource { name: "members".into(), file: "overrides".into(), yaml };
    let request = Request { overrides, data: request.data.clone(), ..Request::default() };
    Ok(resolve_source(&source, &request)?.plan.dataset.members)
}

/// Members of the opened files of `files` files; `None` if the format has none.
pub fn file_members(found: &FoundMembers, files: u64) -> Option<FileMembers> {
    let member = |member: &FileMember| NamedMember {
        name: member.name.clone(),
        bytes: member.stored_bytes,
        is_read: member.is_read,
        is_elsewhere: member.is_elsewhere,
    };
    (!found.members.is_empty()).then(|| FileMembers {
        members: found.members.iter().map(member).collect(),
        unlisted: found.unlisted,
        alike: found
            .alike
            .as_ref()
            .map(|alike| AlikeMembers { name: alike.name.clone(), members: alike.members }),
        file_bytes: found.file_bytes,
        sampled_files: (found.files < files).then_some(found.files),
    })
}

/// Examines the files below `folder`, and writes the names of the training files into the file `names`. If `members` are given, only these
/// datasets, arrays or columns are read.
///
/// # Errors
/// Fails if the folder has no readable files, or if it contains generated datasets.
pub fn scan(folder: &Path, names: &Path, members: &[String]) -> anyhow::Result<FoundFolder> {
    let is_url = store::parse_url(folder)?.is_some();
    if !is_url && !folder.is_dir() {
        return refuse(
            format!("`{}` is not a folder", folder.display()),
            "give the folder of the files",
        );
    }
    store::check(folder, Access::Read)?;
    let listing = list_files(folder, names)?;
    refuse_generated(&listing)?;
    let Some(format) = listing.main_format() else {
        let kinds = list_of_kinds(&listing.counts_by_type());
        let found = if kinds.is_empty() { String::new() } else { format!(": {kinds}") };
        return refuse(
            format!("`{}` contains no readable files{found}", folder.display()),
            "give the folder of the training files, or a parent folder",
        );
    };
    let mut examined = examine(listing.select(format)?, format, members, folder, names);
    // The format was chosen by the files' names alone, and the content may be other text.
    if format.member().has(Ability::Undescribed) {
        for other in other_formats(format) {
            if !examined.as_ref().is_err_and(is_content_error) {
                break;
            }
            let files = list_files(folder, names)?.select(other)?;
            examined = examine(files, other, &[], folder, names);
        }
    }
    let Examined { format, files, samples } = examined.map_err(|error| match members {
        [] => with_conversion_hint(error, format),
        _ => with_choice_hint(error),
    })?;
    if samples.total == 0 {
        let kind = &files.file_type;
        return refuse(
            format!("`{}`: the {kind} files have no samples", folder.display()),
            "give the folder of the training files",
        );
    }
    refuse_ineffective_choice(members, &samples.members, format)?;
    let members = file_members(&samples.members, files.train.files);
    // Arrays without dimensions hold a single number.
    let is_known = !samples.dims.is_empty() || samples.element.is_some() && samples.has_equal_dims;
    let dims = is_known.then_some(samples.dims);
    let left_out = files.left_out.iter();
    Ok(FoundFolder {
        folder: if is_url { folder.into() } else { std::path::absolute(folder)? },
        format: format.member().name,
        kind: files.file_type,
        files: files.train.files,
        bytes: samples.part_bytes.unwrap_or(files.train.bytes),
        folders: files.train.folders,
        samples: samples.total,
        samples_per_file: samples.per_file,
        unequal_samples: samples.unequal,
        dims,
        dims_are_even: samples.has_equal_dims,
        element: samples.element.map(|element| element.name()),
        members,
        choice: samples.members.choice,
        probed_files: samples.probed_files,
        left_out: left_out
            .map(|(kind, files)| FilesLeft { kind: kind.clone(), files: *files })
            .collect(),
        other_bytes: files.other_bytes,
    })
}

/// Refuses a choice of members if the files have none, or their format reads samples completely.
pub fn refuse_ineffective_choice(
    chosen: &[String],
    found: &FoundMembers,
    format: &Format,
) -> anyhow::Result<()> {
    let has_choice = format.member().has(Ability::ChoosesMembers) && !found.members.is_empty();
    if chosen.is_empty() || has_choice {
        return Ok(());
    }
    refuse(
        format!(
            "`{}` has no effect on files of the format {}",
            MEMBER_KEYS[0],
            format.member().name
        ),
        "leave it out: no named parts of these files can be chosen",
    )
}

/// The formats that can read files with the extension of `format` if their content is not of that format: the more general ones, at last
/// plain bytes.
fn other_formats(format: &'static Format) -> impl Iterator<Item = &'static Format> {
    let named = format::named(format.entry.extension);
    let others = named.skip_while(move |other| other.member().name != format.member().name).skip(1);
    others.chain([format::plain_bytes()])
}

/// Files of one format that were examined.
struct Examined {
    format: &'static Format,
    files: SelectedFiles,
    samples: FoundSamples,
}

/// Examines the selected files, which have `format`.
fn examine(
    mut files: SelectedFiles,
    format: &'static Format,
    members: &[String],
    folder: &Path,
    names: &Path,
) -> anyhow::Result<Examined> {
    if format.member().has(Ability::NeedsPlan) {
        let samples = files_as_samples(&files);
        return Ok(Examined { format, files, samples });
    }
    let plan = DatasetPlan {
        format: format.member().name.into(),
        extension: format.entry.extension.into(),
        prefix: "img".into(),
        members: members.to_vec(),
        ..DatasetPlan::default()
    };
    let samples = leave_out_unfit(&mut files, &plan, folder, names)?;
    Ok(Examined { format, files, samples })
}

/// Whether the content of a file does not match its format.
fn is_content_error(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DatasetError::Format { .. }))
}

/// Adds a hint to an error about files that begin like `format` but cannot be read: they must be converted, because no setting helps.
fn with_conversion_hint(error: anyhow::Error, format: &Format) -> anyhow::Error {
    if !is_content_error(&error) {
        return error;
    }
    let Member { name, summary, .. } = format.member();
    let hint = format!(
        "remove the file if it is broken, else convert the files; supported for {name}: {}",
        summary.trim_end_matches('.')
    );
    Refusal::new(error.to_string(), hint).into()
}

/// Adds a hint to an error about the members that the user chose.
fn with_choice_hint(error: anyhow::Error) -> anyhow::Error {
    if !is_content_error(&error) {
        return error;
    }
    let hint = format!("name others in `{}`, or leave it out", MEMBER_KEYS[0]);
    Refusal::new(error.to_string(), hint).into()
}

/// Counts each file as one sample, for a format with content that only a plan describes.
fn files_as_samples(files: &SelectedFiles) -> FoundSamples {
    let length = files.train.lengths.filter(|(min, max)| min == max);
    FoundSamples {
        per_file: 1,
        total: files.train.files,
        dims: length.map_or_else(Vec::new, |(length, _)| vec![length]),
        has_equal_dims: length.is_some(),
        ..FoundSamples::default()
    }
}

/// Refuses datasets that feedrate generated, because they need their workload.
fn refuse_generated(listing: &Listing) -> anyhow::Result<()> {
    if listing.generated_datasets.is_empty() {
        return Ok(());
    }
    let commands = listing.generated_datasets.iter().take(LISTED_MAX).map(|folder| {
        format!("feedrate run {} --data {}", bundled_workload(folder), folder.display())
    });
    let unlisted = listing.generated_datasets.len().saturating_sub(LISTED_MAX);
    let more = (unlisted > 0).then(|| format!("and {unlisted} more"));
    let lines: Vec<String> = commands.chain(more).collect();
    let found = match listing.generated_datasets.len() {
        1 => "a dataset that feedrate generated; run it with its workload",
        _ => "datasets that feedrate generated; run each with its workload",
    };
    refuse(format!("the folder contains {found}"), lines.join("\n      "))
}

/// Returns the name of the bundled workload that generated the dataset in `folder`, or a placeholder if there is none.
fn bundled_workload(folder: &Path) -> String {
    let found =
        storage::open_root(folder).ok().and_then(|storage| Manifest::read(&*storage).ok()?);
    let Some(manifest) = found else { return "WORKLOAD".into() };
    let settings = &manifest.settings;
    let generates_it = |bundled: &&Bundled| {
        let parsed = workload::parse(&bundled.file(), bundled.yaml, &[], Strictness::Error);
        let is_similar = parsed.is_ok_and(|(workload, _)| {
            workload.dataset_format == settings.format
                && workload.dataset_num_files_train == settings.files_train
        });
        let request = Request::for_workload(bundled.name);
        is_similar
            && resolve::resolve_named(&request)
                .is_ok_and(|resolved| manifest.differences(&resolved.plan.dataset).is_empty())
    };
    WORKLOADS.iter().find(generates_it).map_or("WORKLOAD", |workload| workload.name).into()
}

/// Returns the last value of a key in `overrides`.
fn override_value<'a>(overrides: &'a [String], key: &str) -> Option<&'a str> {
    let text = overrides.iter().rev().find(|text| workload::overridden_key(text) == key)?;
    text.split_once('=').map(|(_, value)| value)
}

/// Formats numbers of files by kind, such as `12 jpeg, 3 png, 2 more kinds`.
fn list_of_kinds(kinds: &[(String, u64)]) -> String {
    let mut listed: Vec<String> = kinds
        .iter()
        .take(LISTED_MAX)
        .map(|(kind, files)| format!("{} {kind}", units::count(*files)))
        .collect();
    if kinds.len() > LISTED_MAX {
        listed.push(units::counted((kinds.len() - LISTED_MAX) as u64, "more kind"));
    }
    listed.join(", ")
}

impl FoundFolder {
    /// Describes the folder in a line: `2,000 jpeg, 105 MB, 10 folders, 400 × 400 on average`.
    pub fn line(&self) -> String {
        let mut words = vec![
            format!("{} {}", units::count(self.files), self.kind),
            units::bytes(self.bytes),
            units::counted(self.folders, "folder"),
        ];
        words.extend(self.samples_words());
        words.extend(self.dims.as_ref().filter(|dims| !dims.is_empty()).map(|dims| {
            // Pictures are described as width × height.
            let is_picture = dims.len() == 3 && dims[2] <= 4;
            let sides = if is_picture { vec![dims[1], dims[0]] } else { dims.clone() };
            let sides: Vec<String> = sides.iter().map(u64::to_string).collect();
            let mean = if self.dims_are_even { "" } else { " on average" };
            format!("{}{mean}", sides.join(" × "))
        }));
        words.extend(self.members.as_ref().and_then(FileMembers::line));
        words.join(", ")
    }

    /// Describes the number of samples in a file, such as `8 samples each`; `None` if each file is a sample.
    fn samples_words(&self) -> Option<String> {
        let range = self.unequal_samples.iter().min().zip(self.unequal_samples.iter().max());
        if let Some((min, max)) = range {
            let total = units::counted(self.samples, "sample");
            return Some(format!("{total}, {} to {} each", units::count(*min), units::count(*max)));
        }
        let each = if self.files > 1 { " each" } else { "" };
        let samples = units::counted(self.samples_per_file, "sample");
        (self.samples_per_file > 1).then(|| format!("{samples}{each}"))
    }

    /// Returns a note on files of an unknown format; `None` for a known format.
    fn unknown_format_note(&self) -> Option<String> {
        let is_plain = self.format == format::plain_bytes().member().name;
        (is_plain && self.kind != self.format).then(|| {
            format!(
                "assumed: each file is one sample, which is read and not decoded, because the format of `{}` is unknown",
                self.kind
            )
        })
    }

    /// Returns a note on the files that are left out; `None` if there are none.
    pub fn left_out(&self) -> Option<String> {
        let all: Vec<(String, u64)> =
            self.left_out.iter().map(|left| (left.kind.clone(), left.files)).collect();
        (!all.is_empty()).then(|| format!("left out: {}", list_of_kinds(&all)))
    }

    /// Returns a doubt if much of the folder is left out, because a sample could consist of files of several kinds.
    fn left_out_doubt(&self) -> Option<PlanDoubt> {
        let share = self.bytes as f64 / self.bytes.saturating_add(self.other_bytes).max(1) as f64;
        (share < READ_SHARE_MIN).then(|| PlanDoubt {
            name: "files_left_out".into(),
            evidence: format!(
                "the {} {} files are {:.0} % of the folder's bytes; {}",
                units::count(self.files),
                self.kind,
                100.0 * share,
                self.left_out().unwrap_or_default()
            ),
            advice: "if a sample also consists of other files, such as a mask or a video, pack its parts in one file, or run on the other files as well".into(),
        })
    }

    /// Returns the workload that trains on the files with `accelerators` accelerators.
    pub fn source(&self, overrides: &[String], accelerators: u32) -> WorkloadSource {
        let name = resolve::stem(&self.folder);
        let workers = self.workers(accelerators);
        let batch = self.batch_size(accelerators);
        let mut yaml = format!(
            "model:\n  name: {}\nframework: pytorch\nworkflow:\n  train: True\n{}\
             reader:\n  data_loader: pytorch\n  batch_size: {batch}\n  read_threads: {workers}\n  file_shuffle: seed\n",
            yaml_text(&name),
            self.dataset(),
        );
        // Samples in containers, and in files that are read from their start, are read in order.
        if !self.has(Ability::HoldsFiles) && !self.has(Ability::Sequential) {
            yaml += "  sample_shuffle: seed\n";
        }
        yaml += &format!("train:\n  epochs: {}\n", self.epochs(overrides, accelerators));
        WorkloadSource { name, file: self.folder.display().to_string(), yaml }
    }

    /// Returns the section `dataset` of a workload for the files.
    pub fn dataset(&self) -> String {
        let mut yaml = format!(
            "dataset:\n  data_folder: {}\n  foreign: True\n  format: {}\n  num_files_train: {}\n  num_samples_per_file: {}\n",
            yaml_text(&self.folder.display().to_string()),
            self.format,
            self.files,
            self.samples_per_file,
        );
        if !self.unequal_samples.is_empty() {
            let numbers: Vec<String> = self.unequal_samples.iter().map(u64::to_string).collect();
            yaml += &format!("  samples_in_files: [{}]\n", numbers.join(", "));
        }
        // Plans count the bytes of a picture's pixels, which dimensions determine.
        let has_plain_samples = self.dims_are_even && !self.has(Ability::HoldsFiles);
        let has_mean_dims = self.has(Ability::EstimatedSize) && !self.has(Ability::ReadOnly);
        let gives_dims = has_plain_samples || has_mean_dims;
        match &self.dims {
            // Samples of empty arrays count with the length of their files.
            Some(dims) if gives_dims && !dims.contains(&0) => {
                let extents: Vec<String> = dims.iter().map(u64::to_string).collect();
                let extents = if dims.is_empty() { "1".into() } else { extents.join(", ") };
                yaml += &format!("  record_dims: [{extents}]\n");
                if self.has(Ability::EstimatedSize) {
                    let bytes = self.bytes / self.samples.max(1);
                    yaml += &format!("  stored_sample_bytes: {bytes}\n");
                }
            }
            _ => {
                yaml += &format!("  record_length_bytes: {}\n", self.record_length_bytes());
            }
        }
        if !self.choice.is_empty() {
            let names: Vec<String> = self.choice.iter().map(|name| yaml_text(name)).collect();
            yaml += &format!("  members: [{}]\n", names.join(", "));
        }
        if let Some(element) = self.element {
            yaml += &format!("  record_element_type: {element}\n");
        }
        yaml
    }

    /// Returns the mean length of the members that are read, or else the length of samples with which planned files are as long as the found ones.
    fn record_length_bytes(&self) -> u64 {
        let read_share = self.members.as_ref().and_then(FileMembers::read_share);
        let read_bytes = self.bytes as f64 * read_share.unwrap_or(1.0);
        let bytes = read_bytes as u64 / self.samples.max(1);
        if read_share.is_some() {
            return bytes.max(1);
        }
        let samples = self.samples_per_file.max(1);
        let planned_bytes =
            format::find(self.format).zip(Dims::new(&[bytes])).map(|(format, dims)| {
                let shape = FileShape { dims, element: Element::Uint8, samples };
                format.file_bytes(&shape, &Encoding::default()) / samples
            });
        let overhead_bytes = planned_bytes.map_or(0, |planned| planned.saturating_sub(bytes));
        let element = Element::ALL.iter().find(|element| Some(element.name()) == self.element);
        let bytes_min = element.map_or(1, |element| element.bytes());
        bytes.saturating_sub(overhead_bytes).max(bytes_min)
    }

    fn has(&self, ability: Ability) -> bool {
        format::find(self.format).is_some_and(|format| format.member().has(ability))
    }

    /// Returns the batch size: the default, or all samples of an accelerator if these are fewer.
    fn batch_size(&self, accelerators: u32) -> u64 {
        BATCH_SIZE.min(self.samples / u64::from(accelerators.max(1))).max(1)
    }

    /// Returns the number of epochs with enough steps.
    fn epochs(&self, overrides: &[String], accelerators: u32) -> u64 {
        let configured =
            override_value(overrides, "reader.batch_size").and_then(|text| text.parse().ok());
        let batch = configured.unwrap_or_else(|| self.batch_size(accelerators));
        let step_samples = batch.saturating_mul(accelerators.into()).max(1);
        STEPS_MIN.div_ceil((self.samples / step_samples).max(1))
    }

    /// Returns the number of workers of an accelerator.
    fn workers(&self, accelerators: u32) -> u64 {
        (WORKERS_MAX.min(threads() as u64) / u64::from(accelerators.max(1))).max(1)
    }

    /// Returns the assumptions about keys that are not in `overrides`; `None` if there are none.
    fn assumptions(&self, overrides: &[String], accelerators: u32) -> Option<String> {
        let epochs = match self.epochs(overrides, accelerators) {
            1 => "one epoch".into(),
            epochs => format!("{epochs} epochs, for {STEPS_MIN} steps or more"),
        };
        let workers = units::counted(self.workers(accelerators), "worker");
        let all = [
            (
                "reader.read_threads",
                format!("{workers}, as many as cores (`--workers` is your `num_workers`)"),
            ),
            (
                "reader.batch_size",
                format!("batches of {} (`--batch`)", self.batch_size(accelerators)),
            ),
            ("train.epochs", epochs),
        ];
        let assumed: Vec<String> = all
            .into_iter()
            .filter(|(key, _)| override_value(overrides, key).is_none())
            .map(|(_, text)| text)
            .collect();
        (!assumed.is_empty()).then(|| format!("assumed: {}", assumed.join(", ")))
    }

    /// Returns notes on files of an unknown format and on files that are left out.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.unknown_format_note().into_iter().chain(self.left_out())
    }
}
