//! Reads machine settings and load before a run that the record of the run does not contain.

use super::facts::{colon_pairs, memory_in};
use super::mount::{block_device, mount_of, read_line};
use feedrate_measure::file_system;
use feedrate_measure::record::file::{read_folder, read_text_bounded};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of references from `HEAD` to a commit; git has the same limit.
const GIT_REFERENCES_MAX: usize = 5;

/// The environment of a run. Values that do not exist or may not be read are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Name and version of the program.
    pub program: String,
    /// Time since the machine was started.
    pub uptime_s: Option<f64>,
    /// Processes that ran or waited for a disk, averaged over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Frequency governors of the processors, without duplicates.
    pub cpu_governors: Option<Vec<String>>,
    /// CPU frequency driver.
    pub cpu_frequency_driver: Option<String>,
    /// Whether processors may temporarily exceed their base frequency.
    pub cpu_boost: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
    /// Memory that is available without swapping.
    pub memory_available_bytes: Option<u64>,
    /// Written data that is not on a device yet.
    pub memory_dirty_bytes: Option<u64>,
    /// Size of the swap space.
    pub swap_total_bytes: Option<u64>,
    /// Free swap space.
    pub swap_free_bytes: Option<u64>,
    /// `vm.swappiness`.
    pub swappiness: Option<u32>,
    /// Memory limit of this process's control group.
    pub cgroup_memory_max_bytes: Option<u64>,
    /// CPU quota of the control group, as a number of processors.
    pub cgroup_cpus_max: Option<f64>,
    /// Kind of the container that this process runs in, if it is known.
    pub container: Option<String>,
    /// Limits on the number of open files of a process.
    pub open_files: OpenFiles,
    /// The disk that contains the dataset.
    pub data_disk: Option<Disk>,
    /// The disk that contains the results.
    pub results_disk: Option<Disk>,
    /// Commit of the study's folder, if it is in a git repository.
    pub git: Option<Git>,
}

/// Limits on the number of open files; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFiles {
    /// The limit in effect.
    pub soft: Option<u64>,
    /// The value to which a process may raise the soft limit. Each run does this.
    pub hard: Option<u64>,
}

/// Settings of a disk's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Kernel name of the disk: `nvme0n1`.
    pub name: String,
    /// I/O scheduler.
    pub scheduler: Option<String>,
    /// Read-ahead of the kernel in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Capacity of the queue in requests.
    pub requests: Option<u64>,
}

/// The commit of a work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// Hash of the commit.
    pub commit: String,
}

/// The inputs of [`environment`]: the program, and the paths of a study.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentPaths<'a> {
    /// Name and version of the program.
    pub program: &'a str,
    /// Folder of the dataset.
    pub data: Option<&'a Path>,
    /// Folder of the results.
    pub results: Option<&'a Path>,
    /// The study's file.
    pub study: &'a Path,
}

/// Describes the current environment.
pub fn environment(paths: &EnvironmentPaths<'_>) -> Environment {
    Environment {
        program: paths.program.into(),
        open_files: {
            let limit = getrlimit(Resource::Nofile);
            OpenFiles { soft: limit.current, hard: limit.maximum }
        },
        data_disk: paths.data.and_then(disk_of_folder),
        results_disk: paths.results.and_then(disk_of_folder),
        git: git(paths.study),
        ..read_settings(Path::new("/"))
    }
}

/// Returns how many bytes can be written to `folder`, which need not exist. On a file system in memory, the available memory is the
/// limit.
pub fn available_bytes(folder: &Path) -> Option<u64> {
    let mount = mount_of(folder)?;
    let is_memory = file_system::is_in_memory(&mount.file_system);
    let memory_bytes =
        if is_memory { read_settings(Path::new("/")).memory_available_bytes } else { None };
    Some(memory_bytes.map_or(mount.free_bytes, |bytes| bytes.min(mount.free_bytes)))
}

