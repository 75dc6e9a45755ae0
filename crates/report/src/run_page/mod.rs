//! Builds the pages of a single run: its answer in a few lines, and all its measurements. Decides nothing.

mod latency;
mod reads;
mod rows;

pub use self::latency::latency_line;
pub use self::reads::{log_read_rows, read_rows};

use crate::document::{Block, Detail, Document, Item};
use crate::output::OpenObject;
use crate::plot::GPUS_OF_OTHERS;
use crate::table::{ColumnKind, ReportTable};
use crate::text;
use crate::words::{advice, answer as words, client, unpredicted};
use feedrate_analysis::advice::{Advice, Case, SampleRequests, advise, advise_without_plans};
use feedrate_analysis::answer::{Answer, AnsweredSummary};
use feedrate_analysis::predict::{NotPredictable, Pipeline, Prediction};
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, DEVICE_PER_SECOND, DURATION_S,
    GPU_UTILISATION,
};
use feedrate_measure::phase::{Phase, PhaseKind};
use feedrate_measure::record::{CheckpointKind, CheckpointRecord, Record};
use feedrate_measure::summary::EpochSummary;
use feedrate_results::replan::Replan;
use feedrate_spec::plan::ClientPlan;
use feedrate_spec::units;
use rows::{known, percent};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of rows in the table of phases; `phases.csv` has all of them.
const PHASES_MAX: usize = 40;

/// A run with its answer and advice.
pub struct RunPage<'a> {
    answered: &'a AnsweredSummary,
    derived: Derived<'a>,
    /// Changes that would help, the best first.
    helps: Vec<Advice>,
    /// The requests of a library, if they matter.
    requests: Option<SampleRequests>,
    ideal_client: Option<Result<Prediction, NotPredictable>>,
    client_line: Option<String>,
}

/// The answer with advice and the client.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub struct AnswerOutput<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    /// Changes that would help, the best first.
    helps: &'a [Advice],
    /// Requests that the library of the format makes, if the accelerators waited for their latency; otherwise `null`.
    library_requests: Option<&'a SampleRequests>,
    /// The emulated client; `null` if there is none.
    client: Option<ClientOutput<'a>>,
}

/// The emulated client, which is the job's own code.
#[derive(Serialize, JsonSchema)]
struct ClientOutput<'a> {
    /// `calibrated`, or `ideal` for a client that takes no time.
    kind: &'static str,
    /// Its costs by the keys of `client`.
    #[schemars(with = "Option<OpenObject>")]
    costs: Option<&'a ClientPlan>,
    /// Utilisation of the kind that decides the answer.
    au_percent: Option<f64>,
    /// Estimate for a client that takes no time.
    with_ideal_client: Option<IdealClientOutput>,
    /// Reason why there is no estimate.
    #[serde(rename = "untold")]
    not_predicted: Option<String>,
    /// The client in a sentence.
    says: &'a str,
}

/// The run with a client that takes no time.
#[derive(Serialize, JsonSchema)]
struct IdealClientOutput {
    /// Always `true`.
    estimated: bool,
    /// Kind of the utilisation: au_sustained_percent or au_all_steps_percent.
    au_kind: &'static str,
    /// Utilisation.
    au_percent: f64,
    /// Lowest and highest utilisation that the record allows.
    interval: [f64; 2],
    /// Whether the measured utilisation is at or above the lower end of the interval.
    difference_is_within_error: Option<bool>,
}

impl<'a> RunPage<'a> {
    /// The page of a run. For predictions, `replan` plans the run with changed settings; `None` if the run cannot be planned again.
    pub fn new(
        answered: &'a AnsweredSummary,
        record: &'a Record,
        replan: Option<&dyn Replan>,
    ) -> Self {
        let derived = Derived::new(record);
        let case = Case::new(&derived, &answered.answer, &answered.summary.doubts);
        let advice = replan.map(|replan| advise(&case, &|overrides| replan.plan(overrides)));
        let helps = advice.unwrap_or_else(|| advise_without_plans(&case));
        let requests = SampleRequests::if_they_matter(&case);
        let ideal_client = Pipeline::with_ideal_client(&derived);
        let client_line = client::line(&derived, ideal_client.as_ref());
        RunPage { answered, derived, helps, requests, ideal_client, client_line }
    }

