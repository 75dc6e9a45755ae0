//! `tf`: the files of `tf.train.Checkpoint(...).save("NAME.pb")`, as DLIO calls it: the bytes of the tensors, a table with their positions
//! and checksums, and in each folder the name of a checkpoint (TensorFlow's `tensor_bundle.proto`, `trackable_object_graph.proto`).

mod message;
mod table;
#[cfg(test)]
mod tests;

use super::{Checkpoint, CheckpointSink, NamedContent};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::{StateFile, StateType, Tensor};
use message::Message;
use std::collections::{BTreeMap, VecDeque};
use std::io;

static MEMBER: Member = Member {
    name: "tf",
    summary: "as tf.train.Checkpoint writes it; tf.train.Checkpoint restores it",
    abilities: &[],
};

/// The counter of saves that TensorFlow adds to the state.
const COUNTER: &str = "save_counter";
const GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

// Values of TensorFlow's `DataType`.
const STRING: u64 = 7;
const INT64: u64 = 9;

/// The `tf` format.
#[derive(Debug)]
pub(super) struct Tf;

impl Checkpoint for Tf {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn file_names(&self, state: &str) -> Vec<String> {
        let prefix = prefix(state);
        vec![format!("{prefix}.data-00000-of-00001"), format!("{prefix}.index")]
    }

    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<Vec<Vec<u8>>> {
        let mut bundle = Bundle::default();
        let variables = variables(state);
        let Graph { bytes: graph, variables } = object_graph(&variables);
        for Variable { path, tensor } in variables {
            let key = variable_key(path);
            if let Some((number, tensor)) = *tensor {
                let crc = sink.put_tensor_crc32c(number, tensor)?;
                bundle.add(key, data_type(tensor.element), &[tensor.elements], tensor.bytes(), crc);
            } else {
                let counter = 1_u64.to_le_bytes();
                sink.put(&counter)?;
                bundle.add(key, INT64, &[], counter.len() as u64, crc32c::crc32c(&counter));
            }
        }
        let (head, graph_crc) = string_head(&graph);
        sink.put(&head)?;
        sink.put(&graph)?;
        bundle.add(GRAPH_KEY.into(), STRING, &[], (head.len() + graph.len()) as u64, graph_crc);
        Ok(vec![bundle.index()])
    }

    fn overview(&self, state: &str) -> Option<NamedContent> {
        let prefix = prefix(state);
        let content = format!(
            "model_checkpoint_path: \"{prefix}\"\nall_model_checkpoint_paths: \"{prefix}\"\n"
        );
        Some(NamedContent { name: "checkpoint".into(), content: content.into_bytes() })
    }
}

/// Returns the name by which TensorFlow restores a state. `-1` is the value of the counter.
fn prefix(state: &str) -> String {
    format!("{state}.pb-1")
}

fn variable_key(path: &[&str]) -> String {
    let names: Vec<String> = path.iter().map(|name| name.replace('.', "..")).collect();
    format!("{}/.ATTRIBUTES/VARIABLE_VALUE", names.join("/"))
}

fn data_type(element: StateType) -> u64 {
    match element {
        StateType::Fp32 => 1,
        StateType::Fp64 => 2,
        StateType::Uint8 => 4,
        StateType::Int8 => 6,
        StateType::Bf16 => 14,
        StateType::Fp16 => 19,
    }
}

/// A checksum as TensorFlow stores it, so that data with checksums has no weak checksum.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The positions of the values in the data file, by key.
#[derive(Default)]
struct Bundle {
    entries: BTreeMap<String, Vec<u8>>,
    /// Length of the data file.
    end: u64,
}

