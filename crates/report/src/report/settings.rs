//! What runs were asked for, by one set of keys whoever ran them: those of our plan, or DLIO's where the plan has none.

use feedrate_results::case::Case;
pub(super) use feedrate_results::case::ROWS;
use feedrate_results::runs::Settings;

/// Of a run that anybody made: what was asked for, and where it ran.
pub(super) fn settings(case: &Case) -> Settings {
    let mut settings = case.settings.clone();
    let places = [("host", case.hostname.clone()), ("hosts", case.hosts.map(|n| n.to_string()))];
    settings.extend(places.into_iter().filter_map(|(key, value)| Some((key.into(), value?))));
    settings
}
