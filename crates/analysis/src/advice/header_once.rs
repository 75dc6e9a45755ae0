//! Advises shuffling files instead of samples if reading most samples opens a file and reads its header again.

use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_spec::workload::Shuffle;

/// Opens per sample above which files are not read from start to end.
const OPENS_MIN: f64 = 0.5;

pub(super) static RULE: Rule = Rule {
    name: "header_once",
    source: "I/O analysis of cosmic_tagger with Darshan, reads of its header; dfanalyzer, metadata",
    sees: "files of several samples are opened again for most samples",
    proposes: "`reader.sample_shuffle=off`, shuffle files instead",
    change: "",
    why: "{opened_files} were opened although there are only {files}, and each open reads the header again: samples are shuffled over all files",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::samples_of_all_files,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Open, WaitCause::Read])?;
    let plan = case.plan();
    let sample = case.sample()?;
    let samples_per_file = plan.dataset.samples_per_file;
    let is_shuffled = plan.loader.sample_shuffle != Shuffle::Off && 1 < samples_per_file;
    // The first read after each open is the header.
    let headers_s = sample.open_s + sample.read_s * (sample.opens / sample.reads).min(1.0);
    let repeated_share = 1.0 - 1.0 / (sample.opens * samples_per_file as f64);
    let share = repeated_share * headers_s / (sample.open_s + sample.read_s);
    (is_shuffled && OPENS_MIN <= sample.opens).then(|| {
        let evidence = Facts::new()
            .with("opened_files", case.derived.io.opens)
            .with("files", plan.dataset.files_train)
            .with("reads_per_sample", sample.reads);
        let overrides = ["reader.sample_shuffle=off".into(), "reader.file_shuffle=seed".into()];
        let proposal = RULE.proposal(&overrides, lost_s * share, evidence);
        Proposal { risk: Risk::Shuffling, ..proposal }
    })
}
