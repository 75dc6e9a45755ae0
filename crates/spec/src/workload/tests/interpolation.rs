//! Interpolations. The expected values were computed with OmegaConf 2.3.

use super::super::{
    Override, Strictness, Surroundings, Workload, parse_in, resolved_yaml, yaml_at,
};
use super::super::{composed_yaml, interpolate_text, resolved_package_yaml};
use crate::problem::Problems;

/// Surroundings in which `HOME` and `SIZE` are set.
pub(super) struct TestSurroundings;

impl Surroundings for TestSurroundings {
    fn variable(&self, name: &str) -> Option<String> {
        let value = match name {
            "HOME" => "/users/ada",
            "SIZE" => "4",
            "EMPTY" => "",
            "LIST" => "[1,2]",
            _ => return None,
        };
        Some(value.into())
    }

    fn time(&self, format: &str) -> Option<String> {
        (format != "%Q").then(|| format.replace("%Y", "2026").replace("%m", "11"))
    }

    fn hydra(&self, key: &str) -> Option<String> {
        (key == "runtime.cwd").then(|| "/job".into())
    }
}

fn read(yaml: &str, overrides: &[&str]) -> Result<Workload, Problems> {
    let overrides = overrides.iter().map(|text| Override::parse(text));
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>()?;
    let read = parse_in("w.yaml", yaml, &overrides, Strictness::Warning, &TestSurroundings);
    read.map(|(workload, _)| workload)
}

fn problems(yaml: &str, overrides: &[&str]) -> String {
    read(yaml, overrides).err().map_or("no problem".into(), |problems| problems.to_string())
}

const BASE: &str = "a: {b: 1, c: x, f: 1e-5, n: null, t: True, g: 100.0, l: [5, 6]}\nk: a\n";

/// Evaluates `text` as the value of `workload.v`.
#[track_caller]
fn check(text: &str, expected: &str) {
    let yaml = format!("{BASE}v: |-\n  {text}\n");
    let workload = read(&yaml, &[]).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    assert_eq!(yaml_at(&workload, "v").as_deref(), Some(expected), "{text}");
}

#[test]
fn interpolations_have_omegaconfs_values() {
    for (text, expected) in [
        (
            "x${workload.a.b}${workload.a.n}${workload.a.t}${workload.a.f}${workload.a.g}",
            "x1NoneTrue1e-05100.0",
        ),
        (r"x\${y}", "x${y}"),
        (r"x\\${workload.a.b}", r"x\1"),
        (r"x\\\${y}", r"x\${y}"),
        (r"x\y\\z${workload.a.b}\\", r"x\y\\z1\\"),
        ("${.a.b}", "1"),
        ("${..workload.a.b}", "1"),
        ("${.k}", "a"),
        ("${oc.env:HOME}/data", "/users/ada/data"),
        ("${oc.env:HOME,/other}", "/users/ada"),
        ("${oc.env:'HOME'}", "/users/ada"),
        ("${oc.env:EMPTY,x}", ""),
        ("${oc.env:NOPE,null}", "null"),
        ("${oc.env:NOPE,}", ""),
        ("${oc.env:NOPE,''}", ""),
        ("${oc.env:NOPE,${workload.a.c}/d}", "x/d"),
        ("${oc.env:NOPE,${oc.env:HOME}/d}", "/users/ada/d"),
        ("${oc.env:NOPE,a b }", "a b"),
        ("${oc.env:NOPE,\"a, b\"}", "a, b"),
        ("${oc.env:NOPE,'x${workload.a.c}'}", "xx"),
        (r"${oc.env:NOPE,a\,b}", "a,b"),
        ("${oc.env:NOPE,/a/b.c-d_e@f}", "/a/b.c-d_e@f"),
        ("${oc.env:NOPE,1e-7}", "1e-07"),
        ("${oc.env:NOPE,true}", "True"),
        ("${oc.env:NOPE,a:b}", "a:b"),
        ("${oc.env:NOPE,%d*?|$+}", "%d*?|$+"),
        ("${oc.env: NOPE , x}", "x"),
        ("${workload.a[b]}", "1"),
        ("${workload.a.l.1}", "6"),
        ("${workload.a.l[0]}", "5"),
        ("${oc.select:workload.zz,7}", "7"),
        ("${oc.select:workload.a.b}", "1"),
        ("${oc.select:workload.zz}", "null"),
        ("${now:%Y-%m}", "2026-11"),
        ("${now:%H:%m}x", "%H:11x"),
        ("${workload.${workload.k}.b}", "1"),
        ("${workload.${.k}.b}", "1"),
        ("${ workload.a.b }", "1"),
        ("${workload.a.b}}", "1}"),
        ("$5", "$5"),
        ("${oc.decode:'[1,2]'}", "- 1\n- 2\n"),
        ("${oc.decode:${oc.env:LIST}}", "- 1\n- 2\n"),
        ("${oc.decode:null}", "null"),
        ("${oc.decode:abc def}", "abc def"),
        ("${hydra:runtime.cwd}/d", "/job/d"),
        ("${workload.a}", "b: 1\nc: x\nf: 1.0e-05\n'n': null\nt: true\ng: 100.0\nl:\n- 5\n- 6\n"),
    ] {
        check(text, expected);
    }
}

