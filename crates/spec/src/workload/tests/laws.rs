//! Property tests over arbitrary text.

use super::super::{Node, Override, Strictness, braces::escape, parse, parse_in, resolved_yaml};
use super::interpolation::TestSurroundings;
use crate::problem::{Location, Problem};
use proptest::prelude::*;

/// Generates texts from fragments that reach more code of the parsers than random letters.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "train",
        "reader",
        "model",
        ":",
        " ",
        "\n",
        "\n  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        "\"",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "batch_size",
        "computation_time",
        "type: normal",
        "mean",
        "1e400",
        "-1",
        "0x",
        "null",
        "off",
        "|\n",
        "\\",
        "=",
        "+",
        "~",
        "${",
        "}",
        "${workload.train",
        "${.",
        "oc.env:",
        "oc.decode:",
        "\t",
        "#",
        "?",
        "%",
        "@",
        "é",
        "\u{0}",
        "\u{feff}",
        "---\n",
        "...\n",
        "workload.",
        "data_reader",
        "storage_options",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..24)
        .prop_map(|v| v.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(yaml in prop_oneof![any::<String>(), fragments()], change in prop_oneof![any::<String>(), fragments()], value in fragments()) {
        let overrides: Vec<Override> = [change.clone(), format!("train.computation_time={value}"), format!("reader={value}")]
            .iter()
            .filter_map(|text| Override::parse(text).ok())
            .collect();
        for yaml in [yaml.as_str(), "{}"] {
            if let Ok((w, _)) = parse_in("w", yaml, &overrides, Strictness::Warning, &TestSurroundings) {
                resolved_yaml(&w);
            }
        }
    }

    #[test]
    fn resolved_yaml_parses_to_the_same_values(name in any::<String>(), prefix in fragments()) {
        let mut all: Vec<Override> = Vec::new();
        let location = || Location::Override("test".into());
        for (key, text) in [("name", &name), ("type", &prefix)] {
            // The node is text in the file, whose interpolations are escaped.
            let text = escape(&text.replace('\0', ""));
            let mut change = Override::parse(&format!("model.{key}=x")).map_err(|p: Problem| TestCaseError::fail(p.to_string()))?;
            change.value = Some(Node::scalar(text, true, location()));
            all.push(change);
        }
        let (w, _) = parse("w", "{}", &all, Strictness::Error).map_err(|p| TestCaseError::fail(p.to_string()))?;
        let text = resolved_yaml(&w);
        let (again, _) = parse("w", &text, &[], Strictness::Error).map_err(|p| TestCaseError::fail(format!("{p}\n{text}")))?;
        prop_assert_eq!((&again.model_name, &again.model_type), (&w.model_name, &w.model_type));
    }
}
