//! `feedrate describe`: all that is known of one name.

use super::list::{Listed, ListedFamily, line, listed};
use crate::bundled::{self, WORKLOADS};
use crate::cli::name_of;
use crate::exit::{Exit, UsageError};
use crate::{messages, text};
use clap::{Args, ValueEnum};
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
  feedrate describe checkpoint raw    a checkpoint format, not a file format")]
pub(super) struct DescribeArguments {
    /// A name of anything that `feedrate list` lists, or what it is and its name.
    #[arg(required = true, num_args = 1..=2, value_name = "NAME")]
    name: Vec<String>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Describe a member of any family.
pub(super) fn describe(arguments: &DescribeArguments) -> anyhow::Result<Exit> {
    let (families, name) = match arguments.name.as_slice() {
        [family, name] => (vec![named_family(family)?], name),
        [name] => (ListedFamily::value_variants().to_vec(), name),
        _ => return Err(UsageError::plain("give one name").into()),
    };
    let all = families.iter().flat_map(|&of| members(of).into_iter().map(move |one| (of, one)));
    let all: Vec<(ListedFamily, Listed)> = all.collect();
    let mut found: Vec<_> = all.iter().filter(|(_, one)| one.name == *name).collect();
    // Rules of advice are named after what they change.
    if found.iter().all(|(of, _)| *of == ListedFamily::Advice && families.len() > 1) {
        let rules = std::mem::take(&mut found);
        let keys = all
            .iter()
            .filter(|(of, one)| *of == ListedFamily::Keys && is_short_for(name, &one.name));
        found.extend(keys);
        if found.is_empty() {
            found = rules;
        }
    }
    match found.as_slice() {
        [] => return Err(unknown(name, &all).into()),
        [(family, one)] if arguments.json => {
            messages::print_json(Schema::Describe.object(object(*family, one)))?
        }
        [(family, one)] => messages::print_page(&page(*family, one))?,
        several if arguments.json => {
            let members: Vec<Value> = several.iter().map(|(of, one)| object(*of, one)).collect();
            messages::print_json(Schema::List.object(json!({ "members": members })))?;
        }
        several => {
            let names = several.iter().map(|(of, one)| format!("{} {}", name_of(*of), one.name));
            let names: Vec<String> = names.collect();
            let summaries = several.iter().map(|(_, one)| one.summary.clone());
            let rows = names.iter().map(String::as_str).zip(summaries);
            messages::print_page(&text::rows(&Vec::from_iter(rows)))?;
        }
    }
    Ok(Exit::Fine)
}

/// Those of a family; whether a workload can run takes long to find out, and is not asked.
fn members(family: ListedFamily) -> Vec<Listed> {
    match family {
        ListedFamily::Workloads => {
            WORKLOADS.iter().map(|of| line(of.name, &of.summary(), "")).collect()
        }
        _ => listed(family),
    }
}

/// Whether `name` is the last word of the key, or of a second name of it.
fn is_short_for(name: &str, key: &str) -> bool {
    let aliases = KEYS.iter().filter(|of| of.path == key).flat_map(|of| of.aliases);
    let mut paths = aliases.copied().chain([key]);
    paths.any(|path| path == name || path.rsplit('.').next() == Some(name))
}

fn unknown(name: &str, all: &[(ListedFamily, Listed)]) -> UsageError {
    UsageError::unknown(
        format!("nothing is called `{name}`"),
        name,
        all.iter().map(|(_, one)| one.name.as_str()),
        "`feedrate list --help` tells what there are names of",
    )
}

fn object(family: ListedFamily, Listed { name, summary, notes }: &Listed) -> Value {
    json!({ "family": name_of(family), "name": name, "summary": summary, "notes": notes })
}

fn page(family: ListedFamily, found: &Listed) -> String {
    let name = found.name.as_str();
    let page = match family {
        ListedFamily::Workloads => {
            bundled::find(name).map(|bundled| bundled.yaml.trim_end().into())
        }
        ListedFamily::Designs => design::find(name).ok().map(design_page),
        ListedFamily::Keys => KEYS.iter().find(|key| key.path == name).map(key_page),
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

fn named_family(name: &str) -> Result<ListedFamily, UsageError> {
    let families = ListedFamily::value_variants();
    let names = [name.to_string(), format!("{name}s"), format!("{name}es")];
    families.iter().copied().find(|&family| names.contains(&name_of(family))).ok_or_else(|| {
        let all: Vec<String> = families.iter().copied().map(name_of).collect();
        let hint = format!("families are: {}", all.join(", "));
        UsageError::new(format!("there is no family `{name}`"), hint)
    })
}
