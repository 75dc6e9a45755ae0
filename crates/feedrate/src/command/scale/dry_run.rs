//! `feedrate scale --dry-run`: prints the forecast of a search.

use crate::{messages, text};
use feedrate_report::output::Schema;
use feedrate_session::resolve::mlperf_status;
use feedrate_spec::units;
use feedrate_study::chooser::NumberRange as _;
use feedrate_study::scale::{
    DatasetForecast, ForecastAtRate, ScaleForecast, ScaleOptions, SearchRange,
};

/// Prints the forecast.
pub(super) fn print(
    options: &ScaleOptions,
    range: &SearchRange<'_>,
    json: bool,
) -> anyhow::Result<()> {
    let forecast = ScaleForecast::new(options, range)?;
    if json {
        messages::print_json(Schema::ScaleDryRun, &forecast)?;
        return Ok(());
    }
    let max = range.describe(forecast.max);
    let numbers = match forecast.from {
        from if from == forecast.max => max,
        from => format!("{} to {max}", units::count(from)),
    };
    let mut rows = vec![("numbers", numbers), ("data", forecast.place.clone())];
    let status = mlperf_status(&options.request);
    rows.extend(status.map(|status| ("MLPerf status", status.sentence())));
    // A later range may have the same dataset with looser requirements.
    let datasets = forecast.datasets.chunk_by(|a, b| (a.files, a.bytes) == (b.files, b.bytes));
    for (index, dataset) in datasets.filter_map(<[_]>::last).enumerate() {
        let name = if index == 0 { "dataset" } else { "if all are fed" };
        let DatasetForecast { max, files, bytes } = *dataset;
        let files = units::counted(files, "file");
        let bytes = units::bytes(bytes);
        rows.push((name, format!("{files}, {bytes}: enough for {}", range.describe(max))));
    }
    rows.push(("limit", forecast.max_reason.clone()));
    let runs = forecast.runs_without_noise;
    let budget = units::seconds(forecast.budget_s);
    rows.push((
        "runs",
        format!(
            "up to {runs} without noise, at most {}, in {budget} (`--budget`)",
            forecast.max_runs
        ),
    ));
    let forecasts = &forecast.if_storage_delivers;
    if forecasts.is_empty() {
        let [first, last] = &forecast.read_bytes_per_run.map(units::bytes);
        let least = units::seconds(forecast.seconds_least);
        rows.push(("each run reads", format!("{first} to {last}")));
        rows.push(("time", format!("at least {least} for {}", units::counted(runs, "run"))));
    }
    if !forecast.overrides.is_empty() {
        rows.push(("set by the search", forecast.overrides.join(" ")));
    }
    messages::print_page(&text::rows(&rows))?;
    if !forecasts.is_empty() {
        messages::print_page(&format!("\n{}", table(forecasts, range)))?;
    }
    Ok(())
}

/// Forecasts for storages of several speeds.
fn table(forecasts: &[ForecastAtRate], range: &SearchRange<'_>) -> String {
    let header = ["Storage rate", "Feeds", "Runs", "Generated", "Read", "Time at least"];
    let rows = forecasts.iter().map(|forecast| {
        let feeds = match (forecast.found.certain, forecast.found.not_decided) {
            (_, Some(_)) => "not decided".into(),
            (None, None) => "none".into(),
            (Some(number), None) if forecast.found.fails.is_none() => {
                format!("{}, or more", range.describe(number))
            }
            (Some(number), None) => range.describe(number),
        };
        [
            units::bytes_per_second(forecast.bytes_per_second),
            feeds,
            forecast.runs.to_string(),
            units::bytes(forecast.generated_bytes),
            units::bytes(forecast.read_bytes),
            units::seconds(forecast.seconds_least.ceil()),
        ]
    });
    text::table(header, rows)
}
