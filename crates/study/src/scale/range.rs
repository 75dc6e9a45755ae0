//! Plans a search: the numbers that it may try, the dataset for them, and the arguments of its runs. Each run is long enough to measure the response.
//!
//! The dataset grows step by step: a storage that feeds only a few accelerators does not have to store the data for many.
//!
//! Long because each limit has its own refusal or note.

mod rows;

use super::options::ScaleOptions;
use crate::chooser::NumberRange as _;
use crate::search::{ACCELERATORS, Goal};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, Metric, Unit, sustained_needs_steps,
};
use feedrate_session::failure::on_one_line;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, mlperf_status, resolve, resolve_named};
use feedrate_session::room::{self, Reserved, Shortage};
use feedrate_session::{catalog, dataset};
use feedrate_spec::bundled::MlperfStatus;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::Override;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Minimum number of steps of a run. The rate of reading is measured in complete batches, so fewer steps would be too coarse.
const STEPS_MIN: u64 = 50;
/// Number of steps, as in MLPerf Storage's rules, that is enough for utilisations with the start of an epoch at targets near 100 %.
const STEPS_NEAR_FULL_TARGET: u64 = 500;
/// Largest number of any search.
const NUMBER_MAX: u64 = 1 << 20;
/// Maximum number of files of a dataset generated for a search.
const FILES_MAX: u64 = 1 << 40;
/// Factor by which a larger dataset extends the range, if there is space.
const GROWTH: u64 = 4;
/// A larger dataset leaves 1 / `FREE_PARTS` of the free space unused.
const FREE_PARTS: u64 = 10;

/// Doubt on plans in which workers have no file.
const IDLE_WORKERS: &str = "workers_outnumber_shards";

const FILES: &str = "dataset.num_files_train";
const EPOCHS: &str = "train.epochs";
const STEPS: &str = "train.total_training_steps";
const AU_TARGET: &str = "metric.au";
const CHECKPOINTS: &str = "workflow.checkpoint";

/// What makes an epoch long enough to measure the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpochLength {
    /// The steps that `au_sustained` needs.
    Sustained,
    /// Enough steps that filling the loaders at the start of the epoch barely lowers the utilisation.
    DilutesStart,
    /// Any epoch. The user chose its length, no longer one fits, or the response is no utilisation of training.
    Any,
}

/// A dataset of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedDataset {
    /// Files to train on.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of files in the workload's own dataset.
    pub workload_files: u64,
}

