//! Builds the tables of a report: experiments, their epochs and checkpoints, and runs.

use crate::experiment::{EpochMiddles, PhaseMiddles, ReportedExperiment, SaveMiddles, experiments};
use crate::number::{UNKNOWN, count_names, megabytes, percent, run_numbers, significant};
use crate::plot::GPUS_OF_OTHERS;
use crate::report::{Report, ReportedRun};
use crate::table::{ColumnKind, ReportTable, TableCell};
use crate::words::answer::{doubt_names, passes};
use feedrate_analysis::design::{PROCESSES, SOURCE};
use feedrate_analysis::estimate::Middle;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, SAMPLES_WHOLE,
};
use feedrate_measure::stats::mean;
use feedrate_results::groups::{CheckpointGroup, Passes, first_step_units};
use feedrate_results::import::Bound;
use feedrate_results::run::{Run, Submission};
use feedrate_spec::units;
use std::collections::{BTreeMap, BTreeSet};

/// The table of runs, with a row for each.
pub(super) fn table_of_runs(report: &Report) -> ReportTable {
    let runs: Vec<&ReportedRun> = report.runs.iter().collect();
    let mut table = ReportTable::new("One row per run. Its number links to its record.");
    table.is_of_runs = true;
    table.muted = (0..runs.len()).filter(|&index| runs[index].unused().is_some()).collect();
    let numbers = runs.iter().enumerate().map(|(index, run)| {
        let number = TableCell::from(Some(index as u64 + 1));
        let link = run.link.iter().map(|link| (number.text.clone(), link.clone()));
        TableCell { links: link.collect(), ..number }
    });
    table.add("Run", ColumnKind::Number, numbers);
    if !table.muted.is_empty() {
        table.title += " Runs that are not used are grey.";
        let why = runs.iter().map(|run| run.unused().unwrap_or_default());
        table.add("Not used", ColumnKind::Text, why);
    }
    add_settings(&mut table, report, &runs);
    let measured = |metric| runs.iter().map(move |run| run.run.metric(metric));
    add_au(&mut table, "AU all steps (%)", measured(&AU_ALL_STEPS));
    add_au(&mut table, "AU windowed (%)", measured(&AU_WINDOWED));
    // Shown only if files report another value than their steps yield.
    let reported = runs.iter().map(|run| run.run.reported_au_percent());
    let mut pairs = reported.clone().zip(measured(&AU_WINDOWED));
    let differs = |(reported, windowed): (Option<f64>, Option<f64>)| {
        reported.is_some() && percent(reported) != percent(windowed)
    };
    if pairs.any(differs) {
        add_au(&mut table, "AU reported (%)", reported);
    }
    if has_sustained(report) {
        add_au(&mut table, "AU sustained (%)", measured(&AU_SUSTAINED));
    }
    let read = runs.iter().map(|run| {
        rate_cell(
            TableCell::written(run.run.metric(&DELIVERED_WHOLE), megabytes),
            run.is_estimated(),
        )
    });
    table.add(read_heading(&runs), ColumnKind::Rate, read);
    let samples = measured(&SAMPLES_WHOLE).map(|rate| TableCell::written(rate, significant));
    table.add("Samples/s", ColumnKind::Rate, samples);
    table.add("Epochs", ColumnKind::Number, runs.iter().map(|run| Some(run.run.epochs)));
    table.add("Doubts", ColumnKind::Text, runs.iter().map(|run| doubt_cell(report, run)));
    let folders = runs.iter().map(|run| run.run.path.display().to_string());
    table.add("Folder", ColumnKind::Text, folders);
    table
}

/// The doubts of a run that could change its answer, with a link to the evidence of each doubt.
fn doubt_cell(report: &Report, run: &ReportedRun) -> TableCell {
    let relevant = run.relevant_doubts();
    let links = relevant.iter().filter_map(|doubt| {
        let index = report.doubts.iter().position(|seen| seen.name == doubt.name)?;
        Some((doubt.name.clone(), format!("#{}", report.doubt_id(index))))
    });
    let value = Some(relevant.len() as f64);
    TableCell { text: doubt_names(&relevant), value, links: links.collect() }
}

