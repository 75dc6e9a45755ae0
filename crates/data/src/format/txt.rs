//! `txt`: plain text, such as tokens or sentences. Each line is one sample.

use super::Format;
use super::lines::{self, RowRules};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "txt",
    summary: "Text, such as words or tokens; each line is a sample.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::Undescribed,
        Ability::Sequential,
        Ability::ReadOnly,
    ],
};

const RULES: RowRules =
    RowRules { skips_blank: false, has_quotes: false, has_header: false, is_json: false };

pub(super) static FORMAT: Format =
    lines::format(&MEMBER, &["text", "tokens"], |options| lines::cursor(options, RULES));
