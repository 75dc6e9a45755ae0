//! Images and arrays inside containers: `webdataset`, `parquet`, `tfrecord`.

use super::read_written;

#[test]
fn members_of_foreign_containers_are_decoded() {
    read_written("write_members.py", 64);
}
