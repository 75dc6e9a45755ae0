//! Servers of object stores, which `object_store.py` of feedrate-data starts and ends.

use crate::harness::{Test, venv_python};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server with the empty bucket `bucket`. Dropping it ends the server.
pub(crate) struct StoreServer {
    pub(crate) name: &'static str,
    process: Child,
    answers: BufReader<ChildStdout>,
    /// Such as `s3://bucket`.
    pub(crate) url: String,
    endpoint: String,
    environment: Vec<(String, String)>,
    /// Variables of the client of object_store.py.
    client: Vec<(String, String)>,
}

impl StoreServer {
    /// SeaweedFS, which checks signatures.
    pub(crate) fn seaweed() -> Self {
        StoreServer::start("seaweed")
    }

    /// moto, the server of boto3's users for tests.
    pub(crate) fn moto() -> Self {
        StoreServer::start("moto")
    }

    /// Starts a server of object_store.py.
    pub(crate) fn start(name: &'static str) -> Self {
        let mut command = Command::new(venv_python());
        command.arg(script()).args(["serve", name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {command:?}: {error}\n  hint: run `cargo xtask setup`")
        });
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("the server `{name}` did not start\n  hint: run `cargo xtask setup`")
        });
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let variables = |key: &str| {
            let variables = started[key].as_object().unwrap().iter();
            variables.map(|(name, value)| (name.clone(), text(value))).collect()
        };
        let (environment, client) = (variables("environment"), variables("client"));
        let (url, endpoint) = (text(&started["url"]), text(&started["endpoint"]));
        StoreServer { name, process, answers, url, endpoint, environment, client }
    }

    /// Ends the server without a warning.
    pub(crate) fn kill(&mut self) {
        self.send("kill");
    }

    /// Starts the killed server again, with its objects if it keeps them in files.
    pub(crate) fn restart(&mut self) {
        self.send("restart");
    }

    /// Sends a command to object_store.py, and waits until it is done.
    fn send(&mut self, command: &str) {
        writeln!(self.process.stdin.as_ref().unwrap(), "{command}").unwrap();
        assert_eq!(self.answers.read_line(&mut String::new()).unwrap(), 1, "{}", self.name);
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// An empty folder, with the endpoint and the keys in the environment.
    pub(crate) fn test(&self) -> Test {
        Test::with_environment(self.environment.clone())
    }

    /// As [`StoreServer::test`], with another address of the store.
    pub(crate) fn test_at(&self, endpoint: &str) -> Test {
        let variables = self.environment.iter();
        let replaced =
            variables.map(|(name, value)| (name.clone(), value.replace(&self.endpoint, endpoint)));
        Test::with_environment(replaced.collect())
    }

    /// Runs a client of object_store.py on the bucket, and returns what it prints.
    pub(crate) fn python(&self, test: &Test, arguments: &[&str]) -> String {
        let mut command = test.program(venv_python(), &[]);
        command.arg(script()).args(arguments).envs(self.client.iter().cloned());
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", self.name);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/object_store.py")
}
