//! Whole workloads, in and out: text and overrides to values, or to the full text of every problem.

use super::keys::KEYS;
use super::overrides::literal;
use super::*;
use crate::problem::{Place, Problem, Problems};
use crate::shape::Element;
use proptest::prelude::*;

fn read(yaml: &str, overrides: &[&str]) -> Result<(Workload, Problems), Problems> {
    let mut all = Vec::new();
    for text in overrides {
        all.push(Override::parse(text).map_err(|problem| Problems(vec![problem]))?);
    }
    parse("w.yaml", yaml, &all, Strictness::Error)
}

fn workload(yaml: &str, overrides: &[&str]) -> Workload {
    let (workload, warnings) = read(yaml, overrides).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(warnings.to_string(), "");
    workload
}

/// All problems, as users see them.
fn problems(yaml: &str, overrides: &[&str]) -> String {
    match read(yaml, overrides) {
        Ok((_, warnings)) => warnings.to_string(),
        Err(problems) => {
            assert!(problems.has_errors());
            problems.to_string()
        }
    }
}

const UNET3D: &str = include_str!("../../../../workloads/unet3d_h100_custom.yaml");

#[test]
fn values_are_typed_and_placed() {
    let w = workload(UNET3D, &[]);
    assert_eq!(w.model_name, "unet3d_h100_custom");
    assert_eq!(w.model_model_size_bytes, 499_153_191);
    assert_eq!(w.dataset_record_length_bytes, 146_600_628.0);
    assert_eq!(w.reader_file_shuffle, Shuffle::Seed);
    assert_eq!(w.train_computation_time, TimeSpec::Constant { mean: 0.323 });
    assert_eq!(w.checkpoint_checkpoint_after_epoch, 5);
    assert_eq!(w.reader_prefetch_size, 2);
    assert!(!w.is_given("reader.prefetch_size"));
    assert!(w.is_given("reader"));
    let place = w.place("reader.batch_size").unwrap().to_string();
    let line = UNET3D.lines().position(|l| l.contains("batch_size")).unwrap() + 1;
    assert_eq!(place, format!("w.yaml:{line}:15"));
}

#[test]
fn defaults_are_dlio_s() {
    let w = workload("{}", &[]);
    assert_eq!((w.framework.as_str(), w.dataset_format.as_str()), ("tensorflow", "tfrecord"));
    assert_eq!((w.dataset_num_files_train, w.train_seed, w.train_epochs), (8, 123, 1));
    assert_eq!(w.dataset_record_element_type, Element::Uint8);
    assert_eq!(w.train_computation_time, TimeSpec::None);
    assert_eq!((w.reader_data_loader, w.train_total_training_steps, w.accelerators), (None, None, None));
    assert_eq!((w.metric_au, w.output_metric_exclude_start_steps), (0.9, 1));
    assert_eq!((w.reader_check_crc, w.dataset_content_seed), (true, 10));
    assert_eq!((w.storage_throttle_bytes_per_second, w.storage_storage_type.as_str()), (None, "local_fs"));
}

#[test]
fn every_default_parses_and_every_path_is_unique() {
    for key in KEYS {
        assert!(literal(key.default).is_some(), "{}", key.path);
        assert!(key.meaning.ends_with('.'), "{}", key.path);
        let named = |path: &str| KEYS.iter().filter(|k| k.path == path || k.aliases.contains(&path)).count();
        assert_eq!(named(key.path), 1, "{}", key.path);
        assert!(!KEYS.iter().any(|k| k.path.starts_with(&format!("{}.", key.path))), "{}", key.path);
    }
    let mut found = Problems::default();
    let tree = Node::empty_map(Place::Override(String::new()));
    Workload::read(keys::Given { tree, places: Default::default() }, &mut found);
    assert_eq!(found.to_string(), "");
}

#[test]
fn a_default_given_is_the_default() {
    for key in KEYS.iter().filter(|key| key.origin != Origin::Ignored) {
        let found = problems("{}", &[&format!("{}={}", key.path, key.default)]);
        assert_eq!(found, "", "{}", key.path);
    }
}

