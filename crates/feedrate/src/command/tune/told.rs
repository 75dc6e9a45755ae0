//! The setting that was found, and what was run for it: a table, its YAML and a command, or JSON. Decides nothing.

use super::TuneGoal;
use super::grid::at;
use super::tuning::{Runner, TuneEnd, Tuning};
use crate::cli;
use crate::{messages, text};
use feedrate_measure::metric::{SAMPLES_WHOLE, Unit};
use feedrate_measure::stats;
use feedrate_report::words::client;
use feedrate_results::replan::Replan;
use feedrate_session::failure::reason_stopped;
use feedrate_spec::units;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Columns of a reason.
const REASON_WIDTH: usize = 40;

/// Reason for which a change of format is not tried.
const OTHER_FORMAT: &str = "the client's costs are those of the workload's format";

/// A tuning that has ended, somehow.
pub(super) struct Told<'a> {
    pub(super) tuning: &'a Tuning<'a>,
    pub(super) ended: &'a anyhow::Result<TuneEnd>,
}

impl Told<'_> {
    pub(super) fn page(&self) -> String {
        let rows = self.tuning.runners.iter().map(|of| self.row(of)).collect();
        let reached = match self.tuning.goal {
            TuneGoal::Au => "AU",
            TuneGoal::Throughput => "Samples",
            TuneGoal::Accelerators => "Fed",
        };
        let header = ["Setting", "Predicted", reached, "Runs", "Because"];
        let table = text::table_of_changes(header, rows, 0, messages::page_width());
        let best = self.best();
        let mut parts = vec![self.first_line(best), table];
        parts.extend(self.stopped().map(|why| format!("Stopped: {why}")));
        parts.extend(self.client().map(|leaves| format!("Client: {leaves}")));
        let left_out = &self.tuning.grid.left_out;
        if !left_out.is_empty() {
            parts.push(format!("Left out: {}; {OTHER_FORMAT}", left_out.join(", ")));
        }
        let yaml = yaml(&best.setting.overrides);
        parts.extend((!yaml.is_empty()).then_some(yaml));
        let trials = &self.tuning.trials;
        let counted = units::counted(trials.count(), "run");
        let took = units::seconds(trials.took_s());
        let number = units::counted(self.tuning.grid.count() as u64, "setting");
        let folder = trials.folder().display();
        parts.push(format!("{counted} of {number} in {took}\nResults: {folder}"));
        parts.push(self.command(best));
        parts.join("\n\n")
    }

    fn row(&self, runner: &Runner) -> [String; 5] {
        let trial = self.tuning.trials.at(runner.place);
        let why = match (&trial.hindrance, trial.runs.last()) {
            (Some(why), _) => text::cut(why, REASON_WIDTH),
            (None, Some(run)) => run.summary.verdict.name.name().into(),
            (None, None) => "not run".into(),
        };
        let overrides = &runner.setting.overrides;
        [
            if overrides.is_empty() { "as it is".into() } else { overrides.join("\n") },
            text::known(runner.predicted, |value| match self.tuning.goal {
                TuneGoal::Au => Unit::Percent.text(value),
                TuneGoal::Throughput => Unit::SamplesPerSecond.text(value),
                TuneGoal::Accelerators => units::count(value as u64),
            }),
            self.reached(runner),
            trial.runs.len().to_string(),
            why,
        ]
    }

    /// In the unit of the goal; of accelerators that were not searched for, what they reached.
    fn reached(&self, runner: &Runner) -> String {
        let mean = self.tuning.trials.mean(runner.place);
        match (self.tuning.goal, runner.fed) {
            (TuneGoal::Au, _) => text::known(mean, |au| Unit::Percent.text(au)),
            (TuneGoal::Throughput, _) => text::known(mean, |of| Unit::SamplesPerSecond.text(of)),
            (TuneGoal::Accelerators, Some(fed)) => units::counted(fed, "accelerator"),
            (TuneGoal::Accelerators, None) => {
                let number = units::counted(self.tuning.at.unwrap_or(1), "accelerator");
                text::known(mean, |au| format!("{} AU of {number}", Unit::Percent.text(au)))
            }
        }
    }

    /// The setting, what it reaches, and whether that is certain.
    fn first_line(&self, best: &Runner) -> String {
        let workload = &self.tuning.grid.own.plan.workload;
        let setting = match best.setting.overrides.join(" ") {
            overrides if overrides.is_empty() => "no change".to_string(),
            overrides => overrides,
        };
        let what = match self.tuning.goal {
            TuneGoal::Au => " AU",
            TuneGoal::Accelerators if best.fed == Some(self.tuning.max) => {
                " fed, as many as `--max`,"
            }
            TuneGoal::Accelerators if best.fed.is_some() => " fed",
            _ => "",
        };
        let certain = if self.is_certain() { "" } else { ", not certain" };
        format!("{workload}: {}{what} with {setting}{certain}", self.reached(best))
    }

    fn best(&self) -> &Runner {
        &self.tuning.runners[0]
    }

    fn is_certain(&self) -> bool {
        matches!(self.ended, Ok(TuneEnd::Certain))
    }

    fn stopped(&self) -> Option<String> {
        match self.ended {
            Ok(TuneEnd::Certain) => None,
            Ok(TuneEnd::OutOfTime) => Some("the budget is spent".into()),
            Ok(TuneEnd::Alike) if self.tuning.goal == TuneGoal::Accelerators => {
                Some("more runs would not tell how many are fed".into())
            }
            Ok(TuneEnd::Alike) => Some("more runs would not tell the last two apart".into()),
            Err(error) => Some(reason_stopped(error, "the runs were")),
        }
    }

    /// How much of what is asked for the client alone leaves with any setting, where that is too little.
    fn client(&self) -> Option<String> {
        let asked_percent = self.tuning.grid.own.plan.metric.au_target_percent;
        let percent = self.tuning.client_leaves_too_little()?;
        Some(format!("{}, with any of these settings", client::leaves(percent, asked_percent)))
    }

    fn command(&self, of: &Runner) -> String {
        let fed = of.fed.filter(|&fed| fed > 0);
        self.tuning.of.command(&at(&of.setting.overrides, fed))
    }

    pub(super) fn json(&self) -> Value {
        let (tuning, best) = (self.tuning, self.best());
        let left_out = tuning.grid.left_out.iter();
        let settings: Vec<Value> = tuning.runners.iter().map(|of| self.setting(of)).collect();
        json!({
            "workload": tuning.grid.own.plan.workload,
            "goal": cli::name_of(tuning.goal),
            "best": self.setting(best),
            "decided": self.is_certain(),
            "stopped": self.stopped(),
            "client_leaves_percent": tuning.grid.client_leaves_percent,
            "left_out": left_out.map(|change| json!({ "change": change, "reason": OTHER_FORMAT }))
                .collect::<Vec<_>>(),
            "compared_at_accelerators": tuning.at,
            "fed_accelerators": best.fed,
            "settings": tuning.grid.count(),
            "runs": tuning.trials.count(),
            "took_s": tuning.trials.took_s(),
            "tried": settings,
            "yaml": yaml(&best.setting.overrides),
            "command": self.command(best),
            "results": tuning.trials.folder().display().to_string(),
        })
    }

    fn setting(&self, runner: &Runner) -> Value {
        let trial = self.tuning.trials.at(runner.place);
        let is_au = self.tuning.goal == TuneGoal::Au;
        json!({
            "overrides": runner.setting.overrides,
            "predicted": runner.predicted,
            "predicted_percent": if is_au { runner.predicted } else { None },
            "tried": trial.tried(),
            "samples_per_second": stats::mean(&trial.values(&SAMPLES_WHOLE)),
            "fed_accelerators": runner.fed,
            "verdict": trial.runs.last().map(|run| run.summary.verdict.name.name()),
            "evidence": trial.runs.last().map(|run| &run.summary.verdict.evidence),
            "reason": trial.hindrance,
        })
    }
}

/// Overrides as sections of a workload.
fn yaml(overrides: &[String]) -> String {
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    for text in overrides {
        if let Some((key, value)) = text.split_once('=')
            && let Some((section, name)) = key.split_once('.')
        {
            *sections.entry(section).or_default() += &format!("\n  {name}: {value}");
        }
    }
    let sections = sections.iter().map(|(section, keys)| format!("{section}:{keys}"));
    sections.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_become_sections() {
        let overrides = ["reader.read_threads=4", "storage.engine=mmap", "reader.prefetch_size=8"];
        assert_eq!(
            yaml(&overrides.map(String::from)),
            "reader:\n  read_threads: 4\n  prefetch_size: 8\nstorage:\n  engine: mmap"
        );
        assert_eq!(yaml(&[]), "");
    }
}
