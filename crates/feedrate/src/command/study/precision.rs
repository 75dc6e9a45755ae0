//! How well a study's experiments are known, and how many runs it takes to know them better.

use super::ledger::Ledger;
use crate::cli::StudyStatusArguments;
use crate::exit::UsageError;
use crate::text;
use feedrate_analysis::precision::{
    CONFIDENCE, Estimate, Next, POWER, Standing, Until, estimate, judge, share,
};
use feedrate_measure::metric::Metric;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_spec::units;
use feedrate_study::runner::{RunnerEnv, groups};
use serde_json::{Value, json};

/// Read `ci=2%`.
pub(super) fn until(text: &str) -> Result<Until, UsageError> {
    Until::parse(text).map_err(|error| UsageError {
        message: format!("`--until`: {error}"),
        hint: Some(error.hint().into()),
    })
}

/// The response of a name.
pub(super) fn response(name: &str) -> Result<&'static Metric, UsageError> {
    Metric::find(name)
        .map_err(|error| UsageError { message: error.to_string(), hint: Some(error.hint()) })
}

/// Precision of a study's experiments.
pub(super) struct Known {
    until: Until,
    response: &'static Metric,
    /// Each by its name.
    standings: Vec<(String, Standing)>,
    difference: f64,
    /// `None` where no experiment has two runs.
    estimate: Option<Estimate>,
}

/// As `--until` asks; `None` where it is not given.
pub(super) fn known(
    arguments: &StudyStatusArguments,
    ledger: &mut Ledger,
) -> Result<Option<Known>, UsageError> {
    let Some(text) = &arguments.until else { return Ok(None) };
    let (until, response) = (until(text)?, response(&arguments.response)?);
    let difference = share(&arguments.difference).ok_or_else(|| UsageError {
        message: format!("`--difference {}` is no share", arguments.difference),
        hint: Some("write it as `5%`".into()),
    })?;
    let Ledger { rows, state, machine, .. } = ledger;
    let groups = groups(rows, state, &mut |run_dir| machine.value(run_dir, response));
    let standing = |values: &[f64]| judge(response, values, until, u64::MAX);
    let name = |index: usize| label(&Row { replicate: None, ..rows[index].clone() }, rows);
    let standings = groups.iter().map(|of| (name(of.rows[0]), standing(&of.values))).collect();
    let pilots: Vec<Vec<f64>> = groups.into_iter().map(|group| group.values).collect();
    let estimate = estimate(&pilots, until, difference);
    Ok(Some(Known { until, response, standings, difference, estimate }))
}

/// For people.
pub(super) fn page(known: &Known) -> String {
    let mut table =
        text::table(["Experiment", "Runs", known.response.id.name(), "±", "Runs it takes"]);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for (name, standing) in &known.standings {
        let middle = standing.middle.map(|interval| known.response.unit.text(interval.estimate));
        table.add_row([
            name.clone(),
            standing.replicates.to_string(),
            middle.unwrap_or_else(|| "-".into()),
            standing.half_width.map_or("-".into(), percent),
            match (standing.next, standing.replicates_expected) {
                (Next::Enough, _) => "enough".into(),
                (_, Some(runs)) => units::count(runs),
                (_, None) => "-".into(),
            },
        ]);
    }
    format!("{}\n{}", text::lines(&table), pilots(known))
}

fn pilots(known: &Known) -> String {
    let Some(estimate) = known.estimate else {
        return "How many runs it takes can be told once an experiment has two.".into();
    };
    let runs = |runs: Option<u64>| {
        runs.map_or("more runs than can be made".into(), |runs| units::counted(runs, "run"))
    };
    format!(
        "Noise of a run: {:.2} %. So a {:.0} % interval of ± {} takes {} of each experiment, and to tell {} between two \
         with a chance of {:.0} % takes {} of each.",
        100.0 * estimate.cov,
        100.0 * CONFIDENCE,
        percent(known.until.half_width),
        runs(estimate.replicates_for_interval),
        percent(known.difference),
        100.0 * POWER,
        runs(estimate.replicates_to_tell),
    )
}

fn percent(share: f64) -> String {
    format!("{} %", (10_000.0 * share).round() / 100.0)
}

/// For programs.
pub(super) fn json(known: &Known) -> Value {
    let experiments: Vec<Value> = known
        .standings
        .iter()
        .map(|(name, standing)| {
            json!({
                "label": name,
                "runs": standing.replicates,
                "mean": standing.middle.map(|interval| interval.estimate),
                "low": standing.middle.map(|interval| interval.low),
                "high": standing.middle.map(|interval| interval.high),
                "half_width_share": standing.half_width,
                "is_enough": standing.next == Next::Enough,
                "runs_expected": standing.replicates_expected,
            })
        })
        .collect();
    json!({
        "response": known.response.id.name(),
        "half_width_share": known.until.half_width,
        "experiments": experiments,
        "noise_share": known.estimate.map(|estimate| estimate.cov),
        "runs_for_interval": known.estimate.and_then(|estimate| estimate.replicates_for_interval),
        "difference_share": known.difference,
        "runs_to_tell": known.estimate.and_then(|estimate| estimate.replicates_to_tell),
    })
}
