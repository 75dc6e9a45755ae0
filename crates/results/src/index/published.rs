//! Checks published tables of results against runs, and reports rows that no run matches. Two forms are known: a study's table with the columns
//! `Model, Parameter, Value, Procs, AU (%), I/O (MB/s)`, and MLPerf Storage's summary with `# Accel` and `Read B/W (GiB/s)` for each workload.

use crate::cells::{cells, is_comment_or_blank, lines};
use crate::import::LeftOut;
use crate::run::Run;
use feedrate_measure::metric::{AU_WINDOWED, NOMINAL_WINDOWED};
use feedrate_measure::record::file::{read_folder, read_text_bounded};
use feedrate_measure::stats::mean;
use feedrate_spec::units::{self, MIB};
use std::path::PathBuf;

/// Relative difference allowed in addition to rounding, since tables may use other definitions or means of means.
const TOLERANCE: f64 = 0.005;
/// Suffixes of MLPerf's headings, after the name of a workload.
const MLPERF_COUNT: &str = " - # Accel";
const MLPERF_RATE: &str = " - Read B/W (GiB/s)";
const MIB_OF_GIB: f64 = 1024.0;
/// The parameter of a table's row, and of a run, if nothing but the number of processes is varied.
const BASELINE: &str = "baseline";
const PROCESSES: &str = "processes";

/// A published table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedTable {
    pub(super) path: PathBuf,
    claims: Vec<Claim>,
}

/// Reads the published tables among `sources` and directly below them.
pub(super) fn read_tables(sources: &[PathBuf]) -> Vec<PublishedTable> {
    let mut paths = Vec::new();
    for source in sources {
        let entries = read_folder(source).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()));
        paths.push(source.clone());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    paths.sort();
    paths.dedup();
    let tables = paths.into_iter().filter_map(|path| {
        let text = read_text_bounded(&path).ok()?;
        Some(PublishedTable { claims: parse_claims(&text)?, path })
    });
    tables.collect()
}

/// The numbers of one workload in a row.
#[derive(Clone, Debug, PartialEq)]
struct Claim {
    /// Number of the line in the file, from 1.
    line: usize,
    workload: String,
    accelerators: Option<u32>,
    /// The varied parameter and its value; `None` if the table has no such columns.
    parameter: Option<[String; 2]>,
    au_percent: Option<RoundedNumber>,
    mib_per_second: Option<RoundedNumber>,
}

/// A printed number, which differs from the exact one by at most `rounding`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RoundedNumber {
    number: f64,
    rounding: f64,
}

impl RoundedNumber {
    /// Parses a number and multiplies it by `factor`.
    fn parse(text: &str, factor: f64) -> Option<Self> {
        let text = text.trim().trim_end_matches('%').trim_end().replace(',', "");
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let decimals = text.split_once('.').map_or(0, |halves| halves.1.len());
        let rounding = 0.5 * factor / 10f64.powi(decimals as i32);
        Some(RoundedNumber { number: number * factor, rounding })
    }

    fn matches(self, number: f64) -> bool {
        (self.number - number).abs() <= self.rounding + TOLERANCE * self.number.abs()
    }
}

impl PublishedTable {
    /// Reports the rows that no run matches.
    pub(super) fn unmatched_rows(&self, runs: &[Run]) -> Vec<LeftOut> {
        let mismatches = self.claims.iter().filter_map(|claim| claim.mismatch(runs));
        mismatches.map(|why| LeftOut::new(&self.path, why)).collect()
    }
}

/// Parses the rows of a table; `None` if it has neither of the known forms.
fn parse_claims(text: &str) -> Option<Vec<Claim>> {
    let lines = lines(text);
    let mut rows = lines.iter().filter(|line| !is_comment_or_blank(line.text));
    let (heading, parse_row) = rows.find_map(|line| {
        let heading = fields(line.text.trim_start_matches('\u{feff}'));
        let parse_row = row_parser(&heading)?;
        Some((heading, parse_row))
    })?;
    Some(rows.flat_map(|line| parse_row(line.number, &heading, &fields(line.text))).collect())
}

/// Returns the contents of a line's cells. Unlike in strict CSV, spaces around quotes and line ends within them are allowed.
fn fields(line: &str) -> Vec<String> {
    let contents = cells(line).into_iter().map(|range| {
        let cell = line[range].trim();
        let quoted = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        quoted.map_or_else(|| cell.into(), |inner| inner.replace("\"\"", "\""))
    });
    contents.collect()
}

/// Parses a row, given its line number and the heading.
type RowParser = fn(usize, &[String], &[String]) -> Vec<Claim>;

fn row_parser(heading: &[String]) -> Option<RowParser> {
    let has_column = |name: &&str| heading.iter().any(|column| column == name);
    if ["Model", "Procs", "AU (%)"].iter().all(has_column) {
        return Some(parse_study_row);
    }
    let has_counts = heading.iter().any(|column| column.ends_with(MLPERF_COUNT));
    has_counts.then_some(parse_mlperf_row)
}

