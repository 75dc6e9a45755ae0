//! Tests of the values parsed from valid text.

use super::super::overrides::literal;
use super::super::*;
use super::{UNET3D, problems, read, workload};
use crate::bundled::{Bundled, WORKLOADS};
use crate::problem::{Location, Problems};
use crate::shape::Element;

#[test]
fn values_have_types_and_locations() {
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
    let location = w.location("reader.batch_size").unwrap().to_string();
    let line = UNET3D.lines().position(|l| l.contains("batch_size")).unwrap() + 1;
    assert_eq!(location, format!("w.yaml:{line}:15"));
}

#[test]
fn defaults_match_dlio() {
    let w = workload("{}", &[]);
    assert_eq!((w.framework.name(), w.dataset_format.as_str()), ("tensorflow", "tfrecord"));
    assert_eq!((w.dataset_num_files_train, w.train_seed, w.train_epochs), (8, 123, 1));
    assert_eq!(w.dataset_record_element_type, Element::Uint8);
    assert_eq!(w.train_computation_time, TimeSpec::None);
    assert_eq!(
        (w.reader_data_loader, w.train_total_training_steps, w.accelerators),
        (None, None, None)
    );
    assert_eq!((w.metric_au, w.output_metric_exclude_start_steps), (0.9, 1));
    assert_eq!((w.reader_check_crc, w.dataset_content_seed), (true, 10));
    assert_eq!((w.dataset_compressible_percent, w.dataset_duplicate_percent), (0, 0));
    assert_eq!(
        (w.storage_throttle_bytes_per_second, w.storage_storage_type.as_str()),
        (None, "local_fs")
    );
}

#[test]
fn every_default_parses_and_every_path_is_unique() {
    for key in KEYS {
        assert!(literal(key.default).is_some(), "{}", key.path);
        assert!(key.meaning.ends_with('.'), "{}", key.path);
        let occurrences = |path: &str| {
            KEYS.iter().filter(|key| key.path == path || key.aliases.contains(&path)).count()
        };
        assert_eq!(occurrences(key.path), 1, "{}", key.path);
        assert!(
            !KEYS.iter().any(|other| other.path.starts_with(&format!("{}.", key.path))),
            "{}",
            key.path
        );
    }
    let mut found = Problems::default();
    let tree = Node::empty_map(Location::Override(String::new()));
    Workload::read(
        keys::Given {
            written: tree.clone(),
            tree,
            private: Default::default(),
            locations: Default::default(),
        },
        &mut found,
    );
    assert_eq!(found.to_string(), "");
}

#[test]
fn giving_a_default_causes_no_problem() {
    for key in KEYS.iter().filter(|key| key.origin != Origin::Ignored) {
        let found = problems("{}", &[&format!("{}={}", key.path, key.default)]);
        assert_eq!(found, "", "{}", key.path);
    }
}

#[test]
fn bundled_workloads_have_no_problems() {
    for Bundled { name, yaml, .. } in WORKLOADS {
        assert!(yaml.starts_with("# "), "{name} lacks a comment at its start");
        let w = workload(yaml, &[]);
        // The model's name is a prefix: the file's name may also have the accelerator.
        assert!(name.replace("llama3_", "llama_").starts_with(&w.model_name), "{name}");
        let again = workload(&resolved_yaml(&w), &[]);
        assert_eq!(resolved_yaml(&again), resolved_yaml(&w));
    }
}

#[test]
fn a_workload_may_be_inside_a_root_key() {
    assert_eq!(workload("workload:\n  train:\n    epochs: 3\n", &[]).train_epochs, 3);
    assert_eq!(
        problems("workload: {}\nhydra: {}\n", &[]),
        "error: w.yaml:2:1: hydra: is given beside `workload`\n  hint: move it into `workload`, or remove it"
    );
}

