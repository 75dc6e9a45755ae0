//! Checks a folder of files that feedrate did not generate before a run uses them: whether there are enough files,
//! whether they can be read, and whether their contents match the plan.
//!
//! Long because examining a folder and comparing it with a plan open files in the same way.

use crate::error::DatasetError;
use crate::format::{self, Cursor, CursorOptions, Discard, FileMember, Format, FormatError, Need};
use crate::names::FileNames;
use crate::piece::Piece;
use crate::storage::{Handle, Storage, StorageError};
use crate::walk::{self, Watch};
use feedrate_spec::catalog::Ability;
use feedrate_spec::escape::name_list;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Element, FileShape};
use feedrate_spec::units;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// Upper limit on the files that are opened: the first, the last, and some between.
const PROBED_MAX: u64 = 16;
/// Bytes of one read. Small, because the data read here is in the page cache when training begins.
const PIECE_BYTES: usize = 4096;
/// Upper limit on the files whose numbers of samples are listed in a workload. Of more files, those with fewer samples than
/// most are left out.
const UNEQUAL_FILES_MAX: u64 = 100_000;
/// Upper limit on the named members that are listed.
const MEMBERS_MAX: usize = 1024;
/// Upper limit on the names in a message.
const NAMES_SHOWN_MAX: usize = 8;
/// Relative difference of mean sizes above which a note is added.
const SIZE_TOLERANCE: f64 = 0.02;
/// Factor up to which a rough size may differ from the plan's.
const ROUGH_FACTOR: f64 = 2.0;
/// Number of standard errors by which the mean of random sizes may differ from the plan.
const RANDOM_FACTOR: f64 = 4.0;

/// How opened files differ from the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Number of files that were opened.
    pub opened_files: u64,
    /// The opened files that could be read.
    pub files: Vec<ProbedFile>,
    /// Differences from the plan with which the files can be read, one sentence each.
    pub notes: Vec<String>,
    /// Mean size of a sample, if it differs from the plan.
    pub other_sample_bytes: Option<f64>,
    /// Named members of the opened files.
    pub members: FoundMembers,
}

/// One file that was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbedFile {
    /// Number of the file in the plan.
    pub number: u64,
    /// Relative to the dataset's folder.
    pub path: String,
    /// Total length of its parts.
    pub bytes: u64,
    /// Shape that the file states, if its format stores one.
    pub shape: Option<FileShape>,
    /// Named members of the file; empty if its format has none.
    pub members: Vec<FileMember>,
}

/// Opens some files of a foreign dataset. `found_files` are the numbers of training and evaluation files in its folder.
///
/// # Errors
/// There are too few files, or a file cannot be read, or has fewer samples than the plan.
pub fn probe_foreign(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
    found_files: [u64; 2],
) -> Result<Probe, DatasetError> {
    let names = FileNames::new(plan, layout)?;
    if names.format.member().has(Ability::NoFiles) {
        return Ok(Probe::default());
    }
    check_counts(found_files, plan)?;
    let is_encoded = names.format.member().has(Ability::EncodesSamples);
    let mut opener = Opener::new(storage, names, &probe_options(plan, is_encoded));
    let needs_plan = names.format.member().has(Ability::NeedsPlan) && plan.samples_per_file > 1;
    // In larger folders, a scan does not open each file. Otherwise it leaves out the broken ones.
    let may_be_broken =
        !names.format.member().has(Ability::KeepsOpen) && PROBED_MAX < layout.files();
    let mut broken = BTreeMap::new();
    let mut files = Vec::new();
    for file in file_numbers_to_probe(layout.files()) {
        let shape = layout.shape(file);
        let last_sample = shape.samples.saturating_sub(1);
        match opener.probe(file, last_sample, needs_plan.then_some(&shape)) {
            // A run counts such a file as a sample that is not decoded.
            Err(error @ DatasetError::Format { .. })
                if may_be_broken && !error.is_missing_sample() =>
            {
                broken.insert(file, error);
            }
            probed => files.push(probed?),
        }
    }
    let opened_files = (files.len() + broken.len()) as u64;
    check_minority(&mut broken, opened_files)?;
    let notes = describe_differences(&files, names);
    let other_sample_bytes =
        if has_planned_size(plan) { other_sample_bytes(&files, names) } else { None };
    let mut members = FoundMembers::new(&files, names.format);
    if !plan.members.is_empty() {
        members.exclude_unread();
    }
    Ok(Probe { opened_files, files, notes, other_sample_bytes, members })
}

