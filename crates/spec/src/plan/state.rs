//! Content of a checkpoint: the files of each rank and the tensors in them. The model's state is split over ranks as in DLIO
//! (`base_checkpointing.py`). Files and tensors are computed from the rank, so that no list of all tensors is stored.

pub use crate::shape::StateType;
use serde::{Deserialize, Serialize};

/// Suffix of the names of files with the optimizer's state.
const OPTIMIZER_SUFFIX: &str = "_optim_states";

/// A model's state and its division among ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatePlan {
    /// Bytes of a state without layers; 0 for none.
    pub model_bytes: u64,
    /// The layers of the model.
    pub layers: Layers,
    /// Sizes of the optimizer's groups. If empty, the optimizer's state is computed from the transformer.
    pub optimization_groups: Vec<u64>,
    /// Bytes of each file of a writing rank. Empty if a model is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_sizes: Vec<u64>,
    /// Element type of the layers.
    pub model_element: StateType,
    /// Element type of the optimizer.
    pub optimizer_element: StateType,
    /// Number of ranks that share each layer.
    pub tensor: u64,
    /// Number of stages that share the layers.
    pub pipeline: u64,
    /// Number of copies of the model, each trained with different data.
    pub data: u64,
    /// State that is divided among copies: with 0 none, with 1 and 2 the optimizer, with 3 also the layers (ZeRO; Rajbhandari et al. 2020).
    pub zero_stage: u32,
    /// The ranks that write.
    pub writers: Writers,
    /// Number of ranks in the run. In mode `subset` it is less than tensor × pipeline × data.
    pub ranks: u64,
    /// Factor on the tensors of layers and optimizer (`--scale`).
    #[serde(default = "full_scale")]
    pub scale: f64,
}

fn full_scale() -> f64 {
    1.0
}

/// The ranks that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writers {
    /// Rank 0.
    First,
    /// Each rank that has state no other rank writes.
    Holders,
    /// All ranks, including those with copies of the same state.
    All,
}

/// The layers of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// No layers are given.
    None,
    /// Identical layers. The sizes of tensors are totals over all tensor-parallel ranks.
    Alike {
        /// Number of layers.
        count: u64,
        /// Elements of one layer's tensors.
        #[serde(alias = "tensor_bytes")]
        tensors: Vec<u64>,
    },
    /// Layers computed from the dimensions of a transformer.
    Transformer(Transformer),
}

/// Dimensions of a decoder-only transformer with gated feed-forward layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformer {
    /// Number of layers.
    pub layers: u64,
    /// Size of the vocabulary.
    pub vocab_size: u64,
    /// Width of the model.
    pub hidden_size: u64,
    /// Width of the feed-forward layers.
    pub ffn_hidden_size: u64,
    /// Width of the keys and of the values.
    pub kv_size: u64,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateFile {
    /// Path below the checkpoint's folder, without extension.
    pub name: String,
    /// Tensors in the order of the file.
    pub tensors: Vec<Tensor>,
}

/// A tensor in a file, stored as a vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tensor {
    /// Path of keys, such as `0/3`.
    pub name: String,
    /// Number of elements.
    pub elements: u64,
    /// Type of the elements.
    pub element: StateType,
}

impl StateFile {
    /// Returns the bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.bytes()))
    }

    /// Whether the file has the optimizer's state.
    pub fn is_optimizer_state(&self) -> bool {
        self.name.ends_with(OPTIMIZER_SUFFIX)
    }
}

impl Tensor {
    /// Returns the bytes of the elements.
    pub fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.element.bytes())
    }
}

/// Coordinates of a rank in the division of the model.
#[derive(Clone, Copy)]
struct RankCoordinates {
    /// Stage of the pipeline.
    pipeline: u64,
    /// Number of the model's copy.
    data: u64,
    /// Number among the ranks that share one copy of the model.
    model: u64,
}

impl Transformer {
    /// Returns the number of parameters of the model.
    pub fn parameters(&self) -> u64 {
        let hidden = self.hidden_size;
        let layer = self.layer_tensors(1, 1).into_iter().fold(0, u64::saturating_add);
        let embedding = self.vocab_size.saturating_mul(hidden);
        layer
            .saturating_mul(self.layers)
            .saturating_add(embedding.saturating_mul(2))
            .saturating_add(hidden)
    }

