//! Nobody knows what was run.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "no_config",
    severity: Severity::Note,
    meaning: "There is no readable `config.yaml`: dataset, batch size and loader are known only as far as other files tell, and what follows from them is missing.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        if imported.config.is_known() {
            return None;
        }
        let log = match imported.log.steps_of {
            Some([samples, files, batch]) => {
                format!("`dlio.log` tells {files} files of {samples} samples, batch {batch}")
            }
            None => "no other file tells of dataset and loader".into(),
        };
        found(log, "copy Hydra's folder (`.hydra`, `dlio_config`) with the results")
    }),
};
