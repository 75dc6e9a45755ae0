//! Tests of the limits of programs, and of the recipes for other packagers.

use super::VERSION;
use super::limits::Program;
use std::path::Path;
use std::process::Command;

const SYMBOLS: &str = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) write
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.28)  statx
0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__
";
const HEADERS: &str =
    "  NEEDED               libc.so.6\n  NEEDED               ld-linux-x86-64.so.2\n";

#[test]
fn programs_that_old_machines_cannot_start_are_refused() {
    let check = |bytes, headers: &str, symbols: &str, expected: &[&str]| {
        assert_eq!(Program { bytes, headers, symbols }.exceeded_limits(), expected);
    };
    check(20_000_000, HEADERS, SYMBOLS, &[]);
    check(
        20_000_001,
        HEADERS,
        SYMBOLS,
        &["it has 20000001 bytes, more than the limit of 20000000"],
    );
    check(1, HEADERS, &SYMBOLS.replace("2.28", "2.29"), &["it needs glibc 2.29"]);
    check(1, HEADERS, &SYMBOLS.replace("2.28", "3.0"), &["it needs glibc 3.0"]);
    check(1, HEADERS, "", &["it is static, and cannot load MPI or NVML"]);
    check(1, "  NEEDED    libmpi.so.40\n", SYMBOLS, &["it needs `libmpi.so.40`"]);
}

#[test]
fn documents_mention_the_packages_of_this_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let packages = [
        format!("feedrate-{VERSION}-x86_64-linux.tar.gz"),
        format!("feedrate_{VERSION}_amd64.deb"),
    ];
    for document in ["README.md", "docs/guide/install.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for package in &packages {
            assert!(text.contains(package), "{document} does not name {package}");
        }
    }
}

/// The tools for the recipes are not installed, so this test checks only the syntax and the versions in the recipes.
#[test]
fn recipes_are_well_formed_and_have_this_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = "\
import ast, yaml
ast.parse(open('packaging/spack/spack_repo/feedrate/packages/feedrate/package.py').read())
yaml.safe_load(open('packaging/spack/spack_repo/feedrate/repo.yaml'))['repo']['namespace']
print(yaml.safe_load(open('packaging/conda/recipe.yaml'))['package']['version'])";
    let python = root.join(".venv/bin/python3");
    let output = Command::new(python).args(["-c", script]).current_dir(&root).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n  hint: run `cargo xtask setup`");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), VERSION);

    let spack_path = "packaging/spack/spack_repo/feedrate/packages/feedrate/package.py";
    let spack = std::fs::read_to_string(root.join(spack_path)).unwrap();
    let compiler = format!("rust@{}:", env!("CARGO_PKG_RUST_VERSION"));
    assert!(spack.contains(&compiler), "the recipe of Spack does not require {compiler}");
}

#[test]
fn citation_and_workflows_have_this_version_and_compiler() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    assert!(read("CITATION.cff").contains(&format!("\nversion: {VERSION}\n")));
    let compiler = concat!("rust:", env!("CARGO_PKG_RUST_VERSION"), "-");
    for (path, task) in [("ci", "ci"), ("release", "dist")] {
        let workflow = read(&format!(".github/workflows/{path}.yml"));
        assert!(workflow.contains(&format!("cargo xtask {task}\n")), "{path}");
        let images = workflow.matches("rust:").count();
        assert!(images > 0 && images == workflow.matches(compiler).count(), "{path}: {images}");
    }
}
