//! `csv_text`: CSV files with a row of column names, whose columns are not all numbers. Each further row is one sample,
//! which is read and not parsed.

use super::Format;
use super::lines::{self, RowRules};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};

static MEMBER: Member = Member {
    name: "csv_text",
    summary: "CSV of any content below a row of column names; each row is a sample, which is read and not parsed.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::Undescribed,
        Ability::Sequential,
        Ability::ReadOnly,
    ],
};

const RULES: RowRules =
    RowRules { skips_blank: true, has_quotes: true, has_header: true, is_json: false };

const ROWS: Format = lines::format(&MEMBER, &["tsv"], |options| lines::cursor(options, RULES));

pub(super) static FORMAT: Format =
    Format { entry: FormatEntry { extension: "csv", ..ROWS.entry }, ..ROWS };
