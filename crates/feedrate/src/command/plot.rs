//! `feedrate plot`: a picture of runs or of a study.

use crate::cli::PlotArguments;
use crate::exit::{Exit, UsageError};
use crate::messages;
use anyhow::Context as _;
use feedrate_measure::doubt::Severity;
use feedrate_measure::record::file::write_atomically;
use feedrate_spec::units;
use feedrate_spec::workload::nearest;
use feedrate_study::analysis::analyse;
use feedrate_study::case::Case;
use feedrate_study::draw::figure::Figure;
use feedrate_study::draw::{Drawing, Look, Theme, draw};
use feedrate_study::import::Kind;
use feedrate_study::load_run;
use feedrate_study::overview::Overview;
use feedrate_study::plot::data::{Data, RunPoint};
use feedrate_study::plot::{self, Needs, PLOTS, Plot};
use feedrate_study::response::Response;
use feedrate_study::runner::StudyFiles;
use feedrate_study::runs::{LeftOut, Run};
use feedrate_study::state::{History, Journal};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Narrower has no room for axes, wider no paper.
const WIDTHS_IN: std::ops::RangeInclusive<f64> = 1.5..=40.0;
const FONTS_PT: std::ops::RangeInclusive<f64> = 4.0..=48.0;
const DPIS: std::ops::RangeInclusive<f64> = 36.0..=2400.0;

/// Draw, and say where the picture is.
pub(crate) fn plot(arguments: &PlotArguments) -> anyhow::Result<Exit> {
    let plot = plot::find(&arguments.name).ok_or_else(|| unknown(&arguments.name))?;
    let response = response(plot, arguments.response.as_deref())?;
    let look = look(arguments)?;
    let target = target(arguments)?;
    let (data, left_out) = load(&arguments.paths, plot.needs())?;
    let mut figure = plot.figure(&data, response).map_err(|missing| UsageError {
        message: format!(
            "{} cannot be drawn: {}{}",
            arguments.name,
            missing.message,
            of(&left_out)
        ),
        hint: Some(missing.hint),
    })?;
    figure.caption.push_str(&data.doubts());
    if !left_out.is_empty() {
        figure
            .caption
            .push_str(&format!(" Left out: {}.", units::counted(left_out.len() as u64, "run")));
    }
    for one in &left_out {
        messages::say(format!("left out: `{}`: {}", one.path.display(), one.why));
    }
    if let Some(target) = &target {
        save(&draw(&figure, &look), target, arguments)?;
    }
    match (arguments.json, &target) {
        (true, _) => messages::print(object(arguments, &figure, &left_out, target.as_deref())?),
        (false, Some(target)) => {
            messages::print(format!("{}\n{}", target.display(), figure.caption));
        }
        (false, None) => {}
    }
    Ok(Exit::Fine)
}

fn object(
    arguments: &PlotArguments,
    figure: &Figure,
    left_out: &[LeftOut],
    target: Option<&Path>,
) -> anyhow::Result<serde_json::Value> {
    let mut object = json!({ "plot": arguments.name, "file": target, "left_out": left_out });
    object["figure"] = serde_json::to_value(figure)?;
    Ok(object)
}

/// Runs that were left out, in a message about what is missing.
fn of(left_out: &[LeftOut]) -> String {
    match left_out {
        [] => String::new(),
        [first, ..] => format!(
            "; {} left out, the first `{}`: {}",
            left_out.len(),
            first.path.display(),
            first.why
        ),
    }
}

fn unknown(name: &str) -> UsageError {
    let names = PLOTS.iter().map(|plot| plot.member().name);
    UsageError {
        message: format!("there is no plot `{name}`"),
        hint: Some(match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "see `feedrate list plots`".into(),
        }),
    }
}

fn response(plot: &dyn Plot, asked: Option<&str>) -> Result<Option<&'static Response>, UsageError> {
    let find = |name: &str| {
        Response::find(name)
            .map_err(|error| UsageError { hint: Some(error.hint()), message: error.to_string() })
    };
    match (plot.response(), asked) {
        (None, Some(_)) => Err(UsageError {
            message: format!("`{}` takes no `--response`", plot.member().name),
            hint: Some("`feedrate list plots` shows which do".into()),
        }),
        (None, None) => Ok(None),
        (Some(own), asked) => find(asked.unwrap_or(own)).map(Some),
    }
}

