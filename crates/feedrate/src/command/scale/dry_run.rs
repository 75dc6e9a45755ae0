//! `feedrate scale --dry-run`: how many runs, bytes and minutes a search would take. Runs nothing.

use super::ScaleArguments;
use super::range::SearchRange;
use crate::{catalog, messages, text};
use feedrate_report::output::Schema;
use feedrate_spec::plan::Plan;
use feedrate_spec::units;
use serde_json::json;

/// Tell it.
pub(super) fn tell(
    arguments: &ScaleArguments,
    range: &SearchRange<'_>,
    budget_s: f64,
) -> anyhow::Result<()> {
    let (from, max) = (arguments.from.get(), range.max);
    let [first, last] = [from, max].map(|number| range.plan(number));
    let (first, last) = (first?, last?);
    let dataset_bytes = catalog::estimate(&last).file_bytes;
    let [first_bytes, last_bytes] = [&first, &last].map(read_bytes);
    let run_s = run_s(&first).min(run_s(&last));
    // Without noise: doublings, halvings, and a second value at the start and on both sides of the edge.
    let without_noise = (2.0 * (max as f64 / from as f64).log2()).ceil() as u64 + 4;
    let runs = without_noise.min(arguments.max_runs);
    let least_s = run_s * runs as f64;
    if arguments.data.json {
        messages::print_json(Schema::ScaleDryRun.object(json!({
            "runs_without_noise": runs,
            "max_runs": arguments.max_runs,
            "dataset_bytes": dataset_bytes,
            "read_bytes_per_run": [first_bytes, last_bytes],
            "read_bytes": last_bytes.saturating_mul(arguments.max_runs),
            "seconds_per_run_least": run_s,
            "seconds_least": least_s,
            "budget_s": budget_s,
            "from": from,
            "max": max,
            "overrides": range.added(),
            "notes": range.notes,
        })))?;
        return Ok(());
    }
    let runs_max = units::counted(arguments.max_runs, "run");
    messages::print_page(&text::rows(&[
        ("numbers", format!("{} to {}", units::count(from), range.words(max))),
        ("runs", format!("up to {runs} without noise, at most {}", arguments.max_runs)),
        ("dataset", format!("{} on storage, the same for all", units::bytes(dataset_bytes))),
        (
            "each run reads",
            format!("{} to {}", units::bytes(first_bytes), units::bytes(last_bytes)),
        ),
        (
            "all read",
            format!(
                "at most {} in {runs_max}",
                units::bytes(last_bytes.saturating_mul(arguments.max_runs))
            ),
        ),
        (
            "time",
            format!(
                "{} for {} if no accelerator waits, about {} at most (`--budget`), beside making the dataset",
                units::seconds(least_s),
                units::counted(runs, "run"),
                units::seconds(budget_s.max(run_s)),
            ),
        ),
        ("set in every run", range.added().join(" ")),
    ]))?;
    Ok(())
}

/// Bytes that a run reads.
fn read_bytes(plan: &Plan) -> u64 {
    let of = catalog::estimate(plan);
    let samples = plan.loader.batch_size.saturating_mul(plan.accelerators.into());
    (of.sample_read_bytes_mean * samples.saturating_mul(of.steps) as f64) as u64
}

/// The least that a run takes: compute alone.
fn run_s(plan: &Plan) -> f64 {
    plan.train.steps() as f64 * plan.train.compute.mean_s()
}
