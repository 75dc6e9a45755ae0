//! Doubts that were known before or while running and that no figure of a record shows: they are passed on, never found here.

use super::{Doubt, Severity};

pub(super) static RECORDS_SHRUNK: Doubt = Doubt {
    name: "records_shrunk",
    severity: Severity::Warning,
    meaning: "Records were made smaller than the workload's: this is another workload.",
    check: |_| None,
};

pub(super) static NOT_COLD: Doubt = Doubt {
    name: "not_cold",
    severity: Severity::Warning,
    meaning: "The page cache should have been emptied of the dataset, and was not.",
    check: |_| None,
};

pub(super) static NOT_WARM: Doubt = Doubt {
    name: "not_warm",
    severity: Severity::Warning,
    meaning: "The dataset should have been in the page cache when training began, and part of it was not.",
    check: |_| None,
};

pub(super) static SCALED: Doubt = Doubt {
    name: "scaled",
    severity: Severity::Note,
    meaning: "Fewer files or samples than the workload's were used, or smaller tensors in checkpoints: epochs and checkpoints are shorter.",
    check: |_| None,
};

pub(super) static DATASET_FITS_PAGE_CACHE: Doubt = Doubt {
    name: "dataset_fits_page_cache",
    severity: Severity::Note,
    meaning: "The dataset is smaller than the memory, so that later epochs may not touch the storage; page_cache says whether that happened.",
    check: |_| None,
};

pub(super) static CHECKPOINT_NOT_REACHED: Doubt = Doubt {
    name: "checkpoint_not_reached",
    severity: Severity::Note,
    meaning: "Checkpoints are asked for, and the run ended before the first: what they cost is not in the numbers.",
    check: |_| None,
};

pub(super) static EVALUATION_NOT_REACHED: Doubt = Doubt {
    name: "evaluation_not_reached",
    severity: Severity::Note,
    meaning: "Evaluation is asked for, and the run ended before the first: what it costs is not in the numbers.",
    check: |_| None,
};

pub(super) static REPLICATES_DIFFER: Doubt = Doubt {
    name: "replicates_differ",
    severity: Severity::Warning,
    meaning: "Runs that replicate each other by their rows were made by different plans: a workload file or a default changed in between.",
    check: |_| None,
};

pub(super) static NO_REPLICATES: Doubt = Doubt {
    name: "no_replicates",
    severity: Severity::Note,
    meaning: "A difference between runs that were made once: how far they vary from one time to the next is not known. Epochs of one run are no replicates.",
    check: |_| None,
};

pub(super) static SAMPLES_IN_MEMORY: Doubt = Doubt {
    name: "samples_in_memory",
    severity: Severity::Note,
    meaning: "Samples stay in the process's memory after they were read once: later epochs say nothing about the storage.",
    check: |_| None,
};

pub(super) static SHARED_GPU: Doubt = Doubt {
    name: "shared_gpu",
    severity: Severity::Note,
    meaning: "Emulated accelerators shared a GPU: what it shows is of all of them together, and copies of one delay another's.",
    check: |_| None,
};

pub(super) static CHECKPOINTS_EXCEED_DISK: Doubt = Doubt {
    name: "checkpoints_exceed_disk",
    severity: Severity::Warning,
    meaning: "All checkpoints together are larger than what is free where they are to be written.",
    check: |_| None,
};

pub(super) static RAW_CHECKPOINT: Doubt = Doubt {
    name: "raw_checkpoint",
    severity: Severity::Note,
    meaning: "Checkpoints are the bytes of the tensors alone: their size is right, and no framework can load them.",
    check: |_| None,
};

pub(super) static DEVICE_NOT_QUIET: Doubt = Doubt {
    name: "device_not_quiet",
    severity: Severity::Warning,
    meaning: "Others used the device or the processors shortly before a run of a study began, and did not end within the time that was waited.",
    check: |_| None,
};
