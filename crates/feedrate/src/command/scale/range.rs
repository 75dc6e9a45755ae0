//! Plans the numbers that a search may try and the arguments of its runs, so that each run is long enough and all read the same dataset.

use super::{ACCELERATORS, ScaleArguments};
use crate::cli::DataArguments;
use crate::exit::{UsageError, refuse};
use crate::resolve::{Resolved, resolve, resolve_silently};
use crate::{catalog, messages};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, Metric, Unit, sustained_needs_steps};
use feedrate_spec::plan::{Plan, Request};
use feedrate_spec::units;
use feedrate_spec::workload::Override;

/// Steps of a run, at least: the rate of reading is told by whole batches.
const STEPS_LEAST: u64 = 50;
/// Where the search ends if nothing else ends it.
const NUMBER_MAX: u64 = 1 << 20;
/// Files of a dataset that is made larger, at most.
const FILES_MAX: u64 = 1 << 40;

const FILES: &str = "dataset.num_files_train";
const EPOCHS: &str = "train.epochs";
const STEPS: &str = "train.total_training_steps";
const ASKED: &str = "metric.au";

/// The numbers that can be tried.
pub(super) struct SearchRange<'a> {
    arguments: &'a ScaleArguments,
    /// With overrides behind those of the user, in every run.
    data: DataArguments,
    /// Whether a run needs so many steps that `au_sustained` can be measured.
    sustained: bool,
    /// Whether the response is a utilisation of which no start and no end is left out.
    is_of_all_or_sustained: bool,
    /// The response holds from here on.
    pub(super) bound: f64,
    /// Plan at the smallest number.
    pub(super) resolved: Resolved,
    pub(super) max: u64,
    /// The reason why there is none larger.
    pub(super) why_max: String,
    /// Notes for the user before it begins.
    pub(super) notes: Vec<String>,
}

