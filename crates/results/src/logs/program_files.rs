//! Distinguishes data files from files of programs by their paths.

/// Returns whether a file belongs to a program or to feedrate instead of the job's data.
pub(super) fn is_program_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    // Tensors that are passed between processes.
    let is_shared_memory = path.starts_with("/dev/shm/")
        && ["torch_", "sem.", "psm_", "pym-"].iter().any(|start| name.starts_with(start));
    let is_path = path.starts_with('/') || !path.contains(":[");
    !is_path
        || is_device
        || is_shared_memory
        || path.starts_with("/memfd:")
        || SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
        || PROGRAM_FOLDERS.iter().any(|folder| path.contains(folder))
        || name.contains(".so.")
        // feedrate's datasets contain a manifest and hidden files.
        || name == "manifest.json"
        || name.starts_with('.')
        || PROGRAM_EXTENSIONS.contains(&extension(name).as_str())
}

/// Returns the extension in lower case; empty if there is none or it has no letter.
pub(super) fn extension(name: &str) -> String {
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    let is_extension = suffix.len() <= 16 && suffix.chars().any(|char| char.is_ascii_alphabetic());
    if is_extension { suffix.to_ascii_lowercase() } else { String::new() }
}

/// Folders of the system.
const SYSTEM_FOLDERS: [&str; 11] = [
    "/proc/",
    "/sys/",
    "/etc/",
    "/usr/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/bin/",
    "/sbin/",
    "/run/",
    "/var/lib/",
];
/// Parts of paths in which programs are installed.
const PROGRAM_FOLDERS: [&str; 4] =
    ["/site-packages/", "/dist-packages/", "/lib/python", "/.cache/"];
/// Extensions of files that belong to programs.
const PROGRAM_EXTENSIONS: [&str; 14] = [
    "py", "pyc", "pyo", "so", "pth", "cfg", "ini", "toml", "yaml", "yml", "egg-link", "conf", "sh",
    "log",
];
