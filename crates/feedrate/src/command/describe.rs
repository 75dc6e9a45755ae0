//! `feedrate describe`: all that is known of one name.

use super::list::{Listed, ListedFamily, line, listed};
use super::mlperf;
use crate::bundled::{self, Bundled, MlperfStatus, WORKLOADS};
use crate::cli::name_of;
use crate::exit::{Exit, UsageError};
use crate::{messages, text};
use clap::{Args, ValueEnum};
use feedrate_measure::metric::Metric;
use feedrate_report::output::Schema;
use feedrate_spec::workload::{Effect, KEYS, KeyInfo};
use feedrate_study::design::{self, DesignKind};
use serde_json::{Value, json};

/// `feedrate describe`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate describe page_cache           a doubt
  feedrate describe read_threads         a key; its section may be left out
  feedrate describe mlperf au_all_steps  several: MLPerf's rules, and a metric")]
pub(super) struct DescribeArguments {
    /// Names of anything that `feedrate list` lists; a first word may say of which family they are.
    #[arg(required = true, value_name = "NAME")]
    name: Vec<String>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Describe members of any family.
pub(super) fn describe(arguments: &DescribeArguments) -> anyhow::Result<Exit> {
    let (all, names) = asked(&arguments.name);
    let found: Vec<Vec<&Member>> = names.iter().map(|name| called(name, &all)).collect();
    if let Some((name, _)) = names.iter().zip(&found).find(|of| of.1.is_empty()) {
        return Err(unknown(name, &all).into());
    }
    if arguments.json {
        let mut members: Vec<Value> = found.iter().flatten().map(|one| object(one)).collect();
        messages::print_json(match members.len() {
            1 => Schema::Describe.object(members.remove(0)),
            _ => Schema::List.object(json!({ "members": members })),
        })?;
        return Ok(Exit::Fine);
    }
    let pages: Vec<String> = found.iter().map(|of| page_of(of)).collect();
    messages::print_page(&pages.join("\n\n"))?;
    Ok(Exit::Fine)
}

/// A member and its family.
type Member = (ListedFamily, Listed);

/// The members that are asked about, and their names. A first word that is no name itself may say of which family they are.
fn asked(words: &[String]) -> (Vec<Member>, &[String]) {
    if let [family, names @ ..] = words
        && !names.is_empty()
        && let Some(family) = named_family(family)
    {
        let members = Vec::from_iter(members(family));
        if names.iter().all(|name| !called(name, &members).is_empty()) {
            return (members, names);
        }
    }
    (ListedFamily::value_variants().iter().flat_map(|&family| members(family)).collect(), words)
}

/// Those of this name.
fn called<'a>(name: &str, all: &'a [Member]) -> Vec<&'a Member> {
    let is_called = |(of, one): &&Member| {
        let is_metric = || Metric::find(name).is_ok_and(|metric| metric.label() == one.name);
        one.name == name || *of == ListedFamily::Metrics && is_metric()
    };
    let found: Vec<&Member> = all.iter().filter(is_called).collect();
    // Rules of advice are named after what they change.
    let are_of_others = all.iter().any(|(of, _)| *of != ListedFamily::Advice);
    if are_of_others && found.iter().all(|(of, _)| *of == ListedFamily::Advice) {
        let keys = all
            .iter()
            .filter(|(of, one)| *of == ListedFamily::Keys && is_short_for(name, &one.name));
        let keys = Vec::from_iter(keys);
        return if keys.is_empty() { found } else { keys };
    }
    found
}

/// Those of a family; whether a workload can run takes long to find out, and is not asked.
fn members(family: ListedFamily) -> impl Iterator<Item = Member> {
    let members = match family {
        ListedFamily::Workloads => {
            let note =
                |workload: &Bundled| workload.status.map(MlperfStatus::note).unwrap_or_default();
            WORKLOADS
                .iter()
                .map(|workload| line(workload.name, &workload.summary(), &note(workload)))
                .collect()
        }
        _ => listed(family),
    };
    members.into_iter().map(move |one| (family, one))
}

/// Whether `name` is the last word of the key, or of a second name of it.
fn is_short_for(name: &str, key: &str) -> bool {
    let aliases = KEYS.iter().filter(|of| of.path == key).flat_map(|of| of.aliases);
    let mut paths = aliases.copied().chain([key]);
    paths.any(|path| path == name || path.rsplit('.').next() == Some(name))
}

fn unknown(name: &str, all: &[Member]) -> UsageError {
    UsageError::unknown(
        format!("nothing is called `{name}`"),
        name,
        all.iter().map(|(_, one)| one.name.as_str()),
        "`feedrate list --help` tells what there are names of",
    )
}

fn object((family, Listed { name, summary, notes }): &Member) -> Value {
    json!({ "family": name_of(*family), "name": name, "summary": summary, "notes": notes })
}

/// All of one, or the names of several.
fn page_of(found: &[&Member]) -> String {
    if let [(family, one)] = found {
        return page(*family, one);
    }
    let names = found.iter().map(|(of, one)| format!("{} {}", name_of(*of), one.name));
    let names: Vec<String> = names.collect();
    let summaries = found.iter().map(|(_, one)| one.summary.clone());
    let rows = names.iter().map(String::as_str).zip(summaries);
    text::rows(&Vec::from_iter(rows))
}

fn page(family: ListedFamily, found: &Listed) -> String {
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
        ListedFamily::Topics => Some(mlperf::topic()),
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
        Effect::Nothing { reason } => format!("accepted, changes nothing: {reason}"),
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

fn named_family(name: &str) -> Option<ListedFamily> {
    let families = ListedFamily::value_variants();
    let names = [name.to_string(), format!("{name}s"), format!("{name}es")];
    families.iter().copied().find(|&family| names.contains(&name_of(family)))
}
