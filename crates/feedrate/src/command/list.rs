//! `feedrate list`: lists the members of a family with a line each, or prints the page of a member.
//!
//! Long because every family is handled here.

use super::mlperf;
use crate::cli::name_of;
use crate::exit::Exit;
use crate::{messages, text};
use clap::{Args, ValueEnum};
use feedrate_analysis::advice;
use feedrate_data::storage::engine;
use feedrate_data::{format, storage};
use feedrate_engine::loader;
use feedrate_measure::metric::Metric;
use feedrate_measure::verdict::Bound;
use feedrate_measure::{doubt, metric};
use feedrate_report::output::Schema;
use feedrate_report::plot::{PLOTS, Plot};
use feedrate_report::words;
use feedrate_run::{checkpoint, comm, compute};
use feedrate_spec::bundled::{self, Bundled, Group, MlperfStatus, WORKLOADS};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::{CLIENT_PROFILES, ClientProfile, MEASURED_ON};
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use feedrate_spec::workload::{Effect, KEYS, KeyInfo};
use feedrate_study::chooser::CHOOSERS;
use feedrate_study::design::{self, DesignKind};
use feedrate_study::launch;
use schemars::JsonSchema;
use serde::Serialize;

/// `feedrate list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate list keys
  feedrate list read_threads au_all_steps    a key and a metric")]
pub(super) struct ListArguments {
    #[arg(value_name = "FAMILY|NAME", help = families_help())]
    words: Vec<String>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

fn families_help() -> String {
    let families: Vec<String> =
        ListedFamily::value_variants().iter().copied().map(name_of).collect();
    format!(
        "A family to list, or names to explain. A family before the names restricts the search to it. Families: {} [default: {}]",
        families.join(", "),
        families[0]
    )
}

/// Families whose members can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListedFamily {
    /// Bundled workloads.
    Workloads,
    /// File formats.
    Formats,
    /// Storages.
    Storages,
    /// I/O engines.
    Engines,
    /// Data loaders.
    Loaders,
    /// Client profiles: measured costs of data loaders.
    Clients,
    /// Checkpoint formats.
    Checkpoints,
    /// Ways to emulate compute.
    Computes,
    /// Ways to communicate between ranks.
    Comms,
    /// Ways to start the runs of a study.
    Launches,
    /// Experimental designs of studies.
    Designs,
    /// Choosers, which select the next row of a study.
    Choosers,
    /// Plots of runs and studies.
    Plots,
    /// Workload keys.
    Keys,
    /// Metrics.
    Metrics,
    /// Doubts.
    Doubts,
    /// Verdicts, which name the part that limits a run.
    Verdicts,
    /// Rules of advice.
    Advice,
    /// Topics, such as the rules of MLPerf Storage.
    Topics,
}

/// A line of a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Name of the member.
    pub(super) name: String,
    /// Summary in one sentence.
    pub(super) summary: String,
    /// Abilities, unit, or the status of a workload in MLPerf Storage.
    pub(super) notes: String,
}

/// Output of `list FAMILY --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListOutput<T> {
    /// Members of the family, or members with the name.
    members: Vec<T>,
}

/// Output of `list NAME --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct DescribeOutput<'a> {
    /// Family, such as `workloads`, `keys` or `metrics`.
    family: String,
    #[serde(flatten)]
    listed: &'a Listed,
}

