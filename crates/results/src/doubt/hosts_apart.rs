//! Hosts ran a part each, and waited for none of the others.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "hosts_apart",
        severity: Severity::Note,
        meaning: "Each host ran a DLIO of its own at the same time, as MLPerf Storage 0.5 has it, and left a folder of its own: an accelerator waited for those of its own host only. They are one run here: rates are those of all hosts together, utilisation and times their mean.",
        evidence: "{hosts} hosts ran at the same time, of {accelerators} in all: {folders:.99}",
        advice: "compare it with runs of as many hosts; of one host alone, give its folder",
    },
    check: Check::AmongRuns(|relations, index| {
        let run = &relations.runs[index];
        let names = run.parts.iter().filter_map(|path| path.file_name());
        let names: Vec<String> = names.map(|name| format!("`{}`", name.display())).collect();
        let facts = Facts::new().with("hosts", names.len()).with("folders", names);
        (!run.parts.is_empty()).then_some(facts.with_known("accelerators", run.accelerators))
    }),
    #[cfg(test)]
    fires: |root| {
        for hostname in ["one", "two"] {
            let name = format!("closed/x/results/y-Nhosts2/unet3d/run_1/{hostname}");
            tests::Fake { hostname, ..tests::good() }.write(root, &name);
        }
    },
};
