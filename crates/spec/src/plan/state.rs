//! The contents of a checkpoint: the files that each rank writes and the tensors in them, as DLIO splits a model's
//! state over ranks (`base_checkpointing.py`). Functions of the rank: no list of all ranks' tensors is ever kept.

pub use crate::shape::StateType;
use serde::{Deserialize, Serialize};

/// Names of files with the optimizer's state end so.
const OPTIMIZER_SUFFIX: &str = "_optim_states";

/// A model's state, and how it is split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatePlan {
    /// Bytes of a state that is not given layer by layer; 0 is none.
    pub model_bytes: u64,
    /// The layers, where they are given.
    pub layers: Layers,
    /// The optimizer's groups where they are given; else they follow from the transformer.
    pub optimization_groups: Vec<u64>,
    /// Bytes of each file that a writer writes, where files of given sizes are written instead of a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_sizes: Vec<u64>,
    /// Element type of the layers.
    pub model_element: StateType,
    /// Element type of the optimizer.
    pub optimizer_element: StateType,
    /// Ranks that share each layer.
    pub tensor: u64,
    /// Ranks that share the layers.
    pub pipeline: u64,
    /// Copies of the model, each with data of its own.
    pub data: u64,
    /// State that copies share: 0 nothing, 1 and 2 the optimizer, 3 the layers too (ZeRO; Rajbhandari et al. 2020).
    pub zero_stage: u32,
    /// Who writes.
    pub writers: Writers,
    /// Ranks there are; in mode `subset` fewer than tensor × pipeline × data.
    pub ranks: u64,
    /// `--scale`: share of each tensor of layers and optimizer.
    #[serde(default = "whole")]
    pub scale: f64,
}

fn whole() -> f64 {
    1.0
}

/// Who writes, of the ranks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writers {
    /// Rank 0.
    First,
    /// Each that holds what no other writes.
    Holders,
    /// Each, also what others hold too.
    All,
}

/// The layers of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// Not given.
    None,
    /// Identical layers; their tensors over all tensor-parallel ranks.
    Alike {
        /// Number of layers.
        count: u64,
        /// Elements of one layer's tensors.
        #[serde(alias = "tensor_bytes")]
        tensors: Vec<u64>,
    },
    /// They follow from the model's dimensions.
    Transformer(Transformer),
}

/// Dimensions of a decoder-only transformer with gated feed-forward layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformer {
    /// Layers.
    pub layers: u64,
    /// Words.
    pub vocab_size: u64,
    /// Width.
    pub hidden_size: u64,
    /// Width of the feed-forward layers.
    pub ffn_hidden_size: u64,
    /// Width of keys, and of values.
    pub kv_size: u64,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateFile {
    /// Without extension, below the checkpoint's folder.
    pub name: String,
    /// In the order of the file.
    pub tensors: Vec<Tensor>,
}

/// A vector in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tensor {
    /// Path of keys: `0/3`.
    pub name: String,
    /// Number of elements.
    pub elements: u64,
    /// Type of each.
    pub element: StateType,
}

impl StateFile {
    /// Bytes of its tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.bytes()))
    }

    /// Whether it has the optimizer's state.
    pub fn is_optimizer_state(&self) -> bool {
        self.name.ends_with(OPTIMIZER_SUFFIX)
    }
}

impl Tensor {
    /// Bytes of its elements.
    pub fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.element.bytes())
    }
}

/// Where a rank is in the model.
#[derive(Clone, Copy)]
struct RankPlace {
    pipeline: u64,
    data: u64,
    /// Among the ranks that share one copy of the model.
    model: u64,
}

impl Transformer {
    /// Parameters of the whole model.
    pub fn parameters(&self) -> u64 {
        let (h, vocab) = (self.hidden_size, self.vocab_size);
        let layer = self.layer(1, 1).into_iter().fold(0, u64::saturating_add);
        let embedding = vocab.saturating_mul(h);
        layer
            .saturating_mul(self.layers)
            .saturating_add(embedding.saturating_mul(2))
            .saturating_add(h)
    }