/// Counts the files with the plan's extension in the training folders and in the evaluation folders.
///
/// # Errors
/// A folder cannot be listed.
pub fn count_files(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    layout: &Layout,
) -> Result<[u64; 2], DatasetError> {
    let suffix = format!(".{}", plan.extension);
    let mut found = [0, 0];
    for folder in layout.folders() {
        let names = storage.list(&folder)?;
        let split = usize::from(folder.split('/').next() != Some("train"));
        found[split] += names.iter().filter(|name| name.ends_with(&suffix)).count() as u64;
    }
    Ok(found)
}

/// Whether the plan determines the sizes of samples. The stored bytes of columns depend on the encodings that their writer chose, and named
/// members are a part of a sample.
fn has_planned_size(plan: &DatasetPlan) -> bool {
    plan.encoding.columns.is_empty() && plan.members.is_empty()
}

/// Whether each sample has its own size, and files have other parts than the sample that is decoded.
fn has_own_sizes(format: &Format) -> bool {
    let member = format.member();
    member.has(Ability::HoldsFiles) || member.has(Ability::ReadOnly)
}

fn check_counts([train, eval]: [u64; 2], plan: &DatasetPlan) -> Result<(), DatasetError> {
    for (purpose, found, wanted) in
        [("train", train, plan.files_train), ("evaluate", eval, plan.files_eval)]
    {
        if found < wanted {
            let extension = plan.extension.clone();
            return Err(DatasetError::TooFew { purpose, extension, wanted, found });
        }
    }
    Ok(())
}

/// Up to [`PROBED_MAX`] evenly spaced file numbers below `files`, including the first and the last.
fn file_numbers_to_probe(files: u64) -> impl Iterator<Item = u64> {
    let count = files.min(PROBED_MAX);
    (0..count).map(move |i| {
        let last = u128::from(files - 1);
        (last * u128::from(i) / u128::from((count - 1).max(1))) as u64
    })
}

/// Returns the first error unless the broken files are the minority of `files`.
fn check_minority(
    broken: &mut BTreeMap<u64, DatasetError>,
    files: u64,
) -> Result<(), DatasetError> {
    let is_minority = 2 * (broken.len() as u64) < files;
    let error = if is_minority { None } else { broken.pop_first() };
    error.map_or(Ok(()), |(_, error)| Err(error))
}

fn describe_differences(
    files: &[ProbedFile],
    FileNames { plan, layout, format }: FileNames<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let more = files.iter().find_map(|file| {
        let planned = layout.shape(file.number);
        let shape = file.shape.filter(|shape| shape.samples > planned.samples)?;
        let described = format::describe_shape(&shape);
        let path = &file.path;
        Some(format!("`{path}` holds {described}, of which the plan reads {}", planned.samples))
    });
    notes.extend(more);
    if !has_planned_size(plan) {
        return notes;
    }
    let names = FileNames { plan, layout, format };
    notes.extend(size_note(files, names));
    let sizes = MeanSizes::for_files(files, names);
    if let Some(sizes) = sizes.filter(MeanSizes::differ) {
        notes.push(format!(
            "the files have {} on average, the plan says {}",
            units::bytes(sizes.found as u64),
            units::bytes(sizes.planned as u64)
        ));
    }
    notes
}

/// Mean sizes in bytes in the opened files and in the plan.
#[derive(Clone, Copy)]
struct MeanSizes {
    found: f64,
    planned: f64,
    /// Whether `found` follows from the length of files, which have other parts than the sample.
    is_rough: bool,
}

impl MeanSizes {
    /// Sizes of samples; `None` if a file does not state its shape.
    fn for_samples(
        files: &[ProbedFile],
        FileNames { plan, layout, format }: FileNames<'_>,
    ) -> Option<Self> {
        let planned = mean(planned_shapes(files, layout).map(|shape| shape.sample_bytes()))?;
        if has_own_sizes(format) {
            let file_bytes = |shape: FileShape| format.file_bytes(&shape, &plan.encoding);
            let planned_files = mean(planned_shapes(files, layout).map(file_bytes))?;
            let found = planned * mean(file_lengths(files))? / planned_files;
            return Some(MeanSizes { found, planned, is_rough: true });
        }
        let found: Option<Vec<u64>> =
            files.iter().map(|file| Some(file.shape?.sample_bytes())).collect();
        Some(MeanSizes { found: mean(found?.into_iter())?, planned, is_rough: false })
    }