#[test]
fn a_single_interpolation_keeps_its_type() {
    let yaml = "reader: {batch_size: 4, read_threads: '${.batch_size}'}\n\
                train: {computation_time: '${workload.evaluation.eval_time}', epochs: '${oc.decode:${oc.env:SIZE}}'}\n\
                evaluation: {eval_time: {mean: 1.5, stdev: '${.mean}'}}\n\
                workflow: {checkpoint: '${oc.decode:${oc.env:NOPE,True}}'}";
    let w = read(yaml, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((w.reader_read_threads, w.train_epochs, w.workflow_checkpoint), (4, 4, true));
    assert_eq!(w.train_computation_time, w.evaluation_eval_time);
    let text = problems("reader: {batch_size: '${oc.env:SIZE}'}", &[]);
    assert!(text.contains("expected a whole number, found `4`"), "{text}");
    assert!(text.contains("`${oc.decode:${oc.env:NAME}}`"), "{text}");
}

#[test]
fn overrides_have_interpolations() {
    let overrides = [
        "dataset.data_folder=${oc.env:NOPE,${oc.env:HOME}}/d-${now:%Y}",
        "++workload.reader.batch_size=${workload.reader.read_threads}",
        "+reader.read_threads=3",
        "checkpoint.checkpoint_folder=\"${workload.dataset.data_folder}/c, d\"",
        "model.name=\\${x}",
    ];
    let w = read("{}", &overrides).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(w.dataset_data_folder, "/users/ada/d-2026");
    assert_eq!(w.checkpoint_checkpoint_folder, "/users/ada/d-2026/c, d");
    assert_eq!((w.reader_batch_size, w.model_name.as_str()), (3, "${x}"));
    assert_eq!(Override::sweep("a=${oc.env:NOPE,1}"), None);
    assert!(Override::parse("a=${oc.env:NOPE").is_err());
}

#[test]
fn what_cannot_be_evaluated_has_its_place_and_a_remedy() {
    let check = |value: &str, expected: &str| {
        let text = problems(&format!("reader: {{batch_size: 1}}\nmodel:\n  name: {value}\n"), &[]);
        assert_eq!(text, format!("error: w.yaml:3:9: model.name: {expected}"), "{value}");
    };
    check(
        "${oc.env:NOPE}/x",
        "the environment variable `NOPE` is not set\n  hint: set it, or give a default: `${oc.env:NOPE,DEFAULT}`",
    );
    check(
        "${reader.batch_size}",
        "`${reader.batch_size}`: there is no key `reader.batch_size`\n  hint: write `${workload.reader.batch_size}`",
    );
    check(
        "${workload.reader.read_threads}",
        "`${workload.reader.read_threads}`: there is no key `workload.reader.read_threads`\n  \
         hint: write `${workload.KEY}` with a key that the file or an override gives; defaults do not count",
    );
    check(
        "${workload.model.name}",
        "`${workload.model.name}` refers to itself: workload.model.name → workload.model.name\n  hint: give one of them a value",
    );
    check(
        "${workload.model}",
        "`${workload.model}` refers to itself: workload.model.name → workload.model.name\n  hint: give one of them a value",
    );
    check(
        "${oc.envv:HOME}",
        "`${oc.envv:HOME}`: there is no resolver `oc.envv`\n  hint: did you mean `oc.env`?",
    );
    check(
        "${env:HOME}",
        "`${env:HOME}`: there is no resolver `env`\n  hint: did you mean `oc.env`?",
    );
    check(
        "${now:%Q}",
        "`${now:%Q}`: not a format of time\n  hint: write it as for strftime, as in `${now:%Y-%m-%d}`",
    );
    check(
        "a ${workload.reader}",
        "`{batch_size: 1}` cannot be part of a text\n  hint: refer to a single value",
    );
    check(
        "${workload.reader",
        "`${workload.reader`: `${` without its `}`\n  hint: close it, or write `\\${` for the text `${`",
    );
    for (value, words) in [
        ("${}", "a key is missing"),
        ("${....x}", "there are not that many sections"),
        ("${oc.env:HOME,b,c}", "too many arguments"),
        ("'${oc.env:}'", "its argument is missing"),
        ("${hydra:sweep.dir}", "is not supported"),
        ("${workload}", "there is no key `workload`"),
        ("${workload.reader.0}", "there is no key"),
        ("${oc.decode:'[1'}", "is not expected"),
    ] {
        let text = problems(&format!("reader: {{batch_size: 1}}\nmodel:\n  name: {value}\n"), &[]);
        assert!(
            text.starts_with("error: w.yaml:3:9: model.name: ") && text.contains(words),
            "{value}: {text}"
        );
    }
    let both =
        problems("model: {name: '${oc.env:A}', type: '${oc.env:B}'}\nreader: {batch_size: x}", &[]);
    assert_eq!(both.matches("error: ").count(), 3, "{both}");
    let once = problems("model: {name: '${oc.env:A}', type: '${.name}'}", &[]);
    assert_eq!(once.matches("error: ").count(), 1, "{once}");
    let typed = problems("{}", &["model.name=${oc.env:A}"]);
    assert!(
        typed.starts_with(
            "error: override `model.name=${oc.env:A}`: model.name: the environment variable"
        ),
        "{typed}"
    );
}

#[test]
fn cycles_depth_and_expansion_are_bounded() {
    let text = problems("a: ${workload.b}\nb: ${workload.c}\nc: ${workload.a}\n", &[]);
    assert!(text.contains("workload.a → workload.b → workload.c → workload.a"), "{text}");
    let chain: String = (0..2000).map(|i| format!("k{i}: ${{workload.k{}}}\n", i + 1)).collect();
    assert!(problems(&(chain + "k2000: 1\n"), &[]).contains("nested deeper than the limit of 100"));
    let nested = format!("v: {}x{}", "${workload.".repeat(5000), "}".repeat(5000));
    assert!(problems(&nested, &[]).contains("nested deeper than the limit of 100"));
    for double in ["${workload.k{}}${workload.k{}}", "'[${workload.k{}},${workload.k{}}]'"] {
        let lines =
            (0..40).map(|i| format!("k{i}: {}\n", double.replace("{}", &(i + 1).to_string())));
        let yaml = lines.collect::<String>() + "k40: some text\n";
        let yaml = yaml.replace("'[", "[\"").replace("]'", "\"]").replace("},$", "}\",\"$");
        let text = problems(&yaml, &[]);
        assert!(text.contains("expand to more than") || text.contains("nested deeper"), "{text}");
    }
}

#[test]
fn keys_that_interpolations_use_are_known() {
    let yaml = "site: {scratch: /s}\ndataset: {data_folder: '${workload.site.scratch}/d'}\n";
    let (workload, warnings) =
        parse_in("w.yaml", yaml, &[], Strictness::Warning, &TestSurroundings).unwrap();
    assert_eq!(workload.dataset_data_folder, "/s/d");
    assert_eq!(warnings.to_string(), "");
    let strict =
        |yaml: &str| parse_in("w.yaml", yaml, &[], Strictness::Error, &TestSurroundings).is_ok();
    assert!(strict(yaml) && !strict(&format!("{yaml}other: 1\n")));
}

#[test]
fn written_workloads_have_no_interpolations_left() {
    let yaml = "model: {name: '${oc.env:HOME}', type: 'a\\${b}'}\n";
    let workload = read(yaml, &[]).unwrap();
    let written = resolved_yaml(&workload);
    assert_eq!(written, "workload:\n  model:\n    name: /users/ada\n    type: 'a\\${b}'\n");
    assert_eq!(read(&written, &[]).unwrap().model_type, workload.model_type);
    let composed = |package: &str| composed_yaml("w.yaml", yaml, &[], package).unwrap();
    assert_eq!(composed("workload.model.name").unwrap(), "${oc.env:HOME}");
    assert_eq!(composed("workload.nothing"), None);
    let resolved = resolved_package_yaml(&workload, "workload.model").unwrap();
    assert_eq!(resolved, "# @package workload.model\nname: /users/ada\ntype: 'a${b}'\n");
}

#[test]
fn written_workloads_have_no_values_of_credentials() {
    let yaml = "storage:\n  storage_type: local_fs\n  storage_options:\n    secret_key: ${oc.env:HOME}\n    region: a\\${b}\n";
    for (yaml, overrides) in
        [(yaml, &[][..]), ("{}", &["++storage.storage_options.secret_key=${oc.env:HOME}"])]
    {
        let workload = read(yaml, overrides).unwrap();
        let secret = ("secret_key".to_string(), "/users/ada".to_string());
        assert!(workload.storage_storage_options.contains(&secret));
        let written = resolved_yaml(&workload);
        assert!(written.contains("${oc.env:HOME}") && !written.contains("/users/ada"), "{written}");
        let again = read(&written, &[]).unwrap();
        assert_eq!(again.storage_storage_options, workload.storage_storage_options);
        assert_eq!(resolved_yaml(&again), written);
    }
}

#[test]
fn values_that_credentials_are_made_of_are_not_written() {
    for yaml in [
        "site: {key: '${oc.env:HOME}', copy: '${.key}'}\nlist: ['${workload.site.key}/x']\n\
         storage: {storage_options: {key: '${workload.list.0}'}}\n",
        "site: {storage_options: {key: '${oc.env:HOME}/x'}}\nstorage: '${workload.site}'\n",
        "storage: {storage_options: {key: '${oc.env:HOME}/x'}}\n\
         site: {all: '${workload.storage}', key: 'b${workload.storage.storage_options.key}'}\n",
        "site: {copy: '${oc.env:HOME}', list: ['${..copy}', '${oc.env:${workload.which}}/x']}\nwhich: HOME\n\
         storage: {storage_options: {key: '${oc.env:HOME}/x'}}\n",
    ] {
        let yaml = &format!("{yaml}model: {{name: '${{oc.env:SIZE}}'}}\n");
        let workload = read(yaml, &[]).unwrap();
        let secret = ("key".to_string(), "/users/ada/x".to_string());
        assert_eq!(workload.storage_storage_options, [secret], "{yaml}");
        let written = resolved_yaml(&workload);
        assert!(!written.contains("/users/ada") && written.contains("name: '4'"), "{written}");
        let again = read(&written, &[]).unwrap();
        assert_eq!(again.storage_storage_options, workload.storage_storage_options);
        assert_eq!(resolved_yaml(&again), written);
    }
}

#[test]
fn settings_of_hydra_refer_to_the_workload() {
    let workload = read("model: {type: 'a\\${b}'}", &[]).unwrap();
    let interpolate = |text: &str| interpolate_text(text, &workload, &TestSurroundings);
    assert_eq!(interpolate("r/${workload.model.type}/${now:%Y}").unwrap(), "r/a${b}/2026");
    assert_eq!(interpolate("${workload.model.name}").unwrap(), workload.model_name);
    assert!(interpolate("${nonsense}").is_err());
}
