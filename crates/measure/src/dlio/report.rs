//! The report that DLIO's postprocessor makes of a run: load and processing times and rates, by epoch and phase, over all
//! accelerators. What is not known is left out.

use super::Evaluations;
use crate::metric::{NOMINAL_WINDOWED, SAMPLES_WINDOWED};
use crate::record::{AcceleratorEpoch, Block, Record};
use crate::window::{Scope, seconds};
use feedrate_spec::units::MIB;
use std::fmt::Write;

/// The postprocessor's own columns.
const COLUMNS: [&str; 7] = ["mean", "std", "min", "median", "p90", "p99", "max"];

pub(super) fn of(record: &Record, evaluations: &Evaluations) -> String {
    let mut text = String::from("DLIO v1.0 Report\n\n");
    let mut put = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    put(
        "Note: training phases lasting less than 2 steps show n/a; rates add up over accelerators."
            .into(),
    );
    put(format!(
        "\nRun name: {}\nAccelerators: {}",
        record.plan.workload, record.plan.accelerators
    ));
    let epochs = Scope::all(record).count();
    put(format!("Epochs: {epochs}\nBatch size: {}", record.plan.loader.batch_size));
    put(format!("Record size (bytes): {}", record.plan.dataset.record_bytes));
    let each =
        |of: fn(Scope) -> Option<f64>| -> Vec<f64> { Scope::all(record).filter_map(of).collect() };
    put("\nOverall".into());
    put(header());
    put(row("samples/s", &each(SAMPLES_WINDOWED.of_epoch)));
    let bytes: Vec<f64> = each(NOMINAL_WINDOWED.of_epoch).iter().map(|rate| rate / MIB).collect();
    put(row("MB/s", &bytes));
    for scope in Scope::all(record) {
        put(format!("\nEpoch {}", scope.epoch.number));
        let blocks = scope.epoch.accelerators.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
        for block in 0..blocks {
            put(phase(&format!("block{}", block + 1), scope, block));
        }
        if let Some(evaluation) = evaluations.after(scope.epoch.number) {
            put(phase("eval", evaluation, 0));
        }
    }
    text
}

/// One block of all accelerators.
fn phase(name: &str, scope: Scope, number: usize) -> String {
    let blocks: Vec<&Block> = scope
        .epoch
        .accelerators
        .iter()
        .filter_map(|one: &AcceleratorEpoch| one.blocks.get(number))
        .collect();
    let steps = blocks.iter().map(|block| block.steps()).min().unwrap_or(0);
    let batch = scope.plan.loader.batch_size as f64;
    let record_mib = scope.plan.dataset.record_bytes / MIB;
    let rate = |step: usize| -> f64 {
        let of = |block: &&Block| {
            let processing_ns = block.load_ns.get(step)? + block.compute_ns.get(step)?;
            (processing_ns > 0).then(|| batch / seconds(processing_ns))
        };
        blocks.iter().filter_map(of).sum()
    };
    let samples: Vec<f64> = (0..steps).map(rate).collect();
    let bytes: Vec<f64> = samples.iter().map(|rate| rate * record_mib).collect();
    let mean_s = |times: fn(&Block) -> u64| {
        let all_ns: u64 = blocks.iter().map(|block| times(block)).sum();
        seconds(all_ns) / blocks.len().max(1) as f64
    };
    let loading_s = mean_s(|block| block.load_ns.iter().sum());
    let processing_s = loading_s + mean_s(|block| block.compute_ns.iter().sum());
    let mut text = format!("{name}: {steps} steps\n{}\n", header());
    let _ = writeln!(text, "{}", row("samples/s", &samples));
    let _ = writeln!(text, "{}", row("MB/s", &bytes));
    let _ = write!(
        text,
        "mean loading time of an accelerator (s): {loading_s:.2}\nmean processing time of an accelerator (s): {processing_s:.2}"
    );
    text
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

/// In the order of [`COLUMNS`], as Python's `statistics` has them: the sample's deviation, and quantiles that include both ends.
fn statistics(series: &[f64]) -> [Option<f64>; 7] {
    if series.len() < 2 {
        return [None; 7];
    }
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let quantile = |share: f64| {
        let at = share * (n - 1.0);
        let (below, part) = (at as usize, at.fract());
        let above = (below + 1).min(sorted.len() - 1);
        sorted[below] + part * (sorted[above] - sorted[below])
    };
    let values = [mean, (squares / (n - 1.0)).sqrt(), sorted[0]];
    let quantiles = [quantile(0.5), quantile(0.9), quantile(0.99), sorted[sorted.len() - 1]];
    let mut all = [None; 7];
    for (place, value) in all.iter_mut().zip(values.into_iter().chain(quantiles)) {
        *place = Some(value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;

    /// `statistics.quantiles(range(1, 12), n=100, method='inclusive')` and its friends of Python 3.11.
    #[test]
    fn statistics_are_pythons() {
        let series: Vec<f64> = (1..12).map(f64::from).collect();
        let expected = [6.0, 3.3166247903554, 1.0, 6.0, 10.0, 10.9, 11.0];
        for (value, expected) in statistics(&series).into_iter().zip(expected) {
            assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?} {expected}");
        }
        assert_eq!(statistics(&[1.0]), [None; 7]);
    }

    #[test]
    fn each_phase_of_each_epoch_is_there() {
        let record = simple(&[(10, 10, 0, 1), (5, 10, 5, 2), (0, 10, 0, 3)]);
        let text = of(&record, &Evaluations(None));
        for epoch in &record.epochs {
            assert!(text.contains(&format!("\nEpoch {}\n", epoch.number)), "{text}");
        }
        assert!(text.contains("samples/s") && text.contains("mean loading time"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
