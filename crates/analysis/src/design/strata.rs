//! The parts of a design whose runs may be compared: those of one source, one machine and one size of samples. Tests nothing.

use super::{Design, DesignCell, SOURCE, Twins};
use feedrate_results::run::Run;
use feedrate_spec::units;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The setting that names the machine of rank 0.
pub const HOST: &str = "host";

/// A part of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Stratum {
    /// The name that sets it apart from the others; empty where it is the only one.
    pub name: String,
    /// The runs of the part.
    pub design: Design,
}

impl Stratum {
    /// Its runs, as a workload whose name tells them from the other parts.
    pub fn named_design(self) -> Design {
        let names = [self.design.workload, self.name];
        let names = names.into_iter().filter(|name| !name.is_empty());
        Design { workload: names.collect::<Vec<_>>().join(", "), ..self.design }
    }
}

/// Source, machine, and the size of samples where that sets a run apart. What is not known is the same as nothing that is.
type Place<'a> = (Option<String>, Option<&'a str>, SampleSize);

/// The size of samples of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SampleSize {
    /// That of most runs, or one that was varied to be compared.
    Common,
    Other(u64),
    Unknown,
}

impl Design {
    /// Its parts, in the order of sources and machines. Runs of another size of samples than most are a part of their own, but for those that were made to
    /// compare sizes: they differ from runs of the common size in nothing else, or set nothing else.
    pub fn strata<R: Borrow<Run>>(&self, runs: &[R]) -> Vec<Stratum> {
        let common = self.common_size(runs);
        let mut parts: BTreeMap<Place, BTreeSet<usize>> = BTreeMap::new();
        for cell in &self.cells {
            let has_partner = self.cells.iter().any(|other| {
                size(runs[other.runs[0]].borrow()) == common && self.differ_in_size(cell, other)
            });
            for &at in &cell.runs {
                let run: &Run = runs[at].borrow();
                let is_apart = size(run) != common && !has_partner && !sets_size_alone(run);
                let size = match size(run) {
                    _ if !is_apart => SampleSize::Common,
                    Some(bytes) => SampleSize::Other(bytes),
                    None => SampleSize::Unknown,
                };
                // Which host of a submitted system has rank 0 is chance.
                let host = run.settings.get(HOST).map(String::as_str);
                let host = if run.submission.is_none() { host } else { None };
                parts.entry((origin(run), host, size)).or_default().insert(at);
            }
        }
        let number = parts.len();
        let sources: BTreeSet<_> = parts.keys().map(|place| &place.0).collect();
        let hosts: BTreeSet<_> = parts.keys().map(|place| place.1).collect();
        let has_sizes = parts.keys().any(|place| place.2 != SampleSize::Common);
        let parts = parts.iter().map(|((source, host, size), own)| {
            let mut names: Vec<String> = Vec::new();
            let source = source.clone().unwrap_or("unknown source".into());
            names.extend((1 < sources.len()).then_some(source));
            names.extend((1 < hosts.len()).then(|| host.unwrap_or("unknown host").into()));
            let samples_of = |bytes| format!("samples of {}", units::bytes(bytes));
            names.extend(match size {
                SampleSize::Common if has_sizes => common.map(samples_of),
                SampleSize::Common => None,
                SampleSize::Other(bytes) => Some(samples_of(*bytes)),
                SampleSize::Unknown => Some("samples of unknown size".into()),
            });
            // A part of a design is a design of its own; the whole of it stays as it is.
            let twins = if number == 1 { Twins::Apart } else { Twins::Follow };
            let design = self.selected(
                |of| ![SOURCE, HOST].contains(&of.name.as_str()),
                |run| own.contains(&run),
                twins,
            );
            Stratum { name: if number == 1 { String::new() } else { names.join(", ") }, design }
        });
        parts.collect()
    }

    /// The size of samples that most runs have.
    fn common_size<R: Borrow<Run>>(&self, runs: &[R]) -> Option<u64> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        let all = self.cells.iter().flat_map(|cell| &cell.runs);
        for size in all.filter_map(|&run| size(runs[run].borrow())) {
            *counts.entry(size).or_default() += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count).map(|(size, _)| size)
    }

    fn differ_in_size(&self, a: &DesignCell, b: &DesignCell) -> bool {
        let levels = a.levels.iter().zip(&b.levels).zip(&self.factors);
        levels.into_iter().all(|((a, b), factor)| a == b || is_of_size(&factor.name))
    }
}

/// The owner of runs: a source's, or a submission's. A run of a workload that nothing tells is alone.
fn origin(run: &Run) -> Option<String> {
    if !run.is_workload_known() {
        return Some(run.path.display().to_string());
    }
    let submission = || run.submission.as_ref().map(ToString::to_string);
    run.settings.get(SOURCE).cloned().or_else(submission)
}

/// Whether a setting is one of the size of samples: `record_length_bytes`, its deviation.
fn is_of_size(name: &str) -> bool {
    name.contains("record_")
}

fn sets_size_alone(run: &Run) -> bool {
    let asked = run.study.as_ref().map_or(&run.overrides, |study| &study.overrides);
    !asked.is_empty() && asked.iter().all(|text| is_of_size(text))
}

fn size(run: &Run) -> Option<u64> {
    run.record_length_bytes.map(|bytes| bytes as u64)
}