impl<'a> SearchRange<'a> {
    /// Plan it. The dataset is made larger only where the user says how far to go.
    pub(super) fn find(arguments: &'a ScaleArguments, response: &Metric) -> anyhow::Result<Self> {
        refuse_contradictions(arguments)?;
        let mut data = arguments.data.clone();
        let sustained = response.id == AU_SUSTAINED.id;
        if sustained && !is_given(&data, EPOCHS) && !is_given(&data, STEPS) {
            // A second epoch would be read from the page cache, and more of them at one number than at another.
            data.overrides.push(format!("{EPOCHS}=1"));
        }
        let from = arguments.from.get();
        let resolved = resolve(&at(&data, &arguments.key, from)?, request(arguments))?;
        let is_of_all_or_sustained = sustained || response.id == AU_ALL_STEPS.id;
        let is_au = response.id.name().starts_with("au_");
        let asked_percent = resolved.plan.metric.au_target_percent;
        let bound = match arguments.au {
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
        let (max, why_max, notes) = (NUMBER_MAX, String::new(), Vec::new());
        let mut range = SearchRange {
            arguments,
            data,
            sustained,
            is_of_all_or_sustained,
            bound,
            resolved,
            max,
            why_max,
            notes,
        };
        range.limit()?;
        let (first, last) = (range.plan(from)?, range.plan(range.max)?);
        if sustained && !is_given(&range.data, STEPS) {
            // Where an epoch is longer than the response needs, a run ends before it does.
            let needs = sustained_needs_steps(&first).max(sustained_needs_steps(&last));
            let steps = needs.saturating_mul(2).max(STEPS_LEAST);
            if steps < first.train.steps() {
                range.data.overrides.push(format!("{STEPS}={steps}"));
            }
        }
        if first.dataset != last.dataset {
            range.notes.push(format!("the dataset changes with {}", arguments.key));
        }
        Ok(range)
    }

    /// Overrides beside those of the user, in every run.
    pub(super) fn added(&self) -> &[String] {
        &self.data.overrides[self.arguments.data.overrides.len()..]
    }

    /// The arguments of a run at `number`.
    pub(super) fn at(&self, number: u64) -> Result<DataArguments, UsageError> {
        at(&self.data, &self.arguments.key, number)
    }

    /// `6 accelerators`, `reader.read_threads=6`.
    pub(super) fn words(&self, number: u64) -> String {
        match self.arguments.key.as_str() {
            ACCELERATORS => units::counted(number, "accelerator"),
            key => format!("{key}={number}"),
        }
    }

    /// The plan of a run at `number`.
    pub(super) fn plan(&self, number: u64) -> anyhow::Result<Plan> {
        Ok(self.resolved_at(number)?.plan)
    }

    fn resolved_at(&self, number: u64) -> anyhow::Result<Resolved> {
        Ok(resolve_silently(&self.at(number)?, request(self.arguments))?.0)
    }

    /// The utilisation that the client alone leaves at `number`, where that is below what is to be reached: no run can tell otherwise.
    pub(super) fn client_leaves_too_little(&self, number: u64) -> anyhow::Result<Option<f64>> {
        if !self.is_of_all_or_sustained {
            return Ok(None);
        }
        Ok(self
            .resolved_at(number)?
            .client_leaves_percent()
            .filter(|percent| *percent < self.bound))
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
        Some(UsageError::new(message, self.way_out(needs, steps)).into())
    }

    fn way_out(&self, needs: u64, steps: u64) -> String {
        if is_given(&self.data, STEPS) {
            return format!("leave out `{STEPS}`");
        }
        if self.data.scale < 1.0 {
            return "raise `--scale`, or use `--response au_all_steps`".into();
        }
        if self.resolved.workload.dataset_foreign {
            return "use more files, or `--response au_all_steps`".into();
        }
        let files = self.resolved.workload.dataset_num_files_train;
        let more = u128::from(files) * u128::from(needs) / u128::from(steps.max(1)) + 1;
        format!("`--max N` makes the dataset large enough for N; so does `{FILES}={more}`")
    }

    /// Find the largest number, and make the dataset larger where that is too small for the one that was asked for.
    fn limit(&mut self) -> anyhow::Result<()> {
        let from = self.arguments.from.get();
        let asked = self.arguments.max.map(u64::from);
        if let Some(hindrance) = asked.and_then(|max| self.hindrance(max)) {
            self.enlarge(asked.unwrap_or(from), hindrance)?;
        }
        let wanted = asked.unwrap_or(NUMBER_MAX).max(from);
        let found = largest(from, wanted, |number| self.hindrance(number).is_none());
        self.max = found.ok_or_else(|| {
            self.hindrance(from).unwrap_or_else(|| anyhow::anyhow!("cannot plan"))
        })?;
        self.why_max = match self.hindrance(self.max.saturating_add(1)) {
            _ if asked == Some(self.max) => "`--max` is reached".into(),
            Some(error) => messages::told(&error).replace("\n  hint: ", "; "),
            None => "no search goes further".into(),
        };
        Ok(())
    }

    /// As few files as a run at `number` does with, in every run.
    fn enlarge(&mut self, number: u64, hindrance: anyhow::Error) -> anyhow::Result<()> {
        if self.resolved.workload.dataset_foreign || is_given(&self.data, STEPS) {
            return Err(hindrance);
        }
        if self.data.scale < 1.0 {
            return self.refuse_larger(number);
        }
        let own = self.resolved.workload.dataset_num_files_train.max(1);
        self.data.overrides.push(String::new());
        let too_few = largest(own, FILES_MAX, |files| {
            self.set_files(files);
            self.hindrance(number).is_some()
        });
        let files = too_few.map_or(own, |files| files + 1);
        if FILES_MAX < files {
            return Err(hindrance);
        }
        self.set_files(files);
        let bytes = catalog::estimate(&self.plan(number)?).file_bytes;
        self.notes.push(format!(
            "every run reads {FILES}={files} instead of {own} ({}), as many as {} need",
            units::bytes(bytes),
            self.words(number),
        ));
        Ok(())
    }

    /// `--scale` says how large the dataset may be.
    fn refuse_larger(&self, number: u64) -> anyhow::Result<()> {
        let (scale, from) = (self.data.scale, self.arguments.from.get());
        let hint = match largest(from, number, |number| self.hindrance(number).is_none()) {
            Some(fits) => format!("`--max {fits}` fits; or raise `--scale`"),
            None => format!("none does, not even for {}: raise `--scale`", self.words(from)),
        };
        refuse(
            format!("`--scale {scale}` makes a dataset too small for {}", self.words(number)),
            hint,
        )
    }

    /// So many files in the last override.
    fn set_files(&mut self, files: u64) {
        self.data.overrides.pop();
        self.data.overrides.push(format!("{FILES}={files}"));
    }
}

/// The largest number from `from` to `max` at which something holds that holds at all smaller ones, if there is one.
pub(in crate::command) fn largest(
    from: u64,
    max: u64,
    mut holds: impl FnMut(u64) -> bool,
) -> Option<u64> {
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

fn request(arguments: &ScaleArguments) -> Request {
    let cache = arguments.cache.cache();
    Request { processes: Some(1), cache, ..Request::default() }
}

/// `bound`, unless no run could reach it, or any.
fn checked_bound(bound: f64, response: &Metric) -> Result<f64, UsageError> {
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

fn refuse_contradictions(arguments: &ScaleArguments) -> Result<(), UsageError> {
    if arguments.key == ACCELERATORS && arguments.data.accelerators.is_some() {
        return refuse(
            "`--accelerators` is what is looked for",
            "say where to begin and end with `--from` and `--max`",
        );
    }
    if arguments.max.is_some_and(|max| max < arguments.from) {
        return refuse(
            format!("nothing lies between `--from {}` and `--max` below it", arguments.from),
            "raise `--max`",
        );
    }
    if is_given(&arguments.data, &arguments.key) {
        return refuse(
            format!("`{}` is what is looked for", arguments.key),
            "leave it out of the overrides",
        );
    }
    Ok(())
}

/// Arguments of a run whose key has this number.
fn at(data: &DataArguments, key: &str, number: u64) -> Result<DataArguments, UsageError> {
    let mut data = data.clone();
    if key == ACCELERATORS {
        data.accelerators = Some(u32::try_from(number).map_err(|_| {
            UsageError::plain(format!("`{number}` accelerators are more than can be emulated"))
        })?);
    } else {
        data.overrides.push(format!("{key}={number}"));
    }
    Ok(data)
}

/// Whether the user sets this key.
fn is_given(data: &DataArguments, key: &str) -> bool {
    let keys = data.overrides.iter().filter_map(|text| Override::parse(text).ok());
    keys.into_iter().any(|given| given.key() == key)
}
