//! Checks that sizes equal DLIO's and that every part of a model is written once.

use super::*;

const GIB: f64 = (1u64 << 30) as f64;

fn llama(layers: u64, hidden: u64, ffn: u64, kv_size: u64, vocab: u64) -> StatePlan {
    StatePlan {
        model_bytes: 0,
        layers: Layers::Transformer(Transformer {
            layers,
            vocab_size: vocab,
            hidden_size: hidden,
            ffn_hidden_size: ffn,
            kv_size,
        }),
        optimization_groups: vec![],
        file_sizes: vec![],
        model_element: StateType::Fp16,
        optimizer_element: StateType::Fp32,
        tensor: 1,
        pipeline: 1,
        data: 1,
        zero_stage: 1,
        writers: Writers::Holders,
        ranks: 1,
        scale: 1.0,
    }
}

fn split(plan: StatePlan, tensor: u64, pipeline: u64, data: u64, zero_stage: u32) -> StatePlan {
    StatePlan { tensor, pipeline, data, zero_stage, ranks: tensor * pipeline * data, ..plan }
}

fn llama_7b() -> StatePlan {
    llama(32, 4096, 11008, 4096, 32000)
}

fn llama_8b() -> StatePlan {
    llama(32, 4096, 14336, 1024, 128_256)
}

fn llama_70b() -> StatePlan {
    llama(80, 8192, 28672, 512, 128_256)
}

fn llama_405b() -> StatePlan {
    llama(126, 16384, 53248, 1024, 128_256)
}

fn llama_1t() -> StatePlan {
    llama(128, 25872, 98304, 25872 / 192 * 32, 128_256)
}

/// The expected values are DLIO's nominal sizes for the configurations of MLPerf Storage: GiB of model and optimizer, number of files, GiB
/// of the rank that writes the most.
#[test]
fn sizes_match_dlio() {
    let subset = |plan: StatePlan| StatePlan { ranks: 8, ..plan };
    for (name, plan, model, optimizer, files, rank_max) in [
        ("7b", llama_7b(), 12.55, 75.31, 2, 87.9),
        ("7b × 8", split(llama_7b(), 1, 1, 8, 1), 12.55, 75.31, 9, 22.0),
        ("8b", split(llama_8b(), 1, 1, 8, 3), 14.96, 89.75, 16, 13.1),
        ("70b", split(llama_70b(), 8, 4, 2, 1), 130.18, 781.03, 728, 16.4),
        ("70b zero 3", split(llama_70b(), 8, 1, 8, 3), 130.18, 781.03, 128, 14.2),
        ("405b", split(llama_405b(), 8, 32, 2, 1), 756.0, 4536.2, 1544, 12.3),
        ("1t", split(llama_1t(), 8, 64, 2, 1), 2203.7, 13222.9, 2072, 18.0),
        ("70b of 8", subset(split(llama_70b(), 8, 1, 8, 3)), 16.3, 97.6, 16, 14.2),
        ("405b of 8", subset(split(llama_405b(), 8, 32, 2, 1)), 27.7, 70.9, 48, 12.3),
        ("1t of 8", subset(split(llama_1t(), 8, 64, 2, 1)), 40.4, 103.3, 32, 18.0),
    ] {
        let sum = |suffix: &str| {
            let bytes = plan.sum(|file| if file.name.ends_with(suffix) { file.bytes() } else { 0 });
            bytes as f64 / GIB
        };
        assert_eq!(plan.total_files(), files, "{name}");
        for (quantity, found, expected) in [
            ("model", sum("model_states"), model),
            ("optimizer", sum("optim_states"), optimizer),
            ("largest rank", plan.rank_bytes_max() as f64 / GIB, rank_max),
        ] {
            assert!((found - expected).abs() < 0.05, "{name}, {quantity}: {found} {expected}");
        }
    }
}

#[test]
fn a_model_without_layers_is_one_file_of_rank_zero() {
    let plan = StatePlan {
        layers: Layers::None,
        model_bytes: 1000,
        zero_stage: 0,
        writers: Writers::First,
        ranks: 4,
        ..llama_7b()
    };
    let files = plan.files(0);
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].name.as_str(), files[0].bytes()), ("model_states-0", 1000));
    assert!(plan.files(1).is_empty());
    assert_eq!(plan.total_bytes(), 1000);
}

