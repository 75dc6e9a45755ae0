//! Servers of object stores, each in its own process on free ports. Dropping a server ends it.

use crate::harness::{Test, venv_python};
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A server of S3 with the empty bucket `bucket`.
pub(crate) struct StoreServer {
    pub(crate) name: &'static str,
    process: Child,
    command: Command,
    endpoint: String,
    folder: TempDir,
}

/// The access key and the secret key of all servers.
const KEYS: [&str; 2] = ["key", "secret-of-the-test"];

impl StoreServer {
    /// SeaweedFS, which checks signatures.
    pub(crate) fn seaweed() -> Self {
        let folder = TempDir::new().unwrap();
        let [key, secret] = KEYS;
        let identities = format!(
            r#"{{"identities": [{{"name": "test", "credentials": [{{"accessKey": "{key}", "secretKey": "{secret}"}}], "actions": ["Admin", "Read", "Write", "List"]}}]}}"#
        );
        std::fs::write(folder.path().join("identities.json"), identities).unwrap();
        let ports = free_ports::<8>();
        let [s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc] = ports;
        let flags = [
            format!("-s3.port={s3}"),
            format!("-s3.port.grpc={s3_grpc}"),
            format!("-master.port={master}"),
            format!("-master.port.grpc={master_grpc}"),
            format!("-volume.port={volume}"),
            format!("-volume.port.grpc={volume_grpc}"),
            format!("-filer.port={filer}"),
            format!("-filer.port.grpc={filer_grpc}"),
        ];
        let mut command = command("weed");
        command.args(["-logtostderr", "server", "-filer", "-s3", "-ip=127.0.0.1", "-dir=."]);
        command.args(["-ip.bind=127.0.0.1", "-s3.config=identities.json"]);
        // Nothing is sent to its authors, and servers of other protocols stay off.
        command.args(["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]);
        command.args(["-volume.max=16", "-master.volumeSizeLimitMB=64"]).args(flags);
        StoreServer::start("SeaweedFS", command, s3, folder)
    }

    /// moto, the server of boto3's users for tests.
    pub(crate) fn moto() -> Self {
        let [port] = free_ports();
        let mut command = command("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        StoreServer::start("moto", command, port, TempDir::new().unwrap())
    }

    fn start(name: &'static str, mut command: Command, port: u16, folder: TempDir) -> Self {
        let endpoint = format!("http://127.0.0.1:{port}");
        // Servers keep their sockets in the folder of temporary files.
        command.current_dir(&folder).env("TMPDIR", folder.path()).stdin(Stdio::null());
        let process = spawn(&mut command, folder.path());
        let server = StoreServer { name, process, command, endpoint, folder };
        server.python(&server.test(), &["ready"]);
        server
    }

    /// Ends the server without a warning.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts the killed server again, with its objects if it keeps them in files.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(&mut self.command, self.folder.path());
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// An empty folder, with the endpoint and the keys in the environment.
    pub(crate) fn test(&self) -> Test {
        StoreServer::test_at(&self.endpoint)
    }

    /// As [`StoreServer::test`], for another address of a store.
    pub(crate) fn test_at(endpoint: &str) -> Test {
        let [key, secret] = KEYS;
        Test::with_environment(vec![
            ("AWS_ENDPOINT_URL", endpoint.into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", key.into()),
            ("AWS_SECRET_ACCESS_KEY", secret.into()),
        ])
    }

    /// Runs objects.py on the bucket.
    pub(crate) fn python(&self, test: &Test, arguments: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/objects.py");
        let output = test.program(venv_python(), &[]).arg(script).args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(
            output.status.success(),
            "{}: {errors}\n{}\n  hint: run `cargo xtask setup`",
            self.name,
            log()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(command: &mut Command, folder: &Path) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap_or_else(|error| {
        panic!("cannot start {command:?}: {error}\n  hint: run `cargo xtask setup`")
    })
}

/// A command of a program in the virtual environment.
fn command(program: &str) -> Command {
    Command::new(venv_python().with_file_name(program))
}

/// Ports that were free a moment ago.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