/// The table of checkpoints of runs without training.
pub(super) fn table_of_checkpoints(report: &Report) -> ReportTable {
    let mut table = ReportTable::new("Checkpoints of runs without training, means of their runs.");
    let groups = &report.checkpoints;
    let system = |group: &CheckpointGroup| {
        group.submission.as_ref().map_or(String::new(), Submission::to_string)
    };
    table.add("System", ColumnKind::Text, groups.iter().map(system));
    table.add("Workload", ColumnKind::Text, groups.iter().map(|group| &group.workload));
    let accelerators = groups.iter().map(|group| group.accelerators.map(u64::from));
    table.add("Processes", ColumnKind::Number, accelerators);
    table.add("n", ColumnKind::Number, groups.iter().map(|group| Some(group.runs.len() as u64)));
    let mut add = |name: &str, value: fn(&CheckpointGroup) -> Option<f64>| {
        let cells = groups.iter().map(|group| TableCell::written(value(group), megabytes));
        table.add(name, ColumnKind::Number, cells);
    };
    add("Size (MB)", |group| group.bytes);
    add("Written (MB/s)", |group| group.written_bytes_per_second);
    add("Read (MB/s)", |group| group.read_bytes_per_second);
    table.without_empty_columns()
}

/// Maximum number of columns for epochs: half for the first epochs, half for the last.
const EPOCHS_MAX: usize = 8;

/// Tables of utilisation and throughput by epoch and around checkpoints, for experiments with at least two epochs or with a checkpoint.
pub(super) fn tables_over_time(report: &Report) -> Vec<ReportTable> {
    let all = experiments(report);
    let several: Vec<&ReportedExperiment> =
        all.iter().filter(|experiment| 1 < experiment.epochs.len()).collect();
    let mut tables = Vec::new();
    if !several.is_empty() {
        let title = "AU over all steps (%) by epoch";
        tables.push(table_by_epoch(report, &several, title, ColumnKind::Utilisation, |epoch| {
            mean_cell(&epoch.au_all_steps_percent, percent)
        }));
        let title = "Samples/s by epoch";
        tables.push(table_by_epoch(report, &several, title, ColumnKind::Rate, |epoch| {
            mean_cell(&epoch.samples_per_second, significant)
        }));
        let is_known = |value: fn(&EpochMiddles) -> Middle| {
            let mut epochs = several.iter().flat_map(|experiment| &experiment.epochs);
            epochs.any(|epoch| value(epoch).estimate.is_some())
        };
        if is_known(|epoch| epoch.device_bytes_per_second) {
            let title = "MB/s from the device by epoch";
            tables.push(table_by_epoch(report, &several, title, ColumnKind::Rate, |epoch| {
                mean_cell(&epoch.device_bytes_per_second, megabytes)
            }));
        }
        if is_known(|epoch| epoch.gpu_percent) {
            let title = with_gpu_note(report, "GPU use (%) by epoch");
            tables.push(table_by_epoch(report, &several, &title, ColumnKind::Number, |epoch| {
                mean_cell(&epoch.gpu_percent, percent)
            }));
        }
    }
    let saving: Vec<&ReportedExperiment> =
        all.iter().filter(|experiment| experiment.saves.is_some()).collect();
    if !saving.is_empty() {
        tables.push(table_around_checkpoints(report, &saving));
    }
    tables
}

/// A table with a column for each epoch.
fn table_by_epoch(
    report: &Report,
    several: &[&ReportedExperiment],
    title: &str,
    kind: ColumnKind,
    cell: fn(&EpochMiddles) -> TableCell,
) -> ReportTable {
    let mut table = experiment_table(report, several, format!("{title}. {MEANS}"));
    let epochs = several.iter().map(|experiment| experiment.epochs.len()).max().unwrap_or(0);
    let first = EPOCHS_MAX / 2;
    let last = epochs.saturating_sub(EPOCHS_MAX / 2);
    for epoch in 0..epochs {
        if epochs <= EPOCHS_MAX || epoch < first || last <= epoch {
            let cells = several.iter().map(|experiment| experiment.epochs.get(epoch));
            let cells = cells.map(|epoch| epoch.map_or_else(TableCell::default, cell));
            table.add(&format!("Epoch {}", epoch + 1), kind, cells);
        }
    }
    table
}

