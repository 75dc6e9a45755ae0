//! Help texts of `dlio_benchmark`.

/// `--help`.
pub(super) const HELP: &str = "\
dlio_benchmark of feedrate: the I/O of deep-learning training, in DLIO's words

  dlio_benchmark workload=NAME [--config-dir DIR] [++workload.SECTION.KEY=VALUE ...]
  mpirun -np N dlio_benchmark workload=NAME ...      N emulated accelerators

  dlio_benchmark workload=unet3d_h100 ++workload.workflow.generate_data=True ++workload.workflow.train=False
  dlio_benchmark workload=unet3d_h100 ++workload.reader.batch_size=4

Workloads are those of `feedrate list workloads` and of `DIR/workload/NAME.yaml`, with `--config-path DIR` only the latter; keys those of `feedrate list keys`.
`workload.KEY=VALUE` sets what the workload gives, `+workload.KEY=VALUE` what it does not, `++workload.KEY=VALUE` either, `~workload.KEY` deletes.
Results go to `hydra_log/MODEL/DATE-TIME`, or to `++hydra.run.dir=DIR`.

  --cfg job|hydra|all         print the configuration and end
  --mpi-library PATH          the MPI library to open under a launcher
  --accelerators-per-rank K   emulated accelerators of each process [1]
  --rank-timeout SECONDS      how long a process waits for the others in a step [600]
  DLIO_LOG_LEVEL=LEVEL        debug, info, warning, error or critical [warning]

Exit codes: 0 fine; 1 failed; 255 more steps wanted than the data has; 130 interrupted.";

/// `--help` of `dlio_benchmark_query`.
pub(super) const QUERY_HELP: &str = "\
dlio_benchmark_query of feedrate: print one value of a workload, as DLIO's does

  dlio_benchmark_query workload=NAME ++workload.workflow.query=SECTION.KEY [--config-dir DIR] [++workload.SECTION.KEY=VALUE ...]

  dlio_benchmark_query workload=unet3d_h100 ++workload.workflow.query=reader.batch_size

A key that has no value prints `None`. `feedrate plan NAME` shows the whole workload.";

/// `--hydra-help`.
pub(super) const HYDRA_HELP: &str = "\
Of Hydra's own settings `hydra.run.dir` and `hydra.output_subdir` are heeded, both with `++` or without;
`${now:FORMAT}`, `${workload.KEY}` and `${oc.env:NAME}` are replaced in the first.
Of its flags: --help --hydra-help --version --cfg --info --run --resolve --config-dir --config-path.";
