//! `jsonl`: JSON lines of any content. Each line is one sample, which is read and not parsed. Numbers in arrays are the
//! format `json`.

use super::Format;
use super::lines::{self, RowRules};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "jsonl",
    summary: "JSON lines of any content; each line is a sample, which is read and not parsed.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::Undescribed,
        Ability::Sequential,
        Ability::ReadOnly,
    ],
};

const RULES: RowRules =
    RowRules { skips_blank: true, has_quotes: false, has_header: false, is_json: true };

pub(super) static FORMAT: Format =
    lines::format(&MEMBER, &["ndjson", "json"], |options| lines::cursor(options, RULES));
