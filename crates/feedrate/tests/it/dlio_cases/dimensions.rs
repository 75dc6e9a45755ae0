//! Cases of shapes and element types of samples in every format. Shapes are random with a fixed seed; DLIO's are random.

use super::{Case, CaseResult, check};
use serde_json::{Value, json};

const ELEMENTS: [(&str, u64); 3] = [("float32", 4), ("int8", 1), ("float16", 2)];

/// Random shapes with sides from 1 to 9, by splitmix64.
struct Shapes(u64);

impl Shapes {
    fn draw(&mut self, dims: usize) -> Vec<u64> {
        let mut side = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            1 + (mixed ^ (mixed >> 31)) % 9
        };
        (0..dims).map(|_| side()).collect()
    }
}

fn case(
    format: &str,
    element: &str,
    dims: &[u64],
    more: &[String],
    check: fn(&CaseResult) -> Result<(), String>,
    file_properties: Option<Value>,
) -> Case {
    let framework = if format == "tfrecord" { "tensorflow" } else { "pytorch" };
    let settings = [
        format!("++workload.framework={framework}"),
        format!("++workload.reader.data_loader={framework}"),
        format!("++workload.dataset.format={format}"),
        format!("++workload.dataset.record_element_type={element}"),
        format!("++workload.dataset.record_dims={dims:?}").replace(' ', ""),
        "++workload.dataset.data_folder=data".into(),
        "++workload.dataset.num_files_train=8*RANKS".into(),
        "++workload.dataset.num_files_eval=0".into(),
        "++workload.dataset.num_subfolders_train=0".into(),
        "++workload.dataset.num_subfolders_eval=0".into(),
        "++workload.workflow.generate_data=True".into(),
        "++workload.workflow.train=True".into(),
        "++workload.workflow.evaluate=False".into(),
        "++workload.train.epochs=2".into(),
    ];
    let all: Vec<&str> = settings.iter().chain(more).map(String::as_str).collect();
    let mut file_properties = file_properties;
    if let Some(properties) = &mut file_properties {
        properties["format"] = format.into();
    }
    Case {
        file_properties,
        ..Case::new(format!("{format} of {element} {dims:?} {more:?}"), &all, check)
    }
}

/// The 90 cases of DLIO's file.
pub(super) fn cases() -> Vec<Case> {
    let mut shapes = Shapes(1);
    let mut cases = Vec::new();
    for (element, bytes) in ELEMENTS {
        for dims in 2..=4 {
            cases.push(hdf5_case(element, shapes.draw(dims)));
            cases.extend(
                ["png", "jpeg"].map(|format| image_case(format, element, shapes.draw(dims))),
            );
            for format in ["npz", "npy"] {
                let shape = shapes.draw(dims);
                let stacked: Vec<u64> = shape.iter().copied().chain([1]).collect();
                let properties = json!({"shape": stacked, "dtype": element});
                let one_sample = ["++workload.dataset.num_samples_per_file=1".to_string()];
                cases.push(case(
                    format,
                    element,
                    &shape,
                    &one_sample,
                    CaseResult::check_training,
                    Some(properties),
                ));
            }
            let shape = shapes.draw(dims);
            let properties = json!({"bytes": shape.iter().product::<u64>() * bytes});
            cases.push(case(
                "tfrecord",
                element,
                &shape,
                &[],
                CaseResult::check_training,
                Some(properties),
            ));
            for samples in 1..=3 {
                let shape = shapes.draw(dims);
                let properties =
                    json!({"bytes": shape.iter().product::<u64>() * bytes, "samples": samples});
                let more = [format!("++workload.dataset.num_samples_per_file={samples}")];
                cases.push(case(
                    "indexed_binary",
                    element,
                    &shape,
                    &more,
                    CaseResult::check_training,
                    Some(properties),
                ));
            }
            let shape = shapes.draw(dims);
            let properties = json!({"columns": shape.iter().product::<u64>()});
            cases.push(case(
                "csv",
                element,
                &shape,
                &[],
                CaseResult::check_training,
                Some(properties),
            ));
        }
    }
    assert_eq!(cases.len(), 90);
    cases
}

fn hdf5_case(element: &str, part: Vec<u64>) -> Case {
    let whole: Vec<u64> = [3].into_iter().chain(part.iter().copied()).collect();
    // The first dimension of each part is 1, and not stored.
    let shape: Vec<u64> = [1].into_iter().chain(part).collect();
    let properties = json!({"shape": shape, "dtype": element, "datasets": 3});
    let more = ["++workload.dataset.hdf5.num_dset_per_record=3".to_string()];
    case("hdf5", element, &whole, &more, CaseResult::check_training, Some(properties))
}

fn image_case(format: &'static str, element: &str, shape: Vec<u64>) -> Case {
    if let [height, width] = shape[..] {
        let properties = json!({"size": [width, height]});
        return case(format, element, &shape, &[], check_warning, Some(properties));
    }
    case(format, element, &shape, &[], check_refusal, None)
}

fn check_warning(result: &CaseResult) -> Result<(), String> {
    result.check_training()?;
    let warnings = result.answer.stderr.matches("elements become uint8").count();
    super::expect("warnings of another type", &warnings, &1)
}

fn check_refusal(result: &CaseResult) -> Result<(), String> {
    super::expect("exit code", &result.answer.code, &1)?;
    let is_refused =
        result.answer.stderr.contains("format does not support more than 2 dimensions");
    super::expect("refused for its dimensions", &is_refused, &true)
}

#[test]
fn one_rank_writes_the_shapes_of_dlio() {
    check(&cases(), 1);
}

#[test]
fn two_ranks_write_the_shapes_of_dlio() {
    check(&cases(), 2);
}
