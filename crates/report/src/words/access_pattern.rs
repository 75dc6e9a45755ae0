//! Renders the aspects of access patterns as text.

use feedrate_analysis::access_pattern::{AspectFigures, PatternAspect};
use feedrate_spec::units;

/// The displayed name of an aspect.
pub fn aspect(aspect: PatternAspect) -> &'static str {
    match aspect {
        PatternAspect::Sizes => "sizes of reads",
        PatternAspect::Order => "next, ahead, back",
        PatternAspect::Opens => "reads per open",
        PatternAspect::Rereads => "times a byte is read",
        PatternAspect::Overlap => "bytes read by several",
        PatternAspect::Concurrency => "reads in flight",
        PatternAspect::ByteRate => "bytes per second",
        PatternAspect::ReadRate => "reads per second",
    }
}

/// The figures of one side of a comparison. Sizes are shown by their mean.
pub fn figures(aspect: PatternAspect, figures: Option<AspectFigures>) -> String {
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    match figures {
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