    /// Elements of the tensors of one of the layers: norm, attention in and out, norm, feed-forward up and down.
    fn layer(&self, tensor: u64, shared: u64) -> [u64; 6] {
        let (h, ffn) = (self.hidden_size, self.ffn_hidden_size);
        let attention = h.saturating_mul(h.saturating_add(self.kv_size.saturating_mul(2)));
        let feed_forward = h.saturating_mul(ffn);
        [
            h / shared,
            attention / tensor / shared,
            h.saturating_mul(h) / tensor / shared,
            h / shared,
            feed_forward.saturating_mul(2) / tensor / shared,
            feed_forward / tensor / shared,
        ]
    }
}

impl StatePlan {
    /// Ranks that write.
    pub fn writers(&self) -> u64 {
        match (self.writers, self.zero_stage) {
            (Writers::First, _) => 1,
            // Copies hold the same: the first writes.
            (Writers::Holders, 0) => self.model_ranks().min(self.ranks),
            (Writers::Holders | Writers::All, _) => self.ranks,
        }
    }

    /// Files that `rank` writes.
    pub fn files(&self, rank: u64) -> Vec<StateFile> {
        if rank >= self.writers() {
            return Vec::new();
        }
        if !self.file_sizes.is_empty() {
            return self.told_files(rank);
        }
        let model_ranks = self.model_ranks();
        let place = RankPlace {
            pipeline: rank / self.tensor % self.pipeline,
            data: rank / model_ranks,
            model: rank % model_ranks,
        };
        let mut files = Vec::new();
        if self.model_bytes > 0 {
            let (name, elements) = ("a".into(), self.model_bytes);
            let tensors = vec![Tensor { name, elements, element: StateType::Int8 }];
            files.push(StateFile { name: format!("model_states-{rank}"), tensors });
        }
        let optimizer = self.optimizer();
        if !optimizer.is_empty() {
            let (data, model) = (place.data, place.model);
            let name = format!("zero_pp_rank_{data}_mp_rank_{model}{OPTIMIZER_SUFFIX}");
            files.push(StateFile { name, tensors: optimizer });
        }
        files.extend(self.layer_files(place));
        self.shrink(&mut files);
        files
    }

    /// Scales layers and optimizer; a state given as one number of bytes stays as it is.
    fn shrink(&self, files: &mut [StateFile]) {
        if self.scale == 1.0 {
            return;
        }
        let first = usize::from(self.model_bytes > 0);
        for tensor in files.iter_mut().skip(first).flat_map(|file| &mut file.tensors) {
            tensor.elements = ((tensor.elements as f64 * self.scale) as u64).max(1);
        }
    }

    fn told_files(&self, rank: u64) -> Vec<StateFile> {
        let mut files = Vec::new();
        for (i, &elements) in self.file_sizes.iter().enumerate() {
            let tensor = Tensor { name: "a".into(), elements, element: StateType::Uint8 };
            files.push(StateFile { name: format!("file_{i}-{rank}"), tensors: vec![tensor] });
        }
        files
    }

    /// Bytes over all ranks.
    pub fn total_bytes(&self) -> u64 {
        self.sum(|file| file.bytes())
    }

    /// Bytes of the optimizer over all ranks.
    pub fn optimizer_bytes(&self) -> u64 {
        self.sum(|file| if file.is_optimizer_state() { file.bytes() } else { 0 })
    }

    /// Whether only some of the model's ranks are there.
    pub fn is_subset(&self) -> bool {
        let model = self.model_ranks();
        self.ranks < model.saturating_mul(self.data)
    }

    /// Files over all ranks.
    pub fn total_files(&self) -> u64 {
        self.sum(|_| 1)
    }

    /// Bytes of the rank that writes most.
    pub fn rank_bytes_max(&self) -> u64 {
        (0..self.writers())
            .map(|rank| self.files(rank).iter().map(StateFile::bytes).sum())
            .max()
            .unwrap_or(0)
    }

    fn sum(&self, figure: impl Fn(&StateFile) -> u64) -> u64 {
        (0..self.writers())
            .flat_map(|rank| self.files(rank))
            .fold(0, |sum: u64, file| sum.saturating_add(figure(&file)))
    }

    /// Ranks that share one copy of the model.
    fn model_ranks(&self) -> u64 {
        self.tensor * self.pipeline
    }

