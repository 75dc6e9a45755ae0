//! Which datasets a study keeps while its runs need them in turn. Decides; deletes nothing.

use std::path::PathBuf;

/// What becomes of datasets that the study made. Those of others are never touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Each stays.
    Keep,
    /// Each stays until its place is needed: then the least needed goes first.
    #[default]
    MakeRoom,
    /// Each goes as soon as no pending run needs it.
    DeleteUnneeded,
}

impl Policy {
    /// Every policy.
    pub const ALL: &[Policy] = &[Policy::Keep, Policy::MakeRoom, Policy::DeleteUnneeded];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Keep => "keep",
            Policy::MakeRoom => "make-room",
            Policy::DeleteUnneeded => "delete-unneeded",
        }
    }
}

/// A dataset that the study made and may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Where it lies.
    pub folder: PathBuf,
    /// On the storage.
    pub bytes: u64,
    /// How many runs come before the next that needs it; `None` where none does.
    pub next_use: Option<usize>,
}

/// A dataset to be made, and the room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Still to be written.
    pub needed_bytes: u64,
    /// `None` where it cannot be told.
    pub free_bytes: Option<u64>,
}

/// There is too little room, whatever is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// By which the room is short.
    pub short_bytes: u64,
}

/// The datasets to delete before the next run, which itself needs none of `owned`, the least needed first.
///
/// # Errors
/// There is too little room even without all that may go.
pub fn to_delete(policy: Policy, owned: &[Owned], room: Room) -> Result<Vec<PathBuf>, TooLittle> {
    let mut candidates: Vec<&Owned> = owned.iter().collect();
    // Not needed comes first, then what is needed last; of equal ones the largest.
    candidates.sort_by_key(|of| (of.next_use.map_or(0, |n| usize::MAX - n), u64::MAX - of.bytes));
    let mut free_bytes = room.free_bytes.unwrap_or(u64::MAX);
    let mut gone = Vec::new();
    for of in candidates {
        let is_needless = policy == Policy::DeleteUnneeded && of.next_use.is_none();
        let makes_room = policy != Policy::Keep && free_bytes < room.needed_bytes;
        if is_needless || makes_room {
            free_bytes = free_bytes.saturating_add(of.bytes);
            gone.push(of.folder.clone());
        }
    }
    match room.needed_bytes.checked_sub(free_bytes).filter(|short| *short > 0) {
        Some(short_bytes) => Err(TooLittle { short_bytes }),
        None => Ok(gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        policy: Policy,
        owned: &[(&str, u64, Option<usize>)],
        (needed_bytes, free_bytes): (u64, Option<u64>),
        expected: Result<&[&str], u64>,
    ) {
        let owned: Vec<Owned> = owned
            .iter()
            .map(|&(folder, bytes, next_use)| Owned { folder: folder.into(), bytes, next_use })
            .collect();
        let found = to_delete(policy, &owned, Room { needed_bytes, free_bytes });
        let expected = expected.map(|names| names.iter().map(PathBuf::from).collect());
        assert_eq!(found.map_err(|error| error.short_bytes), expected);
    }

    #[test]
    fn room_is_made_by_what_is_needed_least() {
        let owned =
            [("soon", 50, Some(1)), ("late", 30, Some(7)), ("never", 10, None), ("nor", 20, None)];
        let make_room = |room, expected| check(Policy::MakeRoom, &owned, room, expected);
        make_room((100, Some(100)), Ok(&[]));
        make_room((100, Some(90)), Ok(&["nor"]));
        make_room((100, Some(75)), Ok(&["nor", "never"]));
        make_room((100, Some(65)), Ok(&["nor", "never", "late"]));
        make_room((100, Some(0)), Ok(&["nor", "never", "late", "soon"]));
        make_room((200, Some(0)), Err(90));
        make_room((100, None), Ok(&[]));
    }

    #[test]
    fn other_policies_keep_or_delete_whatever_the_room() {
        let owned = [("soon", 50, Some(1)), ("never", 10, None)];
        check(Policy::Keep, &owned, (100, Some(90)), Err(10));
        check(Policy::Keep, &owned, (100, Some(100)), Ok(&[]));
        check(Policy::DeleteUnneeded, &owned, (0, Some(0)), Ok(&["never"]));
        check(Policy::DeleteUnneeded, &owned, (100, Some(60)), Ok(&["never", "soon"]));
    }
}