/// Lists a family, if its name is the only argument, or explains names.
pub(super) fn list(arguments: &ListArguments) -> anyhow::Result<Exit> {
    let family = match arguments.words.as_slice() {
        [] => Some(ListedFamily::Workloads),
        [word] => ListedFamily::from_str(word, false).ok(),
        _ => None,
    };
    let Some(family) = family else { return explain(arguments) };
    let listed = listed(family);
    if arguments.json {
        messages::print_json(Schema::List, &ListOutput { members: listed })?;
        return Ok(Exit::Fine);
    }
    if family == ListedFamily::Workloads {
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

const BEGINNING: &str = "Start here";
const MLPERF: &str = "MLPerf Storage v3.0";
const WHATIF: &str = "MLPerf Storage, `whatif` in v3.0: not accepted for submission";
const DLIO: &str = "DLIO";
const STUDY: &str = "A study of DLIO (perf_2025)";
const APPLICATIONS: &str = "Applications whose I/O was analysed";
const HEADINGS: [&str; 6] = [BEGINNING, MLPERF, WHATIF, DLIO, STUDY, APPLICATIONS];

/// Heading of a workload.
fn heading_of(workload: &Bundled) -> &'static str {
    match (workload.group, workload.status) {
        (Group::Start, _) => BEGINNING,
        (Group::Mlperf, Some(MlperfStatus::WhatIf)) => WHATIF,
        (Group::Mlperf, _) => MLPERF,
        (Group::Dlio, _) => DLIO,
        (Group::Study, _) => STUDY,
        (Group::Applications, _) => APPLICATIONS,
    }
}

/// Lists workloads by heading, with a line each.
fn grouped(listed: &[Listed]) -> String {
    let group = |heading: &str| {
        let workloads =
            WORKLOADS.iter().zip(listed).filter(|(workload, _)| heading_of(workload) == heading);
        let rows = workloads.map(|(workload, Listed { name, summary, notes })| {
            let (_, description) = summary.split_once(": ").unwrap_or(("", summary));
            // The heading says the status.
            let notes = match workload.status {
                Some(status @ (MlperfStatus::Official | MlperfStatus::WhatIf)) => {
                    notes.strip_prefix(&*status.note()).unwrap_or(notes)
                }
                _ => notes,
            };
            let notes = if notes.is_empty() { String::new() } else { format!(" [{notes}]") };
            (name.as_str(), format!("{description}{notes}"))
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
        ListedFamily::Choosers => CHOOSERS.iter().map(|chooser| member(chooser)).collect(),
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
            let records = doubt::DOUBTS.iter().map(|doubt| &doubt.kind);
            // A doubt on both records and results is described as a doubt on records.
            let results = feedrate_results::doubt::DOUBTS.iter().map(|doubt| &doubt.kind);
            let results_only = results.filter(|kind| doubt::find(kind.name).is_none());
            let kinds = records.chain(results_only);
            kinds.map(|kind| line(kind.name, kind.meaning, kind.severity.name())).collect()
        }
        ListedFamily::Verdicts => {
            Bound::ALL.iter().map(|bound| line(bound.name(), bound.meaning(), "")).collect()
        }
        ListedFamily::Advice => advice::RULES
            .iter()
            .map(|rule| line(rule.name, &words::advice::summary(rule), rule.source))
            .collect(),
        ListedFamily::Topics => {
            mlperf::topics().iter().map(|t| line(t.name, &t.summary, &t.notes)).collect()
        }
    }
}

pub(super) fn line(name: &str, summary: &str, notes: &str) -> Listed {
    Listed { name: name.into(), summary: summary.into(), notes: notes.into() }
}

fn member(member: &Member) -> Listed {
    let abilities: Vec<&str> = member.abilities.iter().map(|a| a.name()).collect();
    line(member.name, member.summary, &abilities.join(", "))
}

/// A client profile's costs, and the machine on which they were measured.
fn client(profile: &ClientProfile) -> Listed {
    let [sample, byte, batch, handover, receive, receive_byte, waits, start] = costs(profile);
    let summary = format!(
        "A worker takes {sample} per sample, {byte} per byte and {batch} per batch, and hands over {handover}; the training process takes {receive} per batch and {receive_byte} per byte ({waits} of it waiting), and {start} to start a worker"
    );
    line(profile.name, &summary, &format!("measured on {MEASURED_ON}"))
}

fn costs(profile: &ClientProfile) -> [String; 8] {
    let plan = profile.plan();
    let handover = plan.handover_bytes_per_second;
    [
        units::seconds(plan.per_sample_s),
        units::seconds(plan.per_byte_s),
        units::seconds(plan.per_batch_s),
        handover.map_or_else(|| "-".into(), units::bytes_per_second_rounded),
        units::seconds(plan.receive_per_batch_s),
        units::seconds(plan.receive_per_byte_s),
        format!("{:.0} %", 100.0 * plan.receive_wait_share),
        units::seconds(plan.start_per_epoch_s),
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

/// A bundled workload and its status in MLPerf Storage.
fn workload(bundled: &Bundled) -> Listed {
    let note = bundled.status.map(MlperfStatus::note).unwrap_or_default();
    line(bundled.name, &bundled.summary(), &note)
}

/// Prints the pages of members of any family.
fn explain(arguments: &ListArguments) -> anyhow::Result<Exit> {
    let (members, names) = search_scope(&arguments.words);
    let found: Vec<Vec<&FamilyMember>> =
        names.iter().map(|name| members_named(name, &members)).collect();
    if let Some((name, _)) = names.iter().zip(&found).find(|(_, found)| found.is_empty()) {
        return Err(unknown_name(name, &members).into());
    }
    if arguments.json {
        let members: Vec<DescribeOutput<'_>> =
            found.iter().flatten().map(|member| describe_output(member)).collect();
        match &members[..] {
            [member] => messages::print_json(Schema::Describe, member)?,
            _ => messages::print_json(Schema::List, &ListOutput { members })?,
        }
        return Ok(Exit::Fine);
    }
    let pages: Vec<String> = found.iter().map(|members| members_page(members)).collect();
    messages::print_page(&pages.join("\n\n"))?;
    Ok(Exit::Fine)
}

/// A member and its family.
type FamilyMember = (ListedFamily, Listed);

/// Members to search, and names to search for. If the first word is a family that has the other names, only this family is searched.
fn search_scope(words: &[String]) -> (Vec<FamilyMember>, &[String]) {
    if let [family, names @ ..] = words
        && !names.is_empty()
        && let Some(family) = family_named(family)
    {
        let members = Vec::from_iter(members(family));
        if names.iter().all(|name| !members_named(name, &members).is_empty()) {
            return (members, names);
        }
    }
    (ListedFamily::value_variants().iter().flat_map(|&family| members(family)).collect(), words)
}

/// Members with this name. If no member but a rule of advice has it, keys are also found without their section.
fn members_named<'a>(name: &str, members: &'a [FamilyMember]) -> Vec<&'a FamilyMember> {
    let is_named = |(family, member): &&FamilyMember| {
        let is_metric = || Metric::find(name).is_ok_and(|metric| metric.label() == member.name);
        member.name == name || *family == ListedFamily::Metrics && is_metric()
    };
    let found: Vec<&FamilyMember> = members.iter().filter(is_named).collect();
    // Rules of advice may have the same name as the key that they change.
    let has_other_families = members.iter().any(|(family, _)| *family != ListedFamily::Advice);
    if has_other_families && found.iter().all(|(family, _)| *family == ListedFamily::Advice) {
        let is_key = |(family, member): &&FamilyMember| {
            *family == ListedFamily::Keys && is_short_for(name, &member.name)
        };
        let keys: Vec<&FamilyMember> = members.iter().filter(is_key).collect();
        return if keys.is_empty() { found } else { keys };
    }
    found
}

fn members(family: ListedFamily) -> impl Iterator<Item = FamilyMember> {
    listed(family).into_iter().map(move |member| (family, member))
}

/// Whether `name` is the last part of the key or of one of its aliases.
fn is_short_for(name: &str, key: &str) -> bool {
    let aliases = KEYS.iter().filter(|known| known.path == key).flat_map(|known| known.aliases);
    let mut paths = aliases.copied().chain([key]);
    paths.any(|path| path == name || path.rsplit('.').next() == Some(name))
}

fn unknown_name(name: &str, members: &[FamilyMember]) -> Refusal {
    let families: Vec<String> =
        ListedFamily::value_variants().iter().copied().map(name_of).collect();
    let members = members.iter().map(|(_, member)| member.name.as_str());
    Refusal::unknown_name(
        format!("nothing is named `{name}`"),
        name,
        families.iter().map(String::as_str).chain(members),
        "`feedrate list --help` shows the families of names",
    )
}

fn describe_output((family, listed): &FamilyMember) -> DescribeOutput<'_> {
    DescribeOutput { family: name_of(*family), listed }
}

/// The page of one member, or a list of several members.
fn members_page(found: &[&FamilyMember]) -> String {
    if let [(family, member)] = found {
        return member_page(*family, member);
    }
    let names: Vec<String> = found
        .iter()
        .map(|(family, member)| format!("{} {}", name_of(*family), member.name))
        .collect();
    let summaries = found.iter().map(|(_, member)| member.summary.clone());
    text::rows(&Vec::from_iter(names.iter().map(String::as_str).zip(summaries)))
}

fn member_page(family: ListedFamily, found: &Listed) -> String {
    let name = found.name.as_str();
    let page = match family {
        ListedFamily::Workloads => {
            bundled::find(name).map(|bundled| match bundled.status {
                // A comment, so that the page stays a workload's file.
                Some(status) => format!("# {}\n{}", status.sentence(), bundled.yaml),
                None => bundled.yaml.into(),
            })
        }
        ListedFamily::Designs => design::find(name).ok().map(design_page),
        ListedFamily::Keys => KEYS.iter().find(|key| key.path == name).map(key_page),
        ListedFamily::Topics if name == mlperf::TOPIC => Some(mlperf::topic()),
        _ => Some(text::rows(&[(name, found.summary.clone()), ("", found.notes.clone())])),
    };
    page.unwrap_or_default().trim_end().into()
}

fn design_page(design: &DesignKind) -> String {
    let rows =
        [("design", design.name), ("combines", design.summary), ("estimates", design.estimates)];
    let options = design.options.iter().map(|option| (option.name, option.meaning));
    let rows = rows.into_iter().chain(options).map(|(name, text)| (name, text.to_string()));
    text::rows(&rows.collect::<Vec<_>>())
}

fn key_page(key: &KeyInfo) -> String {
    let effect = match key.effect {
        Effect::Now => "takes effect".to_string(),
        Effect::NotYet { feature } => format!("belongs to {feature}, which is not built yet"),
        Effect::Nothing { reason } => format!("accepted, but has no effect: {reason}"),
    };
    let unit = if key.unit.is_empty() { String::new() } else { format!(", in {}", key.unit) };
    let mut rows = vec![
        ("key", key.path.to_string()),
        ("meaning", key.meaning.to_string()),
        ("value", format!("{}{unit}", key.kind)),
        ("default", key.default.to_string()),
        ("effect", effect),
    ];
    if !key.aliases.is_empty() {
        rows.push(("also", key.aliases.join(", ")));
    }
    text::rows(&rows)
}

fn family_named(name: &str) -> Option<ListedFamily> {
    let families = ListedFamily::value_variants();
    let names = [name.to_string(), format!("{name}s"), format!("{name}es")];
    families.iter().copied().find(|&family| names.contains(&name_of(family)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_session::catalog::catalog;
    use feedrate_spec::plan::{self, Context, PlanOptions};
    use feedrate_spec::workload::{self, Strictness};

    #[test]
    fn workloads_have_one_line_of_80_columns_below_their_heading() {
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
    fn every_bundled_workload_can_be_planned() {
        for bundled in WORKLOADS {
            let options = PlanOptions { name: bundled.name.into(), ..PlanOptions::default() };
            let parsed = workload::parse(&bundled.file(), bundled.yaml, &[], Strictness::Error);
            let (workload, _) = parsed.unwrap();
            let planned = plan::build(&workload, &options, &catalog(), Context::default());
            assert!(planned.is_ok(), "{}: {}", bundled.name, planned.unwrap_err());
        }
    }

    /// Otherwise `list NAME` could not explain the member.
    #[test]
    fn no_member_has_the_name_of_a_family() {
        for &family in ListedFamily::value_variants() {
            let name = name_of(family);
            let all = ListedFamily::value_variants().iter().flat_map(|&family| members(family));
            assert!(members_named(&name, &Vec::from_iter(all)).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_guide_has_the_clients_costs() {
        let guide = include_str!("../../../../docs/guide/client.md");
        let (_, machine) = MEASURED_ON.split_once("; ").unwrap();
        assert!(guide.contains(machine), "{machine}");
        for profile in CLIENT_PROFILES {
            let row = format!("| `{}` | {} |", profile.name, costs(profile).join(" | "));
            assert!(guide.contains(&row), "{row}");
        }
    }
}
