//! Reads facts about the machine and its activity during an epoch from `/proc` and `/sys`. Values that cannot be read are unknown.

mod proc;
mod mount;
mod limits;
mod network;
mod cpu;
mod facts;
mod busiest;
mod sample;
mod dentries;
mod environment;
mod activity;
mod gpu;
mod timeline;
mod iostat;
mod blocked_files;

pub use activity::{MachineActivity, activity};
pub use blocked_files::blocked_files;
pub use dentries::{drop_mark, drop_metadata};
pub use environment::{
    Disk, Environment, EnvironmentPaths, Git, OpenFiles, available_bytes, environment,
};
pub use facts::{hostname, idle_cores, memory_bytes, raise_open_files, system};
pub use gpu::{Gpus, OpenGpus, describe_gpus, nvml_gpus};
pub use iostat::Iostat;
pub use mount::{device_reads_of, free_bytes, local_lock_option, mount_of};
pub use proc::DeviceReads;
pub use sample::Sampler;
pub use timeline::TimelineSampler;
