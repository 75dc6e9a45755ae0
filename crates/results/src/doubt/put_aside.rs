//! A study put the run aside.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "put_aside",
    severity: Severity::Note,
    meaning: "A study put the run aside, as incomplete or superseded by a later one: it is no replicate.",
    check: Check::OfRun(|loaded| {
        let aside = loaded.run.put_aside.as_deref()?;
        found(
            format!("it lies in a folder `{aside}`"),
            "nothing: it is shown, and counts for nothing",
        )
    }),
};
