//! Tests of the texts in pictures and captions: names, marks, axes, levels that are held constant or not drawn.

use super::made_up::{data_of, one_at_a_time, run, set_metric};
use crate::draw::figure::Scale;
use crate::draw::{DrawOptions, draw};
use crate::plot::*;
use feedrate_measure::metric::{AU_ALL_STEPS, DELIVERED_WHOLE, Provenance, SAMPLES_WHOLE};
use feedrate_results::run::Run;

fn figure_of(name: &str, runs: Vec<Run>) -> (Figure, Data) {
    let data = data_of(runs);
    let figure = find(name).unwrap().figure(&data, None);
    (figure.unwrap_or_else(|missing| panic!("{missing}")), data)
}

/// The texts of a drawing.
fn texts(figure: &Figure, width_in: f64) -> Vec<String> {
    let drawing = draw(figure, &DrawOptions { width_in: Some(width_in), ..DrawOptions::default() });
    assert_eq!(drawing.problems(), Vec::<String>::new());
    let svg = drawing.svg;
    let tree = roxmltree::Document::parse(&svg).unwrap();
    let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().to_string()).collect()
}

fn setting(processes: f64, workers: f64, format: &str) -> Run {
    run("a", (processes, workers, format), 50.0, 1e7 * processes)
}

#[test]
fn a_caption_explains_marks() {
    let numbers = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0];
    let (figure, _) =
        figure_of("au_processes", numbers.map(|processes| setting(processes, 1.0, "npz")).to_vec());
    assert_eq!(
        figure.caption,
        "AU, all steps against processes. Marks are means of n = 3 runs with 95 % intervals, which are hidden if smaller than the mark. \
         A hollow mark is a single run."
    );
    let svg = draw(&figure, &DrawOptions::default()).svg;
    let mark = |runs: &str| svg.lines().find(|line| line.contains(&format!("n = {runs}</title>")));
    assert!(mark("1").unwrap().contains("fill=\"#ffffff\""), "{svg}");
    assert!(!mark("3").unwrap().contains("fill=\"#ffffff\""), "{svg}");
    let (figure, _) =
        figure_of("factor_levels", vec![setting(1.0, 1.0, "npz"), setting(2.0, 1.0, "npz")]);
    assert_eq!(
        figure.caption,
        "AU and throughput by level of each factor. Each mark is one run, so there are no intervals."
    );
}

/// The 95 % interval of two utilisations is nearly always 0 to 100 %.
#[test]
fn two_runs_are_drawn_instead_of_an_interval() {
    let aus = [(1.0, 60.0), (1.0, 70.0), (2.0, 30.0), (2.0, 34.0)];
    let runs = aus.map(|(processes, au)| run("a", (processes, 1.0, "npz"), au, 1e7 * au));
    let (figure, _) = figure_of("au_processes", runs.to_vec());
    assert_eq!(
        figure.caption,
        "AU, all steps against processes. Each mark is one run. Two runs have no useful interval, so both are drawn."
    );
    let pairs: Vec<_> = figure.points().map(|point| (point.pair, point.low, point.y)).collect();
    assert_eq!(pairs, [(Some([60.0, 70.0]), None, 65.0), (Some([30.0, 34.0]), None, 32.0)]);
    let svg = draw(&figure, &DrawOptions::default()).svg;
    let marks = svg.lines().filter(|line| line.contains("n = 2</title>")).count();
    assert_eq!(marks, 4, "{svg}");
}

#[test]
fn each_panel_names_its_own_colours() {
    let settings = [
        (1.0, 1.0, "npz"),
        (2.0, 1.0, "npz"),
        (1.0, 8.0, "npz"),
        (2.0, 8.0, "npz"),
        (1.0, 1.0, "png"),
        (2.0, 1.0, "png"),
    ];
    let runs = settings.map(|(processes, workers, format)| setting(processes, workers, format));
    let (figure, _) = figure_of("throughput_processes", runs.to_vec());
    let texts = texts(&figure, 7.0);
    let count = |name: &str| texts.iter().filter(|text| *text == name).count();
    assert_eq!((count("format"), count("npz"), count("png"), count("format npz")), (1, 1, 1, 0));
}

