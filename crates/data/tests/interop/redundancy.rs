//! Tests with the compressors of pyarrow: content has the configured compressibility, and no compressor finds its copies.

use super::check_written;
use feedrate_data::content::Content;
use feedrate_spec::shape::{Element, Redundancy};
use serde_json::json;

const SAMPLE_BYTES: usize = 2 << 20;

#[test]
fn compressors_save_the_configured_share() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for (compressible_percent, duplicate_percent) in
        [(0, 0), (20, 0), (50, 0), (80, 0), (95, 0), (0, 50), (50, 50)]
    {
        let mut content =
            Content::with_redundancy(3, Redundancy { compressible_percent, duplicate_percent });
        let mut bytes = vec![0; 4 * SAMPLE_BYTES];
        for (sample, bytes) in bytes.chunks_mut(SAMPLE_BYTES).enumerate() {
            content.fill(sample as u64, 0, Element::Uint8, bytes);
        }
        let path = folder.path().join(format!("{compressible_percent}_{duplicate_percent}"));
        std::fs::write(&path, bytes).unwrap();
        cases.push(json!({"path": path, "percent": compressible_percent}));
    }
    check_written("check_redundancy.py", folder.path(), cases);
}
