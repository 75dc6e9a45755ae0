//! Tests of comparisons in plots of factors, with invented designs.

use super::made_up::{data_of, figure, one_at_a_time, run, runs};
use crate::draw::figure::{Layer, Rule, Scale, Style, Tone};
use crate::draw::tests::differ_in_grey;
use crate::plot::data::Data;
use crate::plot::stall::PARTS;
use crate::plot::status::{FOLDER_STATES, ROW_STATES};
use crate::plot::*;
use feedrate_analysis::design::{DeclaredFactors, Factor, designs};
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_results::import::RunOrigin;
use feedrate_results::overview::{FactorCounts, LevelCounts, ModelCounts, Overview, StatusCounts};
use feedrate_results::run::Run;
use feedrate_results::table::Table;

#[test]
fn levels_that_were_never_compared_are_not_drawn() {
    let setting = |processes, workers, format| run("a", (processes, workers, format), 50.0, 1e6);
    let runs = vec![
        setting(4.0, 1.0, "npz"),
        setting(4.0, 8.0, "npz"),
        setting(6.0, 4.0, "npz"),
        setting(4.0, 4.0, "png"),
    ];
    let plot = find("factor_levels").unwrap();
    let drawn = figure(plot, &data_of(runs.clone())).unwrap();
    assert!(
        drawn.caption.contains("Not drawn, as other factors always differed too: `format`"),
        "{}",
        drawn.caption
    );
    let runs = vec![
        setting(4.0, 1.0, "npz"),
        setting(6.0, 4.0, "npz"),
        setting(4.0, 8.0, "png"),
        setting(6.0, 1.0, "png"),
    ];
    let missing = figure(plot, &data_of(runs)).unwrap_err();
    assert!(missing.message.starts_with("no two runs differ in"), "{missing}");
}

#[test]
fn scaling_needs_two_numbers_of_processes_with_equal_settings() {
    let setting = |processes, workers| run("a", (processes, workers, "npz"), 50.0, 1e6);
    let data = data_of(vec![setting(4.0, 1.0), setting(6.0, 4.0)]);
    let caption = figure(find("scaling").unwrap(), &data).unwrap().caption;
    assert!(
        caption.ends_with("cannot be separated: `read_threads` with `processes`."),
        "{caption}"
    );
    let runs = vec![setting(4.0, 1.0), setting(4.0, 8.0), setting(6.0, 4.0)];
    let missing = figure(find("scaling").unwrap(), &data_of(runs)).unwrap_err();
    assert!(missing.message.contains("the number of processes alone"), "{missing}");
}