const MEANS: &str = "Means of n runs (geometric for rates), with 95 % intervals if n > 1.";

/// A table of training before, during and after checkpoints.
fn table_around_checkpoints(report: &Report, saving: &[&ReportedExperiment]) -> ReportTable {
    let saves: Vec<SaveMiddles> = saving.iter().filter_map(|experiment| experiment.saves).collect();
    let phases = saves.iter().flat_map(|save| [save.before, save.during, save.after]);
    let has_gpus = phases.map(|phase| phase.gpu_percent.estimate).any(|percent| percent.is_some());
    let title = "Training before, during and after written checkpoints; a dash if nothing is known. Rates of too few steps are marked";
    let title = if has_gpus { with_gpu_note(report, title) } else { title.to_string() };
    let mut table = experiment_table(report, saving, format!("{title}. {MEANS}"));
    let counts = saves.iter().map(|save| Some(save.count as u64));
    table.add("Checkpoints", ColumnKind::Number, counts);
    use ColumnKind::{Number, Rate, Utilisation};
    let mut add = |name: &str, kind: ColumnKind, value: fn(&SaveMiddles) -> Middle| {
        let text = if kind == Utilisation { percent } else { significant };
        table.add(name, kind, saves.iter().map(|save| mean_cell(&value(save), text)));
    };
    add("Duration (s)", Number, |save| save.duration_s);
    add("AU before (%)", Utilisation, |save| save.before.au_percent);
    add("AU during (%)", Utilisation, |save| save.during.au_percent);
    add("AU after (%)", Utilisation, |save| save.after.au_percent);
    add("GPU use before (%)", Number, |save| save.before.gpu_percent);
    add("GPU use during (%)", Number, |save| save.during.gpu_percent);
    add("GPU use after (%)", Number, |save| save.after.gpu_percent);
    let mut add = |name: &str, phase: fn(&SaveMiddles) -> PhaseMiddles| {
        let cells = saves.iter().map(|save| samples_cell(&phase(save)));
        table.add(&format!("Samples/s {name}"), Rate, cells);
    };
    add("before", |save| save.before);
    add("during", |save| save.during);
    add("after", |save| save.after);
    let mut add = |name: &str, value: fn(&SaveMiddles) -> Middle| {
        let cells = saves.iter().map(|save| mean_cell(&value(save), megabytes));
        table.add(&format!("Device MB/s {name}"), Rate, cells);
    };
    add("read before", |save| save.before.device_bytes_per_second);
    add("read during", |save| save.during.device_bytes_per_second);
    add("read after", |save| save.after.device_bytes_per_second);
    add("written during", |save| save.during.device_written_bytes_per_second);
    table.without_empty_columns()
}

/// The throughput of a phase, marked if the phase of a checkpoint has too few steps: `12.3 (2 steps)`.
fn samples_cell(phase: &PhaseMiddles) -> TableCell {
    let mut cell = mean_cell(&phase.samples_per_second, significant);
    if let Some(steps) = phase
        .steps_min
        .filter(|_| phase.has_too_few_steps && phase.samples_per_second.estimate.is_some())
    {
        cell.text += &format!(" ({})", units::counted(steps, "step"));
    }
    cell
}

/// A title with a note on GPU use if no run computed on GPUs.
fn with_gpu_note(report: &Report, title: &str) -> String {
    let is_of_others = !report.used().any(|run| run.run.computes_on_devices);
    if is_of_others { format!("{title}. {GPUS_OF_OTHERS}") } else { title.to_string() }
}

