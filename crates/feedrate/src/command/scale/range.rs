//! Plans the numbers that a search may try and the arguments of its runs, so that each run is long enough and all read the same dataset.

use crate::cli::{ACCELERATORS, DataArguments, ScaleArguments};
use crate::exit::UsageError;
use crate::messages;
use crate::resolve::{PlanOptions, Resolved, resolve_for, resolve_silently};
use feedrate_measure::metric::Metric;
use feedrate_measure::metric::{AU_SUSTAINED, sustained_needs_steps};
use feedrate_spec::plan::{self, Cache, Plan};
use feedrate_spec::units;
use feedrate_spec::workload::Override;
use feedrate_study::search::{Edge, Goal, Search, Step};

/// Steps of a run, at least: the rate of reading is told by whole batches.
const STEPS_LEAST: u64 = 50;
/// Where the search ends if nothing else ends it.
const NUMBER_MAX: u64 = 1 << 20;
/// Files of a dataset that is made larger, at most.
const FILES_MAX: u64 = 1 << 40;

const FILES: &str = "dataset.num_files_train";
const EPOCHS: &str = "train.epochs";
const STEPS: &str = "train.total_training_steps";

/// The numbers that can be tried.
pub(super) struct Range {
    data: DataArguments,
    key: String,
    wish: PlanOptions,
    /// Whether a run needs so many steps that `au_sustained` can be measured.
    sustained: bool,
    /// Plan at the smallest number.
    pub(super) resolved: Resolved,
    pub(super) max: u64,
    /// The reason why there is none larger.
    pub(super) why_max: String,
    /// Overrides beside those of the user, in every run.
    pub(super) added: Vec<String>,
    /// Notes for the user before it begins.
    pub(super) notes: Vec<String>,
}

impl Range {
    /// Plan it. The dataset is made larger only where the user says how far to go.
    pub(super) fn find(arguments: &ScaleArguments, response: &Metric) -> anyhow::Result<Self> {
        refuse_contradictions(arguments)?;
        let mut data = arguments.data.clone();
        let sustained = response.id == AU_SUSTAINED.id;
        let mut added = Vec::new();
        if sustained && !is_given(&data, EPOCHS) && !is_given(&data, STEPS) {
            // A second epoch would be read from the page cache, and more of them at one number than at another.
            add(&mut data, &mut added, format!("{EPOCHS}=1"));
        }
        let cache = if arguments.cold { Cache::Cold } else { Cache::AsIs };
        let wish = PlanOptions { processes: Some(1), cache, ..PlanOptions::default() };
        let from = arguments.from.get();
        let (first, accelerators) = at(&data, &arguments.key, from)?;
        let resolved = resolve_for(&first, accelerators, wish)?;
        let key = arguments.key.clone();
        let (max, why_max) = (NUMBER_MAX, String::new());
        let notes = Vec::new();
        let mut range = Range { data, key, wish, sustained, resolved, max, why_max, added, notes };
        range.limit(arguments.max.map(u64::from), from)?;
        if sustained && !is_given(&range.data, STEPS) {
            range.shorten(from)?;
        }
        range.note_datasets(from)?;
        Ok(range)
    }

    /// The arguments of a run at `number`.
    pub(super) fn at(&self, number: u64) -> anyhow::Result<(DataArguments, Option<u32>)> {
        at(&self.data, &self.key, number)
    }

    /// Bytes per second at which the accelerators of a run at `number` wait for nothing, where they compute.
    pub(super) fn needed_bytes_per_second(&self, number: u64) -> Option<f64> {
        plan::estimate(&self.plan(number).ok()?, &self.resolved.catalog).needed_bytes_per_second
    }

    /// `6 accelerators`, `reader.read_threads=6`.
    pub(super) fn words(&self, number: u64) -> String {
        match self.key.as_str() {
            ACCELERATORS => units::counted(number, "accelerator"),
            key => format!("{key}={number}"),
        }
    }

    fn plan(&self, number: u64) -> anyhow::Result<Plan> {
        let (data, accelerators) = self.at(number)?;
        Ok(resolve_silently(&data, accelerators, self.wish)?.0.plan)
    }

    /// The reason why no run at `number` could tell the response; `None` where one can.
    fn hindrance(&self, number: u64) -> Option<anyhow::Error> {
        let plan = match self.plan(number) {
            Ok(plan) => plan,
            Err(error) => return Some(error),
        };
        let (steps, needs) = (plan.train.steps_in_epoch(1), sustained_needs_steps(&plan));
        (self.sustained && steps < needs).then(|| {
            let message = format!(
                "with {} an epoch has {}, and `au_sustained` can be measured from {} on",
                self.words(number),
                units::counted(steps, "step"),
                units::count(needs),
            );
            UsageError { message, hint: Some(self.way_out(needs, steps)) }.into()
        })
    }

    fn way_out(&self, needs: u64, steps: u64) -> String {
        if is_given(&self.data, STEPS) {
            return format!("leave out `{STEPS}`");
        }
        if self.data.foreign {
            return "use more files, or `--response au_all_steps`".into();
        }
        let files = self.resolved.workload.dataset_num_files_train;
        let more = u128::from(files) * u128::from(needs) / u128::from(steps.max(1)) + 1;
        format!("`--max N` makes the dataset large enough for N; so does `{FILES}={more}`")
    }