fn parse_study_row(line: usize, heading: &[String], row: &[String]) -> Vec<Claim> {
    let field = |name| cell(heading, row, name);
    let number = |name| RoundedNumber::parse(field(name)?, 1.0);
    let claim = Claim {
        line,
        workload: field("Model").unwrap_or_default().into(),
        accelerators: field("Procs").and_then(|text| text.trim().parse().ok()),
        parameter: field("Parameter")
            .zip(field("Value"))
            .map(|(name, value)| [name.into(), value.into()]),
        au_percent: number("AU (%)"),
        mib_per_second: number("I/O (MB/s)"),
    };
    if claim.has_numbers() { vec![claim] } else { Vec::new() }
}

fn parse_mlperf_row(line: usize, heading: &[String], row: &[String]) -> Vec<Claim> {
    let workloads = heading.iter().filter_map(|column| column.strip_suffix(MLPERF_COUNT));
    let claims = workloads.map(|workload| {
        let field = |suffix: &str| cell(heading, row, &format!("{workload}{suffix}"));
        let count = field(MLPERF_COUNT);
        let rate = field(MLPERF_RATE);
        Claim {
            line,
            workload: workload.trim().into(),
            accelerators: count.and_then(|text| text.trim().parse().ok()),
            parameter: None,
            au_percent: None,
            mib_per_second: rate.and_then(|text| RoundedNumber::parse(text, MIB_OF_GIB)),
        }
    });
    claims.filter(Claim::has_numbers).collect()
}

/// Returns the field of `row` in the column `name`.
fn cell<'r>(heading: &[String], row: &'r [String], name: &str) -> Option<&'r str> {
    let index = heading.iter().position(|column| column == name)?;
    row.get(index).map(String::as_str)
}

impl Claim {
    fn has_numbers(&self) -> bool {
        self.au_percent.is_some() || self.mib_per_second.is_some()
    }

    /// Describes the numbers that no run, and no mean of runs, matches; `None` if all match.
    fn mismatch(&self, runs: &[Run]) -> Option<String> {
        let candidates: Vec<&Run> = runs.iter().filter(|run| self.describes(run)).collect();
        let parameter = self
            .parameter
            .iter()
            .map(|[key, value]| format!(", {key} {value}").trim_end().to_string());
        let accelerators =
            self.accelerators.map_or("an unknown number of accelerators".into(), |n| {
                units::counted(n.into(), "accelerator")
            });
        let row = format!(
            "line {}: {} on {accelerators}{}",
            self.line,
            self.workload,
            parameter.collect::<String>()
        );
        if candidates.is_empty() {
            return Some(format!("{row}: there is no such run"));
        }
        let au = number_mismatch(self.au_percent, "% AU", &candidates, |run| {
            [run.reported_au_percent(), run.metric(&AU_WINDOWED)]
        });
        let rate = number_mismatch(self.mib_per_second, "MiB/s", &candidates, |run| {
            [run.reported_mib_per_second(), run.metric(&NOMINAL_WINDOWED).map(|rate| rate / MIB)]
        });
        let mismatches: Vec<String> = [au, rate].into_iter().flatten().collect();
        (!mismatches.is_empty()).then(|| format!("{row}: no run has {}", mismatches.join(", nor ")))
    }

    /// Returns whether a run has the workload, the parameters and the accelerators of the row.
    fn describes(&self, run: &Run) -> bool {
        let claimed = normalized_name(&self.workload);
        let actual = normalized_name(&run.workload);
        let has_parameter = self.parameter.iter().all(|[key, value]| is_parameter(key, value, run));
        let is_model =
            claimed == actual || (self.parameter.is_none() && actual.starts_with(&claimed));
        run.is_result() && is_model && has_parameter && run.accelerators == self.accelerators
    }
}

/// Returns whether a table's `Parameter` and `Value` describe the varied parameter of a run. The notebook of perf_2025 splits `batch_size_4` at its first
/// underscore, and calls runs that vary nothing `baseline`.
fn is_parameter(key: &str, value: &str, run: &Run) -> bool {
    let words = |key: &str, value: &str| {
        format!("{key}_{value}").split('_').map(normalized_name).collect::<Vec<_>>()
    };
    let is_baseline = key == BASELINE && value.is_empty();
    let varies_nothing = run.parameter.is_empty() || run.parameter == PROCESSES;
    is_baseline && varies_nothing || words(key, value) == words(&run.parameter, &run.value)
}

