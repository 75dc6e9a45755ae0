//! Names of files that are not whole yet: `train/a.npz` is written as `train/.a.npz.4711-0.part`, which no other process does.

use std::io::{self, ErrorKind};

/// Have `create` make a new file under a name that process `process` may write `name` under, in the same folder.
///
/// # Errors
/// Those of `create`, but for a file that is there already: then it is asked for another.
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

/// The name of the file whose writing was broken off and left `name`: of `.a.npz.4711-0.part`, `a.npz`.
pub fn part_of(name: &str) -> Option<&str> {
    let (whole, unique) = name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.')?;
    let (process, number) = unique.split_once('-')?;
    let is_ours = [process, number]
        .iter()
        .all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_ours.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_left_to_who_took_it() {
        let mut taken = vec![".a.npz.7-0.part".to_string(), ".a.npz.7-1.part".to_string()];
        let made = create_part("a.npz", 7, |name| {
            if taken.contains(&name.to_string()) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            taken.push(name.to_string());
            Ok(name.to_string())
        });
        assert_eq!(made.unwrap(), ".a.npz.7-2.part");
        assert_eq!(part_of(".a.npz.7-2.part"), Some("a.npz"));
        let full = create_part("a", 7, |_| Err::<(), _>(ErrorKind::StorageFull.into()));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn parts_of_others_are_no_parts() {
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
            assert_eq!(part_of(name), None, "{name}");
        }
    }
}