    /// Sizes of files; `None` if the plan does not determine them.
    fn for_files(
        files: &[ProbedFile],
        FileNames { plan, layout, format }: FileNames<'_>,
    ) -> Option<Self> {
        if !format.entry.has_exact_size(&plan.encoding) {
            return None;
        }
        let planned =
            planned_shapes(files, layout).map(|shape| format.file_bytes(&shape, &plan.encoding));
        let found = mean(file_lengths(files))?;
        Some(MeanSizes { found, planned: mean(planned)?, is_rough: has_own_sizes(format) })
    }

    fn excess(&self) -> f64 {
        self.found - self.planned
    }

    /// Whether the sizes differ by more than [`SIZE_TOLERANCE`]; if they are rough, by a factor of more than [`ROUGH_FACTOR`].
    fn differ(&self) -> bool {
        if self.is_rough {
            let ratio = self.found / self.planned;
            return !(1.0 / ROUGH_FACTOR..=ROUGH_FACTOR).contains(&ratio);
        }
        SIZE_TOLERANCE * self.planned < self.excess().abs()
    }
}

fn file_lengths(files: &[ProbedFile]) -> impl Iterator<Item = u64> {
    files.iter().map(|file| file.bytes)
}

fn planned_shapes(files: &[ProbedFile], layout: &Layout) -> impl Iterator<Item = FileShape> {
    files.iter().map(|file| layout.shape(file.number))
}

/// The mean; `None` without sizes.
fn mean(sizes: impl Iterator<Item = u64>) -> Option<f64> {
    let mut count = 0;
    let sum: u128 = sizes.inspect(|_| count += 1).map(u128::from).sum();
    (count > 0).then(|| sum as f64 / f64::from(count))
}

/// The mean size of a sample in the opened files if it differs from the plan by more than random sizes can. It follows from the shapes that the
/// files state, or from their lengths if these are exact. `None` if it is unknown.
fn other_sample_bytes(files: &[ProbedFile], names: FileNames<'_>) -> Option<f64> {
    let FileNames { plan, layout, .. } = names;
    let sizes = MeanSizes::for_samples(files, names).or_else(|| {
        let excess = MeanSizes::for_files(files, names)?.excess();
        let planned = mean(planned_shapes(files, layout).map(|shape| shape.sample_bytes()))?;
        let is_known = 0 < plan.samples_per_file;
        let found = planned + excess / plan.samples_per_file as f64;
        is_known.then_some(MeanSizes { found, planned, is_rough: false })
    })?;
    let standard_error = plan.record_stdev_bytes / (files.len() as f64).sqrt();
    let is_random = sizes.excess().abs() <= RANDOM_FACTOR * standard_error;
    (sizes.differ() && !is_random && sizes.found > 0.0).then_some(sizes.found)
}

/// A note if the samples do not have the planned length. Runs read the real length, but nominal rates use the plan's.
fn size_note(files: &[ProbedFile], names: FileNames<'_>) -> Option<String> {
    let sizes = MeanSizes::for_samples(files, names).filter(MeanSizes::differ)?;
    let file = files.first()?;
    Some(format!(
        "`{}` holds {}, the plan says {} per sample: nominal rates and the dataset's size are taken from the plan",
        file.path,
        format::describe_shape(&file.shape?),
        units::bytes(sizes.planned as u64)
    ))
}

/// Properties of a foreign dataset's samples, found by opening its files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSamples {
    /// Number of samples in each file that is not unfit; their mean if the numbers differ.
    pub per_file: u64,
    /// Total length of all parts of these files, if the format has several.
    pub part_bytes: Option<u64>,
    /// Number of samples in all files that are not unfit.
    pub total: u64,
    /// Number of samples in each file that is not unfit, if the numbers differ.
    pub unequal: Vec<u64>,
    /// Training files that have too few samples or cannot be read.
    pub unfit_files: Vec<UnfitFiles>,
    /// Mean dimensions of a sample over the opened files; empty if unknown.
    pub dims: Vec<u64>,
    /// Whether all opened files have these dimensions.
    pub has_equal_dims: bool,
    /// Element type, if known.
    pub element: Option<Element>,
    /// Files that were opened.
    pub probed_files: u64,
    /// Named members of the files that were opened for their shape.
    pub members: FoundMembers,
}

