//! Decides which samples are not decoded, as in MLPerf Storage, and by which settings MLPerf Storage identifies the workload.

use super::{Builder, PlanOptions};
use crate::catalog::{Ability, Catalog};
use crate::mlperf::{self, CoreConfig, Identity};
use crate::workload::{Workload, given_json};

/// The workload with plain bytes in place of encoded samples, if these are not decoded; `None` if it needs no change. The files keep their
/// extension. Where DLIO is replaced, samples that MLPerf's client does not decode are not decoded by default.
pub(super) fn read_as_plain_bytes(
    workload: &Workload,
    options: &PlanOptions,
    catalog: &Catalog,
) -> Option<Workload> {
    let decodes = if options.as_dlio && !workload.is_given("reader.decode") {
        mlperf::decodes_samples(&workload.model_name)
    } else {
        workload.reader_decode
    };
    let encodes_samples = catalog
        .format(&workload.dataset_format)
        .is_some_and(|format| format.member.has(Ability::EncodesSamples));
    let mut formats = catalog.formats.iter().map(|format| format.member);
    let plain = formats.find(|member| member.has(Ability::PlainBytes))?;
    if !encodes_samples || decodes {
        return None;
    }
    let mut undecoded = workload.clone();
    undecoded.dataset_format = plain.name.into();
    Some(undecoded)
}

impl Builder<'_> {
    /// Returns the settings that identify the workload; `None` for workloads that are not MLPerf's, and for files of other programs.
    pub(super) fn core_config(&self) -> Option<CoreConfig> {
        if self.w.dataset_foreign {
            return None;
        }
        let mut config = CoreConfig::new(&given_json(self.w))?;
        let PlanOptions { scale, shrink_records, .. } = *self.options;
        if shrink_records != 1.0 {
            config.add_option("--shrink-records", Some(shrink_records));
        }
        // A scaled run is no result of the class, even where only the number of files is smaller, which is not among the settings.
        if scale != 1.0 {
            config.add_option("--scale", Some(scale));
        }
        Identity::new(&config, &self.options.name).map(|_| config)
    }
}
