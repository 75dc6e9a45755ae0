//! PyPI's `datasets` and `pyarrow`: `arrow`. The layouts of Megatron-LM and MosaicML Streaming: `megatron`, `mds`.

use super::read_written;

#[test]
fn feedrate_reads_files_of_datasets_and_token_files() {
    read_written("write_tokens.py", 20);
}