/// Named members of opened files. A member has the total length over these files, and is read if it is read in one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundMembers {
    /// The members, in the order in which they were found; empty if the format has none.
    pub members: Vec<FileMember>,
    /// Number of further members, which are not read.
    pub unlisted: u64,
    /// Members of a file that are named alike, if there are many.
    pub alike: Option<AlikeMembers>,
    /// Number of the opened files.
    pub files: u64,
    /// Their total length.
    pub file_bytes: u64,
    /// Names of the members that are read, if there are others and each opened file reads the same. With these names, no file has to be
    /// examined again to choose.
    pub choice: Vec<String>,
}

/// Members of a file whose names differ only in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlikeMembers {
    /// Name of the first of them.
    pub name: String,
    /// Number of them.
    pub members: u64,
}

/// Least number of members of a file that are named alike, from which each could be a sample.
const ALIKE_MIN: u64 = 8;
/// Pattern of DLIO's names for the parts of a sample.
const SAMPLE_PARTS: &str = "records_#";

/// Members of a file whose names have the same pattern.
struct NamePattern<'m> {
    /// Name of the first of them.
    name: &'m str,
    members: u64,
    /// Whether one of them is read.
    is_read: bool,
}

/// The largest set of members of a file that are named alike and of which one is read; `None` if it is smaller than [`ALIKE_MIN`].
fn alike_members(members: &[FileMember]) -> Option<AlikeMembers> {
    let mut by_pattern: BTreeMap<String, NamePattern<'_>> = BTreeMap::new();
    for FileMember { name, is_read, .. } in members {
        let mut pattern = name.trim_start_matches('/').replace(|c: char| c.is_ascii_digit(), "#");
        while pattern.contains("##") {
            pattern = pattern.replace("##", "#");
        }
        if pattern != SAMPLE_PARTS {
            let new = NamePattern { name, members: 0, is_read: false };
            let found = by_pattern.entry(pattern).or_insert(new);
            found.members += 1;
            found.is_read |= is_read;
        }
    }
    let read = by_pattern.into_values().filter(|pattern| pattern.is_read);
    let NamePattern { name, members, .. } = read.max_by_key(|pattern| pattern.members)?;
    (members >= ALIKE_MIN).then(|| AlikeMembers { name: name.into(), members })
}

impl FoundMembers {
    fn new(files: &[ProbedFile], format: &Format) -> Self {
        let mut members: Vec<FileMember> = Vec::new();
        // Numbers of listed members, by name.
        let mut positions: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        // Number of files that read each member.
        let mut counts: Vec<usize> = Vec::new();
        for member in files.iter().flat_map(|file| &file.members) {
            let is_listed = members.len() < MEMBERS_MAX || member.is_read || member.is_elsewhere;
            match positions.get(&*member.name).copied() {
                Some(Some(i)) => {
                    let known: &mut FileMember = &mut members[i];
                    known.stored_bytes = known.stored_bytes.saturating_add(member.stored_bytes);
                    known.is_read |= member.is_read;
                    known.is_elsewhere |= member.is_elsewhere;
                    counts[i] += usize::from(member.is_read);
                }
                _ if is_listed => {
                    positions.insert(&member.name, Some(members.len()));
                    members.push(member.clone());
                    counts.push(usize::from(member.is_read));
                }
                _ => {
                    positions.insert(&member.name, None);
                }
            }
        }
        let is_everywhere =
            |(member, count): (&FileMember, &usize)| !member.is_read || *count == files.len();
        // Values that are stored elsewhere are noticed only in files that are examined completely.
        let is_known = members.iter().all(|member| !member.is_elsewhere);
        let is_choice = is_known
            && members.iter().any(|member| !member.is_read)
            && members.iter().zip(&counts).all(is_everywhere);
        let read = members.iter().filter(|member| is_choice && member.is_read);
        // The columns of tables are parts of each row.
        let is_table = format.member().has(Ability::RowGroups);
        let alike = files.iter().filter(|_| !is_table);
        let alike = alike.filter_map(|file| alike_members(&file.members));
        let alike = alike.max_by_key(|alike| alike.members);
        FoundMembers {
            choice: read.map(|member| member.name.clone()).collect(),
            alike,
            unlisted: (positions.len() - members.len()) as u64,
            files: files.len() as u64,
            file_bytes: file_lengths(files).fold(0, u64::saturating_add),
            members,
        }
    }