fn add_au(table: &mut ReportTable, name: &str, values: impl Iterator<Item = Option<f64>>) {
    table.add(
        name,
        ColumnKind::Utilisation,
        values.map(|value| TableCell::written(value, percent)),
    );
}

/// A table with the settings and the number of runs of experiments.
fn experiment_table(
    report: &Report,
    experiments: &[&ReportedExperiment],
    title: String,
) -> ReportTable {
    let mut table = ReportTable::new(title);
    let firsts: Vec<&ReportedRun> =
        experiments.iter().map(|experiment| &report.runs[experiment.runs[0]]).collect();
    add_settings(&mut table, report, &firsts);
    table.add(
        "n",
        ColumnKind::Number,
        experiments.iter().map(|experiment| Some(experiment.runs.len() as u64)),
    );
    table
}

/// The table of all experiments, with the target that their runs should reach.
pub(super) fn table_of_experiments(report: &Report) -> ReportTable {
    let all = experiments(report);
    let runs_of = |experiment: &ReportedExperiment| {
        Vec::from_iter(experiment.runs.iter().map(|&run| &report.runs[run].run))
    };
    let title = format!("{MEANS}{}", exclusions(report));
    let mut table = experiment_table(report, &all.iter().collect::<Vec<_>>(), title);
    let all_steps = all.iter().map(|experiment| {
        let bound = runs_of(experiment).iter().find_map(|run| run.bound);
        mark_bound(mean_cell(&experiment.au_all_steps_percent, percent), bound)
    });
    table.add("AU all steps (%)", ColumnKind::Utilisation, all_steps);
    let windowed = all.iter().map(|experiment| mean_cell(&experiment.au_windowed_percent, percent));
    table.add("AU windowed (%)", ColumnKind::Utilisation, windowed);
    if has_sustained(report) {
        let sustained =
            all.iter().map(|experiment| mean_cell(&experiment.au_sustained_percent, percent));
        table.add("AU sustained (%)", ColumnKind::Utilisation, sustained);
    }
    let reported = all.iter().map(|experiment| {
        let values = runs_of(experiment).into_iter().map(Run::reported_au_percent);
        values.collect::<Option<Vec<f64>>>().and_then(|values| mean(&values))
    });
    let windowed = all.iter().map(|experiment| experiment.au_windowed_percent.estimate);
    let is_misreported = reported
        .clone()
        .zip(windowed)
        .any(|(reported, windowed)| reported.is_some() && percent(reported) != percent(windowed));
    if is_misreported {
        add_au(&mut table, "AU reported (%)", reported);
    }
    let targets = all
        .iter()
        .map(|experiment| TableCell::number(report.runs[experiment.runs[0]].run.bar_percent));
    let targets: Vec<TableCell> = targets.collect();
    if targets.iter().any(|target| target.value.is_some()) {
        if targets.iter().all(|target| *target == targets[0]) {
            table.title += &format!(" The target is {} % AU.", targets[0].text);
        } else {
            table.add("Target (%)", ColumnKind::Number, targets);
        }
        let runs = || all.iter().map(|experiment| runs_of(experiment).into_iter());
        let over_all: Vec<String> =
            runs().map(|runs| passes(Passes::over_all_steps(runs))).collect();
        let as_reported: Vec<String> =
            runs().map(|runs| passes(Passes::as_reported(runs))).collect();
        let differ = over_all != as_reported;
        table.add("Reach target, all steps", ColumnKind::Text, over_all);
        if differ {
            table.add("Reach target, as reported", ColumnKind::Text, as_reported);
        }
    }
    let first_step = all.iter().map(|experiment| {
        let units: Vec<f64> =
            runs_of(experiment).into_iter().filter_map(first_step_units).collect();
        TableCell::written(mean(&units), percent)
    });
    table.add("First step (× threads × compute)", ColumnKind::Number, first_step);
    let read = all.iter().map(|experiment| {
        rate_cell(mean_cell(&experiment.bytes_per_second, megabytes), experiment.is_estimated)
    });
    let firsts: Vec<&ReportedRun> =
        all.iter().map(|experiment| &report.runs[experiment.runs[0]]).collect();
    table.add(read_heading(&firsts), ColumnKind::Rate, read);
    let samples =
        all.iter().map(|experiment| mean_cell(&experiment.samples_per_second, significant));
    table.add("Samples/s", ColumnKind::Rate, samples);
    table.without_empty_columns()
}

