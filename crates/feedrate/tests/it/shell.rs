//! Completions and manual pages.

use crate::harness::Test;
use std::fs;
use std::process::Command;

#[test]
fn completions_contain_the_commands_and_work_in_bash() {
    let test = Test::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = test.feedrate(&["completions", shell]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(
            ["analyze", "write-yaml", "color", "verbose"]
                .iter()
                .all(|word| answer.stdout.contains(word)),
            "{shell}"
        );
    }
    let script = test.feedrate(&["completions", "bash"]).stdout;
    let complete = "COMP_WORDS=(feedrate analy); COMP_CWORD=1; _feedrate feedrate analy feedrate; \
                echo \"${COMPREPLY[@]}\"";
    let output =
        Command::new("bash").args(["-c", &format!("{script}\n{complete}")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "analyze\n", "{output:?}");
}

#[test]
fn each_command_has_a_manual_page_and_none_is_overwritten() {
    let test = Test::new();
    let write = |more: &[&str]| test.feedrate(&[&["man", "share/man1"], more].concat());
    assert_eq!(write(&[]).code, 0);
    let names = ["run", "scale", "study-new", "study-status", "list", "slurm"];
    for name in names {
        let page = fs::read_to_string(test.path(&format!("share/man1/feedrate-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains("Examples:"), "{page}");
    }
    assert!(!test.path("share/man1/feedrate-supervise.1").exists(), "hidden");
    let page = test.path("share/man1/feedrate-run.1");
    fs::write(&page, "mine").unwrap();
    let refused = write(&[]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    assert_eq!(write(&["--force"]).code, 0);
    assert_ne!(fs::read_to_string(&page).unwrap(), "mine");
}
