//! Reads of a run by size and number; the shares of reads in order are metrics.

use crate::metric;
use crate::record::Record;
use crate::record::access::BIN_NAMES;
use serde::{Serialize, Serializer};

/// So many common sizes are told, as Darshan's ACCESS1 to ACCESS4.
const COMMON_SIZES: usize = 4;

/// How files were read.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the counters of these names say it")]
pub struct Access {
    pub reads: u64,
    pub opens: u64,
    /// `null` where the record does not say.
    pub request_bytes: Option<RequestBytes>,
}

/// Sizes of reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestBytes {
    /// Reads by size, in Darshan's bins, those without any left out.
    #[serde(serialize_with = "as_map")]
    pub histogram: Vec<(&'static str, u64)>,
    /// The commonest sizes, the commonest first.
    pub common: Vec<Common>,
}

/// A common size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Common {
    /// The size.
    pub bytes: u64,
    /// Reads of it, at least.
    pub count: u64,
}

impl Access {
    /// Sum up a record.
    pub fn of(record: &Record) -> Self {
        let io = metric::access_of_run(record);
        let counted = io.reads == 0 || io.access.reads() > 0;
        Access {
            reads: io.reads,
            opens: io.opens,
            request_bytes: counted.then(|| RequestBytes::of(&io.access)),
        }
    }
}

impl RequestBytes {
    fn of(access: &crate::record::access::Access) -> Self {
        let bins = BIN_NAMES.into_iter().zip(access.sizes).filter(|&(_, count)| count > 0);
        let sizes = access.common.top(COMMON_SIZES).into_iter();
        let common = sizes.map(|size| Common { bytes: size.bytes, count: size.at_least() });
        RequestBytes { histogram: bins.collect(), common: common.collect() }
    }
}

/// In the order of the sizes.
fn as_map<S: Serializer>(bins: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(bins.iter().copied())
}