/// Describes a number that no run matches, such as `99.9 % AU (its runs have 93.1 to 93.6)`. `None` if a run or the mean of the runs matches it.
/// `values` returns the reported and the recomputed value of a run.
fn number_mismatch(
    claimed: Option<RoundedNumber>,
    unit: &str,
    runs: &[&Run],
    values: impl Fn(&Run) -> [Option<f64>; 2],
) -> Option<String> {
    let claimed = claimed?;
    let by_source =
        [0, 1].map(|source| runs.iter().filter_map(|run| values(run)[source]).collect::<Vec<_>>());
    let is_matched = |numbers: &Vec<f64>| {
        numbers.iter().copied().chain(mean(numbers)).any(|number| claimed.matches(number))
    };
    if by_source.iter().any(is_matched) {
        return None;
    }
    let all = by_source.iter().flatten().copied();
    let range = match (all.clone().reduce(f64::min), all.reduce(f64::max)) {
        (Some(min), Some(max)) => format!("{min:.1} to {max:.1}"),
        _ => "no value".into(),
    };
    Some(format!("{:.1} {unit} (its runs have {range})", claimed.number))
}

/// Removes everything but letters and digits, since tables spell names differently, and maps `3D-Unet` to `unet3d`.
fn normalized_name(name: &str) -> String {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    match letters.to_lowercase() {
        name if name == "3dunet" => "unet3d".into(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use std::fs;

    /// Checks the reasons reported for a table next to a run on 4 accelerators. Placeholders in the table stand for the run's values.
    fn check(table: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        Fake::default().write(folder.path(), "unet3d_h100/4/2025");
        let read = || RunIndex::read(&[folder.path().into()], &ReadOptions::default()).unwrap();
        let run = &read().runs[0];
        let au = run.reported_au_percent().unwrap();
        let mib = run.reported_mib_per_second().unwrap();
        let table =
            table.replace("{workload}", &run.workload).replace("{parameter}", &run.parameter);
        let table = table.replace("{value}", &run.value).replace("{au}", &format!("{au:.1}"));
        let table = table.replace("{mib}", &format!("{mib:.0}"));
        let table = table.replace("{gib}", &format!("{:.2}", mib / 1024.0));
        fs::write(folder.path().join("table.csv"), table).unwrap();
        let found: Vec<String> = read().unread.iter().map(|row| row.why.clone()).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}: {expected}");
        }
    }

    #[test]
    fn tables_that_are_not_strict_csv_are_checked() {
        check(
            "\"Model\", \"Procs\", \"AU (%)\",Remark\n{workload}, 4, \"99.9\",\"two\nlines\"\n",
            &["line 2: "],
        );
    }

    #[test]
    fn unmatched_rows_of_a_study_are_reported() {
        check(
            "Model,Parameter,Value,Procs,AU (%),I/O (MB/s)\n{workload},{parameter},{value},4,{au},{mib}\n",
            &[],
        );
        check(
            "Model,Parameter,Value,Procs,AU (%),AU Std,I/O (MB/s),I/O Std\n\
             {workload},{parameter},{value},4,3.9,0.1,{mib},0\n\
             {workload},{parameter},{value},16,{au},0.1,{mib},0\n",
            &["line 2: fake on 4 accelerators, ", "line 3: fake on 16 accelerators, "],
        );
    }

    #[test]
    fn parameters_that_the_notebook_split_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        for experiment in ["4", "4_batch_size_8", "4_checkpoint_False"] {
            Fake::default().write(folder.path(), &format!("unet3d_h100/{experiment}/2025"));
        }
        let read = || RunIndex::read(&[folder.path().into()], &ReadOptions::default()).unwrap();
        let run = &read().runs[0];
        let (workload, au) = (&run.workload, run.reported_au_percent().unwrap());
        let mut table = "Model,Parameter,Value,Procs,AU (%),I/O (MB/s)\n".to_string();
        let parameters =
            ["baseline,", "batch,size_8", "batch_size,8", "checkpoint,false", "batch,size_80"];
        for parameter in parameters {
            table += &format!("{workload},{parameter},4,{au:.1},\n");
        }
        fs::write(folder.path().join("table.csv"), table).unwrap();
        let found: Vec<String> = read().unread.iter().map(|row| row.why.clone()).collect();
        let expected =
            format!("line 6: {workload} on 4 accelerators, batch size_80: there is no such run");
        assert_eq!(found, [expected]);
    }

    #[test]
    fn unmatched_rows_of_mlperf_are_reported() {
        let heading = "Public ID,Organization,Fake - # Accel,Fake - Read B/W (GiB/s),ResNet-50 - # Accel,ResNet-50 - Read B/W (GiB/s)\n";
        check(&format!("{heading}1,\"A, B\",4,{{gib}},,\n"), &[]);
        check(
            &format!("{heading}1,A,4,9{{gib}},8,1.5\n"),
            &[
                "line 2: Fake on 4 accelerators: no run has ",
                "line 2: ResNet-50 on 8 accelerators: there is no such run",
            ],
        );
    }

    #[test]
    fn other_tables_are_ignored() {
        check("model,epochs,processes,overrides,run\nunet3d,5,4,,N\n", &[]);
        check("", &[]);
    }
}
