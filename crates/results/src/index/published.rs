//! Tables of results as they are published: the study's CSV (`Model, Parameter, Value, Procs, AU (%), I/O (MB/s)`) and MLPerf Storage's summary (for each
//! workload `# Accel` and `Read B/W (GiB/s)`). A row is checked against runs; one that none backs is named. Text in, text out.

use crate::cells::{cells, is_remark, lines};
use crate::import::LeftOut;
use crate::run::Run;
use feedrate_measure::metric::{AU_WINDOWED, NOMINAL_WINDOWED};
use feedrate_measure::record::file::read_text_bounded;
use feedrate_measure::stats::mean;
use feedrate_spec::units::MIB;
use std::path::PathBuf;

/// Share by which a number may be off beside its rounding: it may be of other definitions, or a mean of means.
const NEAR: f64 = 0.005;
/// Ends of MLPerf's headings after the name of a workload.
const MLPERF_COUNT: &str = " - # Accel";
const MLPERF_RATE: &str = " - Read B/W (GiB/s)";
const MIB_OF_GIB: f64 = 1024.0;

/// Measured columns of a table's rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedTable {
    pub(super) path: PathBuf,
    claims: Vec<Claim>,
}

/// Those that are `sources`, or lie in them.
pub(super) fn tables(sources: &[PathBuf]) -> Vec<PublishedTable> {
    let mut paths = Vec::new();
    for source in sources {
        let entries = std::fs::read_dir(source).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()));
        paths.push(source.clone());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    paths.sort();
    paths.dedup();
    let tables = paths.into_iter().filter_map(|path| {
        let text = read_text_bounded(&path).ok()?;
        Some(PublishedTable { claims: claims_of(&text)?, path })
    });
    tables.collect()
}

/// A row's numbers of one workload.
#[derive(Clone, Debug, PartialEq)]
struct Claim {
    /// In the file, from 1.
    line: usize,
    workload: String,
    accelerators: Option<u32>,
    /// The varied parameter, and its value; of both no name where the table has none.
    parameter: Option<[String; 2]>,
    au_percent: Option<Stated>,
    mib_per_second: Option<Stated>,
}

/// A number as it is printed: the true one is at most half of its last digit away.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stated {
    number: f64,
    rounding: f64,
}

impl Stated {
    /// `times` the number in `text`; `None` of anything else.
    fn read(text: &str, times: f64) -> Option<Self> {
        let text = text.trim().trim_end_matches('%').trim_end().replace(',', "");
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let decimals = text.split_once('.').map_or(0, |halves| halves.1.len());
        Some(Stated { number: number * times, rounding: 0.5 * times / 10f64.powi(decimals as i32) })
    }

    fn is_near(self, number: f64) -> bool {
        (self.number - number).abs() <= self.rounding + NEAR * self.number.abs()
    }
}

impl PublishedTable {
    /// The rows that no run of `runs` backs.
    pub(super) fn unbacked(&self, runs: &[Run]) -> Vec<LeftOut> {
        let lacks = self.claims.iter().filter_map(|claim| claim.lacks(runs));
        lacks.map(|why| LeftOut::new(&self.path, why)).collect()
    }
}

/// `None` where it is none of those tables.
fn claims_of(text: &str) -> Option<Vec<Claim>> {
    let lines = lines(text);
    let mut rows = lines.iter().filter(|line| !is_remark(line.text));
    let (heading, read) = rows.find_map(|line| {
        let heading = fields(line.text.trim_start_matches('\u{feff}'));
        let read = form_of(&heading)?;
        Some((heading, read))
    })?;
    Some(rows.flat_map(|line| read(line.number, &heading, &fields(line.text))).collect())
}

/// Contents of the cells of a line that anybody wrote: blanks around quotes and ends of line within them are left to it.
fn fields(line: &str) -> Vec<String> {
    let contents = cells(line).into_iter().map(|range| {
        let cell = line[range].trim();
        let quoted = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        quoted.map_or_else(|| cell.into(), |inner| inner.replace("\"\"", "\""))
    });
    contents.collect()
}

type ReadRow = fn(usize, &[String], &[String]) -> Vec<Claim>;

fn form_of(heading: &[String]) -> Option<ReadRow> {
    if ["Model", "Procs", "AU (%)"].iter().all(|name| heading.iter().any(|of| of == name)) {
        return Some(of_study);
    }
    heading.iter().any(|column| column.ends_with(MLPERF_COUNT)).then_some(of_mlperf)
}

fn of_study(line: usize, heading: &[String], row: &[String]) -> Vec<Claim> {
    let [model, procs, au, rate, parameter, value] =
        ["Model", "Procs", "AU (%)", "I/O (MB/s)", "Parameter", "Value"]
            .map(|name| cell(heading, row, name));
    let claim = Claim {
        line,
        workload: model.unwrap_or_default().into(),
        accelerators: procs.and_then(|text| text.trim().parse().ok()),
        parameter: parameter.zip(value).map(|both| [both.0.into(), both.1.into()]),
        au_percent: au.and_then(|text| Stated::read(text, 1.0)),
        mib_per_second: rate.and_then(|text| Stated::read(text, 1.0)),
    };
    if claim.says_something() { vec![claim] } else { Vec::new() }
}