    /// The answer as data.
    pub fn answer_output(&self) -> AnswerOutput<'_> {
        let answer = &self.answered.answer;
        AnswerOutput {
            answer,
            helps: &self.helps,
            library_requests: self.requests.as_ref(),
            client: self.client_output(),
        }
    }

    fn client_output(&self) -> Option<ClientOutput<'_>> {
        let ideal = self.ideal_client.as_ref();
        let au_percent = client::au_percent(&self.derived, ideal);
        let predicted = ideal.and_then(|ideal| ideal.as_ref().ok());
        Some(ClientOutput {
            kind: if ideal.is_some() { "calibrated" } else { "ideal" },
            costs: self.derived.record.plan.loader.client.as_ref(),
            au_percent,
            with_ideal_client: predicted.map(|prediction| IdealClientOutput {
                estimated: true,
                au_kind: prediction.au_kind,
                au_percent: prediction.au_percent,
                interval: prediction.interval,
                difference_is_within_error: au_percent.map(|au| prediction.interval[0] <= au),
            }),
            not_predicted: ideal.and_then(|ideal| ideal.as_ref().err()).map(unpredicted::why),
            says: self.client_line.as_deref()?,
        })
    }

    /// The answer in about seven lines. The heading describes the user's `files`, if given, which `cores` read. `next` is a hint on the next run.
    pub fn brief_answer(&self, files: Option<&str>, cores: u64, next: Option<&str>) -> Document {
        let AnsweredSummary { summary, answer } = self.answered;
        let workers = u64::from(self.derived.record.plan.loader.workers.max(1));
        let workers = u64::from(self.derived.record.plan.accelerators) * workers;
        let ceiling = files.and_then(|_| words::ceiling(answer, workers, cores));
        let step_s = units::seconds(self.derived.record.plan.train.compute.mean_s());
        let head = files.map(|files| match &ceiling {
            Some(_) => format!("{files}; compute time unknown: the loader's ceiling"),
            None => format!("{files}; steps of {step_s}"),
        });
        let mut lines: Vec<String> = next.map(str::to_string).into_iter().collect();
        let members = self.derived.record.members_line();
        lines.extend(members.filter(|_| files.is_none()).map(|line| format!("Files: {line}")));
        let command = if summary.run_dir.is_some() { "`feedrate show`" } else { "--details" };
        lines.extend(words::doubt_lines(answer, &summary.doubts, command));
        lines.extend(results_line(self.answered));
        let answer = match ceiling {
            Some(ceiling) => {
                let answer = [ceiling].into_iter().chain(self.client_line.clone());
                Block::Sentence(answer.chain(lines).collect::<Vec<_>>().join("\n"))
            }
            None => Block::Verdict(answer.kind, [self.lines(), lines].concat()),
        };
        Document::from(Vec::from_iter(head.map(Block::Heading).into_iter().chain([answer])))
    }

    /// The measurements below the answer, with the warnings and the names of the notes.
    pub fn measurements(&self) -> Document {
        self.page(Extent::Measurements)
    }

    /// All measurements and doubts, below the answer.
    pub fn details(&self) -> Document {
        self.page(Extent::All)
    }

    fn page(&self, extent: Extent) -> Document {
        let summary = &self.answered.summary;
        let answer = Block::Verdict(self.answered.answer.kind, self.lines());
        let mut blocks = vec![answer, Block::facts(rows::rows(self.answered, &self.derived))];
        if !self.derived.record.plan.is_checkpoint_only() {
            blocks.extend(table_of_epochs(&summary.per_epoch));
            blocks.extend(blocks_of_phases(&summary.phases));
            let mut latency = latency::latency_blocks(summary, &self.derived.io.read_latency);
            if extent == Extent::Measurements {
                // The percentiles suffice.
                latency.truncate(1);
            }
            blocks.extend(latency);
            blocks.extend(self.gpu_note().map(Block::Sentence));
        }
        let is_shown = |doubt: &&Doubt| extent == Extent::All || doubt.severity < Severity::Note;
        let (shown, notes): (Vec<&Doubt>, Vec<&Doubt>) = summary.doubts.iter().partition(is_shown);
        blocks.extend(blocks_of_doubts(shown));
        if !notes.is_empty() {
            let names = words::doubt_names(&notes);
            blocks.push(Block::Sentence(format!("Notes: {names}; `--details` explains them")));
        }
        blocks.extend(results_line(self.answered).map(Block::Sentence));
        Document::from(blocks)
    }

    /// The programs that used the GPUs, if their use is known and computing was emulated by waiting.
    fn gpu_note(&self) -> Option<String> {
        let computes = self.derived.record.plan.train.on_devices.is_some()
            || self.derived.record.watched.is_some();
        let mut phases = self.answered.summary.phases.iter();
        let is_shown = phases.len() > 1 && phases.any(|phase| phase.gpu_percent().is_some());
        (is_shown && !computes).then(|| format!("{GPUS_OF_OTHERS}."))
    }

    /// The lines of the answer.
    fn lines(&self) -> Vec<String> {
        let AnsweredSummary { summary, answer } = self.answered;
        let requests = self.requests.as_ref();
        answer_lines(answer, &summary.doubts, requests, &self.helps, self.client_line.clone())
    }
}

