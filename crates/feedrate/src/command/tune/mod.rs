//! `feedrate tune`: the cheapest setting within 2 % of the best. Takes the arguments, and has the setting looked for and told.

mod grid;
mod tuning;
mod told;

use crate::cli::{CacheArguments, DataArguments, OUTPUT};
use crate::exit::Exit;
use crate::probe::Probes;
use crate::trials::{Response, Trials};
use crate::{interrupt, messages, time};
use clap::{Args, ValueEnum};
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, SAMPLES_WHOLE};
use feedrate_report::output::Schema;
use feedrate_session::request::Request;
use feedrate_session::template::RunTemplate;
use feedrate_spec::refusal::refuse;
use grid::{TUNED, TuneGrid};
use std::path::PathBuf;
use told::Told;
use tuning::{SHARE, TuneEnd, Tuning};

/// Heading of its own options.
const TUNING: &str = "Tuning";

/// `feedrate tune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings are predicted from one run of the workload as it is. The most promising are run; the better half is run again, until the last two are told apart. \
Of the settings within 2 % of the best, the answer is the one that keeps the dataset, then has the fewest threads, the same engine, the fewest keys and the least memory.

Keys: reader.read_threads (1 to 64 for each accelerator), reader.prefetch_size, reader.transfer_size, storage.engine, dataset.format.

Examples:
  feedrate tune unet3d_h100 -n 4 --data /mnt/fs
  feedrate tune my.yaml --keys reader.read_threads,storage.engine --budget 10m

Exit codes: 0 a setting was found; 1 a run failed; 2 bad usage or workload; 4 it is not certain; 130 interrupted, with the table so far.")]
pub(super) struct TuneArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Goal of the tuning.
    #[arg(long, help_heading = TUNING, value_enum, default_value_t = TuneGoal::Au)]
    goal: TuneGoal,
    /// Largest number of accelerators to try, with `--goal accelerators`.
    #[arg(long, help_heading = TUNING, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    max: u64,
    /// Tune only these keys, with commas between.
    #[arg(long, help_heading = TUNING, value_name = "KEYS", value_delimiter = ',', value_parser = TUNED.map(|of| of.key), hide_possible_values = true)]
    keys: Vec<String>,
    /// Start no run that would probably end later than this: `90s`, `30m`, `2h`.
    #[arg(long, help_heading = TUNING, value_name = "TIME", value_parser = time::seconds, default_value = "20m")]
    budget: f64,
    /// Folder of all results [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    results: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArguments,
}

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TuneGoal {
    /// Utilisation over all steps.
    Au,
    /// Samples per second.
    Throughput,
    /// Accelerators that reach the workload's `metric.au` over all steps. Settings are compared at the most that any is predicted to feed;
    /// then it is measured how many the last two feed.
    Accelerators,
}

impl TuneGoal {
    /// Runs with equally many accelerators are compared by it.
    fn metric(self) -> &'static Metric {
        match self {
            TuneGoal::Au | TuneGoal::Accelerators => &AU_ALL_STEPS,
            TuneGoal::Throughput => &SAMPLES_WHOLE,
        }
    }
}

/// Tune, and tell.
pub(super) fn tune(arguments: &TuneArguments) -> anyhow::Result<Exit> {
    let cache = arguments.cache.cache();
    let (of, _) = RunTemplate::find(&Request { cache, ..arguments.data.request() })?;
    let train = &of.unchanged.plan.train;
    if train.compute.mean_s() == 0.0 && train.on_devices.is_none() {
        let hint = "give some, however little: `train.computation_time=0.001`";
        return refuse("steps without a compute time have no utilisation to predict from", hint);
    }
    let (grid, goal) = (TuneGrid::new(&arguments.keys, &of), arguments.goal);
    let (workload, results) = (&of.unchanged.workload, arguments.results.as_deref());
    let signals = interrupt::signals_of_runner();
    let probes = Probes::new("tune-", results, workload, arguments.data.progress(), &signals)?;
    let response = Response { metric: goal.metric(), matters: |mean| SHARE * mean };
    let trials = Trials::new(&of, probes, arguments.budget, response)?;
    let (max, runners) = (arguments.max, Vec::new());
    let mut tuning = Tuning { goal, max, of: &of, grid, trials, runners, at: None };
    let ended = tuning.run();
    if !tuning.runners.is_empty() {
        let told = Told { tuning: &tuning, ended: &ended };
        if arguments.data.json {
            messages::print_json(Schema::Tune.object(told.json()))?;
        } else {
            messages::print_page(&told.page())?;
        }
    }
    Ok(if ended? == TuneEnd::Certain { Exit::Fine } else { Exit::Undecided })
}
