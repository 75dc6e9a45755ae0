//! Studies from other people, with scripts, links and settings that name commands and files. Nothing in them is executed, and no file outside
//! changes.

use super::Class;
use super::case::{Case, workload};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

pub(super) static CLASS: Class = Class {
    name: "received_studies",
    noun: "commands in received studies",
    cases: 40,
    short_cases: 4,
    parallel_cases: 2,
    run,
};

/// What the folder contains besides the study.
#[derive(Clone, Copy, Debug)]
enum Plant {
    /// A description of a run with a clean-up script and a file to append to.
    Running,
    /// A link in place of a file of the state.
    Link(&'static str),
    /// Settings of the launcher.
    Launching(&'static str, &'static str),
    /// Scripts with the names of scripts that a run writes.
    Scripts,
    /// A hook in the CSV.
    Hook,
    /// A repository with commands in its configuration.
    Repository,
    /// Modules and programs with the names of common ones.
    Programs,
}

const PLANTS: &[Plant] = &[
    Plant::Running,
    Plant::Link("running"),
    Plant::Link("lock"),
    Plant::Link("settings.json"),
    Plant::Link("logs"),
    Plant::Launching("prologue", "touch ran"),
    Plant::Launching("arguments", "--prefix=touch ran"),
    Plant::Scripts,
    Plant::Hook,
    Plant::Repository,
    Plant::Programs,
];

const COMMANDS: [&str; 5] =
    ["study status study.csv", "study run study.csv", "report study.csv", "show results", "list ."];

fn run(case: &mut Case) -> Result<u32> {
    case.write("workload.yaml", workload(8, 20_000, 2, "train:\n  epochs: 1\n"))?;
    case.write("study.csv", "model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n")?;
    case.feedrate(&["study", "run", "study.csv", "--limit", "1"])?.with_code(&[0])?;
    case.create_user_files("")?;
    let victim = case.path("../output/victim");
    case.user_files.create_file(victim, &mut case.random)?;
    let first = case.random.pick(PLANTS);
    let second = case.random.pick(PLANTS);
    for plant in [first, second] {
        add(case, plant)?;
    }
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        let ended = case.feedrate(&words)?.with_code(&[0, 1, 2, 3, 4])?;
        ensure!(
            !case.path("ran").exists() && !case.path("study.study/ran").exists(),
            "executed: {first:?}, {second:?}: {}",
            ended.summary()
        );
        case.user_files.check_unchanged()?;
    }
    Ok(COMMANDS.len() as u32)
}

fn add(case: &Case, plant: Plant) -> Result<()> {
    let ran = format!("touch {}\n", case.path("ran").display());
    let victim = case.path("../output/victim");
    match plant {
        Plant::Running => {
            case.write("study.study/x.sh", &ran)?;
            let text = serde_json::json!({ "cleanup": "study.study/x.sh", "stderr": victim });
            replace(case, "study.study/running", &text.to_string())
        }
        Plant::Link(name) => {
            let path = case.path("study.study").join(name);
            if path.is_dir() && !path.is_symlink() {
                fs::rename(&path, path.with_extension("old"))?;
            } else {
                let _ = fs::remove_file(&path);
            }
            Ok(symlink(victim, path)?)
        }
        Plant::Launching(key, command) => {
            let name = "study.study/settings.json";
            let Ok(text) = fs::read(case.path(name)) else { return Ok(()) };
            let Ok(mut settings) = serde_json::from_slice::<Value>(&text) else { return Ok(()) };
            settings["launching"][key] = vec![command].into();
            replace(case, name, &settings.to_string())
        }
        Plant::Scripts => {
            for attempt in 1..4 {
                for name in ["run.sh", "cleanup.sh", "job.sh"] {
                    let folder = format!("study.study/logs/{attempt}-generate");
                    if case.path("study.study/logs").is_dir() {
                        case.write(&format!("{folder}/{name}"), &ran)?;
                    }
                }
            }
            replace(case, "study.study/running", "running\n")
        }
        Plant::Hook => {
            let csv = "# hook x: touch ran\nmodel,processes,overrides,run\nworkload.yaml,2,study.hook.x=1,N\n";
            replace(case, "study.csv", csv)
        }
        Plant::Repository => {
            let config = "[core]\n\tfsmonitor = touch ran\n\tpager = touch ran\n[filter \"x\"]\n\tclean = touch ran\n";
            replace(case, ".git/config", config)?;
            replace(case, ".git/HEAD", "ref: refs/heads/main\n")?;
            replace(case, ".gitattributes", "* filter=x\n")
        }
        Plant::Programs => {
            for name in ["json.py", "sitecustomize.py", "git", "bash", "feedrate", "lfs", "python3"]
            {
                replace(case, name, &format!("#!/bin/sh\n{ran}"))?;
                fs::set_permissions(case.path(name), fs::Permissions::from_mode(0o755))?;
            }
            Ok(())
        }
    }
}

/// Writes a file in place of a file or link.
fn replace(case: &Case, name: &str, text: &str) -> Result<()> {
    let _ = fs::remove_file(case.path(name));
    case.write(name, text)
}
