//! Formats a workload as YAML text, in the style of OmegaConf's `to_yaml`. It writes no files.

use super::braces;
use super::keys::{CREDENTIALS, Workload};
use super::overrides::{Override, overridden_key};
use super::parse::compose;
use super::scalar::{self, Plain};
use super::tree::{Content, Entry, Node};
use super::yaml;
use crate::problem::Problems;
use std::collections::BTreeMap;

/// Returns the text of Hydra's `.hydra/config.yaml`: the keys of file and overrides under `workload`, without defaults. Interpolations are
/// evaluated, except those of values that may be credentials.
pub fn resolved_yaml(workload: &Workload) -> String {
    let mut out = String::from("workload:");
    write_value(&mut out, &without_credentials(workload), 1);
    out
}

/// Returns the text of Hydra's `--cfg job --package PACKAGE`: the part of [`resolved_yaml`] at a dotted path, such as `workload.reader`, with
/// interpolations as written. `None` if there is no such part; the path may be empty.
///
/// # Errors
/// Returns all problems if one of them is an error.
pub fn composed_yaml(
    name: &str,
    yaml: &str,
    overrides: &[Override],
    package: &str,
) -> Result<Option<String>, Problems> {
    let mut problems = Problems::default();
    let composed = compose(name, yaml, overrides, &mut problems)?;
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(package_yaml(&composed, package))
}

/// Returns the text of `--cfg job --resolve --package PACKAGE`, likewise.
pub fn resolved_package_yaml(workload: &Workload, package: &str) -> Option<String> {
    package_yaml(&workload.given.written, package)
}

fn package_yaml(workload: &Node, package: &str) -> Option<String> {
    let mut root = Node::empty_map(workload.location.clone());
    root.set("workload", workload.clone());
    if package.is_empty() {
        return Some(node_text(&root));
    }
    let node = root.node_at(package)?;
    let header = if node.is_scalar() { String::new() } else { format!("# @package {package}\n") };
    Some(header + &node_text(node))
}

/// Returns the values of file and overrides, such that evaluating their interpolations returns the values. Values that may be credentials are
/// as written.
fn without_credentials(workload: &Workload) -> Node {
    convert(&workload.given.written, "", &|path, node| {
        let private = workload.given.private.get(path).cloned();
        private.or_else(|| without_secret_value(path, node)).or_else(|| escaped(node))
    })
}

/// Returns the variable that stands for a secret; `None` for other values.
fn without_secret_value(path: &str, node: &Node) -> Option<Node> {
    let key = path.strip_prefix("workload.").unwrap_or(path);
    let variable = secret_variable(key)?;
    matches!(node.content, Content::Scalar { .. })
        .then(|| Node::scalar(variable, true, node.location.clone()))
}

/// Words in the names of options (`storage.storage_options`) that are secrets.
const SECRET_WORDS: [&str; 8] = [
    "secret",
    "token",
    "password",
    "sas",
    "account_key",
    "master_key",
    "encryption_key",
    "customer_key",
];

/// Returns an interpolation to write instead of the secret at a key; `None` if the key is no secret.
fn secret_variable(key: &str) -> Option<String> {
    let option = key.strip_prefix(CREDENTIALS)?.strip_prefix('.')?.to_ascii_lowercase();
    let has_word = SECRET_WORDS.iter().any(|word| option.contains(word));
    let is_secret = has_word || option.ends_with("access_key");
    let is_aws = ["secret_access_key", "session_token"].contains(&option.as_str());
    let prefix = if is_aws { "AWS_" } else { "" };
    is_secret.then(|| format!("${{oc.env:{prefix}{}}}", option.to_ascii_uppercase()))
}

/// Returns an override without its secret, to be written to a file.
pub fn override_without_secret(text: &str) -> String {
    let Some((name, _)) = text.split_once('=') else { return text.into() };
    let key = overridden_key(text);
    match secret_variable(key) {
        Some(variable) => format!("{name}={variable}"),
        // A map of options has a secret in its value.
        None if key == CREDENTIALS => format!("{name}=..."),
        None => text.into(),
    }
}

fn escaped(node: &Node) -> Option<Node> {
    let Content::Scalar { text, quoted } = &node.content else { return None };
    Some(Node::scalar(braces::escape(text), *quoted, node.location.clone()))
}

/// Replaces the values for which `replacement` returns another.
fn convert(node: &Node, path: &str, replacement: &dyn Fn(&str, &Node) -> Option<Node>) -> Node {
    let child = |key: &str, value| {
        let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        convert(value, &path, replacement)
    };
    if let Some(replaced) = replacement(path, node) {
        return replaced;
    }
    let content = match &node.content {
        Content::Scalar { .. } => node.content.clone(),
        Content::List(items) => Content::List(
            items.iter().enumerate().map(|(index, item)| child(&index.to_string(), item)).collect(),
        ),
        Content::Map(entries) => Content::Map(
            entries
                .iter()
                .map(|entry| Entry { value: child(&entry.key, &entry.value), ..entry.clone() })
                .collect(),
        ),
    };
    Node { location: node.location.clone(), content }
}

/// Returns the values of [`resolved_yaml`] as JSON.
pub fn given_json(workload: &Workload) -> serde_json::Value {
    yaml::json(&without_credentials(workload).content)
}

/// Returns the keys of file and overrides, with aliases renamed, and their values as text or YAML.
pub fn given_values(workload: &Workload) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    add_values(&mut values, "", workload.tree());
    values
}

