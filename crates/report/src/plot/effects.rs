//! Plots the main effects of a study: each level of each factor against the baseline of the factor, with intervals.

use super::block::factor_and_level;
use super::data::Data;
use super::response::{check_known, title};
use super::{Missing, Needs, Plot};
use crate::draw::figure::{
    Axes, Axis, AxisRange, Figure, Layer, Panel, Point, Series, Spread, Style, Tone,
};
use crate::number::level as format_level;
use feedrate_analysis::finding::EffectUnit;
use feedrate_analysis::findings::{LevelEffect, level_effects};
use feedrate_measure::metric::{AU_ALL_STEPS, DELIVERED_WHOLE, Metric, SAMPLES_WHOLE};
use feedrate_results::run::Run;

pub(super) static PLOT: Plot = Plot {
    name: "effects",
    aliases: &[],
    summary: "Main effects on AU and throughput: each level against its factor's baseline, with 95 % intervals",
    needs: Needs::Summaries,
    responses: &[&AU_ALL_STEPS, &DELIVERED_WHOLE, &SAMPLES_WHOLE],
    has_factor_panels: false,
    make: figure,
};

/// Maximum number of effects in a panel; more would not fit on a page.
const EFFECTS_MAX: usize = 40;

fn figure(data: &Data, response: Option<&'static Metric>) -> Result<Figure, Missing> {
    if data.used().next().is_none() {
        return Err(Missing::runs());
    }
    if let Some(response) = response {
        check_known(response, data)?;
    }
    let responses = response.map_or_else(|| data.responses().collect(), |response| vec![response]);
    let runs: Vec<&Run> = data.runs.iter().collect();
    let mut panels = Vec::new();
    let mut left_out = 0;
    let mut has_single = false;
    for response in responses {
        let effects = level_effects(&data.designs, &runs, response);
        for of_workload in effects.chunk_by(|a, b| a.workload == b.workload) {
            let drawn = largest(of_workload);
            left_out += of_workload.len() - drawn.len();
            has_single |= drawn.iter().any(|effect| effect.effect.low.is_none());
            panels.push((of_workload[0].workload.clone(), panel(response, &drawn)));
        }
    }
    let Some((first, _)) = panels.first() else {
        return Err(Missing::new(
            "no two levels of a factor can be compared",
            "run the levels of a factor with otherwise equal settings: `feedrate study new` designs such runs",
        ));
    };
    let has_names = panels.iter().any(|(name, _)| name != first);
    let panels =
        panels.into_iter().map(|(name, panel)| Panel { title: has_names.then_some(name), ..panel });
    let mut caption = "Main effects. Each mark compares a level with the baseline of its factor (vs.), as a mean over the combinations of the other factors, with the 95 % interval of the difference, not corrected for the number of effects (Welch). An interval that crosses the dashed line contains no change.".to_string();
    if has_single {
        caption.push_str(" A mark without an interval compares runs that were not repeated.");
    }
    if 0 < left_out {
        caption.push_str(&format!(
            " The {EFFECTS_MAX} largest effects of a panel are drawn, {left_out} are not."
        ));
    }
    Ok(Figure { title: "Main effects".into(), caption, panels: panels.collect(), columns: 1 })
}

/// The effects that are drawn, in their order.
fn largest(effects: &[LevelEffect]) -> Vec<&LevelEffect> {
    let mut order: Vec<(usize, &LevelEffect)> = effects.iter().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| change(b).abs().total_cmp(&change(a).abs()));
    order.truncate(EFFECTS_MAX);
    order.sort_by_key(|(index, _)| *index);
    order.into_iter().map(|(_, effect)| effect).collect()
}

/// The estimate in points, or in percent of the baseline.
fn change(effect: &LevelEffect) -> f64 {
    in_percent(effect, effect.effect.estimate)
}

fn in_percent(effect: &LevelEffect, value: f64) -> f64 {
    if effect.effect.unit == EffectUnit::Ratio { 100.0 * (value - 1.0) } else { value }
}

fn panel(response: &Metric, effects: &[&LevelEffect]) -> Panel {
    let names = effects.iter().map(|effect| {
        let level = factor_and_level(&effect.factor, &format_level(&effect.key, &effect.level));
        format!("{level} vs. {}", format_level(&effect.key, &effect.base))
    });
    let is_ratio = effects.iter().any(|effect| effect.effect.unit == EffectUnit::Ratio);
    let unit = if is_ratio { "%" } else { "points" };
    let label = format!("{}: change ({unit})", title(response));
    let points = effects.iter().enumerate().map(|(place, effect)| {
        let end = |end: Option<f64>| end.map(|end| in_percent(effect, end));
        Point {
            x: change(effect),
            y: place as f64,
            low: end(effect.effect.low),
            high: end(effect.effect.high),
            runs: Some(effect.evidence.len()),
            folders: effect.evidence.clone(),
            ..Point::default()
        }
    });
    let ends = [-0.5, effects.len() as f64 - 0.5].map(|y| Point::new(0.0, y));
    let marks = Series {
        label: String::new(),
        tone: Tone::Hue(0),
        style: Style::Marks,
        spread: Spread::X,
        points: points.collect(),
    };
    let layers = vec![
        Layer::series("no change", Tone::Hue(6), Style::Dashes, ends.into()),
        Layer::Series(marks),
    ];
    let x = Axis::linear(label, AxisRange::Tight);
    let y = Axis::categories("", names.collect());
    Panel::from_axes(None, Axes { x, y, layers, aspect: 0.6 })
}