/// How much a page shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Measurements, with only the names of notes.
    Measurements,
    /// Everything.
    All,
}

/// Lines on the answer, the needed and delivered rates, requests if they matter, changes that would help, and the client.
pub(crate) fn answer_lines(
    answer: &Answer,
    doubts: &[Doubt],
    requests: Option<&SampleRequests>,
    helps: &[Advice],
    client_line: Option<String>,
) -> Vec<String> {
    let lines = words::lines(answer, doubts).into_iter();
    let requests_line = requests.map(words::requests_line);
    let helps = advice::would_help(helps, answer);
    lines.chain(requests_line).chain(helps).chain(client_line).collect()
}

/// The folder of the results.
fn results_line(answered: &AnsweredSummary) -> Option<String> {
    Some(format!("Results: {}", answered.summary.run_dir.as_ref()?))
}

/// Doubts with evidence and advice under a heading; empty without doubts.
pub fn blocks_of_doubts<'d>(doubts: impl IntoIterator<Item = &'d Doubt>) -> Vec<Block> {
    let items = Vec::from_iter(doubts.into_iter().map(|doubt| {
        let evidence = vec![Detail::new("", &[], &doubt.evidence)];
        Item::doubt(&doubt.name, doubt.severity, evidence, &doubt.advice)
    }));
    if items.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading("Doubts".into()), Block::List { first: None, items }]
}

/// The table of epochs; `None` for a single epoch, whose values equal the run's.
fn table_of_epochs(epochs: &[EpochSummary]) -> Option<Block> {
    let mut values = vec![
        ("Duration", &DURATION_S),
        ("AU all", &AU_ALL_STEPS),
        ("AU windowed", &AU_WINDOWED),
        ("AU sustained", &AU_SUSTAINED),
        ("Delivered", &DELIVERED_WHOLE),
        ("Device", &DEVICE_PER_SECOND),
    ];
    if epochs.iter().any(|epoch| epoch.figures.value(&GPU_UTILISATION).is_some()) {
        values.push(("GPU", &GPU_UTILISATION));
    }
    let rows = epochs.iter().map(|epoch| {
        let values = values.iter().map(|(_, metric)| known(&epoch.figures, metric));
        [epoch.epoch.to_string(), epoch.steps.to_string()].into_iter().chain(values)
    });
    let header = ["Epoch", "Steps"].into_iter().chain(values.iter().map(|(title, _)| *title));
    (epochs.len() > 1).then(|| Block::Table(ReportTable::from_text("", header, rows)))
}

