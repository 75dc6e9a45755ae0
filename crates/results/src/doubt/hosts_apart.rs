//! Hosts ran separate DLIO processes that did not wait for each other.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "hosts_apart",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "Each host ran a separate DLIO at the same time, as in MLPerf Storage 0.5, and wrote a separate folder. An accelerator waited only for those on its host. The folders are read as one run: rates are summed over hosts, and utilisation and times are averaged.",
        evidence: "{hosts} hosts ran at the same time, with {accelerators} in all: {folders:.99}",
        advice: "compare the run with others on the same number of hosts; pass the folder of one host to see it alone",
    },
    check: Check::Set(|relations, index| {
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
            tests::Fake { hostname, ..tests::good_run() }.write(root, &name);
        }
    },
};