    /// Adds members with values that are stored elsewhere in some file.
    fn add_elsewhere(&mut self, names: BTreeSet<String>, format: &Format) {
        // Other formats read all members.
        let is_read = !format.member().has(Ability::ChoosesMembers);
        for name in names {
            if let Some(member) = self.members.iter_mut().find(|member| member.name == name) {
                member.is_elsewhere = true;
            } else if self.members.len() < MEMBERS_MAX {
                self.members.push(FileMember {
                    name,
                    stored_bytes: 0,
                    is_read,
                    is_elsewhere: true,
                });
            }
        }
    }

    /// Excludes members that are not read from samples, wherever they are stored, because the user chose.
    fn exclude_unread(&mut self) {
        for member in &mut self.members {
            member.is_elsewhere &= member.is_read;
        }
    }

    /// Marks the members that are read by the names that the user chose.
    fn mark_chosen(&mut self, names: &[String]) {
        for member in &mut self.members {
            let path = member.name.trim_start_matches('/');
            member.is_read = names.iter().any(|name| name.trim_start_matches('/') == path);
        }
        self.exclude_unread();
        // Samples consist of what the user chose.
        self.alike = None;
        self.choice = names.to_vec();
    }
}

/// Training files that are left out for one reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnfitFiles {
    /// File numbers, ascending.
    pub numbers: Vec<u64>,
    /// Total length.
    pub bytes: u64,
    /// The reason, phrased to follow the number of files.
    pub reason: String,
}

impl UnfitFiles {
    fn new(
        storage: &dyn Storage,
        layout: &Layout,
        numbers: Vec<u64>,
        reason: String,
    ) -> Result<Self, DatasetError> {
        let mut bytes = 0;
        for &file in &numbers {
            let file_bytes = storage.stat(&file_path(layout, file))?.unwrap_or_default();
            bytes = u64::saturating_add(bytes, file_bytes);
        }
        Ok(UnfitFiles { numbers, bytes, reason })
    }
}

