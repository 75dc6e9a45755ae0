//! Connections to the control channel of ranks that send nothing, more than the ranks may have open files. The run succeeds.

use super::Class;
use super::case::{Case, json, wait_until_some};
use super::lost_ranks::{LAUNCHERS, generate, pid_of_rank};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub(super) static CLASS: Class = Class {
    name: "silent_guests",
    noun: "runs with silent guests",
    cases: 6,
    short_cases: 1,
    parallel_cases: 1,
    run,
};

/// Silent connections.
const GUESTS: usize = 1130;
/// Time for a connection. The queue of the listener may be full for a while.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

fn run(case: &mut Case) -> Result<u32> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    generate(case, 20)?;
    // MPICH has listeners of its own, which accept any number of guests.
    let launcher = LAUNCHERS[0];
    let feedrate = case.program("feedrate").display().to_string();
    let limited = ["2", "sh", "-c", "ulimit -n 1024; exec \"$@\"", "sh", &feedrate];
    let run = ["run", "workload.yaml", "--run-dir", "out"];
    let mut job = case.start(launcher[0], &[&launcher[1..], &limited, &run].concat())?;
    let port = wait_until_some("the control channel", || {
        ensure!(!job.has_ended(), "ended before training: {}", job.stderr());
        Ok(pid_of_rank(job.pid(), 0).and_then(local_port))
    })?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let guests: Vec<TcpStream> = (0..GUESTS)
        .map_while(|_| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok())
        .collect();
    let connected = guests.len();
    job.wait()?.with_code(&[0]).with_context(|| format!("{connected} guests"))?;
    ensure!(json(&case.path("out/record.json"))?["complete"] == true, "torn: the record");
    ensure!(connected > GUESTS / 10, "only {connected} guests could connect");
    Ok(1)
}

/// Returns the port on which a process listens on 127.0.0.1.
fn local_port(pid: Pid) -> Option<u16> {
    let folder = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let links = fs::read_dir(folder).ok()?.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        // 0A is the state of a listener.
        let is_listener = *fields.get(3)? == "0A" && address == "0100007F";
        let socket = format!("socket:[{}]", fields.get(9)?);
        (is_listener && sockets.contains(&socket))
            .then(|| u16::from_str_radix(port, 16).ok())
            .flatten()
    })
}
