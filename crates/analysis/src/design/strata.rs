//! The strata of a design. The runs of a stratum may be compared, as they have one source, one machine and one sample size.

use super::{AliasedFactors, Design, DesignCell, SOURCE};
use feedrate_results::run::Run;
use feedrate_spec::units;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The setting that names the machine of rank 0.
pub const HOST: &str = "host";

/// The part of a design with runs that may be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Stratum {
    /// The name that distinguishes it from the other strata; empty if it is the only one.
    pub name: String,
    /// The design of its runs.
    pub design: Design,
}

impl Stratum {
    /// The design of its runs, with the name of the stratum appended to the name of the workload.
    pub fn named_design(self) -> Design {
        let names = [self.design.workload, self.name];
        let known: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        Design { workload: known.join(", "), ..self.design }
    }
}

/// The properties that separate strata. Unknown values are equal to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StratumKey<'a> {
    source: Option<String>,
    host: Option<&'a str>,
    sample_size: SampleSize,
}

/// The sample size of a stratum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SampleSize {
    /// The size of most runs, or a size that was varied to compare sizes.
    Common,
    Other(u64),
    Unknown,
}

impl Design {
    /// The strata, sorted by source and machine.
    ///
    /// Runs with an uncommon sample size form a separate stratum, unless they were made to compare sizes. Such runs differ from runs of the
    /// common size only in their size, or override only the size.
    pub fn strata<R: Borrow<Run>>(&self, runs: &[R]) -> Vec<Stratum> {
        let common_size = self.common_size(runs);
        let mut strata: BTreeMap<StratumKey, BTreeSet<usize>> = BTreeMap::new();
        for cell in &self.cells {
            let has_counterpart = self.cells.iter().any(|other| {
                sample_size(runs[other.runs[0]].borrow()) == common_size
                    && self.differ_only_in_size(cell, other)
            });
            for &index in &cell.runs {
                let run: &Run = runs[index].borrow();
                let size = sample_size(run);
                let compares_sizes = has_counterpart || overrides_only_size(run);
                let sample_size = match size {
                    _ if size == common_size || compares_sizes => SampleSize::Common,
                    Some(bytes) => SampleSize::Other(bytes),
                    None => SampleSize::Unknown,
                };
                // In a submission, the host of rank 0 is random.
                let host = match run.submission {
                    Some(_) => None,
                    None => run.settings.get(HOST).map(String::as_str),
                };
                let key = StratumKey { source: source(run), host, sample_size };
                strata.entry(key).or_default().insert(index);
            }
        }
        let is_single = strata.len() == 1;
        let sources: BTreeSet<_> = strata.keys().map(|key| &key.source).collect();
        let hosts: BTreeSet<_> = strata.keys().map(|key| key.host).collect();
        let has_sizes = strata.keys().any(|key| key.sample_size != SampleSize::Common);
        let name = |key: &StratumKey| {
            let mut names: Vec<String> = Vec::new();
            if 1 < sources.len() {
                names.push(key.source.clone().unwrap_or("unknown source".into()));
            }
            if 1 < hosts.len() {
                names.push(key.host.unwrap_or("unknown host").into());
            }
            let samples = |bytes| format!("samples of {}", units::bytes(bytes));
            names.extend(match key.sample_size {
                SampleSize::Common if has_sizes => common_size.map(samples),
                SampleSize::Common => None,
                SampleSize::Other(bytes) => Some(samples(bytes)),
                SampleSize::Unknown => Some("samples of unknown size".into()),
            });
            names.join(", ")
        };
        // A single stratum keeps the factors of the design.
        let aliased_factors =
            if is_single { AliasedFactors::Separate } else { AliasedFactors::Merged };
        strata
            .iter()
            .map(|(key, members)| Stratum {
                name: if is_single { String::new() } else { name(key) },
                design: self.select(
                    |factor| ![SOURCE, HOST].contains(&factor.name.as_str()),
                    |run| members.contains(&run),
                    aliased_factors,
                ),
            })
            .collect()
    }

    /// The sample size that most runs have.
    fn common_size<R: Borrow<Run>>(&self, runs: &[R]) -> Option<u64> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        let indexes = self.cells.iter().flat_map(|cell| &cell.runs);
        for bytes in indexes.filter_map(|&run| sample_size(runs[run].borrow())) {
            *counts.entry(bytes).or_default() += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count).map(|(bytes, _)| bytes)
    }

    fn differ_only_in_size(&self, a: &DesignCell, b: &DesignCell) -> bool {
        let levels = a.levels.iter().zip(&b.levels).zip(&self.factors);
        levels.into_iter().all(|((a, b), factor)| a == b || is_size_setting(&factor.name))
    }
}

/// The source or submission of a run. Each run of an unknown workload is a separate source.
fn source(run: &Run) -> Option<String> {
    if !run.is_workload_known() {
        return Some(run.path.display().to_string());
    }
    let submission = || run.submission.as_ref().map(ToString::to_string);
    run.settings.get(SOURCE).cloned().or_else(submission)
}

/// Whether a setting determines the sample size, like `record_length_bytes` and its deviation.
fn is_size_setting(name: &str) -> bool {
    name.contains("record_")
}

fn overrides_only_size(run: &Run) -> bool {
    let overrides = run.study.as_ref().map_or(&run.overrides, |study| &study.overrides);
    !overrides.is_empty() && overrides.iter().all(|text| is_size_setting(text))
}

fn sample_size(run: &Run) -> Option<u64> {
    run.record_length_bytes.map(|bytes| bytes as u64)
}