    /// Elements of the tensors of a layer: norm, attention in and out, norm, feed-forward up and down. Most tensors are
    /// divided among `tensor` ranks, and all tensors among `copies` copies of the model.
    fn layer_tensors(&self, tensor: u64, copies: u64) -> [u64; 6] {
        let hidden = self.hidden_size;
        let attention =
            hidden.saturating_mul(hidden.saturating_add(self.kv_size.saturating_mul(2)));
        let feed_forward = hidden.saturating_mul(self.ffn_hidden_size);
        [
            hidden / copies,
            attention / tensor / copies,
            hidden.saturating_mul(hidden) / tensor / copies,
            hidden / copies,
            feed_forward.saturating_mul(2) / tensor / copies,
            feed_forward / tensor / copies,
        ]
    }
}

impl StatePlan {
    /// Returns the number of ranks that write: the ranks with the lowest numbers.
    pub fn writers(&self) -> u64 {
        match (self.writers, self.zero_stage) {
            (Writers::First, _) => 1,
            // Only the first copy of the model writes, since all copies have the same state.
            (Writers::Holders, 0) => self.model_ranks().min(self.ranks),
            (Writers::Holders | Writers::All, _) => self.ranks,
        }
    }

    /// Returns the files that `rank` writes.
    pub fn files(&self, rank: u64) -> Vec<StateFile> {
        if rank >= self.writers() {
            return Vec::new();
        }
        if !self.file_sizes.is_empty() {
            return self.files_of_given_sizes(rank);
        }
        let model_ranks = self.model_ranks();
        let coordinates = RankCoordinates {
            pipeline: rank / self.tensor % self.pipeline,
            data: rank / model_ranks,
            model: rank % model_ranks,
        };
        let mut files = Vec::new();
        if self.model_bytes > 0 {
            let elements = self.model_bytes;
            let tensor = Tensor { name: "a".into(), elements, element: StateType::Int8 };
            files.push(StateFile { name: format!("model_states-{rank}"), tensors: vec![tensor] });
        }
        let optimizer = self.optimizer_tensors();
        if !optimizer.is_empty() {
            let RankCoordinates { data, model, .. } = coordinates;
            let name = format!("zero_pp_rank_{data}_mp_rank_{model}{OPTIMIZER_SUFFIX}");
            files.push(StateFile { name, tensors: optimizer });
        }
        files.extend(self.layer_files(coordinates));
        self.scale_tensors(&mut files);
        files
    }

    /// Scales the tensors of layers and optimizer. A state without layers keeps its size.
    fn scale_tensors(&self, files: &mut [StateFile]) {
        if self.scale == 1.0 {
            return;
        }
        let first = usize::from(self.model_bytes > 0);
        for tensor in files.iter_mut().skip(first).flat_map(|file| &mut file.tensors) {
            tensor.elements = ((tensor.elements as f64 * self.scale) as u64).max(1);
        }
    }

    /// Returns the files of `rank` if their sizes are given instead of a model.
    fn files_of_given_sizes(&self, rank: u64) -> Vec<StateFile> {
        let mut files = Vec::new();
        for (i, &elements) in self.file_sizes.iter().enumerate() {
            let tensor = Tensor { name: "a".into(), elements, element: StateType::Uint8 };
            files.push(StateFile { name: format!("file_{i}-{rank}"), tensors: vec![tensor] });
        }
        files
    }

    /// Returns the bytes over all ranks.
    pub fn total_bytes(&self) -> u64 {
        self.sum(|file| file.bytes())
    }

    /// Returns the bytes of the optimizer's state over all ranks.
    pub fn optimizer_bytes(&self) -> u64 {
        self.sum(|file| if file.is_optimizer_state() { file.bytes() } else { 0 })
    }

    /// Whether the run has only some of the model's ranks.
    pub fn is_subset(&self) -> bool {
        let model = self.model_ranks();
        self.ranks < model.saturating_mul(self.data)
    }

