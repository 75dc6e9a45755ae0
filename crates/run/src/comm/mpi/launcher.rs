//! Detects from environment variables which launcher started this process, and as which rank. The environment is an argument.

use std::fmt;

/// A launcher's description of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchedRank {
    /// Rank of this process, from 0.
    pub rank: u32,
    /// Number of processes, if the launcher reports it.
    pub size: Option<u32>,
    /// Number of processes on this machine, if the launcher reports it.
    pub local_size: Option<u32>,
    /// Kind of the launcher.
    pub launcher: MpiLauncher,
}

/// Kinds of launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiLauncher {
    /// `mpirun` of Open MPI, based on ORTE or PRRTE.
    OpenMpi,
    /// `mpirun` of MPICH and its family.
    Hydra,
    /// `srun --mpi=pmi2`, or another step with PMI.
    SlurmPmi,
    /// `srun --mpi=pmix`.
    SlurmPmix,
    /// `srun` without an MPI plug-in.
    Slurm,
    /// Another launcher with PMIx.
    Pmix,
}

impl fmt::Display for MpiLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MpiLauncher::OpenMpi => "Open MPI's mpirun",
            MpiLauncher::Hydra => "MPICH's mpirun",
            MpiLauncher::SlurmPmi => "srun with PMI",
            MpiLauncher::SlurmPmix => "srun with PMIx",
            MpiLauncher::Slurm => "srun",
            MpiLauncher::Pmix => "a launcher with PMIx",
        })
    }
}

/// First of the step numbers that Slurm uses for its batch, interactive and other internal steps.
const SLURM_STEPS_END: u32 = 0xffff_fff0;

/// Detects the launcher from environment variables. `variable` returns the value of a variable. Within a Slurm job, variables of an `mpirun` take
/// precedence, since `mpirun` may itself be started as a Slurm step.
pub fn detect_launcher(variable: impl Fn(&str) -> Option<String>) -> Option<LaunchedRank> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    // Open MPI; Hydra of MPICH and Intel; MVAPICH.
    let local_size = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"]
        .into_iter()
        .find_map(number);
    let is_step = number("SLURM_STEP_ID").is_some_and(|id| id < SLURM_STEPS_END);
    let tasks = number("SLURM_STEP_NUM_TASKS").or_else(|| number("SLURM_NTASKS"));
    let step = if is_step { number("SLURM_PROCID").zip(tasks) } else { None };
    let (rank, size, launcher) = if let Some((rank, size)) =
        number("OMPI_COMM_WORLD_RANK").zip(number("OMPI_COMM_WORLD_SIZE"))
    {
        (rank, Some(size), MpiLauncher::OpenMpi)
    } else if let Some((rank, size)) = number("PMI_RANK").zip(number("PMI_SIZE")) {
        // Hydra may start its proxies by srun. Slurm is the launcher only if its step has the same rank and size as PMI.
        let is_step = step == Some((rank, size)) && variable("MPI_LOCALNRANKS").is_none();
        (rank, Some(size), if is_step { MpiLauncher::SlurmPmi } else { MpiLauncher::Hydra })
    } else if let Some(rank) = number("PMIX_RANK") {
        match step {
            Some((step_rank, size)) if step_rank == rank => {
                (rank, Some(size), MpiLauncher::SlurmPmix)
            }
            _ => (rank, None, MpiLauncher::Pmix),
        }
    } else {
        let (rank, size) = step?;
        (rank, Some(size), MpiLauncher::Slurm)
    };
    Some(LaunchedRank { rank, size, local_size, launcher })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_local_ranks_is_read() {
        let local_size = |variable: &str| {
            parse(&format!("PMI_RANK=1 PMI_SIZE=4 {variable}")).unwrap().local_size
        };
        assert_eq!(local_size("MPI_LOCALNRANKS=3"), Some(3));
        assert_eq!(local_size("OMPI_COMM_WORLD_LOCAL_SIZE=2"), Some(2));
        assert_eq!(local_size("OMPI_COMM_WORLD_LOCAL_SIZE=x"), None);
        assert_eq!(local_size(""), None);
    }

    fn parse(environment: &str) -> Option<LaunchedRank> {
        detect_launcher(|name| {
            let mut pairs = environment.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        })
    }

    #[test]
    fn launchers_are_recognised_by_their_variables() {
        let check = |environment: &str, expected: Option<(u32, Option<u32>, MpiLauncher)>| {
            let found = parse(environment).map(|found| (found.rank, found.size, found.launcher));
            assert_eq!(found, expected, "{environment}");
        };
        check("PATH=/bin", None);
        check(
            "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=2 PMIX_NAMESPACE=prterun-a-1@1",
            Some((2, Some(4), MpiLauncher::OpenMpi)),
        );
        check(
            "PMI_RANK=3 PMI_SIZE=4 PMI_FD=9 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4",
            Some((3, Some(4), MpiLauncher::Hydra)),
        );
        let srun = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1";
        check(srun, Some((1, Some(2), MpiLauncher::Slurm)));
        check(&format!("{srun} PMI_RANK=1 PMI_SIZE=2"), Some((1, Some(2), MpiLauncher::SlurmPmi)));
        check(&format!("{srun} PMIX_RANK=1"), Some((1, Some(2), MpiLauncher::SlurmPmix)));
        check("PMIX_RANK=5 PMIX_NAMESPACE=x", Some((5, None, MpiLauncher::Pmix)));
    }

    #[test]
    fn an_mpirun_within_slurm_takes_precedence() {
        let job = "SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2";
        let hydra = parse(&format!("{job} PMI_RANK=6 PMI_SIZE=8 MPI_LOCALNRANKS=4")).unwrap();
        assert_eq!((hydra.rank, hydra.size, hydra.launcher), (6, Some(8), MpiLauncher::Hydra));
        let open_mpi =
            parse(&format!("{job} OMPI_COMM_WORLD_RANK=6 OMPI_COMM_WORLD_SIZE=8")).unwrap();
        assert_eq!((open_mpi.rank, open_mpi.launcher), (6, MpiLauncher::OpenMpi));
    }

    #[test]
    fn the_script_of_a_batch_job_is_not_a_task() {
        let batch = "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0";
        assert_eq!(parse(batch), None);
        // The interactive step of salloc, and the batch step.
        assert_eq!(parse(&format!("{batch} SLURM_STEP_ID=4294967290")), None);
        assert_eq!(parse(&format!("{batch} SLURM_STEP_ID=4294967291")), None);
        assert_eq!(parse(&format!("{batch} SLURM_STEP_ID=batch")), None);
    }

    #[test]
    fn the_size_of_a_step_is_its_own_number_of_tasks() {
        let step = "SLURM_STEP_ID=2 SLURM_PROCID=1 SLURM_NTASKS=64 SLURM_STEP_NUM_TASKS=2";
        assert_eq!(parse(step).unwrap().size, Some(2));
    }
}