fn add_values(values: &mut BTreeMap<String, String>, path: &str, node: &Node) {
    for entry in node.entries().unwrap_or_default() {
        let key = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        if entry.value.entries().is_some() {
            add_values(values, &key, &entry.value);
        } else {
            values.insert(key, node_text(&entry.value));
        }
    }
}

/// Returns the value of `key` in file and overrides: a scalar as text, a section or list as YAML. `None` if the key is not given.
pub fn yaml_at(workload: &Workload, key: &str) -> Option<String> {
    workload.given.written.node_at(key).map(node_text)
}

fn node_text(node: &Node) -> String {
    if let Content::Scalar { text, quoted } = &node.content {
        let is_text = *quoted || scalar::resolve(text) == Plain::Text;
        return if is_text { text.clone() } else { scalar_text(text, false) };
    }
    let mut out = String::new();
    write_value(&mut out, node, 0);
    out.trim_start_matches(['\n', ' ']).to_string()
}

/// Writes the value after `key:` or `-`, including its newline.
fn write_value(out: &mut String, node: &Node, indent: usize) {
    match &node.content {
        Content::Scalar { text, quoted } => {
            out.push(' ');
            out.push_str(&scalar_text(text, *quoted));
            out.push('\n');
        }
        Content::List(items) if items.is_empty() => out.push_str(" []\n"),
        Content::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
        Content::List(items) => {
            out.push('\n');
            for item in items {
                push_indent(out, indent.saturating_sub(1));
                out.push('-');
                // A list in a list begins on a new line.
                let is_list = matches!(&item.content, Content::List(items) if !items.is_empty());
                write_value(out, item, indent + usize::from(is_list));
            }
        }
        Content::Map(entries) => {
            out.push('\n');
            for entry in entries {
                push_indent(out, indent);
                out.push_str(&scalar_text(&entry.key, true));
                out.push(':');
                write_value(out, &entry.value, indent + 1);
            }
        }
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n("  ", indent));
}

fn scalar_text(text: &str, quoted: bool) -> String {
    match if quoted { Plain::Text } else { scalar::resolve(text) } {
        Plain::Null => "null".to_string(),
        Plain::Bool(bool) => bool.to_string(),
        Plain::Int(int) => int.to_string(),
        Plain::Float(float) => float_text(float),
        Plain::Text => yaml_text(text),
    }
}

/// Formats a float as PyYAML does: as Python, with a fraction before the exponent.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return ".nan".to_string();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_string();
    }
    let text = scalar::python_float(float);
    match text.split_once('e') {
        Some((digits, _)) if !digits.contains('.') => text.replacen('e', ".0e", 1),
        _ => text,
    }
}

/// Formats text as a YAML scalar, quoted if necessary.
pub fn yaml_text(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_alphanumeric() || "_/.+".contains(c))
        && text.chars().all(|c| c.is_alphanumeric() || "_/.-+ @=;()".contains(c))
        && !text.ends_with(' ')
        && !matches!(text, "." | ".." | "...")
        && scalar::resolve(text) == Plain::Text
        && !looks_like_yaml_1_1(text);
    if plain {
        text.to_string()
    } else if text.contains(needs_escape) {
        quote_double(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Whether `text` is text for feedrate but not for YAML 1.1: octal and binary numbers, dates, `y`.
fn looks_like_yaml_1_1(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_hexdigit() || "xob_-+.: TtZz".contains(c))
        || matches!(text, "y" | "Y" | "n" | "N" | "=")
}

/// Whether YAML allows a character only as an escape in double quotes.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

fn quote_double(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, quoted: bool, expected: &str) {
        assert_eq!(scalar_text(text, quoted), expected);
    }

    #[test]
    fn scalars_are_written_as_omegaconf_does() {
        check("True", false, "true");
        check("0.90", false, "0.9");
        check("1e-3", false, "0.001");
        check("1e-5", false, "1.0e-05");
        check("1e16", false, "1.0e+16");
        check("1_000", false, "1000");
        check("", false, "null");
        check("off", true, "'off'");
        check("4", true, "'4'");
        check("010", true, "'010'");
        check("data/unet3d/", false, "data/unet3d/");
        check("it's: a", true, "'it''s: a'");
        check("a\nb", true, "\"a\\nb\"");
        check("", true, "''");
        check("-x", true, "'-x'");
    }

    #[test]
    fn an_override_is_written_without_its_secret() {
        let written = |option: &str| override_without_secret(&format!("{CREDENTIALS}{option}"));
        for (option, variable) in [
            (".secret_access_key", "AWS_SECRET_ACCESS_KEY"),
            (".AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY"),
            (".azure_storage_access_key", "AZURE_STORAGE_ACCESS_KEY"),
            (".sse_customer_key_base64", "SSE_CUSTOMER_KEY_BASE64"),
            (".sas_token", "SAS_TOKEN"),
        ] {
            let expected = format!("{CREDENTIALS}{option}=${{oc.env:{variable}}}");
            assert_eq!(written(&format!("{option}=hunter2")), expected);
        }
        assert_eq!(written("={token: hunter2}"), format!("{CREDENTIALS}=..."));
        assert_eq!(written(".access_key_id=a"), format!("{CREDENTIALS}.access_key_id=a"));
        assert_eq!(override_without_secret("train.epochs=2"), "train.epochs=2");
    }
}