/// Reads the settings from files below `root`.
fn read_settings(root: &Path) -> Environment {
    let proc = root.join("proc");
    let hugepages = root.join("sys/kernel/mm/transparent_hugepage/enabled");
    let cpu = root.join("sys/devices/system/cpu");
    let meminfo = colon_pairs(&fs::read_to_string(proc.join("meminfo")).unwrap_or_default());
    let memory = |name| memory_in(&meminfo, name);
    let cgroup = current_cgroup(root);
    let cgroup_line = |file| read_line(&cgroup.as_ref()?.join(file));
    Environment {
        uptime_s: read_line(&proc.join("uptime")).and_then(|text| parse_first_word(&text)),
        load_average: read_line(&proc.join("loadavg")).and_then(|text| load_average(&text)),
        cpu_governors: governors(&cpu),
        cpu_frequency_driver: read_line(&cpu.join("cpu0/cpufreq/scaling_driver")),
        cpu_boost: is_boost_enabled(&cpu),
        transparent_hugepages: read_line(&hugepages).and_then(|text| bracketed_word(&text)),
        memory_available_bytes: memory("MemAvailable"),
        memory_dirty_bytes: memory("Dirty"),
        swap_total_bytes: memory("SwapTotal"),
        swap_free_bytes: memory("SwapFree"),
        swappiness: read_line(&proc.join("sys/vm/swappiness"))
            .and_then(|text| parse_first_word(&text)),
        cgroup_memory_max_bytes: cgroup_line("memory.max").and_then(|text| parse_first_word(&text)),
        cgroup_cpus_max: cgroup_line("cpu.max").and_then(|text| cpu_quota(&text)),
        container: container(root),
        ..Environment::default()
    }
}

fn parse_first_word<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.split_whitespace().next()?.parse().ok()
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut loads = text.split_whitespace().map(|load| load.parse().ok());
    Some([loads.next()??, loads.next()??, loads.next()??])
}

fn governors(cpus: &Path) -> Option<Vec<String>> {
    let entries = read_folder(cpus).ok()?.flatten();
    let found: BTreeSet<String> =
        entries.filter_map(|cpu| read_line(&cpu.path().join("cpufreq/scaling_governor"))).collect();
    (!found.is_empty()).then(|| found.into_iter().collect())
}

/// Returns whether boosting is enabled. Intel's driver has a separate setting with the opposite meaning.
fn is_boost_enabled(cpu: &Path) -> Option<bool> {
    match read_line(&cpu.join("intel_pstate/no_turbo")) {
        Some(off) => Some(off != "1"),
        None => Some(read_line(&cpu.join("cpufreq/boost"))? == "1"),
    }
}

/// Returns the word in brackets. The kernel marks the selected value of a list in this way.
fn bracketed_word(text: &str) -> Option<String> {
    let (_, from) = text.split_once('[')?;
    Some(from.split_once(']')?.0.to_string())
}

/// Parses `cpu.max`: `MICROSECONDS PERIOD`, or `max` for no limit (Documentation/admin-guide/cgroup-v2.rst).
fn cpu_quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let quota = words.next()??;
    let period = words.next()??;
    (period > 0.0).then(|| quota / period)
}

/// Returns the folder of this process's control group (version 2).
fn current_cgroup(root: &Path) -> Option<PathBuf> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(root.join("sys/fs/cgroup").join(group))
}

fn container(root: &Path) -> Option<String> {
    let markers = [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        (".singularity.d", "apptainer"),
    ];
    let found = markers.iter().find(|(marker, _)| root.join(marker).exists());
    found.map(|(_, name)| (*name).to_string())
}

fn disk_of_folder(folder: &Path) -> Option<Disk> {
    let disk = PathBuf::from(block_device(&mount_of(folder)?.device)?);
    Some(disk_at(&disk))
}

fn disk_at(disk: &Path) -> Disk {
    let queue = disk.join("queue");
    Disk {
        name: disk.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        scheduler: read_line(&queue.join("scheduler"))
            .map(|text| bracketed_word(&text).unwrap_or(text)),
        read_ahead_kib: read_line(&queue.join("read_ahead_kb"))
            .and_then(|text| parse_first_word(&text)),
        requests: read_line(&queue.join("nr_requests")).and_then(|text| parse_first_word(&text)),
    }
}

