//! `feedrate plan`: what would run, before it runs.

use crate::cli::DataArguments;
use crate::dataset::{self, DatasetRequest};
use crate::exit::Exit;
use crate::resolve::{Resolved, Unheeded, resolve, unheeded};
use crate::text;
use crate::{catalog, messages};
use feedrate_spec::plan::{CheckpointPlan, Estimate, EvaluationPlan, Request};
use feedrate_spec::units;
use feedrate_spec::workload::resolved_yaml;

/// Print the plan.
pub(crate) fn plan(arguments: &DataArguments) -> anyhow::Result<Exit> {
    let resolved = resolve(arguments, Request::default())?;
    let estimate = catalog::estimate(&resolved.plan);
    if arguments.foreign {
        let request =
            DatasetRequest { root: &resolved.data_root, foreign: true, check_files: false };
        dataset::choose(&resolved.plan, &request)?;
    }
    let unheeded: Vec<Unheeded> = unheeded(&resolved.workload).collect();
    if arguments.json {
        messages::print(serde_json::json!({
            "plan": resolved.plan,
            "estimate": estimate,
            "checkpoint": resolved.plan.checkpoint,
            "without_effect": unheeded,
            "config": resolved_yaml(&resolved.workload),
        }));
    } else {
        messages::print(describe(&resolved, &estimate, &unheeded));
    }
    Ok(Exit::Fine)
}

fn describe(resolved: &Resolved, estimate: &Estimate, unheeded: &[Unheeded]) -> String {
    let plan = &resolved.plan;
    let mut rows: Vec<(&str, String)> = vec![
        ("workload", format!("{} (model {})", plan.workload, plan.model)),
        ("accelerators", units::count(plan.accelerators.into())),
    ];
    if !plan.is_checkpoints_alone() {
        rows.extend(training(resolved, estimate));
    }
    if let Some(evaluation) = &plan.evaluation {
        rows.push(("evaluation", self::evaluation(evaluation)));
    }
    if let Some(checkpoint) = &plan.checkpoint {
        rows.push(("checkpoint", self::checkpoint(checkpoint)));
    }
    let mut out = text::rows(&rows);
    for doubt in &plan.doubts {
        out.push_str(&format!("\ndoubt {}: {}\n  {}", doubt.name, doubt.evidence, doubt.advice));
    }
    for key in unheeded {
        out.push_str(&format!("\nno effect: {key}"));
    }
    out
}

/// The data to be read, and the rate at which it must come.
fn training(resolved: &Resolved, estimate: &Estimate) -> Vec<(&'static str, String)> {
    let plan = &resolved.plan;
    let mut rows = vec![
        ("dataset", dataset(resolved, estimate)),
        ("sample", sample(estimate)),
        ("loader", loader(resolved)),
        ("schedule", schedule(resolved, estimate)),
        (
            "each accelerator",
            format!("reads {} in an epoch", units::bytes(estimate.accelerator_epoch_bytes as u64)),
        ),
        (
            "an epoch takes",
            format!(
                "at least {}, if no accelerator ever waits",
                units::seconds(estimate.epoch_least_s)
            ),
        ),
    ];
    if let Some(needed) = estimate.needed_bytes_per_second {
        rows.push((
            "to be fed",
            format!("the storage must deliver {}", units::bytes_per_second(needed)),
        ));
    }
    if let Some(rate) = plan.storage.throttle_bytes_per_second {
        rows.push(("throttle", format!("reads are held to {}", units::bytes_per_second(rate))));
        let least = estimate.accelerator_epoch_bytes * f64::from(plan.accelerators) / rate;
        rows.push((
            "so an epoch takes",
            format!("at least {}", units::seconds(least.max(estimate.epoch_least_s))),
        ));
    }
    rows.push((
        "loader memory",
        format!("about {}", units::bytes(estimate.loader_memory_bytes as u64)),
    ));
    rows
}

fn dataset(resolved: &Resolved, estimate: &Estimate) -> String {
    let dataset = &resolved.plan.dataset;
    format!(
        "{} of {} ({} to evaluate), {} on storage, under {}",
        units::counted(estimate.files, &format!("{} file", dataset.format)),
        units::counted(dataset.samples_per_file, "sample"),
        units::count(dataset.files_eval),
        units::bytes(estimate.file_bytes),
        resolved.data_root.display(),
    )
}

fn evaluation(plan: &EvaluationPlan) -> String {
    format!(
        "{} of {} with batches of {}, {} of compute a step, the first after epoch {}",
        units::counted(plan.train.epochs.into(), "evaluation"),
        units::counted(plan.train.steps_per_epoch, "step"),
        plan.loader.batch_size,
        units::seconds(plan.train.compute.mean_s()),
        plan.after_epoch,
    )
}

fn checkpoint(plan: &CheckpointPlan) -> String {
    let times = plan.alone.as_ref().map_or(String::new(), |alone| {
        format!(", {} times written and {} times read", alone.writes, alone.reads)
    });
    format!(
        "{} in {} of {}, at most {} of one{times}",
        units::bytes_binary(plan.total_bytes),
        units::counted(plan.total_files, "file"),
        units::counted(plan.state.writers(), "rank"),
        units::bytes_binary(plan.rank_bytes_max),
    )
}

fn sample(estimate: &Estimate) -> String {
    let (least, most) = estimate.sample_bytes_range;
    let mean = units::bytes(estimate.sample_bytes_mean as u64);
    if least == most {
        mean
    } else {
        format!("{mean} on average, from {} to {}", units::bytes(least), units::bytes(most))
    }
}

fn loader(resolved: &Resolved) -> String {
    let loader = &resolved.plan.loader;
    format!(
        "{}, batches of {}, {} each, at most {} in flight",
        loader.kind,
        loader.batch_size,
        units::counted(loader.workers.into(), "worker"),
        units::counted(loader.batches_in_flight.into(), "batch"),
    )
}

fn schedule(resolved: &Resolved, estimate: &Estimate) -> String {
    let train = &resolved.plan.train;
    let mut text = format!(
        "{} of {}, {} in all, {} of compute a step",
        units::counted(train.epochs_run().into(), "epoch"),
        units::counted(estimate.steps_per_epoch, "step"),
        units::counted(estimate.steps, "step"),
        units::seconds(train.compute.mean_s()),
    );
    if estimate.dropped_samples > 0 {
        text.push_str(&format!(
            "; {} samples fill no step and are dropped",
            units::count(estimate.dropped_samples)
        ));
    }
    text
}
