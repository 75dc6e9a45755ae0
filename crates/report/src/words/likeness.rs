//! Access patterns side by side, in words.

use feedrate_analysis::likeness::{
    AspectFigures, ComparedAspect, DistanceUnit, Likeness, PatternAspect, PatternComparison,
};
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

/// A distance: points of a share, or a factor.
pub fn distance(of: &ComparedAspect) -> String {
    match (of.distance, of.unit) {
        (None, _) => String::new(),
        (Some(share), DistanceUnit::Share) => format!("{:.1} points", 100.0 * share),
        (Some(octaves), DistanceUnit::Octaves) => format!("factor {:.2}", octaves.exp2()),
    }
}

/// The answer in a sentence: aspects that are alike, and those that are not.
pub fn verdict(of: &PatternComparison) -> String {
    let named = |wanted: Option<Likeness>| {
        let found = of.aspects.iter().filter(|one| one.likeness == wanted);
        let names = found.map(|one| match one.aspect {
            PatternAspect::Order => "order",
            other => aspect(other),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let parts = [
        ("alike in", Some(Likeness::Alike)),
        ("near in", Some(Likeness::Near)),
        ("unlike in", Some(Likeness::Unlike)),
        ("unknown:", None),
    ];
    let parts = parts.map(|part| (part.0, named(part.1)));
    let told: Vec<_> = parts
        .iter()
        .filter(|part| !part.1.is_empty())
        .map(|part| format!("{} {}", part.0, part.1))
        .collect();
    told.join("; ")
}