fn look(arguments: &PlotArguments) -> Result<Look, UsageError> {
    for (option, value, range) in [
        ("--width", arguments.width, WIDTHS_IN),
        ("--font-size", Some(arguments.font_size), FONTS_PT),
        ("--dpi", Some(arguments.dpi), DPIS),
    ] {
        if let Some(value) = value.filter(|value| !range.contains(value)) {
            return Err(UsageError {
                message: format!("`{option} {value}` is out of range"),
                hint: Some(format!("give {} to {}", range.start(), range.end())),
            });
        }
    }
    let theme = if arguments.dark { Theme::Dark } else { Theme::Light };
    Ok(Look { width_in: arguments.width, font_pt: arguments.font_size, theme })
}

/// Where the picture goes; `None` where only its data are wanted.
fn target(arguments: &PlotArguments) -> Result<Option<PathBuf>, UsageError> {
    let target = match &arguments.output {
        Some(path) => path.clone(),
        None if arguments.json => return Ok(None),
        None => PathBuf::from(format!("{}.svg", arguments.name)),
    };
    if !["svg", "png"].contains(&ending(&target).as_str()) {
        return Err(UsageError {
            message: format!("`{}` is neither `.svg` nor `.png`", target.display()),
            hint: Some("the ending of the file says what is written".into()),
        });
    }
    if target.exists() && !arguments.force {
        return Err(UsageError {
            message: format!("`{}` is there already", target.display()),
            hint: Some("replace it with `--force`, or give another name with `-o`".into()),
        });
    }
    Ok(Some(target))
}

fn ending(path: &Path) -> String {
    path.extension().map_or(String::new(), |ending| ending.to_string_lossy().to_ascii_lowercase())
}

fn load(paths: &[PathBuf], needs: Needs) -> anyhow::Result<(Data, Vec<LeftOut>)> {
    let (mut data, mut left_out) = (Data::default(), Vec::new());
    if needs == Needs::Study {
        data.overview = Some(overview(paths)?);
        return Ok((data, left_out));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = analyse(paths, threads).map_err(|error| UsageError {
        hint: Some(error.hint().to_string()),
        message: error.to_string(),
    })?;
    left_out.extend(found.left_out);
    for case in &found.runs {
        let path = paths.iter().find(|path| path.display().to_string() == case.source);
        let source = path.filter(|_| paths.len() > 1).map(|path| source_name(path, paths));
        match point(case, source.as_deref(), needs) {
            Ok(point) => data.runs.push(point),
            Err(why) => left_out.push(LeftOut { path: case.path.clone(), why }),
        }
    }
    Ok((data, left_out))
}

/// A run, or why it must not be drawn.
fn point(case: &Case, source: Option<&str>, needs: Needs) -> Result<RunPoint, String> {
    if let Some(doubt) = case.doubts.iter().find(|doubt| doubt.severity == Severity::Invalid) {
        let evidence = doubt.evidence.split(';').next().unwrap_or_default();
        return Err(format!("{}: {evidence}", doubt.name));
    }
    if !case.is_result() {
        return Err(case.put_aside.clone().unwrap_or("nothing was trained".into()));
    }
    if case.kind != Kind::Record {
        return Ok(RunPoint::of_case(case, source));
    }
    let record = load_run(&case.path).map_err(|error| error.to_string())?;
    let run = Run::of(&case.path, &record)?;
    let details = (needs == Needs::Records).then_some(&record);
    Ok(RunPoint::of(&run, source, details).doubted(case))
}

/// The last part of a path; the whole of it where several end alike.
fn source_name(path: &Path, paths: &[PathBuf]) -> String {
    let alike = paths.iter().filter(|other| other.file_name() == path.file_name()).count();
    match path.file_name() {
        Some(name) if alike == 1 => name.to_string_lossy().into_owned(),
        _ => path.display().to_string(),
    }
}

fn overview(paths: &[PathBuf]) -> anyhow::Result<Overview> {
    let [csv] = paths else {
        return Err(UsageError {
            message: "the status is that of one study".into(),
            hint: Some("give its CSV alone".into()),
        }
        .into());
    };
    if !csv.is_file() {
        return Err(UsageError {
            message: format!("`{}` is no CSV of a study", csv.display()),
            hint: Some("`feedrate study new` makes one".into()),
        }
        .into());
    }
    let files = StudyFiles::of(csv)?;
    let table = files.table()?;
    let rows: Vec<_> = table.rows().cloned().collect();
    Ok(Overview::of(&rows, &History::of(Journal::read(&files.journal())?)))
}

fn save(drawing: &Drawing, target: &Path, arguments: &PlotArguments) -> anyhow::Result<()> {
    let bytes = match ending(target).as_str() {
        "png" => drawing.png(arguments.dpi).context("a smaller `--dpi` or `--width` helps")?,
        _ => drawing.svg().into_bytes(),
    };
    Ok(write_atomically(target, &bytes)?)
}
