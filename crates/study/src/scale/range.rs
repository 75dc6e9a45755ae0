//! Plans the numbers that a search may try, the dataset that does for them, and the arguments of its runs, each of which is long enough.
//!
//! Where numbers need more than the dataset has, it is made larger step by step, so that a storage which feeds few need not hold what many would read.
//! Long because each limit of the numbers is a refusal or a note of its own.

mod rows;

use super::options::ScaleOptions;
use crate::chooser::NumberRange as _;
use crate::search::{ACCELERATORS, Goal};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, Metric, Unit, sustained_needs_steps};
use feedrate_session::bundled::MlperfStatus;
use feedrate_session::failure::on_one_line;
use feedrate_session::request::Request;
use feedrate_session::resolve::{Resolved, mlperf_status, resolve, resolve_named};
use feedrate_session::room::{self, Reserved, Shortage};
use feedrate_session::{catalog, dataset};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::{Refusal, refuse};
use feedrate_spec::units;
use feedrate_spec::workload::Override;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Steps of a run, at least: the rate of reading is told by whole batches.
const STEPS_LEAST: u64 = 50;
/// Where the search ends if nothing else ends it.
const NUMBER_MAX: u64 = 1 << 20;
/// Files of a dataset that is made for a search, at most.
const FILES_MAX: u64 = 1 << 40;
/// A larger dataset does for so many times the numbers, where it fits.
const GROWTH: u64 = 4;
/// One part in so many of the free space is left alone by it.
const KEPT_OF_FREE: u64 = 10;

const FILES: &str = "dataset.num_files_train";
const EPOCHS: &str = "train.epochs";
const STEPS: &str = "train.total_training_steps";
const ASKED: &str = "metric.au";

/// A dataset that was made for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedDataset {
    /// Files to train on.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files of the workload's own dataset.
    pub workload_files: u64,
}