impl Bundle {
    /// Adds the value of `bytes` bytes at the end of the data file.
    fn add(&mut self, key: String, data_type: u64, shape: &[u64], bytes: u64, crc: u32) {
        let mut dimensions = Message::default();
        for size in shape {
            dimensions.add_bytes(2, &Message::default().with_number(1, *size).bytes);
        }
        let mut entry = Message::default().with_number(1, data_type);
        entry.add_bytes(2, &dimensions.bytes);
        let mut entry = entry.with_number(4, self.end).with_number(5, bytes);
        entry.add_fixed32(6, masked(crc));
        self.entries.insert(key, entry.bytes);
        self.end += bytes;
    }

    /// Returns the index file.
    fn index(mut self) -> Vec<u8> {
        // One file of data, little endian, and the producer of the format.
        let mut header = Message::default().with_number(1, 1);
        header.add_bytes(3, &Message::default().with_number(1, 1).bytes);
        self.entries.insert(String::new(), header.bytes);
        table::table(&self.entries)
    }
}

/// Returns the bytes before the only string of a string tensor, and the checksum of both.
fn string_head(string: &[u8]) -> (Vec<u8>, u32) {
    let lengths_crc = crc32c::crc32c(&(string.len() as u32).to_le_bytes());
    let stored_crc = masked(lengths_crc).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(lengths_crc, &stored_crc), string);
    let mut head = Vec::new();
    message::push_varint(&mut head, string.len() as u64);
    head.extend(stored_crc);
    (head, crc)
}

/// A value of a state.
struct Variable<'s> {
    /// The parts of its name.
    path: Vec<&'s str>,
    /// The tensor with its number in the state; `None` for the counter of saves.
    tensor: Option<(u64, &'s Tensor)>,
}

/// Returns the values of a state. TensorFlow sorts the state by key, but not the dictionaries in it.
fn variables(state: &StateFile) -> Vec<Variable<'_>> {
    let numbered = (0..).zip(&state.tensors);
    let mut variables: Vec<Variable> = numbered
        .map(|(number, tensor)| Variable {
            path: tensor.name.split('/').collect(),
            tensor: Some((number, tensor)),
        })
        .collect();
    variables.sort_by_key(|variable| variable.path[0]);
    variables.push(Variable { path: vec![COUNTER], tensor: None });
    variables
}

/// The graph of nested dictionaries whose keys are the parts of names.
struct Graph<'v> {
    /// The graph as TensorFlow stores it.
    bytes: Vec<u8>,
    /// The values in the order of their nodes, which is that of the data file.
    variables: Vec<&'v Variable<'v>>,
}

/// Returns the graph of the values of a state. The nodes are in breadth-first order.
fn object_graph<'v>(variables: &'v [Variable<'v>]) -> Graph<'v> {
    let mut graph = Message::default();
    let mut ordered = Vec::new();
    let mut nodes = VecDeque::from([(variables, 0)]);
    let mut next = 1;
    while let Some((group, depth)) = nodes.pop_front() {
        let mut node = Message::default();
        if group[0].path.len() == depth {
            node.add_bytes(2, &attribute(&group[0].path));
            ordered.push(&group[0]);
        } else {
            for child in group.chunk_by(|a, b| a.path.get(depth) == b.path.get(depth)) {
                let mut reference = Message::default().with_number(1, next);
                reference.add_bytes(2, child[0].path[depth].as_bytes());
                node.add_bytes(1, &reference.bytes);
                nodes.push_back((child, depth + 1));
                next += 1;
            }
        }
        // The node has values in this checkpoint.
        node.add_bytes(5, &Message::default().with_number(1, 1).bytes);
        graph.add_bytes(1, &node.bytes);
    }
    Graph { bytes: graph.bytes, variables: ordered }
}

/// Returns the attribute that refers to the value of a variable.
fn attribute(path: &[&str]) -> Vec<u8> {
    let full_name = if path == [COUNTER] { COUNTER } else { "Variable" };
    let mut attribute = Message::default();
    attribute.add_bytes(1, b"VARIABLE_VALUE");
    attribute.add_bytes(2, full_name.as_bytes());
    attribute.add_bytes(3, variable_key(path).as_bytes());
    attribute.bytes
}
