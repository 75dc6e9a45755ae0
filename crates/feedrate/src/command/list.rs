//! `feedrate list`: what there is, a line each.

use super::mlperf;
use crate::bundled::{Bundled, MlperfStatus, WORKLOADS};
use crate::catalog::catalog;
use crate::exit::Exit;
use crate::{messages, text};
use clap::{Args, ValueEnum};
use feedrate_analysis::advice;
use feedrate_data::storage::engine;
use feedrate_data::{format, storage};
use feedrate_engine::loader;
use feedrate_measure::verdict::Bound;
use feedrate_measure::{doubt, metric};
use feedrate_report::output::Schema;
use feedrate_report::plot::{PLOTS, Plot};
use feedrate_report::words;
use feedrate_run::{checkpoint, comm, compute};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::{self, CLIENT_PROFILES, ClientProfile, Context, MEASURED_ON, Request};
use feedrate_spec::units;
use feedrate_spec::workload::{self, KEYS, Strictness};
use feedrate_study::{design, launch};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// `feedrate list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate list
  feedrate list keys
  feedrate describe read_threads      all about one of them")]
pub(super) struct ListArguments {
    /// Kind of things to list.
    #[arg(value_enum, default_value_t = ListedFamily::Workloads)]
    family: ListedFamily,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Things that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListedFamily {
    /// Bundled workloads.
    Workloads,
    /// File formats.
    Formats,
    /// Storages.
    Storages,
    /// Engines that read files.
    Engines,
    /// Loaders.
    Loaders,
    /// Clients that were measured.
    Clients,
    /// Formats of checkpoints.
    Checkpoints,
    /// Ways of computing.
    Computes,
    /// Ways of communicating.
    Comms,
    /// Ways of starting the runs of a study.
    Launches,
    /// Designs of studies.
    Designs,
    /// Plots of runs and studies.
    Plots,
    /// Workload keys.
    Keys,
    /// Metrics.
    Metrics,
    /// Doubts.
    Doubts,
    /// Verdicts: what bounds a run.
    Verdicts,
    /// Rules of advice.
    Advice,
    /// Topics: rules of other benchmarks.
    Topics,
}

/// A line of a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Name as users write it.
    pub(super) name: String,
    /// One sentence.
    pub(super) summary: String,
    /// Abilities, unit, or why it cannot run.
    pub(super) notes: String,
}

/// Print a family.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<Exit> {
    let listed = listed(arguments.family);
    if arguments.json {
        messages::print_json(Schema::List.object(json!({ "members": listed })))?;
        return Ok(Exit::Fine);
    }
    if arguments.family == ListedFamily::Workloads {
        messages::print_page(&grouped(&listed))?;
        return Ok(Exit::Fine);
    }
    let rows = listed.iter().map(|Listed { name, summary, notes }| {
        let notes = if notes.is_empty() { String::new() } else { format!(" [{notes}]") };
        (name.as_str(), format!("{summary}{notes}"))
    });
    messages::print_page(&text::rows(&rows.collect::<Vec<_>>()))?;
    Ok(Exit::Fine)
}

const BEGINNING: &str = "To begin with";
const MLPERF: &str = "MLPerf Storage v3.0";
const WHATIF: &str = "MLPerf Storage, `whatif` in v3.0: can be run, not submitted";
const DLIO: &str = "DLIO";
const STUDY: &str = "A study of DLIO (perf_2025)";
const APPLICATIONS: &str = "Applications, as their I/O was analysed";
const HEADINGS: [&str; 6] = [BEGINNING, MLPERF, WHATIF, DLIO, STUDY, APPLICATIONS];

/// The heading that a workload is listed below: by its status, else by the beginning of its summary.
fn heading_of(workload: &Bundled) -> &'static str {
    match (workload.status, workload.summary()) {
        (Some(MlperfStatus::WhatIf), _) => WHATIF,
        (Some(_), _) => MLPERF,
        (None, summary) if summary.starts_with("A minute") => BEGINNING,
        (None, summary) if summary.starts_with("DLIO's ") => DLIO,
        (None, summary) if summary.starts_with("The study's ") => STUDY,
        (None, _) => APPLICATIONS,
    }
}

/// Workloads below their headings, a line each.
fn grouped(listed: &[Listed]) -> String {
    let group = |heading: &str| {
        let below =
            WORKLOADS.iter().zip(listed).filter(|(workload, _)| heading_of(workload) == heading);
        let rows = below.map(|(workload, Listed { name, summary, notes })| {
            let (_, what) = summary.split_once(": ").unwrap_or(("", summary));
            // The heading says it.
            let notes = match workload.status {
                Some(status @ (MlperfStatus::Official | MlperfStatus::WhatIf)) => {
                    notes.strip_prefix(&*status.note()).unwrap_or(notes)
                }
                _ => notes,
            };
            let notes = if notes.is_empty() { String::new() } else { format!(" [{notes}]") };
            (name.as_str(), format!("{what}{notes}"))
        });
        let rows = text::rows(&rows.collect::<Vec<_>>());
        let rows: String = rows.lines().map(|row| format!("\n  {row}")).collect();
        format!("{heading}{rows}")
    };
    HEADINGS.map(group).join("\n")
}