#[test]
fn bundled_workloads_have_no_problems() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?} must say what it stands for");
        let w = workload(&text, &[]);
        assert_eq!(w.model_name, path.file_stem().unwrap().to_str().unwrap());
        let again = workload(&resolved_yaml(&w), &[]);
        assert_eq!(resolved_yaml(&again), resolved_yaml(&w));
        seen += 1;
    }
    assert!(seen >= 10);
}

#[test]
fn a_workload_may_stand_under_its_root_key() {
    assert_eq!(workload("workload:\n  train:\n    epochs: 3\n", &[]).train_epochs, 3);
    assert_eq!(
        problems("workload: {}\nhydra: {}\n", &[]),
        "error: w.yaml:2:1: hydra: stands beside `workload`\n  hint: put it inside `workload`, or take it out"
    );
}

#[test]
fn shuffles_are_off_in_every_spelling() {
    for off in ["off", "'off'", "False", "no", "Off"] {
        let w = workload(&format!("reader: {{file_shuffle: {off}}}"), &["reader.sample_shuffle=off"]);
        assert_eq!((w.reader_file_shuffle, w.reader_sample_shuffle), (Shuffle::Off, Shuffle::Off));
    }
    let w = workload("{}", &["reader.sample_shuffle=random", "reader.file_shuffle=False"]);
    assert_eq!((w.reader_file_shuffle, w.reader_sample_shuffle), (Shuffle::Off, Shuffle::Random));
}

#[test]
fn times_are_numbers_or_distributions() {
    let check = |text: &str, expected: TimeSpec| {
        let w = workload(&format!("train: {{computation_time: {text}}}"), &[]);
        assert_eq!(w.train_computation_time, expected, "{text}");
        let w = workload("{}", &[&format!("++workload.train.computation_time={}", text.replace(": ", ":"))]);
        assert_eq!(w.train_computation_time, expected, "{text}");
    };
    check("0.5", TimeSpec::Constant { mean: 0.5 });
    check("1e-3", TimeSpec::Constant { mean: 0.001 });
    check("0", TimeSpec::None);
    check("{}", TimeSpec::None);
    check("null", TimeSpec::None);
    check("{mean: 1}", TimeSpec::Constant { mean: 1.0 });
    check("{mean: 1, stdev: 0}", TimeSpec::Constant { mean: 1.0 });
    check("{mean: 1, stdev: 0.1}", TimeSpec::Normal { mean: 1.0, stdev: 0.1 });
    check("{type: normal, mean: 1, stdev: 0.1}", TimeSpec::Normal { mean: 1.0, stdev: 0.1 });
    check("{type: uniform, min: 1, max: 2}", TimeSpec::Uniform { min: 1.0, max: 2.0 });
    check("{type: gamma, shape: 2, scale: 3}", TimeSpec::Gamma { shape: 2.0, scale: 3.0 });
    check("{type: exponential, scale: 3}", TimeSpec::Exponential { scale: 3.0 });
    check("{type: poisson, lam: 3}", TimeSpec::Poisson { lam: 3.0 });
    let w = workload("train: {computation_time: 1, computation_time_stdev: 0.2}", &[]);
    assert_eq!(w.train_computation_time, TimeSpec::Normal { mean: 1.0, stdev: 0.2 });
}

#[test]
fn wrong_times_say_what_is_missing() {
    let check = |text: &str, expected: &str| {
        assert_eq!(problems(&format!("train:\n  computation_time: {text}\n"), &[]), expected);
    };
    check(
        "{type: normal, mean: 1}",
        "error: w.yaml:2:21: train.computation_time: `type: normal` needs `stdev`\n  hint: add `stdev: …` in seconds",
    );
    check(
        "{type: gama, shape: 1, scale: 1}",
        "error: w.yaml:2:28: train.computation_time: type: expected one of `normal`, `uniform`, `gamma`, `exponential`, `poisson`, found `gama`\n  hint: did you mean `gamma`?",
    );
    check(
        "{mean: 1, stddev: 0.1}",
        "error: w.yaml:2:31: train.computation_time: a time without `type` has no `stddev`\n  hint: did you mean `stdev`?",
    );
    check(
        "fast",
        "error: w.yaml:2:21: train.computation_time: expected a number, found `fast`\n  hint: write seconds, as `0.323`, or `{mean: 0.323, stdev: 0.01}`",
    );
    check(
        "-1",
        "error: w.yaml:2:21: train.computation_time: `-1` is negative\n  hint: give a number of at least 0",
    );
    check(
        "{mean: .nan}",
        "error: w.yaml:2:28: train.computation_time: mean: `.nan` is not a finite number\n  hint: leave it out for the default, `{}`",
    );
    assert_eq!(
        problems("{}", &["train.computation_time_stdev=0.1"]),
        "error: override `train.computation_time_stdev=0.1`: train.computation_time_stdev: a deviation of `0.1` without a mean\n  hint: give the time itself too"
    );
}

