//! Limits for the programs of a package: their size, and the libraries that they need.

use super::GLIBC;
use super::share::PROGRAMS;
use crate::shell::output;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// Maximum size of a program.
const BYTES_MAX: u64 = 20_000_000;

/// Prefixes of the allowed libraries. They belong to glibc, which every machine has.
const LIBRARIES: &[&str] =
    &["ld-linux-", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"];

/// The properties of a program that have limits.
pub(super) struct Program<'a> {
    pub(super) bytes: u64,
    /// Output of `objdump -p`.
    pub(super) headers: &'a str,
    /// Output of `objdump -T`.
    pub(super) symbols: &'a str,
}

/// Refuses programs in `prefix/bin` that are too large or do not start on old machines.
pub(super) fn check(prefix: &Path) -> Result<()> {
    let folder = prefix.join("bin");
    for name in PROGRAMS {
        let bytes = fs::metadata(folder.join(name))?.len();
        let headers = output(&folder, "objdump", &["-p", name])?;
        let symbols = output(&folder, "objdump", &["-T", name])?;
        let program = Program { bytes, headers: &headers, symbols: &symbols };
        let exceeded = program.exceeded_limits();
        if !exceeded.is_empty() {
            bail!("`{name}` exceeds the limits of a package\n  {}", exceeded.join("\n  "));
        }
        let newest = program.newest_glibc().unwrap_or_default();
        println!("{:5.1} MB  glibc {}.{}  {name}", bytes as f64 / 1e6, newest.0, newest.1);
    }
    Ok(())
}

impl Program<'_> {
    /// Returns a message for each exceeded limit.
    pub(super) fn exceeded_limits(&self) -> Vec<String> {
        let mut messages = Vec::new();
        if BYTES_MAX < self.bytes {
            messages
                .push(format!("it has {} bytes, more than the limit of {BYTES_MAX}", self.bytes));
        }
        match self.newest_glibc() {
            None => messages.push("it is static, and cannot load MPI or NVML".to_string()),
            Some((major, minor)) if GLIBC < (major, minor) => {
                messages.push(format!("it needs glibc {major}.{minor}"));
            }
            Some(_) => {}
        }
        let needed = self.headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
        let forbidden = needed
            .map(str::trim)
            .filter(|library| !LIBRARIES.iter().any(|known| library.starts_with(known)));
        messages.extend(forbidden.map(|library| format!("it needs `{library}`")));
        messages
    }

    /// Returns the newest version of glibc that a symbol requires.
    fn newest_glibc(&self) -> Option<(u32, u32)> {
        let versions = self.symbols.split("GLIBC_").skip(1);
        versions
            .filter_map(|text| {
                let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
                let mut numbers = text[..end.unwrap_or(text.len())].split('.');
                Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
            })
            .max()
    }
}
