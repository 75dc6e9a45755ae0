//! States in one line to which official classes of MLPerf Storage runs belong.

use super::number::list;
use feedrate_results::run::{MlperfClass, Run};
use feedrate_spec::escape::name_list;
use feedrate_spec::units::counted;
use std::collections::BTreeMap;

/// The name of the line.
pub const NAME: &str = "MLPerf class";
/// Maximum number of different statements in a line.
const STATEMENTS_MAX: usize = 6;
/// Maximum number of keys in a statement.
const KEYS_MAX: usize = 6;

/// The line; `None` if no run has a workload with classes.
pub fn line<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    join(runs.filter_map(Run::mlperf_class))
}

fn join(classes: impl Iterator<Item = MlperfClass>) -> Option<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for class in classes {
        *counts.entry(statement(&class)).or_default() += 1;
    }
    if counts.len() < 2 {
        return counts.into_keys().next();
    }
    let omitted = counts.len().saturating_sub(STATEMENTS_MAX);
    let shown = counts.into_iter().take(STATEMENTS_MAX);
    let shown = shown.map(|(statement, runs)| format!("{statement} ({})", counted(runs, "run")));
    let more = (omitted > 0).then(|| format!("and {omitted} more"));
    Some(shown.chain(more).collect::<Vec<_>>().join("; "))
}

/// The class of one configuration, or the reason why it has none.
pub fn statement(class: &MlperfClass) -> String {
    let nearest = class.nearest_class.unwrap_or_default();
    match (class.class, &class.core_config, &class.without_class) {
        (Some(id), ..) => {
            let editions: Vec<String> =
                class.comparable_with.iter().map(|edition| format!("v{edition}")).collect();
            format!("{id}, comparable with {}", list(&editions))
        }
        (None, None, _) => "unknown: the configuration is not in the results".into(),
        (None, Some(_), Some(subject)) => {
            format!("no official class: none is published for {subject}")
        }
        (None, Some(_), None) if class.differs.is_empty() => {
            format!(
                "unknown: the configuration of {nearest} also has {}",
                name_list(&class.missing, KEYS_MAX)
            )
        }
        (None, Some(_), None) => {
            let verb = if class.differs.len() == 1 { "differs" } else { "differ" };
            format!(
                "no official class: {} {verb} from {nearest}",
                name_list(&class.differs, KEYS_MAX)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(classes: &[MlperfClass], expected: &str) {
        assert_eq!(join(classes.iter().cloned()).as_deref(), Some(expected));
    }

    #[test]
    fn a_line_says_the_class_or_why_there_is_none() {
        let known = || MlperfClass { core_config: Some("0".into()), ..MlperfClass::default() };
        let official = MlperfClass {
            class: Some("unet3d-h100-A"),
            comparable_with: vec!["1.0", "2.0"],
            ..known()
        };
        check(
            &[official.clone(), official.clone()],
            "unet3d-h100-A, comparable with v1.0 and v2.0",
        );
        let key = |name: &str| vec![name.to_string()];
        let near = || MlperfClass { nearest_class: Some("unet3d-b200-A"), ..known() };
        let changed = MlperfClass { differs: key("reader.sample_shuffle"), ..near() };
        let text = "no official class: `reader.sample_shuffle` differs from unet3d-b200-A";
        check(std::slice::from_ref(&changed), text);
        check(
            &[official.clone(), changed.clone(), official],
            &format!("{text} (1 run); unet3d-h100-A, comparable with v1.0 and v2.0 (2 runs)"),
        );
        check(
            &[MlperfClass { missing: key("metric.au"), ..near() }],
            "unknown: the configuration of unet3d-b200-A also has `metric.au`",
        );
        check(&[MlperfClass::default()], "unknown: the configuration is not in the results");
        let without_class = Some("unet3d on mi355".into());
        check(
            &[MlperfClass { without_class, ..known() }],
            "no official class: none is published for unet3d on mi355",
        );
        let many = (0..9).map(|number| format!("k{number}")).collect();
        check(
            &[MlperfClass { differs: many, ..near() }],
            "no official class: `k0`, `k1`, `k2`, `k3`, `k4`, `k5` and 3 more differ from unet3d-b200-A",
        );
        assert_eq!(join(std::iter::empty()), None);
    }
}