#[test]
fn all_problems_come_at_once_in_order() {
    let yaml = "\
model: foo
framework: torch
reader:
  batch_size: many
  batchsize: 4
  read_threads: -1
  prefetch_size: 99999999999
train:
  epochs: 2.5
  computation_time: 0.1
metric: {au: 90}
colour: red
";
    assert_eq!(
        problems(yaml, &["dataset.num_files_train='4'"]),
        "\
error: w.yaml:1:8: model: is a section, found `foo`
  hint: give its keys, as `model.name`
error: w.yaml:2:12: framework: expected one of `tensorflow`, `pytorch`, found `torch`
  hint: leave it out for the default, `tensorflow`
error: w.yaml:4:15: reader.batch_size: expected a whole number, found `many`
  hint: leave it out for the default, `1`
error: w.yaml:5:3: unknown key `reader.batchsize`
  hint: did you mean `reader.batch_size`?
error: w.yaml:6:17: reader.read_threads: `-1` is negative
  hint: give a number of at least 0
error: w.yaml:7:18: reader.prefetch_size: `99999999999` is too large
  hint: leave it out for the default, `2`
error: w.yaml:9:11: train.epochs: expected a whole number, found `2.5`
  hint: leave it out for the default, `1`
error: w.yaml:11:14: metric.au: `90` is above 1
  hint: give a share: `0.9` is 90 %
error: w.yaml:12:1: unknown key `colour`
  hint: all keys are in docs/reference/keys.md
error: override `dataset.num_files_train='4'`: dataset.num_files_train: expected a whole number, found `4`
  hint: take the quotes away"
    );
}

#[test]
fn unknown_keys_may_be_warnings() {
    let (w, warnings) = parse("w.yaml", "reader: {batchsize: 4}", &[], Strictness::Warning).unwrap();
    assert_eq!(w.reader_batch_size, 1);
    assert_eq!(
        warnings.to_string(),
        "warning: w.yaml:1:10: unknown key `reader.batchsize` is ignored\n  hint: did you mean `reader.batch_size`?"
    );
}

#[test]
fn ignored_and_inactive_keys_are_named() {
    assert_eq!(
        problems("workflow:\n  debug: False\n", &[]),
        "warning: w.yaml:2:10: workflow.debug: has no effect: DLIO ignores it too\n  hint: leave it out. Left in DLIO's bert."
    );
    let w = workload("reader: {pin_memory: False, batch_size: 2}", &[]);
    let keys: Vec<&str> = w.given_without_effect().map(|key| key.path).collect();
    assert_eq!(keys, ["reader.pin_memory"]);
}

#[test]
fn aliases_are_renamed() {
    let w = workload("data_reader:\n  batch_size: 4\n", &["++workload.data_reader.read_threads=3"]);
    assert_eq!((w.reader_batch_size, w.reader_read_threads), (4, 3));
    assert_eq!(w.place("reader.batch_size").unwrap().to_string(), "w.yaml:2:15");
    assert_eq!(workload("model: {model_size: 7}", &["model.model_size=9"]).model_model_size_bytes, 9);
    assert_eq!(workload("model: {model_size: 7}", &["model.model_size_bytes=9"]).model_model_size_bytes, 9);
    assert_eq!(
        problems("reader:\n  batch_size: 4\ndata_reader:\n  batch_size: 5\n", &[]),
        "warning: w.yaml:4:3: data_reader: both `data_reader` and `reader` are given: `data_reader` wins\n  hint: keep one of them; DLIO would ignore all of `reader`"
    );
    let (w, _) = read("reader: {batch_size: 4, read_threads: 2}\ndata_reader: {batch_size: 5}", &[]).unwrap();
    assert_eq!((w.reader_batch_size, w.reader_read_threads), (5, 2));
    assert_eq!(
        problems("model:\n  model_size: 7\n  model_size_bytes: 9\n", &[]),
        "warning: w.yaml:2:15: model.model_size: `model.model_size_bytes` is given too, and wins\n  hint: leave `model.model_size` out"
    );
}

