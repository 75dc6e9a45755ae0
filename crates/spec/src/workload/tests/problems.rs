//! The exact messages about invalid text.

use super::super::{Strictness, parse};
use super::{problems, workload};

#[test]
fn messages_about_invalid_times_say_what_is_missing() {
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
        "error: w.yaml:2:21: train.computation_time: expected a number, found `fast`\n  hint: write seconds, such as `0.323`, or `{mean: 0.323, stdev: 0.01}`",
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
fn all_problems_are_reported_at_once_and_in_order() {
    let yaml = "\
output: foo
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
dataset: {compressible_percent: 101}
colour: red
";
    assert_eq!(
        problems(yaml, &["dataset.num_files_train='4'"]),
        "\
error: w.yaml:1:9: output: is a section, found `foo`
  hint: give its keys, as `output.folder`
error: w.yaml:2:12: framework: expected one of `tensorflow`, `pytorch`, found `torch`
  hint: leave it out for the default, `tensorflow`
error: w.yaml:4:15: reader.batch_size: expected a whole number, found `many`
  hint: leave it out for the default, `1`
error: w.yaml:5:3: unknown key `reader.batchsize`
  hint: did you mean `reader.batch_size`?
error: w.yaml:6:17: reader.read_threads: expected a whole number from 0 to 4096, found `-1`
  hint: leave it out for the default, `1`
error: w.yaml:7:18: reader.prefetch_size: `99999999999` is too large
  hint: leave it out for the default, `2`
error: w.yaml:9:11: train.epochs: expected a whole number, found `2.5`
  hint: leave it out for the default, `1`
error: w.yaml:11:14: metric.au: `90` is above 1
  hint: give a share: `0.9` is 90 %
error: w.yaml:12:33: dataset.compressible_percent: expected a whole number from 0 to 100, found `101`
  hint: leave it out for the default, `0`
error: w.yaml:13:1: unknown key `colour`
  hint: `feedrate list keys` shows all keys
error: override `dataset.num_files_train='4'`: dataset.num_files_train: expected a whole number, found `4`
  hint: remove the quotes"
    );
}

#[test]
fn unknown_keys_may_be_warnings() {
    let (w, warnings) =
        parse("w.yaml", "reader: {batchsize: 4}", &[], Strictness::Warning).unwrap();
    assert_eq!(w.reader_batch_size, 1);
    assert_eq!(
        warnings.to_string(),
        "warning: w.yaml:1:10: unknown key `reader.batchsize` is ignored\n  hint: did you mean `reader.batch_size`?"
    );
}

#[test]
fn keys_without_effect_are_reported() {
    assert_eq!(
        problems("workflow:\n  do_eval: False\n", &[]),
        "warning: w.yaml:2:12: workflow.do_eval: has no effect: DLIO ignores it too\n  hint: leave it out. Former name of `workflow.evaluation`."
    );
    let w = workload("reader: {pin_memory: False, batch_size: 2}", &[]);
    let keys: Vec<&str> = w.given_without_effect().map(|key| key.path).collect();
    assert_eq!(keys, ["reader.pin_memory"]);
}

#[test]
fn messages_about_invalid_overrides_give_the_reason() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            problems("train:\n  epochs: 3\n", &[text]),
            format!("error: override `{text}`: {expected}")
        );
    };
    check(
        "reader.batch_size",
        "reader.batch_size: an override needs a value\n  hint: write `KEY=VALUE`",
    );
    check(
        "+train.epochs=4",
        "train.epochs: is given already: `3`\n  hint: write `++train.epochs=4` to set it anyway",
    );
    check(
        "+workload.train.epochs=4",
        "train.epochs: is given already: `3`\n  hint: write `++workload.train.epochs=4` to set it anyway",
    );
    check(
        "~train.seed",
        "train.seed: is not given, so it cannot be deleted\n  hint: leave the override out: the default applies already",
    );
    check(
        "~train.epochs=4",
        "train.epochs: is `3`, so it is not deleted\n  hint: write `~train.epochs` to delete any value",
    );
    check(
        "reader.batchsize=4",
        "unknown key `reader.batchsize`\n  hint: did you mean `reader.batch_size`?",
    );
    check(
        "expect.read_latency_p99_s=20ms",
        "expect.read_latency_p99_s: expected a number, found `20ms`\n  hint: times are in seconds: `0.02`",
    );
    check(
        "train.computation_time=1.5 s",
        "train.computation_time: expected a number, found `1.5 s`\n  hint: times are in seconds: `1.5`",
    );
    check(
        "expect.latency=1",
        "unknown key `expect.latency`\n  hint: give one of `expect.au`, `expect.bytes_per_second`, `expect.samples_per_second`, `expect.read_latency_p99_s`",
    );
    check(
        "reader.batch_size=1,2",
        "reader.batch_size: `1,2` is a sweep over several values\n  hint: an override sets one value: write `[a,b]` for a list; `feedrate study new` makes several runs",
    );
    check(
        "a b=1",
        "`a b` is not a key\n  hint: write `section.key=VALUE`, as in `reader.batch_size=4`",
    );
    check(
        "workload=unet3d",
        "`workload` is not a key of a workload\n  hint: give the workload's name before the overrides: `feedrate run NAME KEY=VALUE`",
    );
    check(
        "dataset.record_dims=[1,2",
        "dataset.record_dims: a list without its `]`\n  hint: write `[1,2]`",
    );
    check(
        "model.name='a",
        "model.name: a text without its closing `'`\n  hint: the shell removes quotes: quote twice, `'key=\"text\"'`",
    );
    check("model.name=${x", "model.name: an interpolation without its `}`\n  hint: write `${KEY}`");
    check(
        "train.epochs=range(1,3)",
        "train.epochs: `(`: functions and sweeps are not supported\n  hint: put text with special characters in quotes: `key='a,b'`",
    );
}