#[test]
fn every_spelling_of_off_disables_shuffling() {
    for off in ["off", "'off'", "False", "no", "Off"] {
        let w =
            workload(&format!("reader: {{file_shuffle: {off}}}"), &["reader.sample_shuffle=off"]);
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
        let w = workload(
            "{}",
            &[&format!("++workload.train.computation_time={}", text.replace(": ", ":"))],
        );
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
fn aliases_are_renamed() {
    let w = workload("data_reader:\n  batch_size: 4\n", &["++workload.data_reader.read_threads=3"]);
    assert_eq!((w.reader_batch_size, w.reader_read_threads), (4, 3));
    assert_eq!(w.location("reader.batch_size").unwrap().to_string(), "w.yaml:2:15");
    assert_eq!(
        workload("model: {model_size: 7}", &["model.model_size=9"]).model_model_size_bytes,
        9
    );
    assert_eq!(
        workload("model: {model_size: 7}", &["model.model_size_bytes=9"]).model_model_size_bytes,
        9
    );
    let w = workload("storage: {storage_type: s3dlio}\nreader: {storage_library: minio}", &[]);
    let library = w.storage_storage_library.as_deref();
    assert_eq!((w.storage_storage_type.as_str(), library), ("s3", Some("minio")));
    assert_eq!(
        problems("reader:\n  batch_size: 4\ndata_reader:\n  batch_size: 5\n", &[]),
        "warning: w.yaml:4:3: data_reader: both `data_reader` and `reader` are given: `data_reader` wins\n  hint: keep one of them; DLIO would ignore all of `reader`"
    );
    let (w, _) =
        read("reader: {batch_size: 4, read_threads: 2}\ndata_reader: {batch_size: 5}", &[])
            .unwrap();
    assert_eq!((w.reader_batch_size, w.reader_read_threads), (5, 2));
    assert_eq!(
        problems("model:\n  model_size: 7\n  model_size_bytes: 9\n", &[]),
        "warning: w.yaml:2:15: model.model_size: `model.model_size_bytes` is given too, and wins\n  hint: leave `model.model_size` out"
    );
}

#[test]
fn names_from_dlio_2_0_0_are_accepted() {
    let yaml = "model: unet3d\ndataset: {record_length: 9, record_length_stdev: 3, record_length_resize: 4}";
    let w = workload(yaml, &["dataset.record_length=16"]);
    assert_eq!(w.model_name, "unet3d");
    assert_eq!(w.dataset_record_length_bytes, 16.0);
    assert_eq!(w.dataset_record_length_bytes_stdev, 3.0);
    assert_eq!(w.dataset_record_length_bytes_resize, 4.0);
    assert_eq!(workload("model: a", &["model.name=b"]).model_name, "b");
    assert_eq!(workload("model:", &[]).model_name, "default");
}

#[test]
fn a_client_is_a_name_or_its_costs() {
    let costs = |yaml: &str, overrides: &[&str]| {
        let w = workload(yaml, overrides);
        (w.client_name, w.client_per_sample, w.client_handover_bytes_per_second)
    };
    let named = Some("pytorch-npz".to_string());
    assert_eq!(costs("{}", &[]), (None, None, None));
    assert_eq!(costs("client: null", &[]), (None, None, None));
    assert_eq!(costs("client: pytorch-npz", &[]), (named.clone(), None, None));
    assert_eq!(costs("{}", &["client=pytorch-npz"]), (named.clone(), None, None));
    let given = "client: {per_sample: 0.002, handover_bytes_per_second: 1GB/s}";
    assert_eq!(costs(given, &[]), (None, Some(0.002), Some(1e9)));
    // A name replaces all given costs. A cost that is given together with a name replaces the cost of that client.
    assert_eq!(costs(given, &["client=pytorch-npz"]), (named.clone(), None, None));
    let with_cost = ["++workload.client.per_sample=0.5"];
    assert_eq!(costs("client: pytorch-npz", &with_cost), (named.clone(), Some(0.5), None));
    let name = "client=pytorch-npz";
    let cost = "client.per_sample=0.5";
    assert_eq!(costs("{}", &[name, cost]), (named.clone(), Some(0.5), None));
    assert_eq!(costs("{}", &[cost, name]), (named, None, None));
    let found = problems("client: {per_sample: -1, per_record: 1}", &[]);
    assert!(found.contains("client.per_sample") && found.contains("client.per_record"), "{found}");
}

#[test]
fn overrides_merge_as_in_hydra() {
    let file =
        "train: {computation_time: 0.5, epochs: 3}\nreader: {batch_size: 7, read_threads: 4}\n";
    let time = |overrides: &[&str]| workload(file, overrides).train_computation_time;
    assert_eq!(
        time(&["++workload.train.computation_time.mean=0.3"]),
        TimeSpec::Constant { mean: 0.3 }
    );
    assert_eq!(
        time(&["train.computation_time={mean:0.3}", "train.computation_time={stdev:0.1}"]),
        TimeSpec::Normal { mean: 0.3, stdev: 0.1 }
    );
    assert_eq!(
        time(&["train.computation_time=0.2", "train.computation_time=0.1"]),
        TimeSpec::Constant { mean: 0.1 }
    );
    assert_eq!(time(&["~train.computation_time"]), TimeSpec::None);
    let w = workload(file, &["++workload.reader={batch_size:4}", "~workload.train.epochs=3"]);
    assert_eq!((w.reader_batch_size, w.reader_read_threads, w.train_epochs), (4, 4, 1));
    let w = workload(
        file,
        &[
            "+dataset.record_dims=[16, 32]",
            "storage.storage_type=null",
            "reader.transfer_size=1MiB",
        ],
    );
    assert_eq!(w.dataset_record_dims, [16, 32]);
    assert_eq!((w.storage_storage_type.as_str(), w.reader_transfer_size), ("null", Some(1 << 20)));
    let w = workload(
        "reader: {transfer_size: 4096}",
        &["reader.transfer_size=null", "dataset.file_prefix="],
    );
    assert_eq!((w.reader_transfer_size, w.dataset_file_prefix.as_str()), (None, ""));
}

#[test]
fn override_values_follow_the_grammar_of_hydra() {
    let check = |value: &str, expected: &str| {
        let change = Override::parse(&format!("key={value}")).unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(format!("{:?}", OneLine(&change.value.unwrap())), expected, "{value}");
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
    assert_eq!(
        (change.key().as_str(), change.text()),
        ("reader.batch_size", "++workload.reader.batch_size = 4")
    );
    for bad in
        ["[", "[1,]", "[1 2", "{a}", "{a:1,a:2}", "{:1}", "{a:}", "a=b", "a]", "'a'b", "[1]2"]
    {
        assert!(Override::parse(&format!("key={bad}")).is_err(), "{bad}");
    }
    assert!(Override::parse(&format!("key={}", "[".repeat(100_000))).is_err());
}

/// Formats a tree on one line, with text in quotes.
struct OneLine<'a>(&'a Node);

impl std::fmt::Debug for OneLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.content {
            Content::Scalar { text, quoted: true } => write!(f, "'{text}'"),
            Content::Scalar { text, quoted: false } => write!(f, "{text}"),
            Content::List(items) => f.debug_list().entries(items.iter().map(OneLine)).finish(),
            Content::Map(entries) => {
                let each = entries.iter().map(|e| format!("{}: {:?}", e.key, OneLine(&e.value)));
                write!(f, "{{{}}}", each.collect::<Vec<_>>().join(", "))
            }
        }
    }
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
fn resolved_yaml_has_the_given_keys() {
    let w = workload(
        "model: {name: x, layer_parameters: [1, 2]}\nworkflow: {train: True}\nreader: {file_shuffle: off}\nmetric: {au: 0.90}\n",
        &[
            "++workload.train.computation_time={mean:1e-3}",
            "+workload.reader.sample_shuffle=off",
            "dataset.data_folder='a: b'",
        ],
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
fn resolved_yaml_matches_hydra_for_a_run_of_the_study() {
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
    model_size: 499153191
  framework: pytorch
  workflow:
    generate_data: false
    train: true
    checkpoint: false
    evaluation: true
";
    assert!(text.starts_with(hydra), "{text}");
}

#[test]
fn resolved_yaml_keeps_the_names_from_file_and_overrides() {
    for (file, overrides, expected) in [
        (
            "data_reader: {batch_size: 4}",
            &["reader.read_threads=3"][..],
            "  data_reader:\n    batch_size: 4\n    read_threads: 3\n",
        ),
        ("model: {model_size: 7}", &["model.model_size_bytes=9"], "  model:\n    model_size: 9\n"),
        ("dataset: {record_length: 9}", &["~dataset.record_length_bytes"], "  dataset: {}\n"),
        ("model: {}", &["model.model_size=9"], "  model:\n    model_size: 9\n"),
    ] {
        assert_eq!(resolved_yaml(&workload(file, overrides)), format!("workload:\n{expected}"));
    }
}

#[test]
fn a_plain_override_in_hydra_must_use_the_name_from_the_file() {
    let plain = |text: &str| {
        let change = Override::parse_as_hydra(text).unwrap();
        parse("w.yaml", "model: {model_size: 7}", &[change], Strictness::Error)
    };
    assert_eq!(plain("model.model_size=9").unwrap().0.model_model_size_bytes, 9);
    assert!(plain("model.model_size_bytes=9").is_err());
}

#[test]
fn values_are_printed_as_given() {
    let file = "train: {epochs: 2}\nmodel: {name: '7'}\ndataset: {record_dims: [4, 8], file_prefix: '010'}\n";
    let w = workload(file, &["dataset.data_folder='a: b'"]);
    for (key, expected) in [
        ("train.epochs", Some("2")),
        ("model.name", Some("7")),
        ("dataset.file_prefix", Some("010")),
        ("dataset.data_folder", Some("a: b")),
        ("dataset.record_dims", Some("- 4\n- 8\n")),
        ("train.computation_time", None),
        ("nonsense", None),
    ] {
        assert_eq!(yaml_at(&w, key).as_deref(), expected, "{key}");
    }
    assert_eq!(
        yaml_at(&w, "dataset").unwrap(),
        "record_dims:\n- 4\n- 8\nfile_prefix: '010'\ndata_folder: 'a: b'\n"
    );
}

#[test]
fn slow_accelerators_map_numbers_to_factors() {
    let w = workload("train: {slow_accelerators: {1: 2.0, 3: 1.5}}", &[]);
    assert_eq!(w.train_slow_accelerators, [(1, 2.0), (3, 1.5)]);
    let w = workload("{}", &["train.slow_accelerators={7: 3}"]);
    assert_eq!(w.train_slow_accelerators, [(7, 3.0)]);
    for wrong in ["{one: 2}", "{1: 0}", "{1: -2}", "[2.0]"] {
        let found = super::problems(&format!("train: {{slow_accelerators: {wrong}}}"), &[]);
        assert!(found.contains("train.slow_accelerators"), "{found}");
    }
}
