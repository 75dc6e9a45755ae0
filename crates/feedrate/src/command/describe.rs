//! `feedrate describe`: all that is known of one name.

use super::list::{Listed, ListedFamily, listed};
use crate::cli::name_of;
use crate::exit::{Exit, UsageError};
use crate::{bundled, messages, text};
use clap::{Args, ValueEnum};
use feedrate_spec::workload::{Effect, KEYS, KeyInfo};
use feedrate_study::design::{self, DesignKind};
use serde_json::json;

/// `feedrate describe`.
#[derive(Debug, Args)]
pub(super) struct DescribeArguments {
    /// A name from any list, or `FAMILY NAME`.
    #[arg(required = true, num_args = 1..=2)]
    name: Vec<String>,
    /// One JSON object on stdout.
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
    let all = families.iter().flat_map(|&of| listed(of).into_iter().map(move |one| (of, one)));
    let all: Vec<(ListedFamily, Listed)> = all.collect();
    let Some((family, found)) = all.iter().find(|(_, one)| one.name == *name) else {
        return Err(UsageError::unknown(
            format!("nothing is called `{name}`"),
            name,
            all.iter().map(|(_, one)| one.name.as_str()),
            "see `feedrate list --help`",
        )
        .into());
    };
    if arguments.json {
        let Listed { name, summary, notes } = found;
        messages::print_json(
            json!({ "family": name_of(*family), "name": name, "summary": summary, "notes": notes }),
        )?;
    } else {
        messages::print(&page(*family, found))?;
    }
    Ok(Exit::Fine)
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
    page.unwrap_or_default()
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