#[test]
fn yaml_that_is_not_a_workload_is_refused() {
    let check = |yaml: &str, expected: &str| assert_eq!(problems(yaml, &[]), expected, "{yaml}");
    check(
        "",
        "error: w.yaml:1:1: the file is empty\n  hint: give at least `model` and `dataset`, or `{}` for all defaults",
    );
    check(
        "- a\n",
        "error: w.yaml:1:1: a workload is a map of keys, found `[a]`\n  hint: write `key: value` lines",
    );
    check(
        "a: b: c\n",
        "error: w.yaml:1:5: not YAML: mapping values are not allowed in this context",
    );
    check(
        "train: {}\ntrain: {}\n",
        "error: w.yaml:2:1: the key `train` is given twice\n  hint: the first is at w.yaml:1:1",
    );
    check(
        "a: 1\n---\nb: 2\n",
        "error: w.yaml:2:1: a second YAML document begins here\n  hint: one file holds one workload",
    );
    check(
        "train: !!python/object:os.system {}\n",
        "error: w.yaml:1:8: the tag `!!python/object:os.system` is not supported",
    );
    check(
        "train: &a\n  epochs: *a\n",
        "error: w.yaml:2:11: an alias inside the value that it refers to",
    );
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
fn texts_that_expand_beyond_a_limit_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let found = problems(&bomb, &[]);
    assert!(found.contains("larger than the limit of 50000 values, aliases expanded"), "{found}");
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(", "));
    let found = problems(&text, &[]);
    assert!(found.contains("larger than the limit of 50000 values"), "{found}");
    let mut deep = String::from("a0: &a0 [x]\n");
    for level in 1..40 {
        deep.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    let found = problems(&deep, &[]);
    assert!(found.contains("nested deeper than the limit of 32"), "{found}");
    let found = problems(&"[".repeat(500_000), &[]);
    assert!(found.contains("nested deeper than the limit of 32"), "{found}");
    let found = problems(&"a: 1\n".repeat(300_000), &[]);
    assert!(found.contains("more than the limit of 1048576"), "{found}");
    let many: String = (0..20_000).map(|i| format!("k{i}: 1\n")).collect();
    let found = problems(&many, &[]);
    assert!(found.ends_with("and 19,900 more problems"), "{}", &found[found.len() - 100..]);
}