/// Determines the shape and number of a foreign dataset's samples. Only the plan's format, its number of files and the
/// least number of samples in a file are used. Some files are opened for the shape of their samples. In formats with several
/// samples per file all files are opened to count them; files that cannot be read are then left out if they are the
/// minority, and files with too few samples.
///
/// # Errors
/// A file cannot be read.
pub fn find_samples(
    storage: &dyn Storage,
    plan: &DatasetPlan,
    threads: usize,
) -> Result<FoundSamples, DatasetError> {
    let layout = Layout::new(plan);
    let names = FileNames::new(plan, &layout)?;
    let has_many_samples = names.format.member().has(Ability::KeepsOpen);
    let has_parts = names.format.parts.iter().filter(|part| !part.optional).count() > 1;
    let is_text = names.format.member().has(Ability::Undescribed);
    let mut opener = Opener::new(storage, names, &probe_options(plan, true));
    let mut files = Vec::new();
    let mut broken = BTreeMap::new();
    for file in file_numbers_to_probe(plan.files_train) {
        match opener.probe(file, 0, None) {
            Err(error) if is_file_error(&error) => {
                broken.insert(file, error);
            }
            probed => files.push(probed?),
        }
    }
    let shapes: Vec<FileShape> = files.iter().filter_map(|file| file.shape).collect();
    let mut found = mean_shape(&shapes);
    found.members = FoundMembers::new(&files, names.format);
    if !plan.members.is_empty() && names.format.member().has(Ability::ChoosesMembers) {
        found.members = list_members(storage, names, found.members)?;
    }
    let chosen_plan = DatasetPlan { members: found.members.choice.clone(), ..plan.clone() };
    found.per_file = 1;
    found.total = plan.files_train - broken.len() as u64;
    found.probed_files =
        if has_many_samples { plan.files_train } else { plan.files_train.min(PROBED_MAX) };
    if has_many_samples {
        let counted = Mutex::new(CountedFiles {
            samples: vec![0; plan.files_train as usize],
            ..CountedFiles::default()
        });
        let cancel = AtomicBool::new(false);
        let watch = Watch::new(&|_, _| {}, &cancel);
        let chosen_names = FileNames { plan: &chosen_plan, ..names };
        let examines_members = plan.members.is_empty();
        let options = CursorOptions { examines_members, ..probe_options(&chosen_plan, false) };
        let opener = || Opener::new(storage, chosen_names, &options);
        walk::for_each(plan.files_train, threads, &watch, opener, |opener, file| {
            // Any text has lines, so the first row is parsed to check that the text is a table.
            let first_row_error = if is_text { opener.probe(file, 0, None).err() } else { None };
            let samples = first_row_error.map_or_else(|| opener.count_samples(file), Err);
            let samples = samples.or_else(|error| {
                if is_text || !examines_members || !is_file_error(&error) {
                    return Err(error);
                }
                // A run reads only the chosen members, so others may be unreadable.
                let options = CursorOptions { examines_members: false, ..options.clone() };
                Opener::new(storage, chosen_names, &options).count_samples(file)
            });
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            match samples {
                Err(error) if is_file_error(&error) => {
                    counted.broken.insert(file, error);
                }
                samples => {
                    counted.samples[file as usize] = samples?;
                    counted.elsewhere.extend(opener.cursor.elsewhere().map(str::to_string));
                }
            }
            Ok::<(), DatasetError>(())
        })?;
        let counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
        let counts = counted.samples;
        broken = counted.broken;
        if plan.members.is_empty() && !counted.elsewhere.is_empty() {
            // The files without these values may read something else.
            found.members.choice.clear();
        }
        found.members.add_elsewhere(counted.elsewhere, names.format);
        let has_many_files = UNEQUAL_FILES_MAX < plan.files_train;
        let common_samples = if has_many_files { best_samples_per_file(&counts) } else { 1 };
        let samples_min = plan.samples_per_file.max(common_samples);
        let is_short = |samples: &u64| *samples < samples_min;
        let short: Vec<u64> = (0..)
            .zip(&counts)
            .filter(|(file, samples)| is_short(samples) && !broken.contains_key(file))
            .map(|(file, _)| file)
            .collect();
        let used_samples = |samples: u64| if has_many_files { samples_min } else { samples };
        let used = counts.iter().filter(|samples| !is_short(samples));
        found.set_counts(used.map(|samples| used_samples(*samples)).collect());
        check_minority(&mut broken, plan.files_train)?;
        let short_reason = match samples_min {
            1 => "without samples".to_string(),
            _ => format!("with fewer than {samples_min} samples"),
        };
        found.unfit_files.push(UnfitFiles::new(storage, &layout, short, short_reason)?);
    } else {
        let probed_files = (files.len() + broken.len()) as u64;
        check_minority(&mut broken, probed_files)?;
    }
    if let Some((_, error)) = broken.first_key_value() {
        let reason = match error {
            DatasetError::NoFile { path } => format!("without the other part (`{path}`)"),
            error => format!("unreadable ({error})"),
        };
        let numbers = broken.keys().copied().collect();
        found.unfit_files.insert(0, UnfitFiles::new(storage, &layout, numbers, reason)?);
    }
    if has_many_samples && has_parts {
        let unfit: HashSet<&u64> =
            found.unfit_files.iter().flat_map(|files| &files.numbers).collect();
        let mut bytes = 0;
        for file in (0..plan.files_train).filter(|file| !unfit.contains(file)) {
            let path = file_path(&layout, file);
            let file_bytes = part_bytes(storage, names.format.parts, &path)?;
            bytes = u64::saturating_add(bytes, file_bytes);
        }
        found.part_bytes = Some(bytes);
    }
    Ok(found)
}

/// Whether an error concerns a single file, so that the other files can be used.
fn is_file_error(error: &DatasetError) -> bool {
    matches!(error, DatasetError::Format { .. } | DatasetError::NoFile { .. })
}

/// Total length of the parts of a file. Parts that are missing have no length.
fn part_bytes(
    storage: &dyn Storage,
    parts: &[format::Part],
    data: &str,
) -> Result<u64, DatasetError> {
    let mut path = String::new();
    let mut bytes = 0;
    for part in parts {
        part.write_path(data, &mut path);
        bytes = u64::saturating_add(bytes, storage.stat(&path)?.unwrap_or_default());
    }
    Ok(bytes)
}