/// A sentence on excluded runs with results: ` Without run 11 (missing_ranks), runs 3, 4 (negative_rate).`
fn exclusions(report: &Report) -> String {
    let mut reasons: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let results = report.runs.iter().enumerate().filter(|(_, run)| run.run.has_result());
    for (index, reason) in results.filter_map(|(index, run)| Some((index, run.unused()?))) {
        reasons.entry(reason).or_default().push(index);
    }
    let parts = reasons.iter().map(|(reason, runs)| format!("{} ({reason})", run_numbers(runs)));
    let text = parts.collect::<Vec<_>>().join(", ");
    if text.is_empty() { text } else { format!(" Without {text}.") }
}

/// Marks the cell if its value is only a bound.
fn mark_bound(cell: TableCell, bound: Option<Bound>) -> TableCell {
    let mark = match bound {
        None => return cell,
        Some(Bound::AtMost) => "≤",
        Some(Bound::AtLeast) => "≥",
    };
    TableCell { text: format!("{mark} {}", cell.text), ..cell }
}

/// Adds a column for each setting that differs between runs; equal settings go into the title. An experiment has the settings of its first run.
fn add_settings(table: &mut ReportTable, report: &Report, runs: &[&ReportedRun]) {
    let mut same = Vec::new();
    let (columns, baseline) = settings(report, runs);
    for (name, kind, cells) in columns {
        let texts: BTreeSet<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
        match texts.into_iter().collect::<Vec<_>>()[..] {
            [] | [""] | [UNKNOWN] => {}
            [text] => same.push(format!("{} {text}", name.to_lowercase())),
            _ => table.add(&name, kind, cells),
        }
    }
    if !same.is_empty() {
        table.title += &format!(" Same for all: {}.", same.join(", "));
    }
    if let Some(baseline) = baseline {
        table.title += &format!(" Other settings of each: {}.", baseline.join(", "));
    }
}

/// Index of the column of processes, which the factors follow.
const PROCESSES_COLUMN: usize = 3;

/// Name, kind and cells.
type Column = (String, ColumnKind, Vec<TableCell>);

/// The columns of settings. If runs differ in one factor at a time, its name and level replace a column for each factor; then also returns the
/// levels that all others have.
fn settings(report: &Report, runs: &[&ReportedRun]) -> (Vec<Column>, Option<Vec<String>>) {
    let text = |name: &str, cell: &dyn Fn(&ReportedRun) -> TableCell| -> Column {
        (name.into(), ColumnKind::Text, runs.iter().map(|run| cell(run)).collect())
    };
    let mut columns = vec![
        text("Source", &|run| match report.sources.get(run.source) {
            Some(source) if report.has_several_sources() => (&source.path).into(),
            _ => TableCell::default(),
        }),
        text("System", &|run| {
            run.run.submission.as_ref().map_or(String::new(), Submission::to_string).into()
        }),
        text("Workload", &|run| (&run.run.workload).into()),
        text("Processes", &|run| run.run.accelerators.map(u64::from).into()),
    ];
    columns[PROCESSES_COLUMN].1 = ColumnKind::Number;
    let names: BTreeSet<&str> =
        runs.iter().flat_map(|run| run.factors.keys()).map(String::as_str).collect();
    for name in names.into_iter().filter(|name| ![PROCESSES, SOURCE].contains(name)) {
        let cell = |run: &ReportedRun| {
            let level = run.factors.get(name);
            let level =
                level.map(|text| (crate::number::level(name, text), TableCell::level(text)));
            level.map_or_else(TableCell::default, |(text, cell)| TableCell { text, ..cell })
        };
        let (name, _, cells) = text(name, &cell);
        let is_number = cells.iter().all(|cell| cell.value.is_some() || cell.text.is_empty());
        let kind = if is_number { ColumnKind::Number } else { ColumnKind::Text };
        columns.push((name, kind, cells));
    }
    let varied = [
        text("Parameter", &|run| (&run.run.parameter).into()),
        text("Value", &|run| TableCell::level(&run.run.value)),
    ];
    let baseline = one_factor_baseline(&columns[PROCESSES_COLUMN..], runs);
    if baseline.is_some() {
        let factors = columns.split_off(PROCESSES_COLUMN);
        let is_same = |(_, _, cells): &Column| cells.iter().all(|cell| cell.text == cells[0].text);
        columns.extend(factors.into_iter().filter(is_same));
    }
    if baseline.is_some() || !shows_variation(&columns, runs) {
        columns.extend(varied);
    }
    (columns, baseline)
}