/// Returns the commit in the folder of `file`; `None` outside a repository. The repository is not trusted and may configure commands,
/// so the program `git` is not started; its files are read (gitrepository-layout(5)).
fn git(file: &Path) -> Option<Git> {
    let file = std::path::absolute(file).ok()?;
    let entry = file.ancestors().skip(1).map(|folder| folder.join(".git")).find(|e| e.exists())?;
    // A work tree or a submodule has a file that names its folder, relative to the file.
    let line = git_line(entry.parent()?, ".git");
    let linked = line.and_then(|line| Some(line.strip_prefix("gitdir: ")?.to_string()));
    let folder = linked.map_or(entry.clone(), |folder| entry.with_file_name(folder));
    let common = git_line(&folder, "commondir").map(|common| folder.join(common));
    let folders = [Some(&folder), common.as_ref()];
    let mut name = git_line(&folder, "HEAD")?;
    // A reference may name another one.
    for _ in 0..GIT_REFERENCES_MAX {
        let Some(reference) = name.strip_prefix("ref: ").filter(|name| is_reference(name)) else {
            break;
        };
        let mut found = folders.into_iter().flatten().filter_map(|folder| {
            git_line(folder, reference).or_else(|| packed_commit(folder, reference))
        });
        name = found.next()?;
    }
    let is_commit = [40, 64].contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit());
    is_commit.then_some(Git { commit: name })
}

/// Whether `name` is a valid name of a reference. Other names, which git refuses too, could lead to any file.
fn is_reference(name: &str) -> bool {
    name.starts_with("refs/") && !name.contains("..")
}

/// Returns the only line of a file of a repository.
fn git_line(folder: &Path, name: &str) -> Option<String> {
    Some(git_text(folder, name)?.trim_end().to_string())
}

/// Returns the text of the file `name` below `folder`. A link to a file outside `folder` is not followed, since the user's secrets may
/// look like a commit.
fn git_text(folder: &Path, name: &str) -> Option<String> {
    let file = folder.join(name).canonicalize().ok()?;
    file.starts_with(folder.canonicalize().ok()?).then(|| read_text_bounded(&file).ok())?
}

