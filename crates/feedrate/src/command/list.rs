//! `feedrate list`: what there is, a line each.

use crate::bundled::{Bundled, WORKLOADS};
use crate::catalog::catalog;
use crate::cli::{Family, ListArguments};
use crate::exit::Exit;
use crate::messages;
use crate::resolve;
use crate::text;
use feedrate_data::storage::engine;
use feedrate_data::{format, storage};
use feedrate_engine::loader;
use feedrate_measure::{doubt, metric};
use feedrate_report::plot::{PLOTS, Plot};
use feedrate_run::{checkpoint, comm, compute};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::{self, Cache, Context, Request};
use feedrate_spec::workload::{self, KEYS, Strictness};
use feedrate_study::design::{self, Design};
use feedrate_study::launch;
use serde_json::{Value, json};

/// A line of a list.
pub(crate) struct Line {
    /// Name as users write it.
    pub(crate) name: String,
    /// One sentence.
    pub(crate) summary: String,
    /// Abilities, unit, or why it cannot run.
    pub(crate) notes: String,
}

/// Print a family.
pub(crate) fn list(arguments: &ListArguments) -> anyhow::Result<Exit> {
    let lines = lines(arguments.family);
    if arguments.json {
        let items: Vec<Value> = lines
            .iter()
            .map(|l| json!({ "name": l.name, "summary": l.summary, "notes": l.notes }))
            .collect();
        messages::print(Value::from(items));
    } else {
        let rows: Vec<(&str, String)> = lines
            .iter()
            .map(|Line { name, summary, notes }| {
                let notes = if notes.is_empty() { String::new() } else { format!(" [{notes}]") };
                (name.as_str(), format!("{summary}{notes}"))
            })
            .collect();
        messages::print(text::rows(&rows));
    }
    Ok(Exit::Fine)
}

/// The members of a family.
pub(crate) fn lines(family: Family) -> Vec<Line> {
    match family {
        Family::Workloads => WORKLOADS.iter().map(workload).collect(),
        Family::Formats => format::FORMATS.iter().map(|f| member(f.member())).collect(),
        Family::Storages => storage::STORAGES.iter().map(|s| member(s.member)).collect(),
        Family::Engines => engine::ENGINES.iter().map(|e| member(e.member())).collect(),
        Family::Loaders => loader::LOADERS.iter().map(|l| member(l.entry().member)).collect(),
        Family::Checkpoints => checkpoint::CHECKPOINTS.iter().map(|c| member(c.member())).collect(),
        Family::Computes => compute::COMPUTES.iter().map(|c| member(c.member)).collect(),
        Family::Comms => comm::COMMS.iter().map(|m| member(m)).collect(),
        Family::Launches => launch::LAUNCHES.iter().map(|l| member(&l.member)).collect(),
        Family::Designs => design::DESIGNS.iter().map(|d| design(d)).collect(),
        Family::Plots => PLOTS.iter().map(|p| plot(p)).collect(),
        Family::Keys => KEYS
            .iter()
            .map(|key| {
                line(key.path, key.meaning, &format!("{}, default {}", key.kind, key.default))
            })
            .collect(),
        Family::Metrics => {
            metric::METRICS.iter().map(|m| line(m.label(), &m.meaning(), m.unit.name())).collect()
        }
        Family::Doubts => {
            let of_records = doubt::DOUBTS
                .iter()
                .map(|d| line(d.kind.name, d.kind.meaning, d.kind.severity.name()));
            // Of the same name, the meaning is that of a record's.
            let of_results = feedrate_results::doubt::DOUBTS
                .iter()
                .map(|row| &row.kind)
                .filter(|kind| doubt::find(kind.name).is_none())
                .map(|d| line(d.name, d.meaning, d.severity.name()));
            of_records.chain(of_results).collect()
        }
    }
}

fn line(name: &str, summary: &str, notes: &str) -> Line {
    Line { name: name.into(), summary: summary.into(), notes: notes.into() }
}

fn member(member: &Member) -> Line {
    let abilities: Vec<&str> = member.abilities.iter().map(|a| a.name()).collect();
    line(member.name, member.summary, &abilities.join(", "))
}

fn plot(plot: &Plot) -> Line {
    let notes = plot.response().map_or(String::new(), |name| format!("--response {name}"));
    Line { notes, ..member(&plot.member) }
}

fn design(design: &Design) -> Line {
    let options: Vec<&str> = design.options.iter().map(|option| option.name).collect();
    line(design.name, design.summary, &options.join(", "))
}

/// A bundled workload, and why it cannot run as it stands, if it cannot.
fn workload(bundled: &Bundled) -> Line {
    let refusal = refusal(bundled).map_or(String::new(), |why| format!("refused: {why}"));
    Line { name: bundled.name.into(), summary: bundled.summary(), notes: refusal }
}

fn refusal(bundled: &Bundled) -> Option<String> {
    let (name, file, yaml) = resolve::of_bundled(bundled);
    let request = Request {
        name,
        accelerators: None,
        processes: None,
        scale: 1.0,
        shrink_records: 1.0,
        cache: Cache::AsIs,
        verify: false,
        generate_only: false,
    };
    let planned = workload::parse(&file, &yaml, &[], Strictness::Error)
        .and_then(|(workload, _)| plan::build(&workload, &request, &catalog(), Context::default()));
    let problems = planned.err()?;
    let messages: Vec<&str> = problems.0.iter().map(|p| p.message.as_str()).collect();
    Some(messages.join("; "))
}