/// Lists all members of the opened files, of which the user chose some. `chosen` lists only these, and is returned if the other
/// members cannot be listed.
fn list_members(
    storage: &dyn Storage,
    names: FileNames<'_>,
    chosen: FoundMembers,
) -> Result<FoundMembers, DatasetError> {
    let plan = DatasetPlan { members: Vec::new(), ..names.plan.clone() };
    let names_of_all = FileNames { plan: &plan, ..names };
    let mut opener = Opener::new(storage, names_of_all, &probe_options(&plan, true));
    let probed = file_numbers_to_probe(plan.files_train).map(|file| opener.probe(file, 0, None));
    let files: Vec<ProbedFile> = probed.flatten().collect();
    let mut found = FoundMembers::new(&files, names.format);
    if found.members.is_empty() {
        found = chosen;
    }
    let is_found = |name: &&String| {
        let path = name.trim_start_matches('/');
        found.members.iter().any(|member| path.starts_with(member.name.trim_start_matches('/')))
    };
    let missing = names.plan.members.iter().find(|name| !is_found(name));
    if let (Some(missing), Some(file)) =
        (missing.filter(|_| !found.members.is_empty()), files.first())
    {
        let held: Vec<&str> = found.members.iter().map(|member| member.name.as_str()).collect();
        let message =
            format!("no `{missing}`: the files hold {}", name_list(&held, NAMES_SHOWN_MAX));
        return Err(DatasetError::Format {
            path: file.path.clone(),
            source: FormatError::new(0, message),
        });
    }
    found.mark_chosen(&names.plan.members);
    Ok(found)
}

fn file_path(layout: &Layout, file: u64) -> String {
    let mut path = String::new();
    layout.write_path(file, &mut path);
    path
}

/// The number of samples per file that uses the most samples in total, if files with fewer samples are left out.
fn best_samples_per_file(counts: &[u64]) -> u64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    let best = sorted.iter().zip(1..).max_by_key(|(samples, files)| **samples * files);
    best.map_or(0, |(samples, _)| *samples)
}

impl FoundSamples {
    /// Sets the numbers of samples from the number in each file that is not unfit.
    fn set_counts(&mut self, counts: Vec<u64>) {
        self.total = counts.iter().fold(0, |sum, samples| sum.saturating_add(*samples));
        let files = counts.len().max(1) as u64;
        self.per_file = (self.total + files / 2) / files;
        let are_equal = counts.iter().all(|samples| Some(samples) == counts.first());
        self.unequal = if are_equal { Vec::new() } else { counts };
    }
}

/// The shape of a file that is one sample. The cursor may have taken the last axis of its array for an axis of samples.
fn as_single_sample(shape: FileShape) -> FileShape {
    if shape.samples == 1 {
        return shape;
    }
    format::as_one_sample(&shape).unwrap_or(FileShape { samples: 1, ..shape })
}

fn mean_shape(shapes: &[FileShape]) -> FoundSamples {
    // Samples without content, such as nulls, have no dimensions.
    let shapes: Vec<FileShape> =
        shapes.iter().filter(|shape| shape.sample_bytes() > 0).copied().collect();
    let Some(first) = shapes.first() else { return FoundSamples::default() };
    let axes = first.dims.as_slice().len();
    let has_equal_ranks = shapes.iter().all(|shape| shape.dims.as_slice().len() == axes);
    let means = (0..axes).map(|axis| {
        let sum: u64 = shapes.iter().map(|shape| shape.dims.as_slice()[axis]).sum();
        (sum as f64 / shapes.len() as f64).round() as u64
    });
    FoundSamples {
        dims: if has_equal_ranks { means.collect() } else { Vec::new() },
        has_equal_dims: shapes.iter().all(|shape| shape.dims == first.dims),
        element: Some(first.element),
        ..FoundSamples::default()
    }
}

/// Files of which the samples were counted.
#[derive(Default)]
struct CountedFiles {
    /// Number of samples in each file; 0 in broken ones.
    samples: Vec<u64>,
    broken: BTreeMap<u64, DatasetError>,
    /// Names of members with values that are stored elsewhere.
    elsewhere: BTreeSet<String>,
}

fn probe_options(plan: &DatasetPlan, decodes_members: bool) -> CursorOptions {
    CursorOptions {
        piece_bytes: PIECE_BYTES,
        library: None,
        check_crc: true,
        wants_payload: false,
        is_payload_only: false,
        decodes_members,
        members: plan.members.as_slice().into(),
        examines_members: false,
    }
}

/// Opens one file after another and reads each until its shape is known.
struct Opener<'o> {
    storage: &'o dyn Storage,
    names: FileNames<'o>,
    cursor: Box<dyn Cursor>,
    piece: Piece,
    handles: Vec<Handle>,
}