fn packed_commit(folder: &Path, reference: &str) -> Option<String> {
    let lines = git_text(folder, "packed-refs")?;
    let mut pairs = lines.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(_, name)| *name == reference).map(|(commit, _)| commit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn settings_are_read_from_proc_and_sys() {
        let cpu = "sys/devices/system/cpu";
        let root = tree(&[
            ("proc/uptime", "350735.47 234388.90\n"),
            ("proc/loadavg", "0.20 1.18 2.12 1/80 11206\n"),
            ("proc/meminfo", "MemAvailable: 2 kB\nDirty: 3 kB\nSwapTotal: 0 kB\n"),
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/step/memory.max", "4096\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "150000 100000\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            (&format!("{cpu}/cpu0/cpufreq/scaling_driver"), "intel_pstate\n"),
            (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{cpu}/cpu1/cpufreq/scaling_governor"), "performance\n"),
            (&format!("{cpu}/cpu2/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{cpu}/intel_pstate/no_turbo"), "1\n"),
            (&format!("{cpu}/cpufreq/boost"), "1\n"),
            (".dockerenv", ""),
        ]);
        let expected = Environment {
            uptime_s: Some(350_735.47),
            load_average: Some([0.2, 1.18, 2.12]),
            cpu_governors: Some(vec!["performance".into(), "powersave".into()]),
            cpu_frequency_driver: Some("intel_pstate".into()),
            cpu_boost: Some(false),
            transparent_hugepages: Some("madvise".into()),
            memory_available_bytes: Some(2048),
            memory_dirty_bytes: Some(3072),
            swap_total_bytes: Some(0),
            swap_free_bytes: None,
            swappiness: Some(60),
            cgroup_memory_max_bytes: Some(4096),
            cgroup_cpus_max: Some(1.5),
            container: Some("docker".into()),
            ..Environment::default()
        };
        assert_eq!(read_settings(root.path()), expected);
    }

    #[test]
    fn missing_settings_are_unknown() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(read_settings(root.path()), Environment::default());
    }

    #[test]
    fn queues_of_disks_are_read() {
        let root = tree(&[
            ("nvme0n1/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("nvme0n1/queue/read_ahead_kb", "128\n"),
            ("nvme0n1/queue/nr_requests", "1023\n"),
            ("vda/queue/scheduler", "none\n"),
        ]);
        let disk = |name: &str, scheduler: &str, read_ahead_kib, requests| Disk {
            name: name.into(),
            scheduler: Some(scheduler.into()),
            read_ahead_kib,
            requests,
        };
        let nvme = disk("nvme0n1", "mq-deadline", Some(128), Some(1023));
        assert_eq!(disk_at(&root.path().join("nvme0n1")), nvme);
        assert_eq!(disk_at(&root.path().join("vda")), disk("vda", "none", None, None));
    }

    #[test]
    fn the_commit_is_read_from_the_files_of_a_repository() {
        use std::process::Command;
        let root = tree(&[("repo/study/a.csv", "1")]);
        let repo = root.path().join("repo");
        let study = repo.join("study/a.csv");
        assert_eq!(git(&study), None);
        let run = |arguments: &[&str]| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let output = Command::new("git").current_dir(&repo).args(name).args(arguments).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_string()
        };
        run(&["init", "-q", "-b", "main"]);
        assert_eq!(git(&study), None, "there is no commit yet");
        run(&["add", "."]);
        run(&["commit", "-q", "-m", "first"]);
        let commit = run(&["rev-parse", "HEAD"]);
        let check = |file: &Path| assert_eq!(git(file).unwrap().commit, commit);
        check(&study);
        run(&["worktree", "add", "-q", "../tree"]);
        check(&root.path().join("tree/study/a.csv"));
        run(&["pack-refs", "--all"]);
        check(&study);
        check(&root.path().join("tree/study/a.csv"));
        run(&["checkout", "-q", "--detach"]);
        check(&study);
        for text in ["ref: refs/heads/a/../../../HEAD", "ref: HEAD", "0123", ""] {
            fs::write(repo.join(".git/HEAD"), text).unwrap();
            assert_eq!(git(&study), None, "{text}");
        }
    }

    /// The repository of a received folder may refer to any file of the user.
    #[test]
    fn files_outside_a_repository_are_not_read() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let check = |git_files: &[(&str, &str)], link: Option<&str>| {
            let root = tree(&[("home/token", commit), ("home/refs/x", "1")]);
            let token = root.path().join("home/token");
            let received = root.path().join("home/received");
            fs::create_dir_all(received.join(".git")).unwrap();
            for (name, text) in git_files {
                let path = received.join(".git").join(name);
                let text = text.replace("TOKEN", token.to_str().unwrap());
                fs::write(path, text).unwrap();
            }
            if let Some(link) = link {
                let link = received.join(".git").join(link);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(&token, link).unwrap();
            }
            assert_eq!(git(&received.join("a.csv")), None, "{git_files:?} {link:?}");
        };
        check(&[("HEAD", "ref: TOKEN")], None);
        check(&[("HEAD", "ref: ../../token")], None);
        check(&[], Some("HEAD"));
        check(&[("HEAD", "ref: refs/heads/main")], Some("refs/heads/main"));
        check(&[("HEAD", "ref: token"), ("commondir", "../..")], None);
        check(&[("HEAD", "ref: refs/../token"), ("commondir", "../..")], None);
    }

    /// A received folder may contain a repository whose configuration names commands.
    #[test]
    fn no_program_of_a_repository_is_started() {
        let root = tree(&[("a.csv", "1"), (".git/HEAD", "ref: refs/heads/main")]);
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let config = "[include]\n\tpath = pipe\n[core]\n\tfsmonitor = touch ran\n";
        fs::create_dir_all(root.path().join(".git/refs/heads")).unwrap();
        fs::write(root.path().join(".git/refs/heads/main"), commit).unwrap();
        fs::write(root.path().join(".git/config"), config).unwrap();
        // The program `git` would wait for the other end of the pipe.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.path().join(".git/pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(git(&root.path().join("a.csv")).unwrap().commit, commit);
    }

    #[test]
    fn this_machine_is_described() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let environment = environment(&EnvironmentPaths {
            program: "feedrate 1",
            data: Some(here),
            results: None,
            study: &here.join("study.csv"),
        });
        assert_eq!(
            (environment.program.as_str(), &environment.results_disk),
            ("feedrate 1", &None)
        );
        assert!(environment.uptime_s.unwrap() > 0.0);
        assert!(environment.memory_available_bytes.unwrap() > 0);
    }
}