/// Tensors of layers are split and tensors of the optimizer are not, as for DLIO's megatron.
#[test]
fn given_layers_and_groups_are_split_as_in_dlio() {
    let plan = StatePlan {
        layers: Layers::Alike { count: 40, tensors: vec![100, 200] },
        optimization_groups: vec![1000, 0, 10],
        model_element: StateType::Int8,
        optimizer_element: StateType::Int8,
        ..split(llama_7b(), 2, 4, 1, 1)
    };
    assert_eq!(plan.writers(), 8);
    let first = plan.files(0);
    assert_eq!(first[0].name, "zero_pp_rank_0_mp_rank_0_optim_states");
    assert_eq!(first[0].bytes(), 3 * 1010);
    let layers = first.len() - 1;
    assert_eq!(layers, 10, "no embedding");
    assert_eq!(first[1].name, "layer_1-model_0_model_states");
    assert_eq!(first[1].bytes(), 150);
    assert_eq!(plan.files(7).len() - 1, 10, "neither head nor norm");
    let typed = StatePlan {
        model_element: StateType::Fp16,
        optimizer_element: StateType::Fp64,
        ..plan.clone()
    };
    let bytes = |plan: &StatePlan| plan.files(0).iter().map(StateFile::bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&typed)[..2], [8 * bytes(&plan)[0], 2 * bytes(&plan)[1]]);
    let few = Layers::Alike { count: 2, tensors: vec![16] };
    let unsplit = StatePlan { layers: few, zero_stage: 0, ..split(plan, 1, 1, 1, 0) };
    let tensors = unsplit.files(0)[1].tensors.clone();
    let names: Vec<_> = tensors.into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["1/0", "2/0"]);
}

#[test]
fn every_layer_is_written_once_for_each_tensor_rank() {
    for (pipeline, tensor) in [(1, 1), (3, 2), (4, 1), (7, 8)] {
        let plan = split(llama(10, 64, 128, 16, 100), tensor, pipeline, 2, 1);
        let mut layers: Vec<u64> = (0..plan.ranks)
            .step_by(tensor as usize)
            .take(pipeline as usize)
            .flat_map(|rank| plan.layers_of(coordinates(&plan, rank)))
            .collect();
        layers.sort_unstable();
        assert!(layers.into_iter().eq(0..13), "{pipeline} stages");
    }
}

fn coordinates(plan: &StatePlan, rank: u64) -> RankCoordinates {
    let pipeline = rank / plan.tensor % plan.pipeline;
    RankCoordinates { pipeline, data: 0, model: rank % plan.model_ranks() }
}

#[test]
fn files_of_given_sizes_are_written_by_each_writer() {
    let plan = StatePlan { file_sizes: vec![1024, 7], ranks: 2, ..llama_7b() };
    let names: Vec<_> = plan.files(1).into_iter().map(|file| (file.bytes(), file.name)).collect();
    assert_eq!(names, [(1024, "file_0-1".into()), (7, "file_1-1".into())]);
    assert_eq!((plan.total_bytes(), plan.total_files()), (2062, 4));
}

/// With `Writers::All`, copies of a model write the same state.
#[test]
fn all_ranks_write_if_configured() {
    let plan = StatePlan { data: 3, ranks: 3, zero_stage: 0, writers: Writers::All, ..llama_7b() };
    let rank_bytes = |rank| plan.files(rank).iter().map(StateFile::bytes).sum::<u64>();
    assert_eq!([rank_bytes(1), rank_bytes(2)], [rank_bytes(0); 2]);
    let names: std::collections::BTreeSet<String> =
        (0..3).flat_map(|rank| plan.files(rank)).map(|file| file.name).collect();
    assert_eq!(names.len() as u64, plan.total_files());
    let holders = StatePlan { writers: Writers::Holders, ..plan.clone() };
    assert_eq!(plan.total_bytes(), 3 * holders.total_bytes());
}
