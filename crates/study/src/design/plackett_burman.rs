//! Plackett–Burman: main effects of up to N - 1 factors in N runs (Plackett and Burman, "The design of optimum multifactorial
//! experiments", Biometrika 33, 1946; first rows as in Montgomery, section 8.6.3). The first row is moved on by one
//! for each of N - 1 rows, and a row of low levels closes the table.

use super::{DesignKind, DesignOption, DesignRequest, Laid, levels};
use feedrate_spec::problem::Problem;

pub(super) static DESIGN: DesignKind = DesignKind {
    name: "plackett_burman",
    summary: "Screening: two levels of up to N - 1 factors in N runs.",
    estimates: "main effects, as far as interactions are small; folded over, main effects clear of interactions of two",
    options: &[
        DesignOption {
            name: "runs",
            meaning: "N: 8, 12, 16, 20 or 24; without it, the least that holds the factors.",
        },
        DesignOption {
            name: "foldover",
            meaning: "true: the same runs again with all levels exchanged, 2·N runs.",
        },
    ],
    lay,
};

/// First rows, high as `+`.
const FIRST_ROWS: &[&str] = &[
    "+++-+--",
    "++-+++---+-",
    "++++-+-++--+---",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

fn lay(asked: &DesignRequest) -> Result<Laid, Problem> {
    levels::two_each(asked.factors, DESIGN.name)?;
    let factors = asked.factors.len();
    let first = first_row(asked.options.count("runs")?, factors)?;
    let runs = first.len() + 1;
    let is_high = |run: usize, i: usize| run + 1 < runs && first[(i + runs - 1 - run) % (runs - 1)];
    let mut points: Vec<_> =
        (0..runs).map(|run| levels::point(asked.factors, |i| is_high(run, i))).collect();
    let mut notes = vec![format!("N = {runs}")];
    if asked.options.flag("foldover")? {
        points.extend((0..runs).map(|run| levels::point(asked.factors, |i| !is_high(run, i))));
        notes.push("folded over: main effects are clear of interactions of two factors".into());
    } else {
        notes.push(
            "main effects are confounded, wholly or in part, with interactions of two factors"
                .into(),
        );
    }
    Ok(Laid { points, notes, aliases: None })
}

fn first_row(runs: Option<u32>, factors: usize) -> Result<Vec<bool>, Problem> {
    let row = match runs {
        None => FIRST_ROWS.iter().find(|row| row.len() >= factors).ok_or_else(|| {
            Problem::error("factors", format!("{factors} factors, the largest table holds 23"))
                .hint("leave out those that matter least")
        })?,
        Some(runs) => {
            let row = FIRST_ROWS.iter().find(|row| row.len() + 1 == runs as usize);
            row.ok_or_else(|| {
                Problem::error("design.runs", format!("no table of `{runs}` runs"))
                    .hint("there are tables of 8, 12, 16, 20 and 24 runs")
            })?
        }
    };
    if row.len() < factors {
        let message = format!("`{}` runs hold {} factors, not {factors}", row.len() + 1, row.len());
        return Err(
            Problem::error("design.runs", message).hint("leave it out for the least that will do")
        );
    }
    Ok(row.bytes().map(|sign| sign == b'+').collect())
}