impl<'o> Opener<'o> {
    fn new(storage: &'o dyn Storage, names: FileNames<'o>, options: &CursorOptions) -> Self {
        let cursor = names.format.reader(options);
        let piece = Piece::new(PIECE_BYTES);
        Opener { storage, names, cursor, piece, handles: Vec::new() }
    }

    /// Reads a file until the shape of a sample is known.
    fn probe(
        &mut self,
        file: u64,
        sample: u64,
        expected: Option<&FileShape>,
    ) -> Result<ProbedFile, DatasetError> {
        let FileNames { plan, layout, format } = self.names;
        let path = file_path(layout, file);
        let probed = self.open(&path).and_then(|bytes| {
            self.cursor.begin(file, sample, expected);
            Ok((bytes, self.read()?))
        });
        self.close();
        let (bytes, read) = probed?;
        match read.and_then(|()| self.check_length(bytes)) {
            Ok(()) => {
                let mut shape = self.cursor.decoded_shape().or_else(|| self.cursor.file_shape());
                if plan.samples_per_file <= 1 && !format.member().has(Ability::KeepsOpen) {
                    shape = shape.map(as_single_sample);
                }
                let path = self.storage.real_path(&path);
                let members = self.cursor.members();
                Ok(ProbedFile { number: file, path, bytes, shape, members })
            }
            Err(source) => {
                Err(DatasetError::Format { path: self.storage.real_path(&path), source })
            }
        }
    }

    /// Returns an error if the file is shorter than its array. Of formats without compression, only the header was read.
    fn check_length(&self, bytes: u64) -> Result<(), FormatError> {
        let format = self.names.format;
        let can_be_shorter = format.member().has(Ability::EncodesSamples)
            || !format.entry.compressions.is_empty()
            || format.member().has(Ability::KeepsOpen);
        let array_bytes = self.cursor.file_shape().map_or(0, |shape| shape.payload_bytes());
        if can_be_shorter || array_bytes <= bytes {
            return Ok(());
        }
        let message = format!("the file ends after {bytes} bytes, but its array has {array_bytes}");
        Err(FormatError::new(bytes, message))
    }

    /// Number of samples in a file. Requests a sample that cannot exist, because the resulting error contains the number.
    fn count_samples(&mut self, file: u64) -> Result<u64, DatasetError> {
        match self.probe(file, u64::MAX - 1, None) {
            Ok(_) => Ok(1),
            Err(DatasetError::Format { source, .. }) if source.samples.is_some() => {
                Ok(source.samples.unwrap_or_default())
            }
            Err(error) => Err(error),
        }
    }

    /// Opens all parts of a file and returns their total length.
    fn open(&mut self, path: &str) -> Result<u64, DatasetError> {
        let mut bytes = 0;
        for part in self.names.format.parts {
            let mut part_path = String::new();
            part.write_path(path, &mut part_path);
            match self.storage.stat(&part_path)? {
                Some(part_bytes) => bytes += part_bytes,
                None if part.optional => continue,
                None => return Err(DatasetError::NoFile { path: part_path }),
            }
            if !part.optional {
                self.handles.push(self.storage.open(&part_path)?);
            }
        }
        Ok(bytes)
    }

    fn read(&mut self) -> Result<Result<(), FormatError>, StorageError> {
        while self.cursor.file_shape().is_none() && self.cursor.undecoded_type().is_none() {
            let need = match self.cursor.need() {
                Ok(Need::Done) => break,
                Ok(need) => need,
                Err(source) => return Ok(Err(source)),
            };
            let len = self.fetch(need)?;
            if let Err(source) = self.cursor.feed(&self.piece[..len], &mut Discard) {
                return Ok(Err(source));
            }
        }
        Ok(Ok(()))
    }

    /// Reads the needed bytes into the piece and returns their number.
    fn fetch(&mut self, need: Need) -> Result<usize, StorageError> {
        match need {
            Need::Done | Need::Buffered => Ok(0),
            Need::Length { part } => {
                let length = self.storage.len(&self.handles[part])?.to_le_bytes();
                self.piece[..length.len()].copy_from_slice(&length);
                Ok(length.len())
            }
            Need::Bytes { part, offset, len, .. } | Need::Again { part, offset, len } => {
                self.storage.read_at(&self.handles[part], offset, &mut self.piece[..len])
            }
        }
    }

    fn close(&mut self) {
        self.handles.drain(..).for_each(|file| self.storage.close(file));
    }
}
