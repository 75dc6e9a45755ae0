//! The report of DLIO's postprocessor: load and processing times and rates of all accelerators, by epoch and phase. Unknown values are
//! omitted.

use super::Evaluations;
use crate::metric::{Metric, NOMINAL_WINDOWED, SAMPLES_WINDOWED};
use crate::record::{Block, Record};
use crate::stats::{mean, stdev};
use crate::window::{Scope, seconds};
use feedrate_spec::units::MIB;

/// Columns of the postprocessor's tables.
const COLUMNS: [&str; 7] = ["mean", "std", "min", "median", "p90", "p99", "max"];

/// Returns the text of the report.
pub fn report(record: &Record) -> String {
    let evaluations = Evaluations::new(record, None);
    let plan = &record.plan;
    let samples = epoch_values(record, &SAMPLES_WINDOWED, 1.0);
    let bytes = epoch_values(record, &NOMINAL_WINDOWED, MIB);
    let mut lines = vec![
        "DLIO v1.0 Report\n".to_string(),
        "Note: training phases lasting less than 2 steps show n/a; rates add up over accelerators."
            .into(),
        format!("\nRun name: {}", plan.workload),
        format!("Accelerators: {}", plan.accelerators),
        format!("Epochs: {}", Scope::whole_epochs(record).count()),
        format!("Batch size: {}", plan.loader.batch_size),
        format!("Record size (bytes): {}", plan.dataset.record_bytes),
        "\nOverall".into(),
        header(),
        row("samples/s", &samples),
        row("MB/s", &bytes),
    ];
    for scope in Scope::whole_epochs(record) {
        lines.push(format!("\nEpoch {}", scope.epoch.number));
        let accelerators = scope.epoch.accelerators.iter();
        let blocks = accelerators.map(|accelerator| accelerator.blocks.len()).min().unwrap_or(0);
        for block in 0..blocks {
            lines.extend(phase_lines(&format!("block{}", block + 1), scope, block));
        }
        if let Some(evaluation) = evaluations.after(scope.epoch.number) {
            lines.extend(phase_lines("eval", evaluation, 0));
        }
    }
    lines.join("\n") + "\n"
}

fn epoch_values(record: &Record, metric: &Metric, unit: f64) -> Vec<f64> {
    metric.epoch_values(record).into_iter().flatten().map(|value| value / unit).collect()
}

/// Lines about one block or evaluation, over all accelerators.
fn phase_lines(name: &str, scope: Scope, block: usize) -> [String; 6] {
    let accelerators = scope.epoch.accelerators.iter();
    let blocks: Vec<&Block> =
        accelerators.filter_map(|accelerator| accelerator.blocks.get(block)).collect();
    let steps = blocks.iter().map(|block| block.steps()).min().unwrap_or(0);
    let batch = scope.plan.loader.batch_size as f64;
    let rates = (0..steps)
        .map(|step| blocks.iter().map(|block| batches_per_second(block, step)).sum::<f64>());
    let samples: Vec<f64> = rates.map(|rate| rate * batch).collect();
    let record_mib = scope.plan.dataset.record_bytes / MIB;
    let bytes: Vec<f64> = samples.iter().map(|rate| rate * record_mib).collect();
    let loading_s = mean_s(&blocks, |block| &block.load_ns);
    let processing_s = loading_s + mean_s(&blocks, |block| &block.compute_ns);
    [
        format!("{name}: {steps} steps"),
        header(),
        row("samples/s", &samples),
        row("MB/s", &bytes),
        format!("mean loading time of an accelerator (s): {loading_s:.2}"),
        format!("mean processing time of an accelerator (s): {processing_s:.2}"),
    ]
}

/// Batches per second in a step; 0 if the step took no time.
fn batches_per_second(block: &Block, step: usize) -> f64 {
    match block.load_ns[step] + block.compute_ns[step] {
        0 => 0.0,
        processing_ns => 1.0 / seconds(processing_ns),
    }
}

fn mean_s(blocks: &[&Block], times: fn(&Block) -> &[u64]) -> f64 {
    let total_ns: u64 = blocks.iter().flat_map(|block| times(block)).sum();
    seconds(total_ns) / blocks.len().max(1) as f64
}

fn header() -> String {
    COLUMNS.iter().fold(format!("{:<12}", ""), |line, column| format!("{line}{column:>12}"))
}

fn row(name: &str, series: &[f64]) -> String {
    let values = statistics(series);
    values.iter().fold(format!("{name:<12}"), |line, value| match value {
        Some(value) => format!("{line}{value:>12.2}"),
        None => format!("{line}{:>12}", "n/a"),
    })
}

/// Statistics in the order of [`COLUMNS`], computed as in Python's `statistics` module: the sample standard deviation, and quantiles with
/// `method='inclusive'`. All are `None` for fewer than two values.
fn statistics(series: &[f64]) -> [Option<f64>; 7] {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [min, .., max] = sorted[..] else { return [None; 7] };
    let median = Some(quantile(&sorted, 0.5));
    let p90 = Some(quantile(&sorted, 0.9));
    let p99 = Some(quantile(&sorted, 0.99));
    [mean(&sorted), stdev(&sorted), Some(min), median, p90, p99, Some(max)]
}

/// A quantile of at least two sorted values, interpolated linearly.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + position.fract() * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;

    /// Expected values are from Python 3.11: `statistics.quantiles(range(1, 12), n=100, method='inclusive')`, `mean` and `stdev`.
    #[test]
    fn statistics_equal_pythons() {
        let series: Vec<f64> = (1..12).map(f64::from).collect();
        let expected = [6.0, 3.3166247903554, 1.0, 6.0, 10.0, 10.9, 11.0];
        for (value, expected) in statistics(&series).into_iter().zip(expected) {
            assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?} {expected}");
        }
        assert_eq!(statistics(&[1.0]), [None; 7]);
    }

    #[test]
    fn the_report_has_a_section_for_each_epoch() {
        let record = simple(&[(10, 10, 0, 1), (5, 10, 5, 2), (0, 10, 0, 3)]);
        let text = report(&record);
        for epoch in &record.epochs {
            assert!(text.contains(&format!("\nEpoch {}\n", epoch.number)), "{text}");
        }
        assert!(text.contains("samples/s") && text.contains("mean loading time"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