    fn layer_files(&self, place: RankPlace) -> Vec<StateFile> {
        let shares_layers = self.zero_stage == 3;
        let repeats_layers = self.zero_stage == 0 && self.writers == Writers::All;
        if place.data > 0 && !shares_layers && !repeats_layers {
            return Vec::new();
        }
        let states: Vec<(u64, Vec<Tensor>)> =
            self.layers_of(place).map(|layer| (layer, self.layer(layer))).collect();
        if states.is_empty() {
            return Vec::new();
        }
        let (data, model) = (place.data, place.model);
        let by_layer = self.pipeline > 1 && matches!(self.zero_stage, 1 | 2);
        if by_layer {
            return states
                .into_iter()
                .map(|(layer, tensors)| StateFile {
                    name: format!("layer_{layer}-model_{model}_model_states"),
                    tensors,
                })
                .collect();
        }
        let name = match self.zero_stage {
            1 | 2 => format!("model_{model}_model_states"),
            _ => format!("zero_pp_rank_{data}_mp_rank_{model}_model_states"),
        };
        let tensors = states.into_iter().flat_map(|(layer, tensors)| {
            tensors
                .into_iter()
                .map(move |tensor| Tensor { name: format!("{layer}/{}", tensor.name), ..tensor })
        });
        vec![StateFile { name, tensors: tensors.collect() }]
    }

    /// Layers of a rank's stage: the layers proper are numbered from 1; of a transformer 0 is the embedding, which the first
    /// stage has, and behind the last come the head and its norm, which the last stage has. Stages differ by one layer at most.
    fn layers_of(&self, place: RankPlace) -> std::ops::Range<u64> {
        let (count, is_transformer) = match &self.layers {
            Layers::None => return 0..0,
            Layers::Alike { count, .. } => (*count, false),
            Layers::Transformer(transformer) => (transformer.layers, true),
        };
        let (each, more) = (count / self.pipeline, count % self.pipeline);
        let first_of = |stage: u64| 1 + stage * each + stage.min(more);
        let is_last = place.pipeline + 1 == self.pipeline;
        let first =
            if is_transformer && place.pipeline == 0 { 0 } else { first_of(place.pipeline) };
        let end = if is_transformer && is_last { count + 3 } else { first_of(place.pipeline + 1) };
        first..end
    }

    fn layer(&self, layer: u64) -> Vec<Tensor> {
        let elements = match &self.layers {
            Layers::None => return Vec::new(),
            Layers::Alike { tensors, .. } => {
                tensors.iter().map(|elements| elements / self.tensor).collect()
            }
            Layers::Transformer(t) => {
                let shared = if self.zero_stage == 3 { self.data } else { 1 };
                let embedding = t.hidden_size.saturating_mul(t.vocab_size) / self.tensor / shared;
                match layer {
                    0 => vec![embedding],
                    layer if layer == t.layers + 1 => vec![embedding],
                    layer if layer == t.layers + 2 => vec![t.hidden_size / shared],
                    _ => t.layer(self.tensor, shared).to_vec(),
                }
            }
        };
        let element = self.model_element;
        let numbered = elements.into_iter().enumerate().filter(|(_, elements)| *elements > 0);
        numbered.map(|(i, elements)| Tensor { name: i.to_string(), elements, element }).collect()
    }

    fn optimizer(&self) -> Vec<Tensor> {
        let element = self.optimizer_element;
        if !self.optimization_groups.is_empty() {
            let groups = self.optimization_groups.iter().enumerate().filter(|(_, n)| **n > 0);
            let mut tensors: Vec<Tensor> = groups
                .flat_map(|(i, &elements)| {
                    ["a", "b"].map(|half| Tensor { name: format!("{i}/{half}"), elements, element })
                })
                .collect();
            let elements =
                self.optimization_groups.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
            tensors.push(Tensor { name: "combined".into(), elements, element });
            return tensors;
        }
        let Layers::Transformer(transformer) = &self.layers else { return Vec::new() };
        let shared = if self.zero_stage > 0 { self.data } else { 1 };
        let parameters = transformer.parameters() / (self.model_ranks() * shared);
        if parameters == 0 {
            return Vec::new();
        }
        let hidden = transformer.hidden_size.saturating_mul(5);
        (0..6)
            .map(|i| Tensor {
                name: i.to_string(),
                elements: if i % 2 == 0 { parameters } else { hidden },
                element,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
