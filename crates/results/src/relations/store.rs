//! Whether two runs used the same folder of data, as far as hosts and paths tell.

use super::asked::Asked;
use crate::run::Run;

/// How near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Near {
    /// The same folder; what is not known of one does not tell them apart in one source.
    Same,
    /// The same path on another host, which is the same folder where hosts share the file system.
    OtherHost,
}

/// Beginnings of paths that each host has for itself.
const OF_ONE_HOST: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/"];
/// Its first or second name, with or without digits after it, where disks of a host are mounted.
const DISKS: [&str; 6] = ["local", "localscratch", "local_scratch", "localdisk", "nvme", "ssd"];

pub(super) fn near(a: (&Run, &Asked), b: (&Run, &Asked)) -> Option<Near> {
    let is_one_source = a.0.source == b.0.source;
    let is_one_folder = match (&a.1.path, &b.1.path) {
        (Some(a), Some(b)) => a == b,
        _ => is_one_source && ends_alike(a.1, b.1),
    };
    match (&a.0.hostname, &b.0.hostname) {
        _ if !is_one_folder => None,
        (Some(a_host), Some(b_host)) if a_host == b_host => Some(Near::Same),
        (Some(_), Some(_)) => (is_one_source && is_shared(a.1)).then_some(Near::OtherHost),
        _ => is_one_source.then_some(Near::Same),
    }
}

/// Compare ends of paths, where the job's folder of one is not known.
fn ends_alike(a: &Asked, b: &Asked) -> bool {
    let ends = |whole: &str, end: &str| {
        whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let text = |asked: &Asked| asked.path.clone().unwrap_or_else(|| asked.folder.clone());
    let (a, b) = (text(a), text(b));
    ends(&a, &b) || ends(&b, &a)
}

/// Whether other hosts may see the folder: a path that is known, and not below a folder of one host.
fn is_shared(asked: &Asked) -> bool {
    let is_disk =
        |name: &str| DISKS.contains(&name.trim_end_matches(|one: char| one.is_ascii_digit()));
    asked.path.as_ref().is_some_and(|path| {
        let whole = format!("{path}/");
        let is_of_one = OF_ONE_HOST.iter().any(|of_one| whole.starts_with(of_one));
        !is_of_one && !path.split('/').skip(1).take(2).any(is_disk)
    })
}