fn of_mlperf(line: usize, heading: &[String], row: &[String]) -> Vec<Claim> {
    let workloads = heading.iter().filter_map(|column| column.strip_suffix(MLPERF_COUNT));
    let claims = workloads.map(|workload| {
        let [count, rate] =
            [MLPERF_COUNT, MLPERF_RATE].map(|end| cell(heading, row, &format!("{workload}{end}")));
        Claim {
            line,
            workload: workload.trim().into(),
            accelerators: count.and_then(|text| text.trim().parse().ok()),
            parameter: None,
            au_percent: None,
            mib_per_second: rate.and_then(|text| Stated::read(text, MIB_OF_GIB)),
        }
    });
    claims.filter(Claim::says_something).collect()
}

/// The field of `row` in the column of that name.
fn cell<'r>(heading: &[String], row: &'r [String], name: &str) -> Option<&'r str> {
    let at = heading.iter().position(|column| column == name)?;
    row.get(at).map(String::as_str)
}

impl Claim {
    fn says_something(&self) -> bool {
        self.au_percent.is_some() || self.mib_per_second.is_some()
    }

    /// The fault in it; `None` where a run, or the mean of all such runs, has its numbers.
    fn lacks(&self, runs: &[Run]) -> Option<String> {
        let own: Vec<&Run> = runs.iter().filter(|run| self.is_of(run)).collect();
        let parameter = self.parameter.iter().map(|[key, value]| format!(", {key} {value}"));
        let accelerators =
            self.accelerators.map_or("an unknown number of".into(), |n| n.to_string());
        let row = format!(
            "line {}: {} on {accelerators} accelerators{}",
            self.line,
            self.workload,
            parameter.collect::<String>()
        );
        if own.is_empty() {
            return Some(format!("{row}: no run backs it"));
        }
        let au = lack(self.au_percent, "% AU", &own, |run| {
            [run.reported_au_percent(), run.metric(&AU_WINDOWED)]
        });
        let rate = lack(self.mib_per_second, "MiB/s", &own, |run| {
            [run.reported_mib_per_second(), run.metric(&NOMINAL_WINDOWED).map(|rate| rate / MIB)]
        });
        let lacks = [au, rate];
        let lacks: Vec<String> = lacks.into_iter().flatten().collect();
        (!lacks.is_empty()).then(|| format!("{row}: no run backs {}", lacks.join(", nor ")))
    }

    fn is_of(&self, run: &Run) -> bool {
        let (asked, own) = (plain(&self.workload), plain(&run.workload));
        let is_varied = self
            .parameter
            .iter()
            .all(|[key, value]| *key == run.parameter && plain(value) == plain(&run.value));
        let is_model = asked == own || (self.parameter.is_none() && own.starts_with(&asked));
        run.is_result() && is_model && is_varied && run.accelerators == self.accelerators
    }
}

/// `99.9 % AU (they have 93.1 to 93.6)`; `None` where one of the runs has it, or their mean, as it is reported or recomputed.
fn lack(
    stated: Option<Stated>,
    unit: &str,
    runs: &[&Run],
    of: impl Fn(&Run) -> [Option<f64>; 2],
) -> Option<String> {
    let stated = stated?;
    let numbers = [0, 1].map(|way| runs.iter().filter_map(|run| of(run)[way]).collect::<Vec<_>>());
    let is_backed = numbers
        .iter()
        .any(|own| own.iter().copied().chain(mean(own)).any(|number| stated.is_near(number)));
    if is_backed {
        return None;
    }
    let all = numbers.iter().flatten().copied();
    let range = all.clone().reduce(f64::min).zip(all.reduce(f64::max));
    let range =
        range.map_or("nothing of it".into(), |ends| format!("{:.1} to {:.1}", ends.0, ends.1));
    Some(format!("{:.1} {unit} (its runs have {range})", stated.number))
}

/// Letters and digits alone, as tables and workloads have names of their own: `3D-Unet` is `unet3d`.
fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    match plain.to_lowercase() {
        name if name == "3dunet" => "unet3d".into(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use crate::import::fake::Fake;
    use crate::index::{ReadOptions, RunIndex};
    use std::fs;

    /// Words on a table beside a run on 4 accelerators; AU and rate stand for the run's own.
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
        let found: Vec<String> = read().unread.iter().map(|one| one.why.clone()).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}: {expected}");
        }
    }

    #[test]
    fn tables_that_people_wrote_by_hand_are_checked_too() {
        check(
            "\"Model\", \"Procs\", \"AU (%)\",Remark\n{workload}, 4, \"99.9\",\"two\nlines\"\n",
            &["line 2: "],
        );
    }

    #[test]
    fn rows_of_the_study_are_backed_or_named() {
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
    fn rows_of_mlperf_are_backed_or_named() {
        let heading = "Public ID,Organization,Fake - # Accel,Fake - Read B/W (GiB/s),ResNet-50 - # Accel,ResNet-50 - Read B/W (GiB/s)\n";
        check(&format!("{heading}1,\"A, B\",4,{{gib}},,\n"), &[]);
        check(
            &format!("{heading}1,A,4,9{{gib}},8,1.5\n"),
            &[
                "line 2: Fake on 4 accelerators: no run backs ",
                "line 2: ResNet-50 on 8 accelerators: no run backs it",
            ],
        );
    }

    #[test]
    fn other_tables_are_left_alone() {
        check("model,epochs,processes,overrides,run\nunet3d,5,4,,N\n", &[]);
        check("", &[]);
    }
}