    /// Returns the number of files over all ranks.
    pub fn total_files(&self) -> u64 {
        self.sum(|_| 1)
    }

    /// Returns the bytes of the rank that writes the most.
    pub fn rank_bytes_max(&self) -> u64 {
        (0..self.writers())
            .map(|rank| self.files(rank).iter().map(StateFile::bytes).sum())
            .max()
            .unwrap_or(0)
    }

    /// Returns the sum of `measure` over all files of all ranks.
    fn sum(&self, measure: impl Fn(&StateFile) -> u64) -> u64 {
        (0..self.writers())
            .flat_map(|rank| self.files(rank))
            .fold(0, |sum: u64, file| sum.saturating_add(measure(&file)))
    }

    /// Returns the number of ranks that share one copy of the model.
    fn model_ranks(&self) -> u64 {
        self.tensor * self.pipeline
    }

    /// Returns the files with the layers of a rank.
    fn layer_files(&self, coordinates: RankCoordinates) -> Vec<StateFile> {
        let divides_layers = self.zero_stage == 3;
        let repeats_layers = self.zero_stage == 0 && self.writers == Writers::All;
        if coordinates.data > 0 && !divides_layers && !repeats_layers {
            return Vec::new();
        }
        let states: Vec<(u64, Vec<Tensor>)> =
            self.layers_of(coordinates).map(|layer| (layer, self.layer_tensors(layer))).collect();
        if states.is_empty() {
            return Vec::new();
        }
        let RankCoordinates { data, model, .. } = coordinates;
        let has_file_per_layer = self.pipeline > 1 && matches!(self.zero_stage, 1 | 2);
        if has_file_per_layer {
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

    /// Returns the numbers of the layers in a rank's pipeline stage. Layers are numbered from 1. A transformer has further layers:
    /// the embedding as layer 0 in the first stage, and the head and its norm at the end of the last stage. Otherwise the sizes of stages
    /// differ by at most one layer.
    fn layers_of(&self, coordinates: RankCoordinates) -> std::ops::Range<u64> {
        let (count, is_transformer) = match &self.layers {
            Layers::None => return 0..0,
            Layers::Alike { count, .. } => (*count, false),
            Layers::Transformer(transformer) => (transformer.layers, true),
        };
        let stage_layers = count / self.pipeline;
        let larger_stages = count % self.pipeline;
        let first_of = |stage: u64| 1 + stage * stage_layers + stage.min(larger_stages);
        let is_last = coordinates.pipeline + 1 == self.pipeline;
        let first = if is_transformer && coordinates.pipeline == 0 {
            0
        } else {
            first_of(coordinates.pipeline)
        };
        let end =
            if is_transformer && is_last { count + 3 } else { first_of(coordinates.pipeline + 1) };
        first..end
    }

    /// Returns the tensors of a layer on each rank that has the layer.
    fn layer_tensors(&self, layer: u64) -> Vec<Tensor> {
        let elements = match &self.layers {
            Layers::None => return Vec::new(),
            Layers::Alike { tensors, .. } => {
                tensors.iter().map(|elements| elements / self.tensor).collect()
            }
            Layers::Transformer(transformer) => {
                let copies = if self.zero_stage == 3 { self.data } else { 1 };
                let Transformer { layers, hidden_size, vocab_size, .. } = *transformer;
                let embedding = hidden_size.saturating_mul(vocab_size) / self.tensor / copies;
                match layer {
                    0 => vec![embedding],
                    layer if layer == layers + 1 => vec![embedding],
                    layer if layer == layers + 2 => vec![hidden_size / copies],
                    _ => transformer.layer_tensors(self.tensor, copies).to_vec(),
                }
            }
        };
        let element = self.model_element;
        let numbered = elements.into_iter().enumerate().filter(|(_, elements)| *elements > 0);
        numbered.map(|(i, elements)| Tensor { name: i.to_string(), elements, element }).collect()
    }

    /// Returns the tensors of the optimizer on each rank that has a part of its state.
    fn optimizer_tensors(&self) -> Vec<Tensor> {
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
        let copies = if self.zero_stage > 0 { self.data } else { 1 };
        let parameters = transformer.parameters() / (self.model_ranks() * copies);
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
