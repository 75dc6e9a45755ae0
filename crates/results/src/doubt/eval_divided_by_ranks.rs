//! DLIO divides the utilisation of evaluation by the number of ranks.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "eval_divided_by_ranks",
        severity: Severity::Warning,
        bias: Bias::Unaffected,
        meaning: "DLIO lists the evaluation figures of all ranks one after another instead of averaging utilisation and summing rates, and divides utilisation by the number of ranks.",
        evidence: "{reported_percent:.2} % is reported for {ranks}, which is {undivided_percent:.2} % before the division",
        advice: "multiply the reported utilisation and throughput of evaluation by the number of ranks",
    },
    check: Check::Import(|_, imported| {
        let reported = imported.reported.as_ref()?;
        let ranks = imported.ranks_expected?;
        let entries = reported.list("eval_au_percentage")?.len() as u64;
        let au = reported.metric("eval_au_mean_percentage").filter(|au| *au > 0.0)?;
        if ranks < 2 || entries != u64::from(ranks) * reported.count("epochs")? {
            return None;
        }
        let facts = Facts::new().with("reported_percent", au).with("ranks", ranks);
        Some(facts.with("undivided_percent", au * f64::from(ranks)))
    }),
    #[cfg(test)]
    fires: |root| {
        let more = "\"metric\": {\"eval_au_mean_percentage\": 20.0, \"eval_au_percentage\": [20, 20, 20, 20, 20, 20, 20, 20], ";
        tests::edit_good_run(root, "summary.json", "\"metric\": {", more);
    },
};
