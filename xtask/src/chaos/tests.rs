//! Tests of the campaign's checks, with faulty programs.

use super::case::Case;
use super::mutate;
use super::random::Random;
use super::{CLASSES, Options};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder that is removed when dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(name: &str) -> Self {
        TemporaryFolder(
            std::env::temp_dir().join(format!("feedrate-chaos-test-{name}-{}", std::process::id())),
        )
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run_script(name: &str, script: &str, timeout: Duration) -> Result<i32, String> {
    let folder = TemporaryFolder::new(name);
    let case = Case::new(1, folder.0.clone(), Path::new("")).unwrap();
    let ended = case.start("sh", &["-c", script]).unwrap().wait_for(timeout);
    ended.map(|ended| ended.code).map_err(|error| format!("{error:#}"))
}

#[test]
fn programs_that_panic_or_hang_are_found() {
    let minute = Duration::from_secs(60);
    assert_eq!(run_script("fine", "exit 3", minute), Ok(3));
    assert!(run_script("panic", "exit 101", minute).unwrap_err().contains("panic"));
    assert!(run_script("abort", "kill -ABRT $$", minute).unwrap_err().contains("panic"));
    let hang = run_script("hang", "exec sleep 600", Duration::from_millis(300));
    assert!(hang.unwrap_err().contains("hangs"));
}

#[test]
fn changed_files_of_users_and_leftovers_are_found() {
    let check = |name: &str, fault: fn(&Case), expected: Option<&str>| {
        let folder = TemporaryFolder::new(name);
        let mut case = Case::new(7, folder.0.clone(), Path::new("")).unwrap();
        let mine = case.path("data/mine.part");
        case.user_files.create_file(mine, &mut case.random).unwrap();
        fault(&case);
        let message = case.check_clean().err().map(|error| format!("{error:#}"));
        let is_expected = match (&message, expected) {
            (Some(message), Some(expected)) => message.contains(expected),
            (message, expected) => message.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{message:?}");
    };
    check("left", |_| (), None);
    check("gone", |case| std::fs::remove_file(case.path("data/mine.part")).unwrap(), Some("gone"));
    check("changed", |case| case.write("data/mine.part", "ours").unwrap(), Some("changed"));
    check("torn", |case| case.write("data/.x.part", "").unwrap(), None);
    let create_part = |case: &Case| {
        case.write("data/manifest.json", "{}").unwrap();
        case.write("data/.x.part", "").unwrap();
    };
    check("part", create_part, Some("left behind"));
    check("killed", |case| create_part_of_run(case, false), None);
    check("complete", |case| create_part_of_run(case, true), Some("left behind"));
}

fn create_part_of_run(case: &Case, complete: bool) {
    case.write("out/record.json", format!("{{\"complete\":{complete}}}")).unwrap();
    case.write("out/.x.part", "").unwrap();
}

#[test]
fn a_seed_reproduces_a_case() {
    let mutated = |seed| {
        let mut random = Random::new(seed);
        let mut content: Vec<u8> = (0..200).collect();
        mutate::mutate_bytes(&mut content, &mut random);
        mutate::mutate_text(&mut content, &mut random);
        content
    };
    assert_eq!(mutated(5), mutated(5));
    assert_ne!(mutated(5), mutated(6));
}

#[test]
fn options_are_checked() {
    let parse = |words: &[&str]| Options::try_parse_from([&["chaos"], words].concat());
    let options = parse(&["--only", "lost_ranks", "--seed", "7", "--short"]).unwrap();
    assert!(options.short && options.seed == Some(7) && options.only == ["lost_ranks"]);
    assert!(parse(&["--only", "nonsense"]).is_err());
    let mut names: Vec<&str> = CLASSES.iter().map(|class| class.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CLASSES.len());
}
