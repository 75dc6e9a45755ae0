//! Names of incomplete files: process 4711 writes `train/a.npz` as `train/.a.npz.4711-0.part`. With the process number, different
//! processes never use the same name.

use std::io::{self, ErrorKind};

/// Calls `create` with names for the incomplete file `name` of process `process` until a name is free.
///
/// # Errors
/// Returns the error of `create`. After [`ErrorKind::AlreadyExists`], the next name is tried instead.
pub fn create_part<T>(
    name: &str,
    process: u32,
    mut create: impl FnMut(&str) -> io::Result<T>,
) -> io::Result<T> {
    let mut number = 0_u64;
    loop {
        match create(&format!(".{name}.{process}-{number}.part")) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            created => return created,
        }
    }
}

/// Returns the final name of an incomplete file: `a.npz` for `.a.npz.4711-0.part`. `None` for other names.
pub fn final_name(name: &str) -> Option<&str> {
    let (final_name, unique) = name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.')?;
    let (process, number) = unique.split_once('-')?;
    let is_ours = [process, number]
        .iter()
        .all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_ours.then_some(final_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_skipped() {
        let mut taken = vec![".a.npz.7-0.part".to_string(), ".a.npz.7-1.part".to_string()];
        let created = create_part("a.npz", 7, |name| {
            if taken.contains(&name.to_string()) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            taken.push(name.to_string());
            Ok(name.to_string())
        });
        assert_eq!(created.unwrap(), ".a.npz.7-2.part");
        assert_eq!(final_name(".a.npz.7-2.part"), Some("a.npz"));
        let full = create_part("a", 7, |_| Err::<(), _>(ErrorKind::StorageFull.into()));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn other_names_are_not_incomplete_files() {
        for name in [
            ".mydownload.part",
            ".a.npz.part",
            ".a.npz.7-.part",
            ".a.npz.-7.part",
            ".a.npz.7-8-9.part",
            ".a.npz.7.part",
            ".7-8.part",
            "a.npz.7-8.part",
            ".a.npz.7-8.partial",
        ] {
            assert_eq!(final_name(name), None, "{name}");
        }
    }
}
