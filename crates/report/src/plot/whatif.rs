//! Utilisation against accelerators: what the record of one run predicts, and what runs measured.

use super::block::{PROCESSES_LABEL, PlotBlock};
use super::caption::intervals;
use super::data::{Data, PredictedCurve};
use super::response::{ResponseAxis, means, number_axis};
use super::{Make, Missing, Needs, Plot};
use crate::draw::figure::{Figure, Layer, Panel, Point, Style, Tone};
use crate::replan::ReplanOf;
use crate::words::untold;
use feedrate_analysis::predict::Pipeline;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::run::Run;
use feedrate_spec::units;
use std::collections::BTreeSet;

pub(super) static PLOT: Plot = Plot {
    name: "whatif",
    summary: "AU against emulated accelerators as the record of one run predicts it, with what that leaves open, and as it was measured",
    needs: Needs::Predictions,
    make: Make::Figure(figure),
};

/// So many times as many accelerators as the fewest that were run are asked for.
const TIMES_MAX: u32 = 8;
/// Most panels.
const PANELS_MAX: usize = 6;

/// One for each workload with a record that can be planned anew: from the run with the fewest accelerators that tells of all numbers, else
/// from the one that tells of most.
pub fn curves(data: &Data, replan: ReplanOf<'_>) -> Vec<PredictedCurve> {
    let mut curves = Vec::new();
    for block in data.blocks() {
        let cells = block.design.slice(&block.free());
        let firsts = cells.iter().filter_map(|cell| {
            cell.runs.iter().copied().find(|&run| data.runs[run].record.is_some())
        });
        let numbers = numbers(&block);
        let mut best: Option<PredictedCurve> = None;
        for run in firsts {
            let Some(curve) = predicted(run, &data.runs[run], &numbers, replan) else { continue };
            let is_whole = curve.points.len() == numbers.len();
            if best.as_ref().is_none_or(|best| best.points.len() < curve.points.len()) {
                best = Some(curve);
            }
            if is_whole {
                break;
            }
        }
        curves.extend(best);
    }
    curves
}

/// Those that were run, and others about them.
fn numbers(block: &PlotBlock<'_>) -> BTreeSet<u32> {
    let cells = block.design.slice(&block.free());
    let mut numbers: BTreeSet<u32> =
        cells.iter().filter_map(|cell| block.count(cell)).map(|count| count as u32).collect();
    let most = numbers.first().map_or(0, |fewest| fewest.saturating_mul(TIMES_MAX));
    let octaves = (0..u32::BITS - 1).map(|power| 1_u32 << power);
    let between = octaves.flat_map(|number| [number, number + number / 2]);
    numbers.extend(between.take_while(|number| *number <= most));
    numbers
}

/// `None` of a run that cannot be planned anew.
fn predicted(
    run: usize,
    of: &Run,
    numbers: &BTreeSet<u32>,
    replan: ReplanOf<'_>,
) -> Option<PredictedCurve> {
    let changed = replan(of)?;
    let mut curve = PredictedCurve { run, points: Vec::new(), untold: None };
    let pipeline = match Pipeline::new(of.record.as_ref()?) {
        Ok(pipeline) => pipeline,
        Err(untold) => return Some(PredictedCurve { untold: Some(untold), ..curve }),
    };
    for &number in numbers {
        let Some(plan) = changed.plan(&[format!("accelerators={number}")]) else { continue };
        match pipeline.predict(&plan, &[]) {
            Ok(prediction) => curve.points.push((number, prediction)),
            Err(untold) => curve.untold = Some(untold),
        }
    }
    Some(curve)
}

fn figure(data: &Data) -> Result<Figure, Missing> {
    let y = ResponseAxis::new(&AU_ALL_STEPS, data);
    let (mut panels, mut told) = (Vec::new(), Vec::new());
    for block in data.blocks() {
        let cells = block.design.slice(&block.free());
        let is_of =
            |curve: &&PredictedCurve| cells.iter().any(|cell| cell.runs.contains(&curve.run));
        // One prediction is no curve.
        let curve = data.curves.iter().filter(|curve| 1 < curve.points.len()).find(is_of);
        let Some(curve) = curve else { continue };
        let measured = cells.iter().filter_map(|of| y.point(&block, block.count(of)?, &[of]));
        panels.push(panel(&block, curve, measured.collect(), &y));
        told.push(explained(&block, curve, &data.runs[curve.run]));
    }
    match panels.len() {
        0 => return Err(nothing_predicted(data)),
        1..=PANELS_MAX => {}
        more => {
            let hint = "give the runs of fewer workloads";
            return Err(Missing::too_many(more, PANELS_MAX, hint));
        }
    }
    let title = "AU against accelerators, predicted and measured".to_string();
    let caption = format!(
        "{title}. A line is an estimate from one record: {}. Its band is what that leaves open, which is no confidence interval. {}",
        told.join("; "),
        intervals(&panels, means(&AU_ALL_STEPS))
    );
    Ok(Figure { title, caption, columns: panels.len().min(2), panels })
}

fn panel(
    block: &PlotBlock<'_>,
    curve: &PredictedCurve,
    measured: Vec<Point>,
    y: &ResponseAxis<'_>,
) -> Panel {
    let predicted = curve.points.iter().map(|(number, of)| Point {
        low: Some(of.interval[0]),
        high: Some(of.interval[1]),
        ..Point::at(f64::from(*number), of.au_percent)
    });
    let predicted: Vec<Point> = predicted.collect();
    let places: BTreeSet<u32> =
        predicted.iter().chain(&measured).map(|point| point.x as u32).collect();
    let x = number_axis(PROCESSES_LABEL, places.into_iter().map(f64::from).collect());
    let layers = vec![
        Layer::series("predicted", Tone::Hue(0), Style::Band, predicted),
        Layer::series("measured", Tone::Hue(1), Style::Marks, measured),
    ];
    y.panel(block.title(), x, layers, 0.68)
}