    /// Find the largest number, and make the dataset larger where that is too small for the one that was asked for.
    fn limit(&mut self, asked: Option<u64>, from: u64) -> anyhow::Result<()> {
        let wanted = asked.unwrap_or(NUMBER_MAX).max(from);
        if let Some(hindrance) = asked.and_then(|max| self.hindrance(max)) {
            self.enlarge(wanted, hindrance)?;
        }
        let goal = Goal { least: 1.0, from, max: wanted, replicates: 1 };
        let mut search = Search::new(goal);
        let edge = loop {
            match search.next() {
                Step::Found(edge) => break edge,
                Step::Probe(number) => {
                    search.tell(number, if self.hindrance(number).is_some() { 0.0 } else { 1.0 });
                }
            }
        };
        self.max = match edge {
            Edge::At(number) | Edge::AtMax(number) => number,
            Edge::BelowFrom => {
                return Err(self.hindrance(from).unwrap_or_else(|| anyhow::anyhow!("cannot plan")));
            }
        };
        self.why_max = match (self.hindrance(self.max.saturating_add(1)), asked) {
            (_, Some(max)) if self.max == max => "`--max` is reached".into(),
            (Some(error), _) => messages::told(&error).replace("\n  hint: ", "; "),
            (None, _) => "no search goes further".into(),
        };
        Ok(())
    }

    /// As many files as a run at `number` needs, in every run.
    fn enlarge(&mut self, number: u64, hindrance: anyhow::Error) -> anyhow::Result<()> {
        if self.data.foreign || is_given(&self.data, STEPS) {
            return Err(hindrance);
        }
        let own = self.resolved.workload.dataset_num_files_train.max(1);
        let bare = self.data.overrides.len();
        let mut suffices = |files: u64| {
            self.data.overrides.truncate(bare);
            self.data.overrides.push(format!("{FILES}={files}"));
            self.hindrance(number).is_none()
        };
        let mut enough = own;
        while !suffices(enough) {
            if FILES_MAX < enough {
                self.data.overrides.truncate(bare);
                return Err(hindrance);
            }
            enough = enough.saturating_mul(2);
        }
        let mut few = enough / 2;
        while 1 < enough - few {
            let half = few + (enough - few) / 2;
            if suffices(half) { enough = half } else { few = half }
        }
        self.data.overrides.truncate(bare);
        add(&mut self.data, &mut self.added, format!("{FILES}={enough}"));
        let (data, accelerators) = self.at(number)?;
        let resolved = resolve_silently(&data, accelerators, self.wish)?.0;
        let bytes = plan::estimate(&resolved.plan, &resolved.catalog).file_bytes;
        self.notes.push(format!(
            "every run reads {FILES}={enough} instead of {own} ({}), as many as {} need",
            units::bytes(bytes),
            self.words(number),
        ));
        Ok(())
    }

    /// Where an epoch is longer than the response needs, a run ends before it does.
    fn shorten(&mut self, from: u64) -> anyhow::Result<()> {
        let (first, last) = (self.plan(from)?, self.plan(self.max)?);
        let needs = sustained_needs_steps(&first).max(sustained_needs_steps(&last));
        let steps = needs.saturating_mul(2).max(STEPS_LEAST);
        if steps < first.train.steps() {
            add(&mut self.data, &mut self.added, format!("{STEPS}={steps}"));
        }
        Ok(())
    }

    fn note_datasets(&mut self, from: u64) -> anyhow::Result<()> {
        if self.plan(from)?.dataset != self.plan(self.max)?.dataset {
            self.notes.push(format!("the dataset changes with {}", self.key));
        }
        Ok(())
    }
}

fn refuse_contradictions(arguments: &ScaleArguments) -> Result<(), UsageError> {
    let refuse = |message: String, hint: &str| Err(UsageError { message, hint: Some(hint.into()) });
    if arguments.key == ACCELERATORS && arguments.data.accelerators.is_some() {
        return refuse(
            "`--accelerators` is what is looked for".into(),
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
fn at(
    data: &DataArguments,
    key: &str,
    number: u64,
) -> anyhow::Result<(DataArguments, Option<u32>)> {
    let mut data = data.clone();
    if key == ACCELERATORS {
        let accelerators = u32::try_from(number).map_err(|_| UsageError {
            message: format!("`{number}` accelerators are more than can be emulated"),
            hint: None,
        })?;
        return Ok((data, Some(accelerators)));
    }
    data.overrides.push(format!("{key}={number}"));
    let accelerators = data.accelerators;
    Ok((data, accelerators))
}

/// Whether the user sets this key.
fn is_given(data: &DataArguments, key: &str) -> bool {
    let keys = data.overrides.iter().filter_map(|text| Override::parse(text).ok());
    keys.into_iter().any(|given| given.key() == key)
}

fn add(data: &mut DataArguments, added: &mut Vec<String>, text: String) {
    data.overrides.push(text.clone());
    added.push(text);
}
