//! Limits on the programs of a package: their size, and what they ask of a machine.

use super::GLIBC;
use super::share::PROGRAMS;
use crate::shell::output;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

const LARGEST_BYTES: u64 = 20_000_000;

/// glibc's libraries, the only ones that every machine has.
const LIBRARIES: &[&str] =
    &["ld-linux-", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"];

/// A program as far as it has limits.
pub(super) struct Program<'a> {
    pub(super) bytes: u64,
    /// As `objdump -p` tells them.
    pub(super) headers: &'a str,
    /// As `objdump -T` tells them.
    pub(super) symbols: &'a str,
}

/// Refuse programs in `prefix/bin` that are too large, or that an old machine could not start.
pub(super) fn check(prefix: &Path) -> Result<()> {
    let folder = prefix.join("bin");
    for name in PROGRAMS {
        let bytes = fs::metadata(folder.join(name))?.len();
        let headers = output(&folder, "objdump", &["-p", name])?;
        let symbols = output(&folder, "objdump", &["-T", name])?;
        let program = Program { bytes, headers: &headers, symbols: &symbols };
        let broken = program.broken_limits();
        if !broken.is_empty() {
            bail!("`{name}` is not fit for a package\n  {}", broken.join("\n  "));
        }
        let newest = program.glibc().unwrap_or_default();
        println!("{:5.1} MB  glibc {}.{}  {name}", bytes as f64 / 1e6, newest.0, newest.1);
    }
    Ok(())
}

impl Program<'_> {
    /// A line for each.
    pub(super) fn broken_limits(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if LARGEST_BYTES < self.bytes {
            broken.push(format!("it has {} bytes, and may have {LARGEST_BYTES}", self.bytes));
        }
        match self.glibc() {
            None => broken.push("it is static, and could open neither MPI nor NVML".to_string()),
            Some((major, minor)) if GLIBC < (major, minor) => {
                broken.push(format!("it needs glibc {major}.{minor}"));
            }
            Some(_) => {}
        }
        let needed = self.headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
        let strange = needed
            .map(str::trim)
            .filter(|library| !LIBRARIES.iter().any(|known| library.starts_with(known)));
        broken.extend(strange.map(|library| format!("it needs `{library}`")));
        broken
    }

    /// The newest version of glibc that a symbol asks for.
    fn glibc(&self) -> Option<(u32, u32)> {
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