#[test]
fn the_same_line_is_drawn_once_with_its_held_levels() {
    let (figure, _) = figure_of("au_processes", one_at_a_time());
    assert_eq!(figure.panels.len(), 1);
    for words in [
        "Not drawn, as fewer than two of its levels were run at several numbers of processes: `format`, `read_threads`.",
        "Held: format npz, read_threads 1.",
    ] {
        assert!(figure.caption.contains(words), "{words}: {}", figure.caption);
    }
}

#[test]
fn the_axis_of_processes_is_linear_if_its_labels_fit() {
    for (most, is_even) in [(16.0, true), (32.0, false)] {
        let numbers = [1.0, 2.0, 4.0, most];
        let (figure, _) =
            figure_of("au_processes", numbers.map(|n| setting(n, 1.0, "npz")).to_vec());
        let axes = &figure.panels[0].axes;
        assert_eq!(matches!(axes.x.scale, Scale::LinearAt(_)), is_even);
        let is_named = figure.caption.ends_with("Logarithmic axis: Accelerators.");
        assert_eq!(is_named, !is_even, "{}", figure.caption);
    }
}

#[test]
fn scaling_has_a_line_for_each_combination_with_several_numbers_of_processes() {
    let mut runs: Vec<Run> = [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (2.0, 4.0), (1.0, 8.0)]
        .map(|(processes, workers)| setting(processes, workers, "npz"))
        .to_vec();
    runs.iter_mut().enumerate().for_each(|(i, run)| run.path = i.to_string().into());
    let (figure, data) = figure_of("scaling", runs);
    let texts = texts(&figure, 7.0);
    for name in ["ideal", "read_threads 1", "read_threads 4"] {
        assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
    }
    for words in [
        "Not drawn: 1 combination of other levels, as they were run at one number of processes.",
        "Logarithmic axes: Accelerators, Throughput.",
    ] {
        assert!(figure.caption.contains(words), "{words}: {}", figure.caption);
    }
    assert_eq!(data.doubts(&figure), " Drawn: 4 of 5 runs. Doubts: too_few_steps (4 of 4 runs).");
}

#[test]
fn lines_without_marks_differ_in_more_than_colour() {
    let runs = vec![setting(2.0, 1.0, "npz"), setting(2.0, 4.0, "npz")];
    let (figure, _) = figure_of("latency", runs);
    let svg = draw(&figure, &DrawOptions::default()).svg;
    let broken = svg.lines().filter(|line| line.contains("stroke-dasharray=\"5 2\"")).count();
    // One in each of three panels, and one in the key.
    assert_eq!(broken, 4, "{svg}");
}

#[test]
fn an_interval_that_is_cut_is_explained() {
    let mut runs =
        vec![setting(1.0, 1.0, "npz"), setting(1.0, 1.0, "npz"), setting(2.0, 1.0, "npz")];
    // Two runs that differ so much have an interval far beyond them.
    set_metric(&mut runs[0], &SAMPLES_WHOLE, 1.0);
    set_metric(&mut runs[1], &SAMPLES_WHOLE, 100.0);
    let (figure, _) = figure_of("throughput_processes", runs);
    let words = "An interval that ends in an arrow extends beyond the axis.";
    assert!(figure.caption.contains(words), "{}", figure.caption);
}