/// The numbers that can be tried.
#[derive(Clone)]
pub struct SearchRange<'a> {
    options: &'a ScaleOptions,
    /// The user's request.
    user: Request,
    /// With overrides behind those of the user, in every run, whatever the dataset.
    data: Request,
    /// Files of the dataset, and steps of a run, where the search says how many.
    files: Option<u64>,
    steps: Option<u64>,
    /// Whether a run needs so many steps that `au_sustained` can be measured.
    sustained: bool,
    /// Whether the response is a utilisation of which no start and no end is left out.
    pub is_of_all_or_sustained: bool,
    /// The response holds from here on.
    pub bound: f64,
    /// Plan at the smallest number.
    pub resolved: Resolved,
    /// The largest number that the dataset does for.
    pub max: u64,
    /// The reason why there is none larger.
    pub max_reason: String,
    /// Bytes of datasets that would be there if it were searched.
    pub taken_bytes: u64,
    /// Bytes of all datasets that are made for it.
    made_bytes: u64,
    /// Folders of datasets that earlier starts of the search made.
    made: BTreeSet<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl<'a> SearchRange<'a> {
    /// Plan it for the smallest number, and for all that the same dataset does for.
    pub fn find(options: &'a ScaleOptions, listener: &dyn Listener) -> anyhow::Result<Self> {
        refuse_contradictions(options)?;
        let user = Request { processes: Some(1), ..options.request.clone() };
        let mut data = user.clone();
        let response = options.response;
        let sustained = response.id == AU_SUSTAINED.id;
        if sustained && !is_given(&data, EPOCHS) && !is_given(&data, STEPS) {
            // A second epoch would come from the page cache, more of it at some numbers than at others.
            data.overrides.push(format!("{EPOCHS}=1"));
        }
        let from = options.from;
        let at_first = at(data.clone(), &options.key, from)?;
        let resolved = resolve(&at_first).or_else(|error| {
            // What is there may be too little for one step.
            let unread = Request { generate_only: true, ..at_first };
            resolve(&unread).map_err(|_| error)
        })?;
        resolved.report_warnings(listener);
        let is_of_all_or_sustained = sustained || response.id == AU_ALL_STEPS.id;
        let is_au = response.id.name().starts_with("au_");
        let asked_percent = resolved.plan.metric.au_target_percent;
        let bound = match options.bound {
            Some(bound) => checked_bound(bound, response)?,
            None if is_au => asked_percent,
            None => {
                let message =
                    format!("from which value on `{}` holds is not said", response.id.name());
                return refuse(message, "give it as `--at-least VALUE`");
            }
        };
        if is_au && asked_percent != bound {
            if is_given(&data, ASKED) {
                let message = format!("`--au {bound}` asks for another than `{ASKED}`");
                return refuse(message, format!("leave `{ASKED}` out of the overrides"));
            }
            // Each run is judged by what is asked here.
            data.overrides.push(format!("{ASKED}={}", units::rounded(bound / 100.0)));
        }
        let (max, max_reason) = (NUMBER_MAX, String::new());
        let status = mlperf_status(&user);
        let status = status.filter(|status| *status != MlperfStatus::Official);
        let notes = Vec::from_iter(status.map(MlperfStatus::sentence));
        let mut range = SearchRange {
            options,
            user,
            data,
            files: None,
            steps: None,
            sustained,
            is_of_all_or_sustained,
            bound,
            resolved,
            max,
            max_reason,
            taken_bytes: 0,
            made_bytes: 0,
            made: BTreeSet::new(),
            notes,
        };
        range.begin()?;
        Ok(range)
    }

    /// The folder that datasets of the search lie in.
    pub fn dataset_root(&self) -> anyhow::Result<Option<PathBuf>> {
        let plan = self.plan(self.max)?;
        if !dataset::is_in_folder(&plan) {
            return Ok(None);
        }
        // A folder that is none is refused with the first run.
        let folder = dataset::folder(&plan, &self.resolved.data_root).ok();
        let folder = folder.map(std::path::absolute).transpose()?;
        Ok(folder.and_then(|folder| folder.parent().map(Path::to_path_buf)))
    }

    /// The user's request.
    pub fn user(&self) -> &Request {
        &self.user
    }

    /// The goal of a search in it.
    pub fn goal(&self, least: f64) -> Goal {
        let (from, find) = (self.options.from, self.options.find);
        Goal { least, from, max: self.max, find }
    }

    /// Overrides that go with the dataset.
    fn sized(&self) -> impl Iterator<Item = String> {
        let sized = [(FILES, self.files), (STEPS, self.steps)].into_iter();
        sized.filter_map(|(key, number)| Some(format!("{key}={}", number?)))
    }

    /// Overrides beside those of the user, in every run.
    pub fn added(&self) -> Vec<String> {
        let lasting = self.data.overrides[self.user.overrides.len()..].iter();
        lasting.cloned().chain(self.sized()).collect()
    }

    /// The arguments of a run at `number`.
    pub fn at(&self, number: u64) -> Result<Request, Refusal> {
        let mut data = self.data.clone();
        data.overrides.extend(self.sized());
        at(data, &self.options.key, number)
    }

    /// The plan of a run at `number`.
    pub fn plan(&self, number: u64) -> anyhow::Result<Plan> {
        Ok(self.resolved_at(number)?.plan)
    }

    fn resolved_at(&self, number: u64) -> anyhow::Result<Resolved> {
        resolve_named(&self.at(number)?)
    }

    /// The utilisation that the client alone leaves at `number`, where that is below what is to be reached: no run can tell otherwise.
    pub fn client_leaves_too_little(&self, number: u64) -> anyhow::Result<Option<f64>> {
        if !self.is_of_all_or_sustained {
            return Ok(None);
        }
        Ok(self
            .resolved_at(number)?
            .client_utilisation_max_percent()
            .filter(|percent| *percent < self.bound))
    }

    /// The dataset of the runs; `None` where it lies in no folder, or others made it.
    pub fn dataset(&self) -> anyhow::Result<Option<SearchedDataset>> {
        let plan = self.plan(self.max)?;
        if self.resolved.workload.dataset_foreign || !dataset::is_in_folder(&plan) {
            return Ok(None);
        }
        let bytes = catalog::estimate(&plan).file_bytes;
        let workload_files = self.resolved.workload.dataset_num_files_train;
        Ok(Some(SearchedDataset { files: plan.dataset.files_train, bytes, workload_files }))
    }

    /// Make the dataset larger, for numbers beyond the largest. False where that is not wanted, not possible, or has no room.
    pub fn extend(&mut self) -> anyhow::Result<bool> {
        let (reached, asked) = (self.max, self.options.max.unwrap_or(NUMBER_MAX));
        if asked <= reached || !self.sustained || !self.may_resize() {
            return Ok(false);
        }
        let (next, most) = (reached.saturating_add(1), reached.saturating_mul(GROWTH).min(asked));
        let fits = |number: &u64| matches!(self.sized_for(*number), Ok((_, None)));
        let number =
            Some(most).filter(fits).or_else(|| largest(next, most, |number| fits(&number)));
        match self.sized_for(number.unwrap_or(next)) {
            Ok((mut larger, None)) => {
                larger.limit()?;
                larger.made_bytes += larger.dataset_bytes_made()?;
                *self = larger;
                return Ok(true);
            }
            Ok((_, Some(short))) => {
                let spare = if short.is_of_storage() {
                    " beside the smaller dataset and a tenth to spare"
                } else {
                    ""
                };
                self.max_reason = format!("for {}, {short}{spare}", self.words(next));
            }
            Err(error) => self.max_reason = on_one_line(&error),
        }
        Ok(false)
    }

    /// The same with the dataset for `number`, and what that lacks.
    fn sized_for(&self, number: u64) -> anyhow::Result<(Self, Option<Shortage>)> {
        let mut sized = self.clone();
        sized.resize(number)?;
        let short = sized.shortage(number, Some(KEPT_OF_FREE))?;
        Ok((sized, short))
    }

    /// The reason why no run at `number` could tell the response; `None` where one can.
    fn hindrance(&self, number: u64) -> Option<anyhow::Error> {
        let plan = match self.plan(number) {
            Ok(plan) => plan,
            Err(error) => return Some(error),
        };
        let (steps, needs) = (plan.train.steps_in_epoch(1), sustained_needs_steps(&plan));
        if !self.sustained || needs <= steps {
            return None;
        }
        let message = format!(
            "with {} an epoch has {}, and `au_sustained` can be measured from {} on",
            self.words(number),
            units::counted(steps, "step"),
            units::count(needs),
        );
        let hint = match () {
            () if is_given(&self.user, STEPS) => format!("leave out `{STEPS}`"),
            () if self.resolved.workload.dataset_foreign => {
                "use more files, or `--response au_all_steps`".into()
            }
            () => "use a larger dataset, or `--response au_all_steps`".into(),
        };
        Some(Refusal::new(message, hint).into())
    }

    /// Whether the search says how large the dataset is: nobody else does.
    fn may_resize(&self) -> bool {
        let given = |key| is_given(&self.user, key);
        let is_said = self.data.scale < 1.0 || given(FILES) || given(STEPS);
        !is_said && !self.resolved.workload.dataset_foreign
    }

    /// The workload's own dataset, where it does for the smallest number and has room, else as few files as that needs.
    fn begin(&mut self) -> anyhow::Result<()> {
        let asked = self.options.max;
        // Where more files make other values, all are there from the first run on.
        let from = self.options.from;
        let first = if self.sustained { from } else { asked.unwrap_or(from) };
        let is_hindered = self.hindrance(first).is_some();
        if self.may_resize()
            && (is_hindered || self.sustained && self.shortage(first, None)?.is_some())
        {
            self.resize(first)?;
        } else if self.data.scale < 1.0 && self.hindrance(self.options.from).is_some() {
            return self.refuse_scale();
        }
        self.limit()?;
        match self.shortage(self.max, None)? {
            Some(short) => Err(self.no_room(&short).into()),
            None => {
                self.made_bytes = self.to_generate_bytes()?;
                Ok(())
            }
        }
    }

    /// Bytes that the next run generates.
    pub fn to_generate_bytes(&self) -> anyhow::Result<u64> {
        Ok(room::to_generate_bytes(&self.plan(self.max)?, &self.resolved.data_root))
    }

    /// Bytes of the dataset where the search makes it, or made it before a restart.
    fn dataset_bytes_made(&self) -> anyhow::Result<u64> {
        let plan = self.plan(self.max)?;
        let folder = dataset::folder(&plan, &self.resolved.data_root);
        let folder = folder.ok().and_then(|folder| std::path::absolute(folder).ok());
        if folder.is_some_and(|folder| self.made.contains(&folder)) {
            return Ok(catalog::estimate(&plan).file_bytes);
        }
        self.to_generate_bytes()
    }

    /// Find the largest number that the dataset does for, and how long a run of it has to be.
    fn limit(&mut self) -> anyhow::Result<()> {
        let from = self.options.from;
        let asked = self.options.max;
        let wanted = asked.unwrap_or(NUMBER_MAX).max(from);
        let found = largest(from, wanted, |number| self.hindrance(number).is_none());
        self.max = found.ok_or_else(|| {
            self.hindrance(from).unwrap_or_else(|| anyhow::anyhow!("cannot plan"))
        })?;
        self.max_reason = match self.hindrance(self.max.saturating_add(1)) {
            _ if asked == Some(self.max) => "`--max` is reached".into(),
            Some(error) => on_one_line(&error),
            None => "no search goes further".into(),
        };
        let (first, last) = (self.plan(from)?, self.plan(self.max)?);
        if self.sustained && !is_given(&self.user, STEPS) {
            // Where an epoch is longer than the response needs, a run ends before it does.
            let needs = sustained_needs_steps(&first).max(sustained_needs_steps(&last));
            let steps = needs.saturating_mul(2).max(STEPS_LEAST);
            if steps < first.train.steps() {
                self.steps = Some(steps);
            }
        }
        if first.dataset != last.dataset {
            self.notes.push(format!("the dataset changes with {}", self.options.key));
        }
        Ok(())
    }

    /// As few files as a run at `number` does with.
    fn resize(&mut self, number: u64) -> anyhow::Result<()> {
        (self.files, self.steps) = (None, None);
        let hindrance = self.hindrance(number);
        let too_few = largest(1, FILES_MAX, |files| {
            self.files = Some(files);
            self.hindrance(number).is_some()
        });
        let files = too_few.map_or(1, |files| files + 1);
        if FILES_MAX < files {
            return Err(hindrance.unwrap_or_else(|| anyhow::anyhow!("cannot plan")));
        }
        self.files = Some(files);
        let note = self.note_on_dataset(number)?;
        self.notes.push(note);
        Ok(())
    }

    fn note_on_dataset(&self, number: u64) -> anyhow::Result<String> {
        let own = self.resolved.workload.dataset_num_files_train;
        let bytes = catalog::estimate(&self.plan(number)?).file_bytes;
        Ok(format!(
            "dataset: {} instead of {}, {}, for up to {}",
            units::counted(self.files.unwrap_or(own), "file"),
            units::count(own),
            units::bytes(bytes),
            self.words(number),
        ))
    }

    /// Where the dataset for `number` finds no room. What others made is there.
    fn shortage(&self, number: u64, part: Option<u64>) -> anyhow::Result<Option<Shortage>> {
        if self.resolved.workload.dataset_foreign {
            return Ok(None);
        }
        let most = self.options.max_data_bytes.map(|most| most.saturating_sub(self.made_bytes));
        let reserved = Reserved { taken_bytes: self.taken_bytes, part, beyond_bytes: most };
        Ok(room::shortage(&self.plan(number)?, &self.resolved.data_root, &reserved))
    }

    /// No dataset that is large enough has room: a smaller one tells the utilisation of all steps.
    fn no_room(&self, short: &Shortage) -> Refusal {
        let mut data = self.user.clone();
        data.accelerators = self.resolved.plan.accelerators.into();
        let scale = room::fitting_scale(&data, short.free_bytes);
        let way = if short.is_of_storage() { "free space there" } else { "raise `--max-data`" };
        let hint = match scale {
            Some(scale) if !is_given(&data, FILES) => format!(
                "{way}, or count the start of each run too: `--response au_all_steps --scale {scale}` has room"
            ),
            _ if short.is_of_storage() => "free space there, or point `--data` elsewhere".into(),
            _ => way.into(),
        };
        Refusal::new(format!("for {}, {short}", self.words(self.options.from)), hint)
    }

    /// Not even the smallest number does with `--scale`.
    fn refuse_scale(&self) -> anyhow::Result<()> {
        let (number, given) = (self.options.from, self.data.scale);
        let too_small = |thousandths: u64| {
            let mut larger = self.clone();
            larger.data.scale = thousandths as f64 / 1000.0;
            larger.hindrance(number).is_some()
        };
        let least = largest(1, 999, too_small).map_or(1, |thousandths| thousandths + 1);
        let hint = if least < 1000 {
            format!("`--scale {}` is large enough", least as f64 / 1000.0)
        } else {
            "leave out `--scale`: the dataset is made as large as the search needs".into()
        };
        let words = self.words(number);
        refuse(format!("`--scale {given}` makes a dataset too small for {words}"), hint)
    }
}

