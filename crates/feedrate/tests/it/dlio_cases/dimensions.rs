//! Shapes and element types of samples in every format. Shapes are drawn from fixed seeds, as DLIO draws them at random.

use super::{Case, Ran, check};
use serde_json::{Value, json};

const ELEMENTS: [(&str, u64); 3] = [("float32", 4), ("int8", 1), ("float16", 2)];

/// Sides of 1 to 9, by splitmix64.
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
    check: fn(&Ran) -> Result<(), String>,
    look: Option<Value>,
) -> Case {
    let framework = if format == "tfrecord" { "tensorflow" } else { "pytorch" };
    let own = [
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
    let all: Vec<&str> = own.iter().chain(more).map(String::as_str).collect();
    let mut look = look;
    if let Some(look) = &mut look {
        look["format"] = format.into();
    }
    Case { look, ..Case::new(format!("{format} of {element} {dims:?} {more:?}"), &all, check) }
}

/// 90, as there.
pub(super) fn cases() -> Vec<Case> {
    let mut shapes = Shapes(1);
    let mut cases = Vec::new();
    for (element, bytes) in ELEMENTS {
        for dims in 2..=4 {
            cases.push(hdf5(element, shapes.draw(dims)));
            cases.extend(["png", "jpeg"].map(|format| picture(format, element, shapes.draw(dims))));
            for format in ["npz", "npy"] {
                let shape = shapes.draw(dims);
                let stacked: Vec<u64> = shape.iter().copied().chain([1]).collect();
                let look = json!({"shape": stacked, "dtype": element});
                let one = ["++workload.dataset.num_samples_per_file=1".to_string()];
                cases.push(case(format, element, &shape, &one, Ran::trained, Some(look)));
            }
            let shape = shapes.draw(dims);
            let look = json!({"bytes": shape.iter().product::<u64>() * bytes});
            cases.push(case("tfrecord", element, &shape, &[], Ran::trained, Some(look)));
            for samples in 1..=3 {
                let shape = shapes.draw(dims);
                let look =
                    json!({"bytes": shape.iter().product::<u64>() * bytes, "samples": samples});
                let more = [format!("++workload.dataset.num_samples_per_file={samples}")];
                cases.push(case(
                    "indexed_binary",
                    element,
                    &shape,
                    &more,
                    Ran::trained,
                    Some(look),
                ));
            }
            let shape = shapes.draw(dims);
            let look = json!({"columns": shape.iter().product::<u64>()});
            cases.push(case("csv", element, &shape, &[], Ran::trained, Some(look)));
        }
    }
    assert_eq!(cases.len(), 90);
    cases
}

fn hdf5(element: &str, part: Vec<u64>) -> Case {
    let whole: Vec<u64> = [3].into_iter().chain(part.iter().copied()).collect();
    // A part's own first dimension is 1, and left out.
    let shape: Vec<u64> = [1].into_iter().chain(part).collect();
    let look = json!({"shape": shape, "dtype": element, "datasets": 3});
    let more = ["++workload.dataset.hdf5.num_dset_per_record=3".to_string()];
    case("hdf5", element, &whole, &more, Ran::trained, Some(look))
}

fn picture(format: &'static str, element: &str, shape: Vec<u64>) -> Case {
    if let [height, width] = shape[..] {
        let look = json!({"size": [width, height]});
        return case(format, element, &shape, &[], warned, Some(look));
    }
    case(format, element, &shape, &[], refused, None)
}

fn warned(ran: &Ran) -> Result<(), String> {
    ran.trained()?;
    let told = ran.answer.stderr.matches("elements become uint8").count();
    super::expect("warnings of another type", &told, &1)
}

fn refused(ran: &Ran) -> Result<(), String> {
    super::expect("exit code", &ran.answer.code, &1)?;
    let told = ran.answer.stderr.contains("has at most 2 dimensions in DLIO");
    super::expect("refused for its dimensions", &told, &true)
}

#[test]
fn one_rank_writes_shapes_as_dlio() {
    check(&cases(), 1);
}

#[test]
fn two_ranks_write_shapes_as_dlio() {
    check(&cases(), 2);
}
