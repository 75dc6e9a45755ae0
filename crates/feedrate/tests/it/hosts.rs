//! A run on two emulated hosts: network namespaces with their own host names and clocks, and a shared folder. MPICH's launcher calls a script
//! that enters a namespace, instead of ssh. The test needs root, `ip`, `unshare` and MPICH, which `cargo xtask setup` installs.

use crate::harness::{Answer, TINY, Test};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Address of the switch between the hosts, where the launcher runs.
const SWITCH: &str = "10.77.0.254";
const HOSTS: u32 = 2;
/// Seconds by which the clock of the second host is ahead.
const AHEAD_S: u32 = 100_000;

/// The network namespaces. Dropping it deletes them.
struct Network {
    name: String,
    test: Test,
}

impl Network {
    fn start() -> Self {
        let network = Network {
            name: format!("feedrate{}", std::process::id()),
            test: Test::with_workload(TINY),
        };
        let hub = network.namespace("hub");
        ip(&format!("netns add {hub}"));
        ip(&format!("-n {hub} link set lo up"));
        ip(&format!("-n {hub} link add switch type bridge"));
        ip(&format!("-n {hub} addr add {SWITCH}/24 dev switch"));
        ip(&format!("-n {hub} link set switch up"));
        for host in 0..HOSTS {
            let space = network.namespace(&host.to_string());
            ip(&format!("netns add {space}"));
            ip(&format!("-n {space} link set lo up"));
            ip(&format!("-n {hub} link add port{host} type veth peer name eth0 netns {space}"));
            ip(&format!("-n {hub} link set port{host} master switch up"));
            ip(&format!("-n {space} addr add {}/24 dev eth0", address(host)));
            ip(&format!("-n {space} link set eth0 up"));
        }
        network.test.write("enter", network.enter_script());
        fs::set_permissions(network.test.path("enter"), fs::Permissions::from_mode(0o755)).unwrap();
        network
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Script with the arguments of ssh: options, a host, and a command for the host's shell.
    fn enter_script(&self) -> String {
        let name = &self.name;
        format!(
            "\
#!/bin/sh
while [ \"${{1#-}}\" != \"$1\" ]; do shift; done
host=$((${{1##*.}} - 1))
shift
if [ \"$host\" = 1 ]; then clock='--time --monotonic {AHEAD_S} --fork'; fi
exec ip netns exec {name}-$host unshare --uts $clock sh -c \"hostname host$host; exec $*\"
"
        )
    }

    /// Runs `feedrate` with this number of processes on each host.
    fn run(&self, processes_per_host: u32, arguments: &[&str]) -> Answer {
        let hosts: Vec<String> = (0..HOSTS).map(address).collect();
        let output = Command::new("ip")
            .args(["netns", "exec", &self.namespace("hub"), "mpirun.mpich", "-localhost", SWITCH])
            .args(["-launcher", "ssh", "-launcher-exec"])
            .arg(self.test.path("enter"))
            .args(["-hosts", &hosts.join(","), "-ppn", &processes_per_host.to_string()])
            .args(["-n", &(HOSTS * processes_per_host).to_string(), env!("CARGO_BIN_EXE_feedrate")])
            .args(arguments)
            .current_dir(self.test.path(""))
            .output()
            .unwrap();
        Answer::from_output(&output)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in ["hub", "0", "1"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(name)]).status();
        }
    }
}

fn address(host: u32) -> String {
    format!("10.77.0.{}", host + 1)
}

#[track_caller]
fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output().unwrap_or_else(|error| {
        panic!("cannot start `ip`: {error}\n  hint: run `cargo xtask setup`")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {errors}\n  hint: run the tests as root");
}

#[test]
fn each_host_is_described_in_the_results() {
    let network = Network::start();
    let answer = network.run(2, &["run", "workload.yaml", "reader.batch_size=1", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let output: Value = serde_json::from_str(&answer.stdout).unwrap();
    let folder = network.test.path(output["run_dir"].as_str().unwrap());
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let (record, summary) = (read("record.json"), read("summary.json"));

    let values = |list: &Value, key: &str| -> Value {
        list.as_array().unwrap().iter().map(|item| item[key].clone()).collect()
    };
    assert_eq!(values(&record["processes"], "node"), json!([0, 0, 1, 1]));
    assert_eq!(values(&record["nodes"], "hostname"), json!(["host0", "host1"]));
    for process in record["processes"].as_array().unwrap() {
        // The offset between processes does not contain the offset between the hosts' clocks.
        let offset_s = process["clock_offset_ns"].as_i64().unwrap() / 1_000_000_000;
        assert!(offset_s.abs() < i64::from(AHEAD_S) / 2, "{process}");
    }
    assert!(record["processes"][2]["clock_error_ns"].as_u64().unwrap() > 0);

    assert_eq!(summary["num_hosts"], 2);
    assert_eq!(values(&summary["hosts"], "hostname"), json!(["host0", "host1"]));
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap();
    let cpus = cpus.lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(summary["host_cpu_count"], json!([cpus, cpus]));
    assert_eq!(summary["host_memory_GB"].as_array().unwrap().len(), 2);
    assert_eq!(summary["potential_caching"].as_array().unwrap().len(), 2);
    for host in summary["hosts"].as_array().unwrap() {
        assert_eq!(host["networks"], json!([{"name": "eth0", "speed_Mbit_per_second": 10_000}]));
        assert!(!host["data_file_system"].as_str().unwrap().is_empty());
    }
    for (rank, hostname) in ["host0", "host0", "host1", "host1"].into_iter().enumerate() {
        assert_eq!(read(&format!("{rank}_output.json"))["hostname"], hostname);
    }
}