/// The table of phases; empty if all phases are epochs, which have their own table.
fn blocks_of_phases(phases: &[Phase]) -> Vec<Block> {
    if phases.iter().all(|phase| phase.phase == PhaseKind::Epoch) {
        return Vec::new();
    }
    let has_gpus = phases.iter().any(|phase| phase.gpu_percent().is_some());
    let header = [
        "Phase",
        "Epoch",
        "Checkpoint",
        "AU",
        "Stall",
        "Duration",
        "Delivered",
        "Device",
        "Written",
        "CPU",
    ];
    let header = header.into_iter().chain(has_gpus.then_some("GPU"));
    let rows = phases.iter().take(PHASES_MAX).map(|phase| {
        let share = |share: Option<f64>| text::known(share, |share| percent(100.0 * share));
        let rate = |rate: Option<f64>| text::known(rate, units::bytes_per_second);
        [
            phase.phase.name().replace('_', " "),
            phase.epoch.to_string(),
            phase.checkpoint.map_or("", CheckpointKind::name).into(),
            marked_au(phase),
            share(phase.stall_share),
            units::seconds(phase.duration_s),
            rate(phase.delivered_bytes_per_second),
            rate(phase.device_bytes_per_second),
            rate(phase.written_bytes_per_second),
            share(phase.cpu_busy_share),
        ]
        .into_iter()
        .chain(has_gpus.then(|| text::known(phase.gpu_percent(), percent)))
    });
    let mut table = ReportTable::from_text("", header, rows);
    // The columns before the utilisation identify the row.
    table.columns[3].kind = ColumnKind::Utilisation;
    let mut blocks = vec![Block::Table(table)];
    let more = phases.len().saturating_sub(PHASES_MAX);
    if more > 0 {
        blocks.push(Block::Sentence(format!("and {more} more in phases.csv")));
    }
    blocks
}

/// The utilisation of a phase; around a checkpoint with the number of steps if there are few: `54.2 % (2 steps)`.
fn marked_au(phase: &Phase) -> String {
    let au = text::known(phase.au_percent, percent);
    match phase.too_few_steps().filter(|_| phase.au_percent.is_some()) {
        Some(steps) => format!("{au} ({})", units::counted(steps, "step")),
        None => au,
    }
}

/// An epoch in a line, with its AU if steps compute.
pub fn epoch_line(epoch: &EpochSummary, epochs: u32, computes: bool) -> String {
    // The same metric as in the answer.
    let metric = match epoch.figures.value(&AU_SUSTAINED) {
        Some(_) => &AU_SUSTAINED,
        None => &AU_ALL_STEPS,
    };
    let au =
        if computes { format!(" AU {},", known(&epoch.figures, metric)) } else { String::new() };
    format!(
        "epoch {}/{epochs}: {} in {},{au} {}",
        epoch.epoch,
        units::counted(epoch.steps, "step"),
        known(&epoch.figures, &DURATION_S),
        known(&epoch.figures, &DELIVERED_WHOLE),
    )
}

/// A checkpoint in a line.
pub fn checkpoint_line(checkpoint: &CheckpointRecord) -> String {
    let done = match checkpoint.kind {
        CheckpointKind::Save => "written",
        CheckpointKind::Load => "read",
    };
    let duration_s = checkpoint.duration_s();
    let rate = text::known(checkpoint.bytes_per_second(), units::bytes_per_second_rounded);
    format!(
        "checkpoint {} {done}: {} in {}, {rate}",
        checkpoint.after_step,
        units::bytes(checkpoint.bytes),
        units::seconds(duration_s),
    )
}
