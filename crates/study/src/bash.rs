//! The writer of bash scripts: the head and prologue of every script that feedrate writes.

/// A script: `head`, lines of comments and of `#SBATCH`, then the user's `prologue`, then `body`.
pub fn script(head: &str, prologue: &[String], body: &str) -> String {
    let prologue = if prologue.is_empty() {
        String::new()
    } else {
        let lines = prologue.join("\n");
        format!("# Modules may use variables that are not set.\nset +u\n{lines}\nset -u\n")
    };
    format!("#!/usr/bin/env bash\n{head}set -euo pipefail\n{prologue}{body}\n")
}