/// The members of a family.
pub(super) fn listed(family: ListedFamily) -> Vec<Listed> {
    match family {
        ListedFamily::Workloads => WORKLOADS.iter().map(workload).collect(),
        ListedFamily::Formats => format::FORMATS.iter().map(|f| member(f.member())).collect(),
        ListedFamily::Storages => storage::STORAGES.iter().map(|s| member(s.member)).collect(),
        ListedFamily::Engines => engine::ENGINES.iter().map(|e| member(e.member())).collect(),
        ListedFamily::Loaders => loader::LOADERS.iter().map(|l| member(l.entry().member)).collect(),
        ListedFamily::Clients => CLIENT_PROFILES.iter().map(client).collect(),
        ListedFamily::Checkpoints => {
            checkpoint::CHECKPOINTS.iter().map(|c| member(c.member())).collect()
        }
        ListedFamily::Computes => compute::COMPUTES.iter().map(|c| member(c.member)).collect(),
        ListedFamily::Comms => comm::COMMS.iter().map(|m| member(m)).collect(),
        ListedFamily::Launches => launch::LAUNCHES.iter().map(|l| member(&l.member)).collect(),
        ListedFamily::Designs => design::DESIGNS
            .iter()
            .map(|design| {
                let options: Vec<&str> = design.options.iter().map(|option| option.name).collect();
                line(design.name, design.summary, &options.join(", "))
            })
            .collect(),
        ListedFamily::Plots => PLOTS.iter().map(|p| plot(p)).collect(),
        ListedFamily::Keys => KEYS
            .iter()
            .map(|key| {
                line(key.path, key.meaning, &format!("{}, default {}", key.kind, key.default))
            })
            .collect(),
        ListedFamily::Metrics => {
            metric::METRICS.iter().map(|m| line(m.label(), &m.meaning(), m.unit.name())).collect()
        }
        ListedFamily::Doubts => {
            let of_results = feedrate_results::doubt::DOUBTS.iter().map(|row| &row.kind);
            // Of the same name, the meaning is that of a record's.
            let own = of_results.filter(|kind| doubt::find(kind.name).is_none());
            let all = doubt::DOUBTS.iter().map(|doubt| &doubt.kind).chain(own);
            all.map(|kind| line(kind.name, kind.meaning, kind.severity.name())).collect()
        }
        ListedFamily::Verdicts => {
            Bound::ALL.iter().map(|bound| line(bound.name(), bound.meaning(), "")).collect()
        }
        ListedFamily::Advice => advice::RULES
            .iter()
            .map(|rule| line(rule.name, &words::advice::summary(rule.name), rule.source))
            .collect(),
        ListedFamily::Topics => vec![line(mlperf::TOPIC, mlperf::SUMMARY, "")],
    }
}

pub(super) fn line(name: &str, summary: &str, notes: &str) -> Listed {
    Listed { name: name.into(), summary: summary.into(), notes: notes.into() }
}

fn member(member: &Member) -> Listed {
    let abilities: Vec<&str> = member.abilities.iter().map(|a| a.name()).collect();
    line(member.name, member.summary, &abilities.join(", "))
}

/// Costs, and the machine they were measured on.
fn client(profile: &ClientProfile) -> Listed {
    let [sample, byte, batch, handover, receive, receive_byte, waits, start] = costs(profile);
    let summary = format!(
        "A worker takes {sample} for a sample, {byte} for a byte, {batch} for a batch, and hands over {handover}; the training's process {receive} for a batch and {receive_byte} for a byte ({waits} of it waiting), {start} to start a worker"
    );
    line(profile.name, &summary, &format!("measured on {MEASURED_ON}"))
}

fn costs(profile: &ClientProfile) -> [String; 8] {
    let of = profile.plan();
    [
        units::seconds(of.per_sample_s),
        units::seconds(of.per_byte_s),
        units::seconds(of.per_batch_s),
        of.handover_bytes_per_second.map_or_else(|| "-".into(), units::bytes_per_second_rounded),
        units::seconds(of.receive_per_batch_s),
        units::seconds(of.receive_per_byte_s),
        format!("{:.0} %", 100.0 * of.receive_wait_share),
        units::seconds(of.start_per_epoch_s),
    ]
}

fn plot(plot: &Plot) -> Listed {
    let names: Vec<&str> = plot.responses.iter().map(|metric| metric.id.name()).collect();
    let notes = match names.as_slice() {
        [] => String::new(),
        names => format!("--response {}", names.join(" or ")),
    };
    line(plot.name, plot.summary, &notes)
}

/// A bundled workload, its status, and why it cannot run as it stands, if it cannot.
fn workload(bundled: &Bundled) -> Listed {
    let request = Request { name: bundled.name.into(), ..Request::default() };
    let planned = workload::parse(&bundled.file(), bundled.yaml, &[], Strictness::Error)
        .and_then(|(workload, _)| plan::build(&workload, &request, &catalog(), Context::default()));
    let refusal = planned.err().map(|problems| {
        let messages: Vec<&str> = problems.0.iter().map(|p| p.message.as_str()).collect();
        format!("refused: {}", messages.join("; "))
    });
    let notes: Vec<String> =
        bundled.status.map(MlperfStatus::note).into_iter().chain(refusal).collect();
    line(bundled.name, &bundled.summary(), &notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_take_a_line_of_80_columns_each_below_whose_they_are() {
        let text = grouped(&listed(ListedFamily::Workloads));
        let long = text.lines().find(|line| 80 < line.chars().count());
        assert_eq!(long, None);
        assert_eq!(text.lines().count(), WORKLOADS.len() + HEADINGS.len(), "{text}");
        for workload in WORKLOADS {
            let begin = format!("\n  {} ", workload.name);
            assert!(text.contains(&begin), "{}", workload.name);
        }
        assert!(!text.contains(" 1 accelerators"));
    }

    #[test]
    fn clients_cost_what_the_guide_says() {
        let guide = include_str!("../../../../docs/guide/client.md");
        let (_, machine) = MEASURED_ON.split_once("; ").unwrap();
        assert!(guide.contains(machine), "{machine}");
        for profile in CLIENT_PROFILES {
            let row = format!("| `{}` | {} |", profile.name, costs(profile).join(" | "));
            assert!(guide.contains(&row), "{row}");
        }
    }
}
