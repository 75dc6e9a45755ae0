//! Images and arrays inside containers: `webdataset`, `parquet`, `tfrecord`.

use super::read_written;

#[test]
fn we_decode_what_others_put_into_containers() {
    read_written("write_members.py", 64);
}