#[test]
fn rows_keep_their_levels_however_narrow_the_picture() {
    let runs = [1.0, 4.0].map(|workers| setting(4.0, workers, "npz"));
    let mut runs = runs.to_vec();
    runs.push(setting(6.0, 1.0, "npz"));
    let (figure, _) = figure_of("stall", runs);
    let texts = texts(&figure, 3.3);
    let levels = texts.iter().filter(|text| text.ends_with(" 4") || text.ends_with(" 1"));
    assert_eq!(levels.count(), 3, "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains('…')), "{texts:?}");
}

/// Without compute there is no utilisation to draw.
#[test]
fn runs_that_only_read_have_no_panel_of_utilisation() {
    let mut runs = [1.0, 4.0].map(|workers| setting(4.0, workers, "npz")).to_vec();
    runs.iter_mut().for_each(|run| set_metric(run, &AU_ALL_STEPS, 0.0));
    let (figure, _) = figure_of("factor_levels", runs.clone());
    assert_eq!((figure.panels.len(), &*figure.title), (1, "Throughput by level of each factor"));
    set_metric(&mut runs[0], &AU_ALL_STEPS, 50.0);
    let (figure, _) = figure_of("factor_levels", runs);
    assert_eq!(figure.panels.len(), 2);
}

#[test]
fn titles_of_axes_are_complete_beside_low_panels() {
    let runs = [1.0, 4.0].map(|workers| setting(4.0, workers, "npz"));
    let mut runs = runs.to_vec();
    runs.iter_mut().for_each(|run| run.values.retain(|id, _| *id != DELIVERED_WHOLE.id));
    for run in &mut runs {
        set_metric(run, &SAMPLES_WHOLE, 100.0);
    }
    let (figure, _) = figure_of("factor_levels", runs);
    for width_in in [3.3, 6.9] {
        let texts = texts(&figure, width_in);
        assert!(texts.iter().any(|text| text == "Throughput (samples/s)"), "{texts:?}");
    }
}

#[test]
fn rates_of_bytes_have_one_unit_for_all_sizes() {
    for rate in [3e3, 3e7, 3e10] {
        let runs = [1.0, 2.0].map(|processes| run("a", (processes, 1.0, "npz"), 50.0, rate));
        let data = data_of(runs.to_vec());
        let figure = find("scaling").unwrap().figure(&data, Some(&DELIVERED_WHOLE)).unwrap();
        assert_eq!(figure.panels[0].axes.y.label, "Throughput (MB/s)");
        assert!(figure.points().any(|point| (point.y - rate / 1e6).abs() < 1e-9), "{figure:?}");
        let (figure, _) = figure_of("phases", runs.to_vec());
        let labels = figure.panels.iter().map(|panel| panel.axes.x.label.as_str());
        let byte_labels: Vec<&str> = labels.filter(|label| label.contains("B/s")).collect();
        let is_in_megabytes = |label: &&str| label.ends_with(" (MB/s)");
        assert!(
            !byte_labels.is_empty() && byte_labels.iter().all(is_in_megabytes),
            "{byte_labels:?}"
        );
    }
}

#[test]
fn long_names_of_workloads_are_wrapped_and_complete() {
    let name = "unet3d_h100_with_hdf5_files_and_a_checkpoint_after_each_epoch_of_training";
    let mut runs = Vec::new();
    for processes in [1.0, 2.0] {
        runs.push(run(name, (processes, 1.0, "npz"), 50.0, 1e7));
        runs.push(run("b", (processes, 1.0, "npz"), 60.0, 2e7));
    }
    // Over panels, and in the key.
    for plot in ["factor_levels", "scaling"] {
        let (figure, _) = figure_of(plot, runs.clone());
        let texts = texts(&figure, 3.3);
        assert!(texts.concat().contains(name), "{plot}: {texts:?}");
        assert!(!texts.iter().any(|text| text.contains('…')), "{plot}: {texts:?}");
    }
}

#[test]
fn rates_of_bytes_that_were_not_counted_are_called_estimated() {
    let mut runs = vec![setting(1.0, 1.0, "npz"), setting(2.0, 1.0, "npz")];
    let estimate = |run: &mut Run| {
        run.values.get_mut(&DELIVERED_WHOLE.id).unwrap().provenance = Provenance::Estimated;
    };
    estimate(&mut runs[0]);
    let in_part = runs.clone();
    estimate(&mut runs[1]);
    for (runs, label) in
        [(in_part, "Throughput (MB/s, partly estimated)"), (runs, "Throughput (MB/s, estimated)")]
    {
        for name in ["throughput_processes", "scaling", "factor_levels"] {
            let data = data_of(runs.clone());
            let figure = find(name).unwrap().figure(&data, Some(&DELIVERED_WHOLE)).unwrap();
            let axes = &figure.panels[0].axes;
            assert_eq!(axes.y.label, label, "{name}");
            assert!(figure.caption.contains("are estimated"), "{name}: {}", figure.caption);
        }
        let (figure, _) = figure_of("au_processes", runs);
        assert!(!figure.caption.contains("estimated"), "{}", figure.caption);
    }
}