#[test]
fn overrides_merge_as_in_hydra() {
    let file = "train: {computation_time: 0.5, epochs: 3}\nreader: {batch_size: 7, read_threads: 4}\n";
    let time = |overrides: &[&str]| workload(file, overrides).train_computation_time;
    assert_eq!(time(&["++workload.train.computation_time.mean=0.3"]), TimeSpec::Constant { mean: 0.3 });
    assert_eq!(
        time(&["train.computation_time={mean:0.3}", "train.computation_time={stdev:0.1}"]),
        TimeSpec::Normal { mean: 0.3, stdev: 0.1 }
    );
    assert_eq!(time(&["train.computation_time=0.2", "train.computation_time=0.1"]), TimeSpec::Constant { mean: 0.1 });
    assert_eq!(time(&["~train.computation_time"]), TimeSpec::None);
    let w = workload(file, &["++workload.reader={batch_size:4}", "~workload.train.epochs=3"]);
    assert_eq!((w.reader_batch_size, w.reader_read_threads, w.train_epochs), (4, 4, 1));
    let w = workload(file, &["+dataset.record_dims=[16, 32]", "storage.storage_type=null", "reader.transfer_size=1MiB"]);
    assert_eq!(w.dataset_record_dims, [16, 32]);
    assert_eq!((w.storage_storage_type.as_str(), w.reader_transfer_size), ("null", Some(1 << 20)));
    let w = workload("reader: {transfer_size: 4096}", &["reader.transfer_size=null", "dataset.file_prefix="]);
    assert_eq!((w.reader_transfer_size, w.dataset_file_prefix.as_str()), (None, ""));
}

#[test]
fn wrong_overrides_say_why() {
    let check = |text: &str, expected: &str| {
        assert_eq!(problems("train:\n  epochs: 3\n", &[text]), format!("error: override `{text}`: {expected}"));
    };
    check("reader.batch_size", "reader.batch_size: an override needs a value\n  hint: write `KEY=VALUE`");
    check("+train.epochs=4", "train.epochs: is given already: `3`\n  hint: write `++train.epochs=4` to set it anyway");
    check("~train.seed", "train.seed: is not given, so it cannot be deleted\n  hint: leave the override out: the default holds");
    check("~train.epochs=4", "train.epochs: is `3`, so it is not deleted\n  hint: write `~train.epochs` to delete it whatever it is");
    check("reader.batchsize=4", "unknown key `reader.batchsize`\n  hint: did you mean `reader.batch_size`?");
    check(
        "reader.batch_size=1,2",
        "reader.batch_size: `1,2` is a sweep over several values\n  hint: an override sets one value: write `[a,b]` for a list; several runs are a study",
    );
    check("a b=1", "`a b` is no key\n  hint: write `section.key=VALUE`, as in `reader.batch_size=4`");
    check("workload=unet3d", "`workload` is no key of a workload\n  hint: the workload is chosen by its own argument");
    check("dataset.record_dims=[1,2", "dataset.record_dims: a list without its `]`\n  hint: write `[1,2]`");
    check(
        "model.name='a",
        "model.name: a text without its closing `'`\n  hint: the shell takes quotes away: quote twice, `'key=\"text\"'`",
    );
    check("model.name=${x}", "model.name: interpolation `${…}` is not supported\n  hint: write the value itself");
    check(
        "train.epochs=range(1,3)",
        "train.epochs: `(`: functions and sweeps are not supported\n  hint: put text with special characters in quotes: `key='a,b'`",
    );
}

