//! `feedrate describe`: all that is known of one name.

use super::list::{Line, lines};
use crate::bundled::WORKLOADS;
use crate::cli::{DescribeArguments, Family};
use crate::exit::{Exit, UsageError};
use crate::messages;
use crate::text;
use clap::ValueEnum;
use feedrate_spec::workload::{Effect, KEYS, KeyInfo};
use feedrate_study::design::{self, Design};
use serde_json::json;

/// Describe a member of any family.
pub(crate) fn describe(arguments: &DescribeArguments) -> anyhow::Result<Exit> {
    let (families, name) = match arguments.name.as_slice() {
        [family, name] => (vec![named_family(family)?], name),
        [name] => (Family::value_variants().to_vec(), name),
        _ => return Err(UsageError { message: "give one name".into(), hint: None }.into()),
    };
    let found = families
        .iter()
        .find_map(|&family| Some((family, lines(family).into_iter().find(|l| l.name == *name)?)));
    let Some((family, line)) = found else { return Err(unknown(&families, name).into()) };
    if arguments.json {
        messages::print(
            json!({ "family": family_name(family), "name": line.name, "summary": line.summary, "notes": line.notes }),
        );
    } else {
        messages::print(page(family, &line));
    }
    Ok(Exit::Fine)
}

fn page(family: Family, line: &Line) -> String {
    match family {
        Family::Workloads => WORKLOADS
            .iter()
            .find(|w| w.name == line.name)
            .map_or(String::new(), |w| w.yaml.trim_end().into()),
        Family::Designs => design::find(&line.name).map_or(String::new(), design_page),
        Family::Keys => KEYS.iter().find(|k| k.path == line.name).map_or(String::new(), key),
        _ => text::rows(&[(line.name.as_str(), line.summary.clone()), ("", line.notes.clone())]),
    }
}

fn design_page(design: &Design) -> String {
    let mut rows = vec![
        ("design", design.name.to_string()),
        ("combines", design.summary.to_string()),
        ("estimates", design.estimates.to_string()),
    ];
    for option in design.options {
        rows.push((option.name, option.meaning.to_string()));
    }
    text::rows(&rows)
}

fn key(key: &KeyInfo) -> String {
    let effect = match key.effect {
        Effect::Now => "takes effect".to_string(),
        Effect::NotYet { feature } => format!("belongs to {feature}, which is not built yet"),
        Effect::Nothing { reason } => format!("accepted, changes nothing: {reason}"),
    };
    let mut rows = vec![("key", key.path.to_string()), ("meaning", key.meaning.to_string())];
    rows.push((
        "value",
        if key.unit.is_empty() {
            key.kind.into()
        } else {
            format!("{}, in {}", key.kind, key.unit)
        },
    ));
    rows.push(("default", key.default.to_string()));
    rows.push(("effect", effect));
    if !key.aliases.is_empty() {
        rows.push(("also", key.aliases.join(", ")));
    }
    text::rows(&rows)
}

fn named_family(name: &str) -> Result<Family, UsageError> {
    let names = [name.to_string(), format!("{name}s"), format!("{name}es")];
    Family::value_variants().iter().copied().find(|&f| names.contains(&family_name(f))).ok_or_else(|| UsageError::new(format!("there is no family `{name}`"), "families are: workloads, formats, storages, engines, loaders, checkpoints, computes, comms, launches, designs, plots, keys, metrics, doubts"))
}

fn family_name(family: Family) -> String {
    family.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

fn unknown(families: &[Family], name: &str) -> UsageError {
    let names: Vec<String> = families.iter().flat_map(|&f| lines(f)).map(|l| l.name).collect();
    UsageError::unknown(
        format!("nothing is called `{name}`"),
        name,
        names.iter().map(String::as_str),
        "see `feedrate list --help`",
    )
}