/// The numbers that a search can try with one dataset.
#[derive(Clone)]
pub struct SearchRange<'a> {
    options: &'a ScaleOptions,
    /// The user's request.
    user: Request,
    /// The user's request with further overrides that apply to every run.
    data: Request,
    /// Number of files in the dataset; `None` for the workload's own.
    files: Option<u64>,
    /// Number of steps of a run; `None` for the workload's own.
    steps: Option<u64>,
    /// Required length of an epoch.
    epoch_length: EpochLength,
    /// Whether a dataset must have a file for each worker. False if the workload's own has not, or if there is no space for so many.
    needs_files_for_workers: bool,
    /// Whether the response is `au_all_steps` or `au_sustained`. Other utilisations exclude a part of the run.
    pub is_overall_or_sustained_au: bool,
    /// Target of the response.
    pub bound: f64,
    /// The resolved workload at the smallest number.
    pub resolved: Resolved,
    /// The largest number for which the dataset is large enough.
    pub max: u64,
    /// The reason why no larger number is tried.
    pub max_reason: String,
    /// Bytes of the datasets that a forecast assumes to be generated.
    pub used_bytes: u64,
    /// Bytes of all datasets generated for the search.
    generated_bytes: u64,
    /// Folders of datasets that earlier commands generated for the search.
    generated_folders: BTreeSet<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl<'a> SearchRange<'a> {
    /// Plans the smallest number, and all numbers for which the same dataset is large enough.
    ///
    /// # Errors
    /// The options contradict each other, the workload is invalid, or its dataset does not fit on the storage.
    pub fn find(options: &'a ScaleOptions, listener: &dyn Listener) -> anyhow::Result<Self> {
        refuse_contradictions(options)?;
        let user = Request { processes: Some(1), ..options.request.clone() };
        let mut data = user.clone();
        let response = options.response;
        let sustained = response.id == AU_SUSTAINED.id;
        if response.is_utilisation() && !is_given(&data, EPOCHS) && !is_given(&data, STEPS) {
            // A second epoch would come partly from the page cache, and the share would depend on the number.
            data.overrides.push(format!("{EPOCHS}=1"));
        }
        let from = options.from;
        let first = request_at(data.clone(), &options.key, from)?;
        let resolved = resolve(&first).or_else(|error| {
            // The existing dataset may be too small for one step.
            let unread = Request { generate_only: true, ..first };
            resolve(&unread).map_err(|_| error)
        })?;
        resolved.report_warnings(listener);
        if resolved.plan.is_checkpoint_only() {
            let name = &user.workload;
            // Stores have no page cache.
            let is_in_store =
                resolved.plan.checkpoint.as_ref().is_some_and(|plan| plan.is_in_store());
            let options = if is_in_store { "" } else { " checkpoint.fsync=true --cold" };
            return refuse(
                format!(
                    "`{name}` only writes and reads checkpoints, so no accelerator waits for data"
                ),
                format!("measure its checkpoints: `feedrate run {name}{options}`"),
            );
        }
        if resolved.workload.dataset_foreign
            && resolved.plan.checkpoint.is_some()
            && !is_given(&user, CHECKPOINTS)
        {
            // The folder belongs to the user, and the search measures only reads.
            data.overrides.push(format!("{CHECKPOINTS}=false"));
        }
        let is_overall_or_sustained_au = sustained || response.id == AU_ALL_STEPS.id;
        let is_au = response.is_utilisation();
        let target_percent = resolved.plan.metric.au_target_percent;
        let bound = match options.bound {
            Some(bound) => checked_bound(bound, response)?,
            None if is_au && !is_given(&data, AU_TARGET) => {
                resolved.plan.metric.expect.au_percent.unwrap_or(target_percent)
            }
            None if is_au => target_percent,
            None => {
                let message = format!("`{}` has no default target", response.id.name());
                return refuse(message, "set it with `--at-least VALUE`");
            }
        };
        if is_au && target_percent != bound {
            if is_given(&data, AU_TARGET) {
                let message = format!("`--au {bound}` contradicts `{AU_TARGET}`");
                return refuse(message, format!("leave `{AU_TARGET}` out of the overrides"));
            }
            // Each run uses the target of the search.
            data.overrides.push(format!("{AU_TARGET}={}", units::round_noise(bound / 100.0)));
        }
        let deviation = mlperf_status(&user).filter(|status| *status != MlperfStatus::Official);
        let notes = Vec::from_iter(deviation.map(MlperfStatus::sentence));
        let mut range = SearchRange {
            options,
            user,
            data,
            files: None,
            steps: None,
            epoch_length: if sustained { EpochLength::Sustained } else { EpochLength::Any },
            needs_files_for_workers: false,
            is_overall_or_sustained_au,
            bound,
            resolved,
            max: NUMBER_MAX,
            max_reason: String::new(),
            used_bytes: 0,
            generated_bytes: 0,
            generated_folders: BTreeSet::new(),
            notes,
        };
        range.needs_files_for_workers =
            sustained && range.may_resize() && !has_idle_workers(&range.resolved.plan);
        let includes_start = [AU_ALL_STEPS.id, AU_WINDOWED.id].contains(&response.id);
        if includes_start && range.may_resize() && !is_given(&range.user, EPOCHS) {
            range.epoch_length = EpochLength::DilutesStart;
        }
        range.choose_first_dataset()?;
        Ok(range)
    }

    /// Parent folder of the datasets of the search; `None` if they are not in a folder.
    pub fn dataset_root(&self) -> anyhow::Result<Option<PathBuf>> {
        let plan = self.plan(self.max)?;
        if !dataset::is_in_folder(&plan) {
            return Ok(None);
        }
        // The first run refuses an invalid folder.
        let folder = dataset::dataset_folder(&plan, &self.resolved.data_root).ok();
        let absolute = folder.map(std::path::absolute).transpose()?;
        Ok(absolute.and_then(|folder| folder.parent().map(Path::to_path_buf)))
    }

    /// The user's request.
    pub fn user_request(&self) -> &Request {
        &self.user
    }

    /// The goal of a search in this range.
    pub fn goal(&self, threshold: f64) -> Goal {
        Goal { threshold, from: self.options.from, max: self.max, find: self.options.find }
    }

    /// Number of files in the dataset; `None` for the workload's own.
    pub fn files(&self) -> Option<u64> {
        self.files
    }

    /// Overrides that set the size of the dataset and the length of a run.
    fn size_overrides(&self) -> impl Iterator<Item = String> {
        let sizes = [(FILES, self.files), (STEPS, self.steps)].into_iter();
        sizes.filter_map(|(key, count)| Some(format!("{key}={}", count?)))
    }

    /// Overrides of every run besides those of the user.
    pub fn added_overrides(&self) -> Vec<String> {
        let constant = self.data.overrides[self.user.overrides.len()..].iter();
        constant.cloned().chain(self.size_overrides()).collect()
    }

    /// The request of a run at `number`.
    pub fn request_at(&self, number: u64) -> Result<Request, Refusal> {
        let mut data = self.data.clone();
        data.overrides.extend(self.size_overrides());
        request_at(data, &self.options.key, number)
    }

    /// The plan of a run at `number`.
    pub fn plan(&self, number: u64) -> anyhow::Result<Plan> {
        Ok(self.resolved_at(number)?.plan)
    }

    fn resolved_at(&self, number: u64) -> anyhow::Result<Resolved> {
        resolve_named(&self.request_at(number)?)
    }

    /// Upper limit of the utilisation that the client's own work permits at `number`, in percent. `None` if the limit is not below the target.
    pub fn insufficient_client_limit(&self, number: u64) -> anyhow::Result<Option<f64>> {
        if !self.is_overall_or_sustained_au {
            return Ok(None);
        }
        Ok(self
            .resolved_at(number)?
            .client_utilisation_max_percent()
            .filter(|percent| *percent < self.bound))
    }

    /// The dataset of the runs; `None` if it is foreign or not in a folder.
    pub fn dataset(&self) -> anyhow::Result<Option<SearchedDataset>> {
        let plan = self.plan(self.max)?;
        if self.resolved.workload.dataset_foreign || !dataset::is_in_folder(&plan) {
            return Ok(None);
        }
        let bytes = catalog::estimate(&plan).file_bytes;
        let workload_files = self.resolved.workload.dataset_num_files_train;
        Ok(Some(SearchedDataset { files: plan.dataset.files_train, bytes, workload_files }))
    }

    /// Extends the range with a larger dataset. Returns false if the options exclude a larger dataset, or none is possible or fits.
    pub fn extend(&mut self) -> anyhow::Result<bool> {
        let reached = self.max;
        let limit = self.options.max.unwrap_or(NUMBER_MAX);
        if limit <= reached || self.epoch_length == EpochLength::Any || !self.may_resize() {
            return Ok(false);
        }
        let next = reached.saturating_add(1);
        let max = reached.saturating_mul(GROWTH).min(limit);
        let fits = |number: &u64| matches!(self.resized_for(*number), Ok((_, None)));
        let number = Some(max).filter(fits).or_else(|| largest(next, max, |number| fits(&number)));
        match self.resized_for(number.unwrap_or(next)) {
            Ok((mut larger, None)) => {
                larger.find_max()?;
                larger.generated_bytes += larger.bytes_generated_for_search()?;
                *self = larger;
                return Ok(true);
            }
            Ok((_, Some(short))) => {
                let spare = if short.is_limited_by_storage() {
                    " after subtracting the smaller datasets and a reserve of a tenth"
                } else {
                    ""
                };
                self.max_reason = format!("for {}, {short}{spare}", self.describe(next));
            }
            Err(error) => self.max_reason = on_one_line(&error),
        }
        self.extend_without_files_for_workers(reached)
    }

    /// Extends the range beyond `reached` with workers that may have no file. Returns false if that is impossible or already permitted.
    fn extend_without_files_for_workers(&mut self, reached: u64) -> anyhow::Result<bool> {
        if !self.needs_files_for_workers {
            return Ok(false);
        }
        let mut relaxed = SearchRange { needs_files_for_workers: false, ..self.clone() };
        relaxed.find_max()?;
        let is_extended = reached < relaxed.max || relaxed.extend()?;
        if is_extended {
            *self = relaxed;
        } else {
            self.max_reason = relaxed.max_reason;
        }
        Ok(is_extended)
    }

    /// Resizes the dataset for `number`. Returns the new range, and the shortage of space if there is one.
    fn resized_for(&self, number: u64) -> anyhow::Result<(Self, Option<Shortage>)> {
        let mut sized = self.clone();
        sized.resize(number)?;
        let short = sized.shortage(number, Some(FREE_PARTS))?;
        Ok((sized, short))
    }

    /// The reason why a run at `number` cannot measure the response; `None` if the run can.
    fn unmeasurable_reason(&self, number: u64) -> Option<anyhow::Error> {
        let plan = match self.plan(number) {
            Ok(plan) => plan,
            Err(error) => return Some(error),
        };
        let steps = plan.train.steps_in_epoch(1);
        let needed_steps = self.needed_steps(&plan);
        if self.needs_files_for_workers && has_idle_workers(&plan) {
            return Some(
                Refusal::new(
                    format!("with {} some workers have no file", self.describe(number)),
                    "use a larger dataset",
                )
                .into(),
            );
        }
        if needed_steps <= steps {
            return None;
        }
        let has = format!(
            "with {} an epoch has {}",
            self.describe(number),
            units::counted(steps, "step")
        );
        let needed = units::count(needed_steps);
        if self.epoch_length == EpochLength::DilutesStart {
            let message = format!("{has}, but needs {needed}, so that its start does not decide");
            return Some(Refusal::new(message, "use a larger dataset").into());
        }
        let message = format!("{has}, but `au_sustained` needs {needed}");
        let hint = match () {
            () if is_given(&self.user, STEPS) => format!("leave out `{STEPS}`"),
            () if self.resolved.workload.dataset_foreign => {
                "use more files, or `--response au_all_steps`".into()
            }
            () => "use a larger dataset, or `--response au_all_steps`".into(),
        };
        Some(Refusal::new(message, hint).into())
    }

    /// Number of steps that an epoch of `plan` needs to measure the response.
    fn needed_steps(&self, plan: &Plan) -> u64 {
        match self.epoch_length {
            EpochLength::Sustained => sustained_needs_steps(plan),
            EpochLength::DilutesStart => diluting_steps(plan.stock_batches(), self.bound),
            EpochLength::Any => 0,
        }
    }

    /// Whether the search may set the size of the dataset. False if the user sets it or the dataset is foreign.
    fn may_resize(&self) -> bool {
        let given = |key| is_given(&self.user, key);
        let is_set = self.data.scale < 1.0 || given(FILES) || given(STEPS);
        !is_set && !self.resolved.workload.dataset_foreign
    }

    /// Chooses the first dataset: the workload's own if it fits and is large enough for the smallest number, else the smallest sufficient dataset.
    fn choose_first_dataset(&mut self) -> anyhow::Result<()> {
        // If the number of files affects the response, the first dataset must be large enough for all numbers.
        let from = self.options.from;
        let is_any = self.epoch_length == EpochLength::Any;
        let first = if is_any { self.options.max.unwrap_or(from) } else { from };
        let is_unmeasurable = self.unmeasurable_reason(first).is_some();
        if self.may_resize()
            && (is_unmeasurable || !is_any && self.shortage(first, None)?.is_some())
        {
            if self.epoch_length == EpochLength::DilutesStart {
                let mut sized = self.clone();
                if sized.resize(first).is_err() || sized.shortage(first, None)?.is_some() {
                    self.epoch_length = EpochLength::Any;
                    self.notes.push("no longer epoch fits: its start lowers AU".into());
                    return self.choose_first_dataset();
                }
            }
            self.resize(first)?;
            if self.needs_files_for_workers && self.shortage(first, None)?.is_some() {
                self.needs_files_for_workers = false;
                self.notes.pop();
                self.resize(first)?;
            }
        } else if self.data.scale < 1.0 && self.unmeasurable_reason(self.options.from).is_some() {
            return self.refuse_scale();
        }
        self.find_max()?;
        match self.shortage(self.max, None)? {
            Some(short) => Err(self.no_space_refusal(&short).into()),
            None => {
                self.generated_bytes = self.to_generate_bytes()?;
                Ok(())
            }
        }
    }

    /// Bytes that the next run generates.
    pub fn to_generate_bytes(&self) -> anyhow::Result<u64> {
        Ok(room::missing_bytes(&self.plan(self.max)?, &self.resolved.data_root))
    }

    /// Bytes of the dataset that the search has to generate, or generated before a restart.
    fn bytes_generated_for_search(&self) -> anyhow::Result<u64> {
        let plan = self.plan(self.max)?;
        let folder = dataset::dataset_folder(&plan, &self.resolved.data_root);
        let absolute = folder.ok().and_then(|folder| std::path::absolute(folder).ok());
        if absolute.is_some_and(|folder| self.generated_folders.contains(&folder)) {
            return Ok(catalog::estimate(&plan).file_bytes);
        }
        self.to_generate_bytes()
    }

    /// Finds the largest number for which the dataset is large enough, and the necessary length of a run.
    fn find_max(&mut self) -> anyhow::Result<()> {
        let from = self.options.from;
        let requested = self.options.max;
        let limit = requested.unwrap_or(NUMBER_MAX).max(from);
        let found = largest(from, limit, |number| self.unmeasurable_reason(number).is_none());
        self.max = found.ok_or_else(|| {
            self.unmeasurable_reason(from).unwrap_or_else(|| anyhow::anyhow!("cannot plan"))
        })?;
        self.max_reason = match self.unmeasurable_reason(self.max.saturating_add(1)) {
            _ if requested == Some(self.max) => "`--max` is reached".into(),
            Some(error) => on_one_line(&error),
            None => "it is the limit of all searches".into(),
        };
        let first = self.plan(from)?;
        let last = self.plan(self.max)?;
        if self.epoch_length != EpochLength::Any && !is_given(&self.user, STEPS) {
            // A run ends early if an epoch is longer than the response needs.
            let needed_steps = self.needed_steps(&first).max(self.needed_steps(&last));
            let steps = needed_steps.saturating_mul(2).max(STEPS_MIN);
            if steps < first.train.steps() {
                self.steps = Some(steps);
            }
        }
        if first.dataset != last.dataset {
            self.notes.push(format!("the dataset depends on {}", self.options.key));
        }
        Ok(())
    }

    /// Sets the smallest number of files that a run at `number` needs.
    fn resize(&mut self, number: u64) -> anyhow::Result<()> {
        self.files = None;
        self.steps = None;
        let unmeasurable_reason = self.unmeasurable_reason(number);
        let too_few = largest(1, FILES_MAX, |files| {
            self.files = Some(files);
            self.unmeasurable_reason(number).is_some()
        });
        let files = too_few.map_or(1, |files| files + 1);
        if FILES_MAX < files {
            return Err(unmeasurable_reason.unwrap_or_else(|| anyhow::anyhow!("cannot plan")));
        }
        self.files = Some(files);
        let note = self.note_on_dataset(number)?;
        self.notes.push(note);
        Ok(())
    }

    /// Describes the size of the dataset, compared with the workload's own.
    fn note_on_dataset(&self, number: u64) -> anyhow::Result<String> {
        let workload_files = self.resolved.workload.dataset_num_files_train;
        let bytes = catalog::estimate(&self.plan(number)?).file_bytes;
        Ok(format!(
            "dataset: {} instead of {}, {}, for up to {}",
            units::counted(self.files.unwrap_or(workload_files), "file"),
            units::count(workload_files),
            units::bytes(bytes),
            self.describe(number),
        ))
    }

    /// The shortage of space for the dataset for `number`; `None` if it fits. A foreign dataset already exists.
    fn shortage(&self, number: u64, part: Option<u64>) -> anyhow::Result<Option<Shortage>> {
        if self.resolved.workload.dataset_foreign {
            return Ok(None);
        }
        let max_data_bytes = self.options.max_data_bytes;
        let limit_bytes = max_data_bytes.map(|max| max.saturating_sub(self.generated_bytes));
        let reserved = Reserved { taken_bytes: self.used_bytes, part, limit_bytes };
        Ok(room::shortage(&self.plan(number)?, &self.resolved.data_root, &reserved))
    }

    /// The refusal if no sufficient dataset fits. The hint proposes a smaller dataset for the utilisation over all steps, if one fits.
    fn no_space_refusal(&self, short: &Shortage) -> Refusal {
        let mut data = self.user.clone();
        data.accelerators = self.resolved.plan.accelerators.into();
        let scale = room::fitting_scale(&data, short.free_bytes);
        let remedy =
            if short.is_limited_by_storage() { "free space there" } else { "raise `--max-data`" };
        let hint = match scale {
            Some(scale) if !is_given(&data, FILES) => format!(
                "{remedy}, or include the start of each run: `--response au_all_steps --scale {scale}` fits"
            ),
            _ if short.is_limited_by_storage() => {
                "free space there, or point `--data` elsewhere".into()
            }
            _ => remedy.into(),
        };
        Refusal::new(format!("for {}, {short}", self.describe(self.options.from)), hint)
    }

    /// Refuses a `--scale` that is too small even for the smallest number. The hint is the smallest sufficient `--scale`.
    fn refuse_scale(&self) -> anyhow::Result<()> {
        let number = self.options.from;
        let given = self.data.scale;
        let too_small = |thousandths: u64| {
            let mut larger = self.clone();
            larger.data.scale = thousandths as f64 / 1000.0;
            larger.unmeasurable_reason(number).is_some()
        };
        let sufficient = largest(1, 999, too_small).map_or(1, |thousandths| thousandths + 1);
        let hint = if sufficient < 1000 {
            let enough = sufficient as f64 / 1000.0;
            let other = if self.epoch_length == EpochLength::Sustained {
                "; or include the start of each run: `--response au_all_steps`"
            } else {
                ""
            };
            format!("`--scale {enough}` is large enough{other}")
        } else {
            "leave out `--scale`: the dataset is made as large as the search needs".into()
        };
        let words = self.describe(number);
        refuse(format!("`--scale {given}` makes a dataset too small for {words}"), hint)
    }
}

