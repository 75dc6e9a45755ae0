//! The machine: its facts, and its activity during an epoch. Reads `/proc` and `/sys`; what is not there is unknown.

mod mount;
mod read_accounting;
mod limits;
mod network;
mod cpu;
mod facts;
mod proc;
mod busiest;
mod sample;
mod dentries;
mod environment;
mod activity;
mod gpu;
mod timeline;
mod iostat;
mod waited_for;

pub use activity::{MachineActivity, activity};
pub use dentries::{drop_mark, drop_metadata};
pub use environment::{Asker, Disk, Environment, Git, OpenFiles, environment, room_bytes};
pub use facts::{hostname, idle_cores, memory_bytes, raise_open_files, system};
pub use gpu::{Gpus, OpenGpus, nvml_gpus};
pub use iostat::Iostat;
pub use mount::{file_system_of, free_bytes, mount_of, own_locks};
pub use proc::DeviceReads;
pub use read_accounting::counts_device_reads;
pub use sample::Sampler;
pub use timeline::TimelineSampler;
pub use waited_for::waited_for;