/// The run that it is predicted from, and what that does not tell.
fn explained(block: &PlotBlock<'_>, curve: &PredictedCurve, run: &Run) -> String {
    let number = run.accelerators.map_or_else(
        || "an unknown number of accelerators".into(),
        |number| units::counted(number.into(), "accelerator"),
    );
    let name = block.title().map_or(String::new(), |name| format!("{name}: "));
    let path = run.short_path();
    let but = match &curve.untold {
        Some(why) => format!(", which does not tell of all numbers, as {}", untold::why(why)),
        None => String::new(),
    };
    format!("{name}that of `{path}` with {number}{but}")
}

fn nothing_predicted(data: &Data) -> Missing {
    match data.curves.iter().find_map(|curve| curve.untold.as_ref()) {
        Some(of) => Missing::new(untold::why(of), untold::run_that_tells(of)),
        None => Missing::new(
            "no run has a record that can be planned again with other accelerators",
            "give folders of runs of `feedrate run` or `feedrate scale`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::tests::made_up::{curve, drawn_from, run};
    use crate::replan::Replan;
    use feedrate_analysis::predict::Prediction;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::record::Record;
    use feedrate_results::import::RunOrigin;
    use feedrate_spec::plan::Plan;

    /// Some accelerators that wait for a storage of 20 MB/s half of the time, or for longer.
    fn starved(accelerators: u32) -> Record {
        let wait_ms = 200 * u64::from(accelerators) - 100;
        let steps = vec![block(0, &[(wait_ms, 100, 0, 4_000_000); 40])];
        let blocks = vec![steps; accelerators as usize];
        let mut record = record(plan(accelerators, 40), vec![epoch(1, blocks)]);
        record.plan.storage.throttle_bytes_per_second = Some(20e6);
        for accelerator in &mut record.epochs[0].accelerators {
            accelerator.io.access.samples_read = accelerator.io.samples;
        }
        record
    }

    /// The same out of memory, which tells nothing of a storage.
    fn cached(accelerators: u32) -> Record {
        let mut record = starved(accelerators);
        record.plan.storage.throttle_bytes_per_second = None;
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.epochs[0].host.resident_before_bytes = Some(1 << 30);
        record
    }

    struct Planned(Plan);

    impl Replan for Planned {
        fn plan(&self, overrides: &[String]) -> Option<Plan> {
            let [change] = overrides else { panic!("{overrides:?}") };
            let accelerators = change.strip_prefix("accelerators=").unwrap().parse().unwrap();
            // No dataset has files for more.
            (accelerators < 8).then(|| Plan { accelerators, ..self.0.clone() })
        }

        fn command(&self, _: &[String]) -> String {
            String::new()
        }
    }

    fn replan(run: &Run) -> Option<Box<dyn Replan>> {
        Some(Box::new(Planned(run.record.as_ref()?.plan.clone())))
    }

    fn measured(accelerators: u32, record: Record) -> Run {
        let au = 50.0 / f64::from(accelerators);
        let (origin, record) = (RunOrigin::Feedrate, Some(Box::new(record)));
        Run { origin, record, ..run("w", (f64::from(accelerators), 1.0, "npz"), au, 1e6) }
    }

    fn data(runs: Vec<Run>) -> Data {
        let data = drawn_from(runs);
        Data { curves: curves(&data, &replan), ..data }
    }

    #[test]
    fn a_curve_is_predicted_from_the_fewest_accelerators_that_tell() {
        let all = [(1, cached(1)), (2, starved(2)), (4, starved(4))];
        let data = data(all.map(|(number, record)| measured(number, record)).into());
        let [curve] = &data.curves[..] else { panic!("{:?}", data.curves) };
        let numbers: Vec<u32> = curve.points.iter().map(|point| point.0).collect();
        assert_eq!((curve.run, numbers), (1, vec![1, 2, 3, 4, 6]));
        let falls = |pair: &[(u32, Prediction)]| pair[1].1.au_percent < pair[0].1.au_percent;
        assert!(curve.points[1..].windows(2).all(falls), "{curve:?}");
        let figure = PLOT.figure(&data, None).unwrap();
        let series: Vec<_> = figure.panels[0].all_series().collect();
        let [predicted, measured] = series[..] else { panic!("{series:?}") };
        assert!(predicted.points.iter().all(|point| point.low < Some(point.y)));
        let places: Vec<f64> = measured.points.iter().map(|point| point.x).collect();
        assert_eq!((predicted.style, places), (Style::Band, vec![1.0, 2.0, 4.0]));
        assert!(figure.caption.contains("with 2 accelerators. Its band"), "{}", figure.caption);
    }

    #[test]
    fn where_no_record_tells_there_is_no_picture_but_the_reason() {
        let missing = PLOT.figure(&data(vec![measured(2, cached(2))]), None).unwrap_err();
        assert!(missing.message.contains("memory served most bytes"), "{missing}");
        assert!(missing.hint.contains("--cold"), "{}", missing.hint);
        let mut untellable = data(vec![measured(2, starved(2))]);
        untellable.curves[0].points.truncate(1);
        assert!(PLOT.figure(&untellable, None).is_err(), "one prediction is no curve");
        let other = Data { curves: vec![curve(9)], ..drawn_from(vec![measured(2, starved(2))]) };
        assert!(PLOT.figure(&other, None).is_err(), "a curve of another run");
    }
}
