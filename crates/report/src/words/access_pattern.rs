//! Access patterns in words.

use feedrate_analysis::access_pattern::{AspectFigures, PatternAspect};
use feedrate_spec::units;

/// An aspect by the name people read.
pub fn aspect(of: PatternAspect) -> &'static str {
    match of {
        PatternAspect::Sizes => "sizes of reads",
        PatternAspect::Order => "next, ahead, back",
        PatternAspect::Opens => "reads of an open",
        PatternAspect::Rereads => "times a byte is read",
        PatternAspect::Overlap => "bytes that several read",
        PatternAspect::Concurrency => "reads in flight",
        PatternAspect::ByteRate => "bytes a second",
        PatternAspect::ReadRate => "reads a second",
    }
}

/// The figures of one side; that of sizes is their mean.
pub fn figures(aspect: PatternAspect, of: Option<AspectFigures>) -> String {
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    match of {
        None => "unknown".into(),
        Some(AspectFigures::Order { consecutive, ahead, back }) => {
            format!("{} %", [consecutive, ahead, back].map(percent).join(", "))
        }
        Some(AspectFigures::Number(number)) => match aspect {
            PatternAspect::Sizes => format!("mean {}", units::bytes(number.round() as u64)),
            PatternAspect::Overlap => format!("{} %", percent(number)),
            PatternAspect::ByteRate => units::bytes_per_second(number),
            PatternAspect::ReadRate => units::per_second(number, "reads"),
            _ => format!("{number:.2}"),
        },
    }
}
