//! The contract of every plot: pictures are valid and complete, axes have labels and units, and missing data are explained.

pub(super) mod made_up;
mod compared;
mod captions;

use super::data::*;
use super::*;
use crate::draw::figure::Scale;
use crate::draw::{DrawOptions, Drawing, PictureFormat, Theme, draw};
use feedrate_measure::metric::{AU_SUSTAINED, BARRIER_S, LOAD_S, Metric, STALL_OPEN, STALL_SKEW};
use feedrate_results::run::Run;
use made_up::*;
use std::fmt::Write as _;

#[track_caller]
fn draw_plot(plot: &Plot, data: &Data, options: &DrawOptions) -> Drawing {
    let name = plot.name;
    let figure = figure(plot, data).unwrap_or_else(|missing| panic!("{name}: {missing}"));
    let drawing = draw(&figure, options);
    assert_eq!(drawing.problems(), Vec::<String>::new(), "{name}");
    drawing
}

/// All text of an SVG, which must be XML.
fn text_of(svg: &str) -> String {
    let tree = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let mut all = String::new();
    for node in tree.descendants().filter(|node| node.has_tag_name("text")) {
        let _ = writeln!(all, "{}", node.text().unwrap_or_default());
    }
    all
}

#[test]
fn the_plot_of_a_search_has_the_name_of_its_command() {
    assert_eq!(find("scale").unwrap().name, "au_processes");
}

#[test]
fn names_are_unique_and_found() {
    for plot in PLOTS {
        for name in [plot.name].iter().chain(plot.aliases) {
            let has_name = |other: &&&Plot| other.name == *name || other.aliases.contains(name);
            assert_eq!(PLOTS.iter().filter(has_name).count(), 1, "{name}");
            assert!(std::ptr::eq(find(name).unwrap(), *plot), "{name}");
        }
    }
}

#[test]
fn every_picture_is_complete_in_every_size_and_theme() {
    for plot in PLOTS {
        let data = data_for(plot, "unet3d_h100");
        for (width_in, font_pt, theme) in [
            (None, 9.0, Theme::Light),
            (Some(3.5), 9.0, Theme::Dark),
            (Some(7.0), 11.0, Theme::Light),
        ] {
            let svg = draw_plot(plot, &data, &DrawOptions { width_in, font_pt, theme }).svg;
            text_of(&svg);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", plot.name);
        }
    }
}

/// The figure beside the answer of a search shows the utilisation for which the search was made.
#[test]
fn the_utilisation_of_a_search_is_drawn() {
    let plot = find("au_processes").unwrap();
    for (response, expected) in
        [(None, "AU, all steps (%)"), (Some(&AU_SUSTAINED), "AU, sustained (%)")]
    {
        let data = Data { search_response: response, ..data_for(plot, "unet3d_h100") };
        let drawn = figure(plot, &data).unwrap();
        assert!(drawn.panels.iter().all(|panel| panel.axes.y.label == expected), "{expected}");
    }
}

#[test]
fn axes_have_their_units() {
    for (name, labels) in [
        ("ceilings", vec!["Throughput (samples/s)", "needed: 1000 samples/s", "largest drop"]),
        ("au_processes", vec!["AU, all steps (%)", "Accelerators"]),
        ("throughput_processes", vec!["Throughput (MB/s)", "Accelerators", "npz"]),
        ("scaling", vec!["Throughput (MB/s)", "ideal", "format npz, read_threads 1"]),
        (
            "factor_levels",
            vec!["AU, all steps (%)", "Throughput (MB/s)", "read_threads", "8 processes"],
        ),
        (
            "stall",
            vec![
                "Share of an accelerator's time (%)",
                "open",
                "read",
                "decode",
                "queue",
                "barrier",
            ],
        ),
        (
            "phases",
            vec![
                "AU, all steps (%)",
                "Epoch",
                "AU (%)",
                "Throughput (samples/s)",
                "Written (MB/s)",
                "before save",
            ],
        ),
        (
            "timeline",
            vec![
                "Time (s)",
                "Read (MB/s)",
                "Written (MB/s)",
                "GPU use (%)",
                "checkpoint",
                "epoch 1",
            ],
        ),
        ("checkpoint_rates", vec!["Checkpoint", "Rate (MB/s)", "written", "read"]),
        ("latency", vec!["Read call (ms)", "Open call (ms)", "Calls, cumulative (%)"]),
        ("status", vec!["Rows (runs)", "18 of 42 rows done, 6 running, 12 pending, 6 failed"]),
    ] {
        let plot = find(name).unwrap();
        let text =
            text_of(&draw_plot(plot, &data_for(plot, "unet3d_h100"), &DrawOptions::default()).svg);
        for label in labels {
            assert!(text.lines().any(|line| line == label), "{name}: no `{label}` in {text}");
        }
    }
}

