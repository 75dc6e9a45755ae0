//! Valid design files, and the problems of invalid ones.

use super::*;
use crate::factor::{Spacing, StudyFactor};
use crate::resolved_design::ResolvedDesign;
use feedrate_spec::problem::Problems;
use proptest::prelude::*;

fn resolve(name: &str, text: &str) -> Result<ResolvedDesign, Problems> {
    let text = parse(name, text)?;
    ResolvedDesign::new(&text, |_| None)
}

const TOML: &str = r#"
design = "full_factorial"
replicates = 3
blocks = "none"
order = "standard"
seed = 7
sentinel = 4
centre_points = 2

[baseline]
model = "unet3d_h100_custom"
epochs = 5
processes = 4
overrides = ["reader.batch_size=4", "++workload.reader.prefetch_size=2"]

[factors]
processes = [1, 3]
reader.read_threads = { low = 1, high = 16 }
"reader.file_shuffle" = ["off", "random"]
"study.hook.governor" = ["powersave", "performance"]

[hooks]
governor = "cpupower frequency-set -g $1"
"#;

#[test]
fn a_design_file_becomes_a_study() {
    let design = resolve("a.toml", TOML).unwrap();
    assert_eq!(design.warnings, Problems::default());
    insta::assert_snapshot!(design.create_study().unwrap().comments.join("\n"), @"
    design: full_factorial. Every combination of all levels.
    estimates: all effects; the report tests interactions of two factors
    baseline: unet3d_h100_custom, 5 epochs, 4 processes, ++workload.reader.batch_size=4, ++workload.reader.prefetch_size=2
    factor processes: 1, 3
    factor read_threads (reader.read_threads): 1, 16
    factor file_shuffle (reader.file_shuffle): off, random
    factor study.hook.governor: powersave, performance
    runs: 71: 16 points, 3 replicates, 8 centre points, 15 sentinels
    one block, standard order, seed 7
    hook governor: cpupower frequency-set -g $1
    ");
}

fn factors(text: &str) -> Vec<StudyFactor> {
    let text = format!("design = \"full_factorial\"\nbaseline.model = \"m\"\n{text}");
    resolve("a.toml", &text).unwrap().factors
}

#[test]
fn levels_are_a_list_a_range_or_steps() {
    for (text, expected, scale) in [
        ("factors.reader.batch_size = [1, 4]", vec!["1", "4"], Spacing::Linear),
        ("factors.\"reader.batch_size\" = [1, 4]", vec!["1", "4"], Spacing::Linear),
        (
            "factors = [{ key = \"reader.batch_size\", levels = [1, 4] }]",
            vec!["1", "4"],
            Spacing::Linear,
        ),
        ("factors.reader.batch_size = { low = 1, high = 8 }", vec!["1", "8"], Spacing::Linear),
        (
            "factors.reader.batch_size = { low = 1, high = 7, steps = 3 }",
            vec!["1", "4", "7"],
            Spacing::Linear,
        ),
        (
            "factors.reader.batch_size = { low = 1, high = 100, steps = 3, log = true }",
            vec!["1", "10", "100"],
            Spacing::Log,
        ),
        (
            "factors.reader.batch_size = { levels = [1, 9], log = true }",
            vec!["1", "9"],
            Spacing::Log,
        ),
        (
            "factors.batch_size = { key = \"reader.batch_size\", low = 1, high = 8 }",
            vec!["1", "8"],
            Spacing::Linear,
        ),
        ("factors.reader.batch_size = { levels = 4 }", vec!["4"], Spacing::Linear),
    ] {
        let found = factors(text);
        let [factor] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!(
            (factor.name.as_str(), factor.key.as_str()),
            ("batch_size", "reader.batch_size"),
            "{text}"
        );
        assert_eq!(
            (factor.levels.as_slice(), factor.scale),
            (expected.map_text().as_slice(), scale),
            "{text}"
        );
    }
    let order: Vec<String> =
        factors("[factors]\nseed = [1, 2]\nreader.read_threads = [1, 2]\nepochs = [1, 2]")
            .into_iter()
            .map(|factor| factor.name)
            .collect();
    assert_eq!(
        order,
        ["seed", "read_threads", "epochs"],
        "letters of generators depend on the written order"
    );
    let booleans = factors("factors.workflow.checkpoint = [false, true]");
    assert_eq!(booleans[0].levels, ["False", "True"]);
}

trait MapText {
    fn map_text(self) -> Vec<String>;
}

impl MapText for Vec<&str> {
    fn map_text(self) -> Vec<String> {
        self.into_iter().map(str::to_string).collect()
    }
}

#[track_caller]
fn check_refused(name: &str, text: &str, expected: &[&str]) {
    let problems = match resolve(name, text).and_then(|resolved| resolved.create_study()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(problems) => problems.to_string(),
    };
    for word in expected {
        assert!(problems.contains(word), "no `{word}` in: {problems}\nof: {text}");
    }
}

#[test]
fn an_invalid_design_file_is_refused_with_its_line() {
    for (name, text, expected) in [
        (
            "a.toml",
            "design = \"full_factorial\"\nreplicats = 3\n",
            ["a.toml:2:1", "did you mean `replicates`?"],
        ),
        ("a.toml", "[baseline]\nmodle = \"m\"\n", ["a.toml:2:1", "did you mean `model`?"]),
        ("a.toml", "design = \"x\"\nseed = = 3\n", ["a.toml:2:", "hint:"]),
        ("a.toml", "seed = -3\n", ["a.toml:1:", "hint:"]),
        ("a.toml", "blocks = \"some\"\n", ["a.toml:1:", "replicates"]),
        ("a.toml", "seed = 1\nseed = 2\n", ["a.toml:2:", "duplicate"]),
        (
            "a.YAML",
            "design: full_factorial\n",
            ["in TOML, not in YAML", "factors.processes = [1, 8]"],
        ),
        ("a.yml", "seed: 1\n", ["in TOML, not in YAML", "NAME.toml"]),
        ("a.toml", "", ["no workload is given", "no kind of design"]),
    ] {
        check_refused(name, text, &expected);
    }
}

#[test]
fn all_problems_of_a_design_are_reported_at_once() {
    let text = r#"
replicates = 0
sentinel = 0
design = "full_factorail"
factors.procesess = [1, 2]
factors.reader.batch_sise = [1, 2]
factors.reader.read_threads = { low = 8, high = 1 }
factors.reader.prefetch_size = { low = 8, hihg = 1 }
factors.reader.file_shuffle = ["off", "of"]
factors.dataset.format = []
factors.epochs = [1, 1]
factors.study.cache = ["cold", "hot"]
factors.study.hook.ra = [1, 2]
factors.study.data = { low = "a", high = 3 }
factors.seed = 4
[baseline]
overrides = ["reader.batch_size=many", "nonsense"]
[hooks]
"a b" = "x"
"#;
    check_refused(
        "a.toml",
        text,
        &[
            "replicates: `0` is too few",
            "sentinel: `0` is too few",
            "did you mean `full_factorial`?",
            "did you mean `processes`?",
            "did you mean `reader.batch_size`?",
            "`low` is `8`, not below `high`, `1`",
            "did you mean `high`?",
            "`of`",
            "format: has no levels",
            "has the level `1` twice",
            "`hot` is not a state of the cache",
            "there is no hook `ra`",
            "low: `a` is not a number",
            "factors.seed: `4` is not a factor",
            "no workload is given",
            "`many`",
            "nonsense",
            "hooks.a b: is not a valid hook name",
        ],
    );
}

#[test]
fn invalid_factors_are_refused() {
    for (factors, expected) in [
        ("factors = 3", "factors: `3` is not a factor"),
        ("factors = [3]", "factors[0]: `3` is not a factor"),
        ("factors = [{ levels = [1] }]", "factors[0]: has no key"),
        ("factors.reader = {}", "factors.reader: has no levels"),
        ("factors.seed = { high = 3 }", "factors.seed.low: is missing"),
        ("factors.seed = { log = true }", "has no levels"),
        ("factors.seed = { levels = [1, 2], low = 1 }", "cannot be combined with `levels`"),
        (
            "factors.seed = { low = 0, high = 8, log = true }",
            "a logarithmic scale cannot start at `0`",
        ),
        ("factors.seed = { low = 1, high = 8, log = 3 }", "`3` is not true or false"),
        ("factors.seed = { low = 1, high = 8, steps = 1 }", "`1` is not a number of levels"),
        (
            "factors.seed = { low = 1, high = 9000000, steps = 90000000 }",
            "`90000000` is not a number of levels",
        ),
        (
            "factors = [{ key = \"seed\", levels = [1, 2] }, { key = \"seed\", levels = [3, 4] }]",
            "is also varied by another factor",
        ),
        (
            "factors = [{ key = \"seed\", name = \"a\", levels = [1, 2] }, { key = \"epochs\", name = \"a\", levels = [3, 4] }]",
            "the name of two factors",
        ),
        ("factors.dataset.format = [\"npz\", \"png\"]\ncentre_points = 1", "no factor has numbers"),
        ("factors.seed = [1, 2]\ncentre_points = 1", "no level between `1` and `2`"),
        ("factors.seed = [1, 2]\nreplicates = 4000000000\nsentinel = 1", "the limit is 100000"),
        (
            "factors.seed = [1, 2]\ndesign = { kind = \"full_factorial\", p = 3 }",
            "this design has no options",
        ),
    ] {
        let design = if factors.contains("design") { "" } else { "design = \"full_factorial\"\n" };
        check_refused(
            "a.toml",
            &format!("{design}baseline = {{ model = \"m\" }}\n{factors}\n"),
            &[expected, "hint:"],
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z0-9_\\-\\[\\]{}=:.,'\" \n#&*!|>%@`~]{0,200}") {
        let _ = resolve("a.toml", &text).and_then(|resolved| resolved.create_study());
    }

    #[test]
    fn no_levels_make_the_reader_panic(key in "[a-z._]{1,20}", levels in proptest::collection::vec("[ -~]{0,12}", 0..4), kind in 0..crate::design::DESIGNS.len()) {
        let design = crate::design::DESIGNS[kind].name;
        let text = DesignText {
            design: design.into(),
            baseline: BaselineText { model: Some("m".into()), ..BaselineText::default() },
            factors: serde_json::json!({ key: levels }),
            centre_points: Some(1),
            ..DesignText::default()
        };
        let _ = ResolvedDesign::new(&text, |_| None).and_then(|resolved| resolved.create_study());
    }
}