/// The largest number from `from` to `max` at which something holds that holds at all smaller ones, if there is one.
fn largest(from: u64, max: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut low = Some(from).filter(|&from| holds(from))?;
    let mut high = low.saturating_mul(2).min(max);
    while low < high && holds(high) {
        (low, high) = (high, high.saturating_mul(2).min(max));
    }
    while 1 < high - low {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// `bound`, unless no run could reach it, or any.
fn checked_bound(bound: f64, response: &Metric) -> Result<f64, Refusal> {
    if !bound.is_finite() {
        let message = format!("`--au {bound}` is no number");
        return refuse(message, "give what is to be reached");
    }
    if response.unit == Unit::Percent && !(0.0..=100.0).contains(&bound) {
        let hint = format!("{} lies between 0 and 100", response.id.name());
        return refuse(format!("`--au {bound}` is no percentage"), hint);
    }
    Ok(bound)
}

fn refuse_contradictions(options: &ScaleOptions) -> Result<(), Refusal> {
    if options.key == ACCELERATORS && options.request.accelerators.is_some() {
        return refuse(
            "`--accelerators` is what is looked for",
            "say where to begin and end with `--from` and `--max`",
        );
    }
    if options.max.is_some_and(|max| max < options.from) {
        return refuse(
            format!("nothing lies between `--from {}` and `--max` below it", options.from),
            "raise `--max`",
        );
    }
    if is_given(&options.request, &options.key) {
        return refuse(
            format!("`{}` is what is looked for", options.key),
            "leave it out of the overrides",
        );
    }
    Ok(())
}

/// Arguments of a run whose key has this number.
fn at(mut data: Request, key: &str, number: u64) -> Result<Request, Refusal> {
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
