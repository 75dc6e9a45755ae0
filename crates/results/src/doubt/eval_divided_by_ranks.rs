//! DLIO's evaluation figures are a rank's, divided by all ranks.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "eval_divided_by_ranks",
    severity: Severity::Warning,
    meaning: "DLIO lists the evaluation figures of all ranks one after another instead of averaging utilisation and summing rates, and divides utilisation by the number of ranks.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let reported = imported.reported.as_ref()?;
        let ranks = u64::from(imported.ranks_expected?);
        let entries = reported.list("eval_au_percentage")?.len() as u64;
        let au = reported.metric("eval_au_mean_percentage").filter(|au| *au > 0.0)?;
        if ranks < 2 || entries != ranks * reported.count("epochs")? {
            return None;
        }
        found(
            format!(
                "{au:.2} % is reported of {ranks} ranks: {:.2} % before it was divided",
                au * ranks as f64
            ),
            "multiply the reported utilisation of evaluation by the ranks, and its rate too",
        )
    }),
};
