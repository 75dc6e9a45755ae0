//! The live line of a diagnosis: which part is measured, and how many there are.

use super::Part;
use crate::progress::{self, LiveLine};
use feedrate_report::ceilings as words;
use feedrate_results::diagnosis::Rung;

/// Parts in the order in which they are measured: what a sample costs, the others rest on.
const MEASURED: [Rung; Rung::ALL.len()] = [
    Rung::Loader,
    Rung::Device,
    Rung::FileSystem,
    Rung::Opens,
    Rung::LoaderNull,
    Rung::Decode,
    Rung::Client,
    Rung::LoaderWarm,
];

impl Part<'_> {
    pub(super) fn line(&self, name: Rung) -> LiveLine {
        let parts = MEASURED.into_iter();
        let parts = parts.filter(|of| *of != Rung::Client || self.plan.loader.client.is_some());
        let parts: Vec<Rung> = parts.collect();
        let at = parts.iter().position(|of| *of == name).unwrap_or_default() + 1;
        let what = format!("measuring {at} of {}: {}", parts.len(), words::name(name));
        progress::waiting(&what, self.viewer.clone())
    }
}