/// More experiments than can be distinguished.
#[test]
fn many_experiments_are_drawn_as_their_mean() {
    let data = data_of(runs("unet3d_h100"));
    let cells = &data.designs[0].cells;
    assert!(7 < cells.len());
    let known = |place: &usize| data.runs[*place].metric(&AU_ALL_STEPS).unwrap();
    let means: Vec<f64> = cells
        .iter()
        .map(|cell| cell.runs.iter().map(known).sum::<f64>() / cell.runs.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let figure = figure(find("phases").unwrap(), &data).unwrap();
    assert!(figure.caption.contains("the mean over all experiments"), "{}", figure.caption);
    let first_point = |panel: usize| {
        let series: Vec<_> = figure.panels[panel].all_series().collect();
        assert_eq!((series.len(), series[0].label.as_str()), (1, "all experiments"));
        series[0].points[0].clone()
    };
    // AU of the first epoch, which is lower, and of all epochs as a phase, which lies to the right.
    let (first_epoch, epochs) = (first_point(0).y, first_point(2).x);
    assert!((first_epoch - 0.8 * mean).abs() < 1e-9, "{first_epoch} {mean}");
    assert!((epochs - mean).abs() < 1e-9, "{epochs} {mean}");
}

/// Lines join numbers, but not names of formats, which have no order.
#[test]
fn only_numbers_are_joined() {
    let data = data_of(runs("unet3d_h100"));
    let figure = figure(find("factor_levels").unwrap(), &data).unwrap();
    let mut seen = Vec::new();
    for panel in &figure.panels {
        let axis = panel.axes.x.label.clone();
        let style = panel.all_series().next().unwrap().style;
        seen.push((axis.clone(), style));
        assert_eq!(style == Style::Marks, axis == "format", "{axis}");
    }
    assert!(seen.iter().any(|(_, style)| *style == Style::Marks), "{seen:?}");
    assert!(seen.iter().any(|(_, style)| *style == Style::Joined), "{seen:?}");
}

#[test]
fn the_status_has_bars_for_each_factor() {
    let counts = StatusCounts { done: 3, running: 0, pending: 1, failed: 0 };
    let level = |level: &str| LevelCounts { level: level.into(), counts };
    let factor =
        |name: &str| FactorCounts { factor: name.into(), levels: vec![level("1"), level("4")] };
    let cell = |model: &str| ModelCounts { model: model.into(), processes: 1, counts };
    let bars = |models: &[&str]| {
        let overview = Overview {
            counts,
            done_elsewhere: 0,
            factors: vec![factor("reader.read_threads"), factor("processes")],
            matrix: models.iter().map(|model| cell(model)).collect(),
        };
        let data = Data { overview: Some(overview), ..Data::default() };
        let figure = figure(find("status").unwrap(), &data).unwrap();
        let Scale::Categories(names) = &figure.panels[0].axes.y.scale else { panic!() };
        (figure.panels.len(), names.clone())
    };
    let levels = ["all", "read_threads 1", "read_threads 4", "1 process", "4 processes"];
    assert_eq!(bars(&["a"]), (1, levels.map(String::from).to_vec()));
}

/// The rules of each panel by name, where the CSV of the study is this one.
fn rules(name: &str, runs: Vec<Run>, csv: &str) -> Vec<Vec<(String, f64)>> {
    let declared = DeclaredFactors::from_table(&Table::parse("s.csv", csv).unwrap());
    let settings: Vec<_> = runs.iter().map(|run| &run.settings).collect();
    let designs = designs(&settings, &declared);
    let data = Data { designs, ..data_of(runs) };
    let figure = figure(find(name).unwrap(), &data).unwrap();
    let rules = figure.panels.iter().map(|panel| {
        let rules = panel.axes.layers.iter().filter_map(|layer| match layer {
            Layer::Rule(rule) => Some((rule.label.clone(), rule.at.round())),
            _ => None,
        });
        rules.collect()
    });
    rules.collect()
}

const ONE_AT_A_TIME: &str = "model,epochs,processes,overrides,run\n\
    # factor processes: 2 (baseline), 4\n\
    # factor format (dataset.format): npz (baseline), hdf5\n\
    # factor read_threads (reader.read_threads): 1 (baseline), 4\n\
    a,,2,,N\n";

#[test]
fn the_baseline_is_in_every_panel_that_compares_with_it() {
    let mut runs = one_at_a_time();
    runs.pop();
    let baseline = |at: f64| ("baseline".to_string(), at);
    // Each of three factors in AU and throughput.
    let panels = rules("factor_levels", runs.clone(), ONE_AT_A_TIME);
    assert_eq!(panels, [50.0, 10.0, 50.0, 10.0, 50.0, 10.0].map(|at| vec![baseline(at)]));
    // The most common settings are not a declared baseline.
    let bare = "model,epochs,processes,overrides,run\n";
    assert!(rules("factor_levels", runs, bare).iter().all(Vec::is_empty));
}

/// Marks of other numbers of processes at the baseline's level would say nothing about the factor.
#[test]
fn processes_that_no_factor_crosses_have_a_panel_of_their_own() {
    let plot = find("factor_levels").unwrap();
    let mut data = data_of(one_at_a_time());
    let panels = |data: &Data| {
        let figure = figure(plot, data).unwrap();
        let panels = figure.panels.iter().filter(|panel| panel.axes.y.label.starts_with("Through"));
        let panels = panels.map(|panel| (panel.axes.x.label.clone(), panel.points().count()));
        (panels.collect::<Vec<_>>(), figure.caption)
    };
    let expected = [("Accelerators", 2), ("format", 2), ("read_threads", 2)];
    let expected = expected.map(|(name, marks)| (name.to_string(), marks));
    assert_eq!(panels(&data).0, expected);
    // The user's choice.
    data.chosen_factors = vec!["format".into()];
    assert_eq!(panels(&data).0, expected[1..2]);
}

#[test]
fn processes_that_only_distinguish_lines_are_no_panel() {
    let mut data = data_of(runs("a"));
    data.chosen_factors = vec!["processes".into()];
    let missing = figure(find("factor_levels").unwrap(), &data).unwrap_err();
    let expected = "`processes` gives the lines of this plot, not a panel";
    assert_eq!(missing.message, expected);
}

#[test]
fn factors_that_do_not_fit_a_page_are_named() {
    let run_with = |factor: usize, level: u32| {
        let mut run =
            run("a", (1.0, 1.0, "npz"), 50.0, 1e6 + 1e5 * factor as f64 * f64::from(level));
        for other in 0..8 {
            let level = if other == factor { level } else { 0 };
            run.settings.insert(format!("x.f{other}"), level.to_string());
        }
        run
    };
    let baseline = run_with(0, 0);
    let runs = std::iter::once(baseline).chain((0..8).map(|factor| run_with(factor, 1)));
    let mut data = data_of(runs.collect());
    let plot = find("factor_levels").unwrap();
    let all = figure(plot, &data).unwrap();
    assert_eq!(all.panels.len(), 8);
    let words = "`--factor` draws others: `x.f0`, `x.f1`, `x.f2`, `x.f3`.";
    assert!(all.caption.contains(words), "{}", all.caption);
    data.chosen_factors = (0..8).map(|factor| format!("x.f{factor}")).collect();
    assert_eq!(figure(plot, &data).unwrap().panels.len(), 16);
}

#[test]
fn the_line_of_the_baseline_is_named() {
    let declared = DeclaredFactors::from_table(&Table::parse("s.csv", ONE_AT_A_TIME).unwrap());
    let mut runs = runs("a");
    runs.iter_mut().for_each(|run| drop(run.settings.remove("dataset.files_train")));
    let settings: Vec<_> = runs.iter().map(|run| &run.settings).collect();
    let designs = designs(&settings, &declared);
    let data = Data { designs, ..data_of(runs) };
    let figure = figure(find("au_processes").unwrap(), &data).unwrap();
    let names = figure.panels[0].all_series().map(|series| series.label.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["npz (baseline)", "hdf5"]);
}

#[test]
fn scaling_has_one_ideal_of_the_line_that_begins_highest() {
    let data = data_of(runs("a"));
    let figure = figure(find("scaling").unwrap(), &data).unwrap();
    let series: Vec<_> = figure.panels[0].all_series().collect();
    let broken = series.iter().filter(|series| series.style == Style::Dashes);
    let [ideal] = broken.collect::<Vec<_>>()[..] else { panic!("{series:?}") };
    let named = series.iter().filter(|series| !series.label.is_empty() && series.label != "ideal");
    let first = named.clone().map(|series| series.points[0].y).fold(0.0, f64::max);
    // Names of marks alone stand in the key: format by threads.
    assert_eq!((ideal.label.as_str(), named.count()), ("ideal", 4));
    let [from, to] = &ideal.points[..] else { panic!("{ideal:?}") };
    assert!((from.y - first).abs() < 1e-9 && (to.y - 8.0 * first).abs() < 1e-9, "{ideal:?}");
}

#[test]
fn scaling_has_an_ideal_for_each_workload() {
    let mut slower = runs("b");
    let values = slower.iter_mut().flat_map(|run| run.values.values_mut());
    values.for_each(|value| value.number *= 0.5);
    let data = data_of([runs("a"), slower].concat());
    let figure = figure(find("scaling").unwrap(), &data).unwrap();
    let ideals = figure.panels[0].all_series().filter(|series| series.style == Style::Dashes);
    let starts: Vec<(&str, f64)> =
        ideals.map(|ideal| (ideal.label.as_str(), ideal.points[0].y)).collect();
    let [("ideal, a", first), ("ideal, b", second)] = starts[..] else { panic!("{starts:?}") };
    assert!((second / first - 0.5).abs() < 1e-9, "{starts:?}");
}

/// Findings do not compare the levels of a factor that DLIO ignores.
#[test]
fn factors_that_dlio_ignores_are_not_drawn() {
    let mut runs = runs("a");
    for (index, run) in runs.iter_mut().enumerate() {
        run.origin = RunOrigin::Dlio;
        run.settings.insert("loader.kind".into(), "pytorch".into());
        let shuffle = if index % 2 == 0 { "off" } else { "seed" };
        run.settings.insert("loader.file_shuffle".into(), shuffle.into());
    }
    let data = data_of(runs);
    let is_factor = |factors: &[Factor]| factors.iter().any(|factor| factor.name == "file_shuffle");
    assert!(is_factor(&data.designs[0].factors));
    let blocks = data.blocks();
    assert!(blocks.iter().all(|block| !is_factor(&block.design.factors)));
    let cells = &blocks[0].design.cells;
    assert!(cells.iter().all(|cell| cell.runs.len() == 3), "they are replicates: {cells:?}");
}

#[test]
fn a_level_has_the_same_colour_in_each_plot() {
    let settings = [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (1.0, 8.0), (2.0, 8.0)];
    let runs =
        settings.map(|(processes, workers)| run("a", (processes, workers, "npz"), 50.0, 1e6));
    let data = data_of(runs.to_vec());
    let tone = |plot: &str, label: &str| {
        let figure = figure(find(plot).unwrap(), &data).unwrap();
        figure.panels[0].all_series().find(|series| series.label == label).unwrap().tone
    };
    for level in ["1", "8"] {
        let in_scaling = tone("scaling", &format!("read_threads {level}"));
        assert_eq!(in_scaling, tone("throughput_processes", level), "{level}");
    }
}

#[test]
fn a_single_mark_is_not_drawn() {
    let mut alone = run("a", (1.0, 1.0, "npz"), 50.0, 1e6);
    alone.phases.truncate(1);
    alone.series.clear();
    for name in ["phases", "au_processes", "throughput_processes"] {
        let missing = figure(find(name).unwrap(), &data_of(vec![alone.clone()])).unwrap_err();
        assert!(!missing.hint.is_empty(), "{name}: {missing}");
    }
    let other = run("a", (2.0, 1.0, "npz"), 60.0, 1e6);
    figure(find("phases").unwrap(), &data_of(vec![alone, other])).unwrap();
}

#[test]
fn parts_of_bars_differ_without_colour() {
    let rows = ROW_STATES.map(|state| state.1).to_vec();
    let folders = FOLDER_STATES.map(|state| state.1).to_vec();
    // Skew and barrier share a tone, and no bar has both.
    let mut parts: Vec<Tone> = PARTS.iter().map(|part| part.1).collect();
    parts.pop();
    for tones in [rows, folders, parts] {
        for (at, tone) in tones.iter().enumerate() {
            for other in &tones[..at] {
                assert!(differ_in_grey(*tone, *other), "{tone:?} {other:?}");
            }
        }
    }
}

#[test]
fn the_target_is_drawn_if_all_runs_share_it() {
    let mut same = runs("unet3d_h100");
    same.iter_mut().for_each(|run| run.bar_percent = Some(90.0));
    let mut differing = same.clone();
    differing[0].bar_percent = Some(70.0);
    for name in ["au_processes", "factor_levels", "phases"] {
        let drawn = |runs: &[Run]| {
            let figure = figure(find(name).unwrap(), &data_of(runs.to_vec())).unwrap();
            let layers = figure.panels.iter().flat_map(|panel| &panel.axes.layers);
            let rules = layers.filter_map(|layer| match layer {
                Layer::Rule(Rule { label, at, .. }) => Some((label.clone(), *at)),
                _ => None,
            });
            rules.collect::<Vec<_>>()
        };
        let rules = drawn(&same);
        let is_target = |rule: &(String, f64)| *rule == ("target: 90 %".into(), 90.0);
        assert!(!rules.is_empty() && rules.iter().all(is_target), "{name}: {rules:?}");
        assert!(drawn(&differing).is_empty(), "{name}");
    }
}