#[test]
fn override_values_follow_hydra_s_grammar() {
    let check = |value: &str, expected: &str| {
        let change = Override::parse(&format!("key={value}")).unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(format!("{:?}", Shown(&change.value.unwrap())), expected, "{value}");
    };
    check("4", "4");
    check(" 4 ", "4");
    check("1_000", "1_000");
    check("abc", "'abc'");
    check("off", "'off'");
    check("TRUE", "true");
    check("NuLL", "null");
    check("", "''");
    check("'4'", "'4'");
    check("a b:c/d-e*.%", "'a b:c/d-e*.%'");
    check("'it\\'s'", "'it's'");
    check("\"a\\\\\"", "'a\\'");
    check("'a\\b'", "'a\\b'");
    check("a\\,b\\ ", "'a,b '");
    check("[]", "[]");
    check("[a, 1,[x]]", "['a', 1, ['x']]");
    check("{}", "{}");
    check("{mean:1.0, stdev : 0.1}", "{mean: 1.0, stdev: 0.1}");
    check("{a:{b:[1,'x,y']},c:d}", "{a: {b: [1, 'x,y']}, c: 'd'}");
    let change = Override::parse("++workload.reader.batch_size = 4").unwrap();
    assert_eq!((change.key().as_str(), change.text()), ("reader.batch_size", "++workload.reader.batch_size = 4"));
    for bad in ["[", "[1,]", "[1 2", "{a}", "{a:1,a:2}", "{:1}", "{a:}", "a=b", "a]", "'a'b", "[1]2"] {
        assert!(Override::parse(&format!("key={bad}")).is_err(), "{bad}");
    }
    assert!(Override::parse(&format!("key={}", "[".repeat(100_000))).is_err());
}

