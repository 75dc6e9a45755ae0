//! The contract on real servers, which `tests/object_store.py` starts.

use super::super::object::{self, Access, check_large_object};
use super::{PARTS, Storage, open};
use feedrate_spec::object_url::ObjectUrl;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server with an empty bucket of its own name, because tests may share a process. Dropping it ends the server.
struct Server {
    process: Child,
    url: ObjectUrl,
}

impl Server {
    /// Starts the server, and sets its variables as options of its bucket.
    fn start(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(folder.join("../../.venv/bin/python"));
        command.arg(folder.join("tests/object_store.py")).args([
            "serve",
            name,
            &format!("bucket-{name}"),
        ]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
                panic!("{command:?}: {error}\n  hint: run `cargo xtask setup`")
            });
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("`{name}` did not start\n  hint: run `cargo xtask setup`"));
        let url = ObjectUrl::parse(started["url"].as_str().unwrap()).unwrap();
        let variables = started["environment"].as_object().unwrap().iter();
        let options = variables.map(|(name, value)| {
            let option = match name.as_str() {
                "AWS_ENDPOINT_URL" | "GOOGLE_BASE_URL" | "AZURE_STORAGE_ENDPOINT" => "endpoint_url",
                name => name,
            };
            (option.to_lowercase(), value.as_str().unwrap().to_string())
        });
        object::configure(&url, &options.collect::<Vec<_>>(), &|_| None);
        Server { process, url }
    }

    /// A storage below a prefix of the bucket.
    fn storage(&self, prefix: &str) -> Box<dyn Storage> {
        let root = format!("{}/{prefix}/deep/root", self.url);
        open(self.url.storage, Path::new(&root)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Checks all parts of the contract, and that no request failed but by a connection that a busy server closed.
fn check_contract(name: &str) {
    let server = Server::start(name);
    object::check(&server.url, Access::Write).unwrap();
    for (part, check) in PARTS {
        let storage = server.storage(part);
        assert!(storage.list("").unwrap().is_empty(), "{name}: {part}");
        check(&*storage);
        let counts = storage.transfers().unwrap();
        assert_eq!(counts.attempts, counts.requests + counts.retried_reset, "{name}: {part}");
    }
    check_large_object(&*server.storage("large"));
}

#[test]
fn seaweedfs_keeps_the_contract() {
    check_contract("seaweed");
}

#[test]
fn moto_keeps_the_contract() {
    check_contract("moto");
}

#[test]
fn seaweedfs_keeps_the_contract_by_the_requests_of_google() {
    check_contract("seaweed-gcs");
}

#[test]
fn azurite_keeps_the_contract() {
    check_contract("azurite");
}