#[test]
fn levels_of_a_factor_are_drawn_for_any_response() {
    let data = data_of(one_at_a_time());
    let levels = find("factor_levels").unwrap();
    let figure = levels.figure(&data, Some(&LOAD_S)).unwrap();
    let labels = figure.panels.iter().map(|panel| panel.axes.y.label.as_str());
    assert_eq!(labels.collect::<Vec<_>>(), ["time waiting for data (s)"; 3]);
    assert!(figure.title.ends_with(" by level of each factor"), "{}", figure.title);
    let missing = levels.figure(&data, Some(&STALL_SKEW)).unwrap_err();
    assert_eq!(missing.message, "no run has the metric `stall_skew_s`");
}

#[test]
fn main_effects_and_their_intervals_equal_those_computed_by_hand() {
    let data = data_of(runs("a"));
    let effects = find("effects").unwrap();
    let drawn = figure(effects, &data).unwrap();
    let labels = drawn.panels.iter().map(|panel| panel.axes.x.label.as_str());
    let expected = ["AU, all steps: change (points)", "Throughput: change (%)"];
    assert_eq!(labels.collect::<Vec<_>>(), expected);
    let mark = |panel: usize, name: &str| {
        let Scale::Categories(names) = &drawn.panels[panel].axes.y.scale else { panic!() };
        let place = names.iter().position(|other| other == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {names:?}")) as f64;
        let marks = drawn.panels[panel].all_series().last().unwrap();
        marks.points.iter().find(|point| point.y == place).unwrap().clone()
    };
    // Of four combinations of the other factors, each with three runs at a time and a variance of 1: the standard error is √(8 ÷ 3) ÷ 4, and
    // t is 2.119905 with 16 degrees of freedom.
    let half = 2.119_905_3 * (8.0_f64 / 3.0).sqrt() / 4.0;
    let processes = mark(0, "4 processes vs. 1");
    for (found, expected) in [
        (processes.x, -45.0),
        (processes.low.unwrap(), -45.0 - half),
        (processes.high.unwrap(), half - 45.0),
    ] {
        assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
    }
    assert_eq!(processes.runs, Some(24));
    let format = mark(1, "format hdf5 vs. npz");
    assert!((format.x - 100.0 * (2.7 - 1.0)).abs() < 1e-9, "{}", format.x);
    let single = figure(effects, &data_of(one_at_a_time())).unwrap();
    assert!(single.points().all(|point| point.low.is_none()));
    assert!(single.caption.contains("runs that were not repeated"), "{}", single.caption);
}

#[test]
fn a_png_is_not_empty() {
    for plot in PLOTS {
        let drawing = draw_plot(plot, &data_for(plot, "unet3d_h100"), &DrawOptions::default());
        let bytes = drawing.encode(PictureFormat::Png, 100.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let width = reader.info().width;
        let height = reader.info().height;
        let expected = drawing.size_in;
        for (pixels, inches) in [(width, expected.0), (height, expected.1)] {
            let is_right = (f64::from(pixels) - inches * 100.0).abs() <= 0.51;
            assert!(is_right, "{}: {pixels} for {inches} in", plot.name);
        }
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let inked = pixels.chunks(3).filter(|pixel| **pixel != [255, 255, 255]).count();
        assert!(pixels.len() / 3 / 100 < inked, "{}: {inked} of {}", plot.name, pixels.len() / 3);
    }
}

#[test]
fn missing_data_are_refused_with_a_message() {
    for plot in PLOTS {
        let missing = figure(plot, &Data::default()).unwrap_err();
        assert!(!missing.message.is_empty() && !missing.hint.is_empty(), "{}", plot.name);
        let bare = data_of(vec![Run::default()]);
        let missing = figure(plot, &bare).unwrap_err();
        assert!(!missing.message.is_empty() && !missing.hint.is_empty(), "{}", plot.name);
    }
}

#[test]
fn a_single_run_is_drawn_if_the_plot_needs_only_one() {
    for plot in PLOTS {
        let mut data = data_for(plot, "unet3d_h100");
        data.runs.truncate(1);
        let overview = data.overview.take();
        let data = Data { overview, ..data_of(data.runs) };
        match (plot.name, figure(plot, &data)) {
            (
                "au_processes"
                | "throughput_processes"
                | "factor_levels"
                | "effects"
                | "scaling"
                | "ceilings",
                answer,
            ) => drop(answer.unwrap_err()),
            _ => {
                let drawing = draw_plot(plot, &data, &DrawOptions::default());
                assert!(!drawing.svg.contains("95 % intervals"), "{}", plot.name);
            }
        }
    }
}

#[test]
fn hostile_names_are_only_names() {
    let name = "</text><script>alert(\"1\")</script>&amp;\u{0}\u{202e}";
    for plot in PLOTS {
        let Data { mut runs, overview, diagnoses, .. } = data_for(plot, name);
        for run in &mut runs {
            let loader = format!("{name}{}", run.settings["dataset.format"]);
            run.settings.insert("loader.kind".into(), loader);
        }
        let data = Data { overview, diagnoses, ..data_of(runs) };
        let figure = figure(plot, &data).unwrap();
        let svg = draw(&figure, &DrawOptions::default()).svg;
        let tree =
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        assert!(tree.descendants().all(|node| !node.has_tag_name("script")), "{}", plot.name);
    }
}

#[test]
fn means_and_intervals_equal_those_of_the_metric() {
    let data = data_of(runs("a"));
    let figure = figure(find("throughput_processes").unwrap(), &data).unwrap();
    let response = Metric::find("delivered_bytes_per_second").unwrap();
    let is_first = |run: &&Run| {
        ["1", "1", "npz"]
            == ["accelerators", "loader.workers", "dataset.format"]
                .map(|key| run.settings[key].as_str())
    };
    let values: Vec<f64> =
        data.runs.iter().filter(is_first).filter_map(|run| run.metric(response)).collect();
    let expected =
        response.average_interval(&values, feedrate_analysis::precision::CONFIDENCE).unwrap();
    let is_expected = |point: &crate::draw::figure::Point| {
        (point.y * 1e6 - expected.estimate).abs() < 1.0
            && point.high.is_some_and(|high| (high * 1e6 - expected.high).abs() < 1.0)
            && point.runs == Some(3)
    };
    assert!(figure.points().any(is_expected), "{expected:?}");
}

#[test]
fn a_setting_that_changes_only_with_another_is_not_a_factor() {
    let mut runs = runs("a");
    for run in &mut runs {
        let is_small = ["1", "2"].contains(&run.settings["accelerators"].as_str());
        run.settings.insert("batch".into(), if is_small { "8" } else { "4" }.into());
    }
    let data = data_of(runs);
    let block = &data.blocks()[0];
    let names =
        block.factor_order().into_iter().map(|index| block.design.factors[index].name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["processes", "format", "read_threads"]);
    assert!(block.followers.contains(&["batch".to_string(), "processes".to_string()]));
}

#[test]
fn each_source_has_its_own_line() {
    let mut both = runs("a");
    both.retain(|run| {
        run.settings["loader.workers"] == "1" && run.settings["dataset.format"] == "npz"
    });
    let mut after = both.clone();
    let name = |runs: &mut [Run], source: &str| {
        runs.iter_mut().for_each(|run| drop(run.settings.insert("source".into(), source.into())));
    };
    name(&mut both, "before");
    name(&mut after, "after");
    both.extend(after);
    let data = data_of(both);
    let text =
        text_of(&draw_plot(find("au_processes").unwrap(), &data, &DrawOptions::default()).svg);
    assert!(text.contains("before\n") && text.contains("after\n"), "{text}");
}

#[test]
fn warnings_about_runs_are_counted() {
    let mut runs = runs("a");
    runs.truncate(3);
    runs[0].doubts.clear();
    let data = data_of(runs);
    let all = figure(find("stall").unwrap(), &data).unwrap();
    assert_eq!(data.doubts(&all), " Doubts: too_few_steps (2 of 3 runs).");
    assert_eq!(Data::default().doubts(&all), "");
}

#[test]
fn series_of_a_factor_have_its_name() {
    let data = data_of(runs("a"));
    let svg = draw_plot(find("au_processes").unwrap(), &data, &DrawOptions::default()).svg;
    for name in ["read_threads 1", "format npz"] {
        assert!(svg.contains(&format!("<g data-series=\"{name}\">")), "{name}: {svg}");
        assert!(svg.contains(&format!("<title>{name}: ")), "{name}: {svg}");
    }
}

#[test]
fn an_unsplit_wait_is_explained() {
    let mut runs = one_at_a_time();
    for run in &mut runs {
        run.values.remove(&STALL_OPEN.id);
        set_metric(run, &LOAD_S, 3.0);
        set_metric(run, &BARRIER_S, 0.0);
    }
    let data = data_of(runs);
    let plot = find("stall").unwrap();
    let text = text_of(&draw_plot(plot, &data, &DrawOptions::default()).svg);
    assert!(text.contains("data (not split)\n") && !text.contains("decode\n"), "{text}");
    let caption = figure(plot, &data).unwrap().caption;
    assert!(caption.contains("without its parts"), "{caption}");
}

#[test]
fn a_run_with_skew_shows_no_barrier() {
    let labels = |runs: Vec<Run>| {
        let data = data_of(runs);
        let plot = find("stall").unwrap();
        let text = text_of(&draw_plot(plot, &data, &DrawOptions::default()).svg);
        let caption = figure(plot, &data).unwrap().caption;
        let is_explained = caption.contains("(barrier) without its cause");
        (text.contains("skew\n"), text.contains("barrier\n"), is_explained)
    };
    let mut runs = one_at_a_time();
    assert_eq!(labels(runs.clone()), (false, true, true));
    set_metric(&mut runs[0], &STALL_SKEW, 0.5);
    assert_eq!(labels(runs.clone()), (true, true, true));
    runs.iter_mut().for_each(|run| set_metric(run, &STALL_SKEW, 0.5));
    assert_eq!(labels(runs), (true, false, false));
}

#[test]
fn folders_show_the_states_of_their_runs() {
    let folder =
        |processes, state| FolderRun { path: "a".into(), workload: "a".into(), processes, state };
    let folders = vec![
        folder(Some(4), FolderState::Done),
        folder(Some(4), FolderState::NoTraining),
        folder(Some(4), FolderState::Partial),
        folder(None, FolderState::Failed),
    ];
    let other = FolderRun { workload: "b".into(), ..folder(Some(4), FolderState::Done) };
    let folders = [folders, vec![other]].concat();
    let data = Data { folders, ..Data::default() };
    let drawing = draw_plot(find("status").unwrap(), &data, &DrawOptions::default());
    let text = text_of(&drawing.svg);
    let caption = figure(find("status").unwrap(), &data).unwrap().caption;
    let summary = "2 of 4 folders done, 1 partial, 1 failed, 1 no training";
    assert!(caption.starts_with(summary), "{caption}");
    for words in ["all", "a", "b", "4 processes", "unknown processes"] {
        assert!(text.lines().any(|line| line == words), "{words}: {text}");
    }
}

#[test]
fn any_number_of_accelerator_counts_is_drawn_or_refused_with_a_reason() {
    let limits = [40, 41, 53, 54, 60, 100, 150, 151, 199, 200];
    for count in (1..=9).chain(limits) {
        let counts = 1..=count;
        let folder = |(workload, processes): (&str, u32)| FolderRun {
            path: "a".into(),
            workload: workload.into(),
            processes: Some(processes),
            state: if processes == 1 { FolderState::Partial } else { FolderState::Done },
        };
        let both = counts.clone().flat_map(|processes| [("a", processes), ("b", processes)]);
        let data = Data {
            folders: both.map(folder).collect(),
            ..data_of(counts.map(|n| run("a", (n.into(), 1.0, "npz"), 90.0, 3e6)).collect())
        };
        check_drawn_or_refused(&data, &[DrawOptions::default()]);
        let status = find("status").unwrap();
        draw_plot(status, &data, &DrawOptions::default());
    }
}

/// Neither the names of levels and workloads nor the requested sizes leave room for anything.
#[test]
fn levels_with_names_that_cannot_fit_are_drawn_or_refused_with_a_reason() {
    let name = "record_length_bytes 536.9 MB, ".repeat(4);
    let options = [0.0, 7.0].map(|width_in| DrawOptions {
        width_in: Some(width_in),
        font_pt: 48.0,
        theme: Theme::Light,
    });
    for count in [1, 7, 60, 200] {
        let levels: Vec<String> = (0..count).map(|level| format!("{name}{level}")).collect();
        let formats = levels.iter().flat_map(|format| {
            [1.0, 2.0].map(|processes| run("a", (processes, 1.0, format), 90.0, 3e6))
        });
        check_drawn_or_refused(&data_of(formats.collect()), &options);
        let workloads = levels.iter().take(60).flat_map(|workload| {
            [1.0, 2.0].map(|processes| run(workload, (processes, 1.0, "npz"), 90.0, 3e6))
        });
        check_drawn_or_refused(&data_of(workloads.collect()), &options);
    }
}

#[track_caller]
fn check_drawn_or_refused(data: &Data, options: &[DrawOptions]) {
    for plot in PLOTS {
        match figure(plot, data) {
            Ok(figure) => {
                for options in options {
                    let (width, height) = draw(&figure, options).size_in;
                    let is_finite = width.is_finite() && height.is_finite();
                    assert!(is_finite, "{}: {width} × {height}", plot.name);
                }
            }
            Err(missing) => assert!(!missing.message.is_empty(), "{}", plot.name),
        }
    }
}