/// A tree on one line, text in quotes.
struct Shown<'a>(&'a Node);

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.content {
            Content::Scalar { text, quoted: true } => write!(f, "'{text}'"),
            Content::Scalar { text, quoted: false } => write!(f, "{text}"),
            Content::List(items) => f.debug_list().entries(items.iter().map(Shown)).finish(),
            Content::Map(entries) => {
                let each = entries.iter().map(|e| format!("{}: {:?}", e.key, Shown(&e.value)));
                write!(f, "{{{}}}", each.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[test]
fn yaml_that_is_no_workload_is_refused() {
    let check = |yaml: &str, expected: &str| assert_eq!(problems(yaml, &[]), expected, "{yaml}");
    check("", "error: w.yaml:1:1: the file is empty\n  hint: give at least `model` and `dataset`, or `{}` for all defaults");
    check("- a\n", "error: w.yaml:1:1: a workload is a map of keys, found `[a]`\n  hint: write `key: value` lines");
    check("a: b: c\n", "error: w.yaml:1:5: not YAML: mapping values are not allowed in this context");
    check(
        "train: {}\ntrain: {}\n",
        "error: w.yaml:2:1: the key `train` is given twice\n  hint: the first is at w.yaml:1:1",
    );
    check("a: 1\n---\nb: 2\n", "error: w.yaml:2:1: a second YAML document begins here\n  hint: one file holds one workload");
    check("train: !!python/object:os.system {}\n", "error: w.yaml:1:8: the tag `!!python/object:os.system` is not supported");
    check("train: &a\n  epochs: *a\n", "error: w.yaml:2:11: an alias inside the value it stands for");
    check(
        "train.epochs: 3\n",
        "error: w.yaml:1:1: the key `train.epochs` has a dot\n  hint: in the file, nest the sections instead; dots are for overrides",
    );
    check(
        "train:\n  epochs: 010\n",
        "error: w.yaml:2:11: train.epochs: expected a whole number, found `010`\n  hint: YAML reads a leading zero as octal: leave it out",
    );
}

#[test]
fn anchors_and_merges_are_resolved() {
    let yaml = "\
train: &base {epochs: 3, seed: 5}
evaluation: {}
";
    assert_eq!(workload(yaml, &[]).train_seed, 5);
    let yaml = "\
reader: {batch_size: &four 4, read_threads: *four}
train:
  <<: [{epochs: 3, seed: 5}, {seed: 6, seed_change_epoch: no}]
  epochs: 9
";
    let w = workload(yaml, &[]);
    assert_eq!((w.reader_batch_size, w.reader_read_threads), (4, 4));
    assert_eq!((w.train_epochs, w.train_seed, w.train_seed_change_epoch), (9, 5, false));
}

#[test]
fn bombs_are_errors_that_name_the_limit() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let found = problems(&bomb, &[]);
    assert!(found.contains("more values than the limit of 50000, aliases expanded"), "{found}");
    let found = problems(&"[".repeat(500_000), &[]);
    assert!(found.contains("nested deeper than the limit of 32"), "{found}");
    let found = problems(&"a: 1\n".repeat(300_000), &[]);
    assert!(found.contains("more than the limit of 1048576"), "{found}");
    let many: String = (0..40_000).map(|i| format!("k{i}: 1\n")).collect();
    let found = problems(&many, &[]);
    assert!(found.ends_with("and 39900 more problems"), "{}", &found[found.len() - 100..]);
}

#[test]
fn resolved_yaml_is_what_was_given() {
    let w = workload(
        "model: {name: x, layer_parameters: [1, 2]}\nworkflow: {train: True}\nreader: {file_shuffle: off}\nmetric: {au: 0.90}\n",
        &["++workload.train.computation_time={mean:1e-3}", "+workload.reader.sample_shuffle=off", "dataset.data_folder='a: b'"],
    );
    let expected = "\
workload:
  model:
    name: x
    layer_parameters:
    - 1
    - 2
  workflow:
    train: true
  reader:
    file_shuffle: false
    sample_shuffle: 'off'
  metric:
    au: 0.9
  train:
    computation_time:
      mean: 0.001
  dataset:
    data_folder: 'a: b'
";
    assert_eq!(resolved_yaml(&w), expected);
    assert_eq!(resolved_yaml(&workload(expected, &[])), expected);
}

#[test]
fn resolved_yaml_is_hydra_s_for_a_run_of_the_study() {
    let overrides = [
        "++workload.workflow.generate_data=False",
        "++workload.workflow.train=True",
        "++workload.workflow.evaluation=True",
        "++workload.workflow.checkpoint=False",
    ];
    let text = resolved_yaml(&workload(UNET3D, &overrides));
    let hydra = "\
workload:
  model:
    name: unet3d_h100_custom
    type: cnn
    model_size_bytes: 499153191
  framework: pytorch
  workflow:
    generate_data: false
    train: true
    checkpoint: false
    evaluation: true
";
    assert!(text.starts_with(hydra), "{text}");
}

/// Pieces that reach more of the parsers than random letters do.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "train", "reader", "model", ":", " ", "\n", "\n  ", "- ", "{", "}", "[", "]", ",", "'", "\"", "&a ", "*a", "<<: ", "!!str ",
        "batch_size", "computation_time", "type: normal", "mean", "1e400", "-1", "0x", "null", "off", "|\n", "\\", "=", "+", "~",
        "${", "\t", "#", "?", "%", "@", "é", "\u{0}", "\u{feff}", "---\n", "...\n", "workload.", "data_reader", "storage_options",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..24).prop_map(|v| v.concat())
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
            if let Ok((w, _)) = parse("w", yaml, &overrides, Strictness::Warning) {
                resolved_yaml(&w);
            }
        }
    }

    #[test]
    fn resolved_yaml_reads_back(name in any::<String>(), prefix in fragments()) {
        let mut all: Vec<Override> = Vec::new();
        let place = || Place::Override("test".into());
        for (key, text) in [("name", &name), ("type", &prefix)] {
            prop_assume!(!text.contains("${") && !text.contains('\0'));
            let mut change = Override::parse(&format!("model.{key}=x")).map_err(|p: Problem| TestCaseError::fail(p.to_string()))?;
            change.value = Some(Node::scalar(text.as_str(), true, place()));
            all.push(change);
        }
        let (w, _) = parse("w", "{}", &all, Strictness::Error).map_err(|p| TestCaseError::fail(p.to_string()))?;
        let text = resolved_yaml(&w);
        let (again, _) = parse("w", &text, &[], Strictness::Error).map_err(|p| TestCaseError::fail(format!("{p}\n{text}")))?;
        prop_assert_eq!((&again.model_name, &again.model_type), (&w.model_name, &w.model_type));
    }
}
