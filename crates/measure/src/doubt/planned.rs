//! Doubts that are noticed while planning or running and that no figure of a record shows: they are passed on, never found here.

use super::{DoubtKind, RecordDoubt, Severity};

const fn passed_on(name: &'static str, severity: Severity, meaning: &'static str) -> RecordDoubt {
    RecordDoubt {
        // Whoever notices it writes the text.
        kind: DoubtKind { name, severity, meaning, evidence: "", advice: "" },
        check: None,
        #[cfg(test)]
        cases: &[],
    }
}

pub(super) static RECORDS_SHRUNK: RecordDoubt = passed_on(
    "records_shrunk",
    Severity::Warning,
    "Records were made smaller than the workload's: this is another workload.",
);

pub(super) static NOT_COLD: RecordDoubt = passed_on(
    "not_cold",
    Severity::Warning,
    "The page cache should have been emptied of the dataset, and was not.",
);

pub(super) static NOT_WARM: RecordDoubt = passed_on(
    "not_warm",
    Severity::Warning,
    "The dataset should have been in the page cache when training began, and part of it was not.",
);

pub(super) static SCALED: RecordDoubt = passed_on(
    "scaled",
    Severity::Note,
    "Fewer files or samples than the workload's were used, or smaller tensors in checkpoints: epochs and checkpoints are shorter.",
);

pub(super) static DATASET_FITS_PAGE_CACHE: RecordDoubt = passed_on(
    "dataset_fits_page_cache",
    Severity::Note,
    "The dataset is smaller than the memory, so that later epochs may not touch the storage; page_cache says whether that happened.",
);

pub(super) static CHECKPOINT_NOT_REACHED: RecordDoubt = passed_on(
    "checkpoint_not_reached",
    Severity::Note,
    "Checkpoints are asked for, and the run ended before the first: what they cost is not in the numbers.",
);

pub(super) static EVALUATION_NOT_REACHED: RecordDoubt = passed_on(
    "evaluation_not_reached",
    Severity::Note,
    "Evaluation is asked for, and the run ended before the first: what it costs is not in the numbers.",
);

pub(super) static REPLICATES_DIFFER: RecordDoubt = passed_on(
    "replicates_differ",
    Severity::Warning,
    "Runs that replicate each other by their rows were made by different plans: a workload file or a default changed in between.",
);

pub(super) static NO_REPLICATES: RecordDoubt = passed_on(
    "no_replicates",
    Severity::Note,
    "A difference between runs that were made once: how far they vary from one time to the next is not known. Epochs of one run are no replicates.",
);

pub(super) static SAMPLES_IN_MEMORY: RecordDoubt = passed_on(
    "samples_in_memory",
    Severity::Note,
    "Samples stay in the process's memory after they were read once: later epochs say nothing about the storage.",
);

pub(super) static SHARED_GPU: RecordDoubt = passed_on(
    "shared_gpu",
    Severity::Note,
    "Emulated accelerators shared a GPU: what it shows is of all of them together, and copies of one delay another's.",
);

pub(super) static CHECKPOINTS_EXCEED_DISK: RecordDoubt = passed_on(
    "checkpoints_exceed_disk",
    Severity::Warning,
    "All checkpoints together are larger than what is free where they are to be written.",
);

pub(super) static RAW_CHECKPOINT: RecordDoubt = passed_on(
    "raw_checkpoint",
    Severity::Note,
    "Checkpoints are the bytes of the tensors alone: their size is right, and no framework can load them.",
);

pub(super) static DEVICE_NOT_QUIET: RecordDoubt = passed_on(
    "device_not_quiet",
    Severity::Warning,
    "Others used the device or the processors shortly before a run of a study began, and did not end within the time that was waited.",
);