/// Minimum number of factors of which one changes at a time.
const FACTORS_MIN: usize = 3;

/// The most common level of each factor, with its name. `None` unless each run differs from these in at most one factor, and its parameter and
/// value determine its levels.
fn one_factor_baseline(factors: &[Column], runs: &[&ReportedRun]) -> Option<Vec<String>> {
    let used = || runs.iter().enumerate().filter(|(_, run)| run.unused().is_none());
    let mut deviations = vec![0; runs.len()];
    let mut baseline = Vec::new();
    for (name, _, cells) in factors {
        let counts = count_names(used().map(|(index, _)| cells[index].text.as_str()));
        let [(commonest, _), _, ..] = counts[..] else { continue };
        baseline.push(format!("{} {commonest}", name.to_lowercase()));
        for (index, _) in used() {
            deviations[index] += usize::from(cells[index].text != commonest);
        }
    }
    let is_found = FACTORS_MIN <= baseline.len()
        && deviations.iter().all(|count| *count <= 1)
        && are_determined(used().map(|(index, run)| (varied(run), row_texts(factors, index))));
    is_found.then_some(baseline)
}

/// Whether runs that differ in parameter or value also differ in a column.
fn shows_variation(columns: &[Column], runs: &[&ReportedRun]) -> bool {
    let used = runs.iter().enumerate().filter(|(_, run)| run.unused().is_none());
    are_determined(used.map(|(index, run)| (row_texts(columns, index), varied(run))))
}

/// Whether equal keys always have equal values.
fn are_determined<K: Ord, V: Clone + PartialEq>(mut pairs: impl Iterator<Item = (K, V)>) -> bool {
    let mut known: BTreeMap<K, V> = BTreeMap::new();
    pairs.all(|(key, value)| *known.entry(key).or_insert_with(|| value.clone()) == value)
}

fn row_texts(columns: &[Column], row: usize) -> Vec<&str> {
    columns.iter().map(|(_, _, cells)| cells[row].text.as_str()).collect()
}

/// Parameter and value of a run.
fn varied(run: &ReportedRun) -> [&str; 2] {
    [run.run.parameter.as_str(), run.run.value.as_str()]
}

fn mean_cell(middle: &Middle, text: fn(Option<f64>) -> String) -> TableCell {
    TableCell::middle(middle.estimate, middle.interval, |value| text(Some(value)))
}

/// The heading of read rates, which explains the mark of estimates.
fn read_heading(runs: &[&ReportedRun]) -> &'static str {
    let is_marked = runs.iter().any(|run| run.is_estimated());
    if is_marked { "Read (MB/s, ≈ estimated)" } else { "Read (MB/s)" }
}

/// The cell of a rate, marked if its bytes are estimated.
fn rate_cell(cell: TableCell, is_estimated: bool) -> TableCell {
    match cell.value {
        Some(_) if is_estimated => TableCell { text: format!("≈ {}", cell.text), ..cell },
        _ => cell,
    }
}

/// Whether any run has a sustained utilisation. Runs of DLIO have none.
fn has_sustained(report: &Report) -> bool {
    report.runs.iter().any(|run| run.run.metric(&AU_SUSTAINED).is_some())
}

#[cfg(test)]
mod tests;
