//! Writes bash scripts: the head and the prologue that all scripts of feedrate share.

/// Returns a script of `head` (comments and `#SBATCH` lines), the user's `prologue` and `body`.
pub fn script(head: &str, prologue: &[String], body: &str) -> String {
    let setup = if prologue.is_empty() {
        String::new()
    } else {
        let lines = prologue.join("\n");
        format!("# Modules may use variables that are not set.\nset +u\n{lines}\nset -u\n")
    };
    format!("#!/usr/bin/env bash\n{head}set -euo pipefail\n{setup}{body}\n")
}
