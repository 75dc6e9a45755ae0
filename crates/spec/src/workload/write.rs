//! A tree as YAML text, in the style of OmegaConf's `to_yaml`. Writes no file.

use super::keys::Workload;
use super::scalar::{self, Plain};
use super::tree::{Content, Node};
use std::collections::BTreeMap;

/// Hydra's `.hydra/config.yaml`: what file and overrides give, no defaults, under `workload`.
pub fn resolved_yaml(workload: &Workload) -> String {
    let mut out = String::from("workload:");
    value(&mut out, &workload.given.written, 1);
    out
}

/// Each key that file and overrides give, aliases renamed, and its value on one line or as YAML.
pub fn given_values(workload: &Workload) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    add_values(&mut values, "", workload.tree());
    values
}

fn add_values(values: &mut BTreeMap<String, String>, path: &str, node: &Node) {
    for entry in node.entries().unwrap_or_default() {
        let path =
            if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        if entry.value.entries().is_some() {
            add_values(values, &path, &entry.value);
        } else {
            values.insert(path, text_of(&entry.value));
        }
    }
}

/// The text that file and overrides give for `key`: a scalar as it is, a section or list as YAML. `None` where nothing is given.
pub fn yaml_at(workload: &Workload, key: &str) -> Option<String> {
    workload.given.written.at(key).map(text_of)
}

fn text_of(node: &Node) -> String {
    if let Content::Scalar { text, quoted } = &node.content {
        let is_text = *quoted || scalar::resolve(text) == Plain::Text;
        return if is_text { text.clone() } else { scalar_text(text, false) };
    }
    let mut out = String::new();
    value(&mut out, node, 0);
    out.trim_start_matches(['\n', ' ']).to_string()
}

/// The value after `key:` or `-`, its newline included.
fn value(out: &mut String, node: &Node, indent: usize) {
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
                pad(out, indent.saturating_sub(1));
                out.push('-');
                // A list in a list begins on a line of its own.
                let is_list = matches!(&item.content, Content::List(items) if !items.is_empty());
                value(out, item, indent + usize::from(is_list));
            }
        }
        Content::Map(entries) => {
            out.push('\n');
            for entry in entries {
                pad(out, indent);
                out.push_str(&scalar_text(&entry.key, true));
                out.push(':');
                value(out, &entry.value, indent + 1);
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
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

/// As Python's `repr` and PyYAML write it.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return ".nan".to_string();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_string();
    }
    let text = format!("{float:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let mantissa =
        if mantissa.contains('.') { mantissa.to_string() } else { format!("{mantissa}.0") };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Text as a scalar of YAML, in quotes where it needs them.
pub fn yaml_text(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_alphanumeric() || "_/.+".contains(c))
        && text.chars().all(|c| c.is_alphanumeric() || "_/.-+ @=;()".contains(c))
        && !text.ends_with(' ')
        && !matches!(text, "." | ".." | "...")
        && scalar::resolve(text) == Plain::Text
        && !looks_like_yaml_1_1(text);
    if plain {
        text.to_string()
    } else if text.contains(is_escaped) {
        double_quoted(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Numbers and dates of YAML 1.1 that we read as text: octal, binary, `2001-01-01`, `y`.
fn looks_like_yaml_1_1(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_hexdigit() || "xob_-+.: TtZz".contains(c))
        || matches!(text, "y" | "Y" | "n" | "N" | "=")
}

/// Characters that YAML takes in double quotes only.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_escaped(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
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
}
