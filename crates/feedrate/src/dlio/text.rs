//! Help texts of `dlio_benchmark` and `dlio_benchmark_query`.

/// `--help`.
pub(super) const HELP: &str = "\
dlio_benchmark of feedrate: reproduces the I/O of deep-learning training, with DLIO's command line

  dlio_benchmark workload=NAME [--config-dir DIR] [++workload.SECTION.KEY=VALUE ...]
  mpirun -np N dlio_benchmark workload=NAME ...      N emulated accelerators

  dlio_benchmark workload=unet3d_h100 ++workload.workflow.generate_data=True ++workload.workflow.train=False
  dlio_benchmark workload=unet3d_h100 ++workload.reader.batch_size=4

Workloads: `feedrate list workloads`, and `DIR/workload/NAME.yaml`; with `--config-path DIR`, only the latter. Keys: `feedrate list keys`.
`workload.KEY=VALUE` changes a key, `+workload.KEY=VALUE` adds one, `++workload.KEY=VALUE` does either, `~workload.KEY` removes one.
Results go to `hydra_log/MODEL/DATE-TIME`, or to `++hydra.run.dir=DIR`.

  --cfg job|hydra|all         print the configuration and end
  --mpi-library PATH          MPI library to load under a launcher
  --accelerators-per-rank K   emulated accelerators per process [1]
  --rank-timeout SECONDS      time to wait for other processes in a step [600]
  DLIO_LOG_LEVEL=LEVEL        debug, info, warning, error or critical [warning]

Exit codes: 0 fine; 1 failed; 255 more steps configured than the data has; 130 interrupted.";

/// Follows advice that names options, which `dlio_benchmark` does not have.
pub(super) const OPTIONS_NOTE: &str =
    "Options named here are those of `feedrate run`, which runs the same workloads.";

/// `--help` of `dlio_benchmark_query`.
pub(super) const QUERY_HELP: &str = "\
dlio_benchmark_query of feedrate: prints one value of a workload

  dlio_benchmark_query workload=NAME ++workload.workflow.query=SECTION.KEY [--config-dir DIR] [++workload.SECTION.KEY=VALUE ...]

  dlio_benchmark_query workload=unet3d_h100 ++workload.workflow.query=reader.batch_size

A key that has no value prints `None`. `feedrate plan NAME` shows the whole workload.";

/// `--hydra-help`.
pub(super) const HYDRA_HELP: &str = "\
Supported settings of Hydra: `hydra.run.dir` and `hydra.output_subdir`, with or without `++`.
In them and in workloads, `${workload.KEY}`, `${oc.env:NAME,DEFAULT}`, `${now:FORMAT}` and OmegaConf's other interpolations are replaced.
Supported flags: --help --hydra-help --version --cfg --resolve --package --info --run --config-dir --config-path.";
