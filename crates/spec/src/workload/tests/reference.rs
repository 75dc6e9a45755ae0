//! `docs/reference/keys.md` from the table of keys.

use crate::workload::keys::{Effect, KEYS, KeyInfo, Origin, SECTION_ALIASES};

/// The reference page of all keys.
fn keys_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for (alias, section) in SECTION_ALIASES {
        out.push_str(&format!("The section `{section}` may also be called `{alias}`; where both give a key, `{alias}` wins.\n"));
    }
    let keys: Vec<&KeyInfo> = KEYS.iter().filter(|key| key.origin != Origin::Ignored).collect();
    let mut sections: Vec<&str> = Vec::new();
    for key in &keys {
        if !sections.contains(&section(key)) {
            sections.push(section(key));
        }
    }
    for name in sections {
        let title = if name.is_empty() { "top level" } else { name };
        out.push_str(&format!(
            "\n## {title}\n\n| key | value | default | meaning | effect |\n|---|---|---|---|---|\n"
        ));
        out.extend(keys.iter().filter(|key| section(key) == name).map(|key| row(key)));
    }
    out.push_str(IGNORED);
    for key in KEYS.iter().filter(|key| key.origin == Origin::Ignored) {
        out.push_str(&format!("| `{}` | {} |\n", key.path, key.meaning));
    }
    out
}

const INTRODUCTION: &str = "# Keys of a workload

<!-- Generated from crates/spec/src/workload/keys.rs: UPDATE_DOCS=1 cargo test -p feedrate-spec reference -->

A workload is a YAML file of these keys; each can be overridden on the command line, as `reader.batch_size=4` or in
Hydra's ways: `++workload.reader.batch_size=4`, `+key=value`, `~key`, lists `[64,64]`, dictionaries `{mean:1.0,stdev:0.1}`.

Keys marked * are feedrate's own; the others are DLIO's. Keys whose effect is \"not built yet\" are accepted, and refused only where the
plan would reach them. Bytes may be written with a unit, `8MiB` or `1.5GB`. A time is a number of seconds or a distribution:
`{mean: 0.3, stdev: 0.01}`, or with `type`: `normal` (`mean`, `stdev`), `uniform` (`min`, `max`), `gamma` (`shape`, `scale`),
`exponential` (`scale`), `poisson` (`lam`).

";

const IGNORED: &str = "\n## without effect

Files in use carry these keys; DLIO ignores them, and so does feedrate, with a warning.

| key | why it exists |
|---|---|
";

fn section(key: &KeyInfo) -> &'static str {
    key.path.split_once('.').map_or("", |(section, _)| section)
}

fn row(key: &KeyInfo) -> String {
    let own = if key.origin == Origin::Feedrate { " *" } else { "" };
    let alias: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
    let unit = if key.unit.is_empty() || key.kind.contains(key.unit) {
        String::new()
    } else {
        format!(", {}", key.unit)
    };
    let effect = match key.effect {
        Effect::Now => "yes".to_string(),
        Effect::NotYet { feature } => format!("not built yet: {feature}"),
        Effect::Nothing { reason } => format!("none: {reason}"),
    };
    format!(
        "| `{}`{own}{alias} | {}{unit} | `{}` | {} | {effect} |\n",
        key.path,
        key.kind.replace('|', "\\|"),
        key.default,
        key.meaning.replace('|', "\\|"),
    )
}

#[test]
fn reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/keys.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, keys_markdown()).unwrap();
        return;
    }
    let file = include_str!("../../../../../docs/reference/keys.md");
    assert!(
        file == keys_markdown(),
        "docs/reference/keys.md is out of date: run UPDATE_DOCS=1 cargo test -p feedrate-spec reference"
    );
}

#[test]
fn every_key_is_on_the_page() {
    let page = keys_markdown();
    for key in KEYS {
        assert!(page.contains(&format!("| `{}`", key.path)), "{}", key.path);
    }
}