/// Number of steps after which an all-steps utilisation reaches `target_percent` although its loaders first fill `stock_batches`. A storage that delivers
/// just the required rate fills all of them before the first step, which takes as long as so many steps. Twice the number leaves a margin.
fn diluting_steps(stock_batches: u64, target_percent: f64) -> u64 {
    let steps_at =
        |percent: f64| (2.0 * stock_batches as f64 * 100.0 / (100.0 - percent)).ceil() as u64;
    let most = steps_at(90.0).max(STEPS_NEAR_FULL_TARGET);
    steps_at(target_percent).clamp(STEPS_MIN, most)
}

/// The largest number from `from` to `max` at which `holds` is true, found by doubling and halving; `None` if there is none. `holds` must be true at all
/// numbers up to a limit and false beyond it.
fn largest(from: u64, max: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut low = Some(from).filter(|&from| holds(from))?;
    let mut high = low.saturating_mul(2).min(max);
    while low < high && holds(high) {
        low = high;
        high = high.saturating_mul(2).min(max);
    }
    while 1 < high - low {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// Returns the bound, or refuses one that is not a number or not a possible percentage.
fn checked_bound(bound: f64, response: &Metric) -> Result<f64, Refusal> {
    if !bound.is_finite() {
        let message = format!("`--au {bound}` is not a number");
        return refuse(message, "give a number as target");
    }
    // Read as 0.9 %, a share such as 0.9 would let every number pass.
    if response.is_utilisation() && 0.0 < bound && bound <= 1.0 {
        let hint = format!("it is in percent: write `{}`", units::round_noise(100.0 * bound));
        return refuse(format!("`--au {bound}` is not a percentage"), hint);
    }
    if response.unit == Unit::Percent && !(0.0..=100.0).contains(&bound) {
        let hint = format!("{} is between 0 and 100", response.id.name());
        return refuse(format!("`--au {bound}` is not a percentage"), hint);
    }
    Ok(bound)
}

/// Whether workers have no file to read.
fn has_idle_workers(plan: &Plan) -> bool {
    plan.doubts.iter().any(|doubt| doubt.name == IDLE_WORKERS)
}

fn refuse_contradictions(options: &ScaleOptions) -> Result<(), Refusal> {
    if options.key == ACCELERATORS && options.request.accelerators.is_some() {
        return refuse(
            "`--accelerators` is the number that the search varies",
            "set the range with `--from` and `--max` (see `--help-all`)",
        );
    }
    if options.max.is_some_and(|max| max < options.from) {
        return refuse(format!("`--max` is below `--from {}`", options.from), "raise `--max`");
    }
    if is_given(&options.request, &options.key) {
        return refuse(
            format!("`{}` is the number that the search varies", options.key),
            "leave it out of the overrides",
        );
    }
    Ok(())
}

/// The request of a run with this number as value of the key.
fn request_at(mut data: Request, key: &str, number: u64) -> Result<Request, Refusal> {
    if key == ACCELERATORS {
        data.accelerators = Some(u32::try_from(number).map_err(|_| {
            Refusal::without_hint(format!("`{number}` accelerators are more than can be emulated"))
        })?);
    } else {
        data.overrides.push(format!("{key}={number}"));
    }
    Ok(data)
}

/// Whether the user sets this key.
fn is_given(data: &Request, key: &str) -> bool {
    let keys = data.overrides.iter().filter_map(|text| Override::parse(text).ok());
    keys.into_iter().any(|given| given.key() == key)
}

#[cfg(test)]
mod tests {
    use super::diluting_steps;

    #[test]
    fn an_epoch_is_long_enough_for_its_start() {
        for (stock_batches, target_percent, expected) in [
            (4, 90.0, 80),
            (8, 90.0, 160),
            (4, 70.0, 50),
            (1, 5.0, 50),
            (4, 99.9, 500),
            (4, 100.0, 500),
            (64, 90.0, 1280),
            (64, 100.0, 1280),
        ] {
            let steps = diluting_steps(stock_batches, target_percent);
            assert_eq!(steps, expected, "{stock_batches} {target_percent}");
        }
    }
}
