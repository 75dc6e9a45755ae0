//! Contract tests of all launchers, and the text of their scripts.

use super::*;
use std::io::Write;
use std::process::{Command, Stdio};

fn scripts(
    launch: &str,
    accelerators: u32,
    options: &LaunchSettings,
) -> Result<Scripts, LaunchError> {
    let arguments = ["run", "unet3d", "++workload.train.epochs=2", "--data", "/my data"];
    (find(launch).unwrap().scripts)(&LaunchJob {
        program: Path::new("/opt/feedrate"),
        arguments: &arguments.map(String::from),
        accelerators,
        name: "study-4_batch_size_1",
        folder: Path::new("/results/4"),
        stdout: Path::new("/results/4/stdout.log"),
        stderr: Path::new("/results/4/100%.log"),
        options,
        variable: &|name| (name == "SLURM_JOB_ID").then(|| "7".into()),
    })
}

fn options(launcher: &[&str], accelerators_per_rank: Option<u32>) -> LaunchSettings {
    LaunchSettings {
        prologue: vec!["module load openmpi/4.1".into()],
        arguments: launcher.iter().map(|word| (*word).into()).collect(),
        accelerators_per_rank,
        ..LaunchSettings::default()
    }
}

/// Asserts that shellcheck has no complaints.
#[track_caller]
fn assert_valid_bash(script: &str) {
    let mut check =
        Command::new("shellcheck").arg("-").stdin(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!("cannot start `shellcheck`: {error}\n  hint: run `cargo xtask setup`")
        });
    check.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(check.wait().unwrap().success(), "{script}");
}

#[test]
fn every_launcher_has_a_unique_name_and_writes_sound_scripts() {
    for (i, launch) in LAUNCHES.iter().enumerate() {
        let name = launch.member.name;
        assert_eq!(LAUNCHES.iter().position(|other| other.member.name == name), Some(i));
        assert!(launch.member.summary.ends_with('.'));
        let scripts = scripts(name, 4, &options(&[], None)).unwrap();
        let files = scripts.files.iter().map(|(_, text)| text);
        let all: Vec<&String> =
            files.chain([&scripts.run]).chain(scripts.cleanup.as_ref()).collect();
        for script in &all {
            assert_valid_bash(script);
            assert!(script.contains("set -euo pipefail\n"), "{script}");
        }
        let run = "run unet3d ++workload.train.epochs=2 --data '/my data' --accelerators 4\n";
        assert!(all.iter().any(|script| script.ends_with(run)), "{name}");
        assert!(all.iter().any(|script| script.contains("module load openmpi/4.1\n")), "{name}");
    }
}

#[test]
fn local_is_one_process() {
    let scripts = scripts("local", 8, &options(&[], None)).unwrap();
    insta::assert_snapshot!(scripts.run, @"
    #!/usr/bin/env bash
    set -euo pipefail
    # Modules may use variables that are not set.
    set +u
    module load openmpi/4.1
    set -u
    exec /opt/feedrate run unet3d ++workload.train.epochs=2 --data '/my data' --accelerators 8
    ");
}

#[test]
fn unsupported_runs_and_options_are_refused() {
    let check = |refused: Result<Scripts, LaunchError>, words: &str| {
        let error = refused.unwrap_err();
        assert!(error.message.contains(words), "{error}");
        assert!(!error.hint.is_empty());
    };
    check(scripts("local", 8, &options(&["--oversubscribe"], None)), "one process");
    check(scripts("local", 8, &options(&[], Some(2))), "one process");
    let none = LaunchSettings::default();
    let job = LaunchJob {
        program: Path::new("feedrate"),
        arguments: &[],
        accelerators: 1,
        name: "a",
        folder: Path::new("/my results"),
        stdout: Path::new("o"),
        stderr: Path::new("e"),
        options: &none,
        variable: &|_| None,
    };
    check((find("srun").unwrap().scripts)(&job), "no job is active");
    check((find("sbatch").unwrap().scripts)(&job), "`/my results/job.sh` has a blank");
}

#[test]
fn launchers_start_enough_processes_for_the_accelerators() {
    let check = |launch: &str, accelerators, per_rank, expected: &str| {
        let scripts = scripts(launch, accelerators, &options(&["--x=a b"], per_rank)).unwrap();
        let last = scripts.run.lines().last().unwrap();
        assert!(last.starts_with(expected), "{last}");
    };
    check("mpirun", 8, None, "exec \"${MPIRUN:-mpirun}\" -n 8 '--x=a b' /opt/feedrate run unet3d ");
    check("mpirun", 8, Some(3), "exec \"${MPIRUN:-mpirun}\" -n 3 ");
    let mpi = "--mpi=\"${SLURM_MPI_TYPE:-pmix}\"";
    let name = "--job-name=study-4_batch_size_1 '--x=a b' /opt/feedrate run";
    check("srun", 8, Some(4), &format!("exec srun --ntasks=2 {mpi} {name}"));
    check("srun", 1, None, &format!("exec srun --ntasks=1 {name}"));
}

#[test]
fn a_batch_job_writes_to_the_files_of_the_run() {
    let scripts = scripts("sbatch", 2, &options(&["--time=10"], None)).unwrap();
    insta::assert_snapshot!(scripts.run, @"
    #!/usr/bin/env bash
    set -euo pipefail
    exec sbatch --wait --no-requeue --job-name=study-4_batch_size_1 --ntasks=2 --output=/results/4/stdout.log --error=/results/4/100%%.log --open-mode=append --time=10 /results/4/job.sh
    ");
    let [(name, job)] = scripts.files.as_slice() else { panic!() };
    assert_eq!(*name, "job.sh");
    assert!(job.contains("exec srun --ntasks=2 --mpi="), "{job}");
    insta::assert_snapshot!(scripts.cleanup.unwrap(), @r#"
    #!/usr/bin/env bash
    set -euo pipefail
    listed() {
        squeue --noheader --user="$(id -un)" --name=study-4_batch_size_1 --format='%i %o' | awk -v file=/results/4/job.sh '$2 == file { print $1 }'
    }
    while ids=$(listed) && [ -n "$ids" ]; do
        # A job that is already ending makes scancel fail.
        xargs scancel <<<"$ids" || true
        sleep 1
    done
    "#);
}
