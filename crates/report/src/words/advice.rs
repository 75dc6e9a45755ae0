//! Renders advice as text for terminals, reports and the line `Would help:`. Decides nothing.

use feedrate_analysis::advice::{Cost, Proposal, Risk};
use feedrate_analysis::answer::{Answer, AnswerKind};
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::IN_FLIGHT;
use feedrate_measure::verdict::Bound;
use feedrate_measure::waits::Waits;
use feedrate_spec::units;

/// Maximum characters of the line of a run.
const LINE_WIDTH: usize = 80;

/// Texts of a rule: its evidence and its proposal as in the guide, and templates for `Facts::render`: the change if no setting makes it, and its reason.
struct RuleWords {
    rule: &'static str,
    sees: &'static str,
    proposes: &'static str,
    change: &'static str,
    why: &'static str,
}

const fn words(
    rule: &'static str,
    sees: &'static str,
    proposes: &'static str,
    change: &'static str,
    why: &'static str,
) -> RuleWords {
    RuleWords { rule, sees, proposes, change, why }
}

const RULES: &[RuleWords] = &[
    words(
        "run_again",
        "memory served the bytes, or the run is invalid or incomplete",
        "`--cold`, or a larger dataset",
        "{remedy}",
        "{why}",
    ),
    words(
        "slow_accelerator",
        "one accelerator comes last far more often than the others",
        "it is named",
        "look at accelerator[s {accelerators}| {accelerator}]",
        "accelerator[s {accelerators}| {accelerator}] came last in {last_percent:.0} % of the steps[: {compute_s} of compute a step, the others {others_compute_s}]",
    ),
    words(
        "other_processes",
        "all processors are busy, a quarter of them with other programs, and that costs time",
        "the busiest process is named",
        "[stop {process}, or have |have ]more cores, or fewer threads that decode",
        "{all_cores} were {busy_percent:.0} % busy, others than this run with {others:.1} of them[, most of all {process} (process {process_id})]",
    ),
    words(
        "asynchronous_checkpoints",
        "training waits a tenth of the run for checkpoints",
        "`checkpoint.asynchronous`",
        "",
        "training waited {stall_s} for {checkpoints} of {checkpoint_bytes}, {run_percent:.0} % of the run[; {sync_percent:.0} % of the writing was sync]",
    ),
    words(
        "rank_local_checkpoints",
        "training waits for checkpoints on several machines, or where steps are too short to hide the writing",
        "`checkpoint.checkpoint_folder=DIR` on a local disk",
        "checkpoint.checkpoint_folder=DIR, on a disk of each machine",
        "training waited {stall_s}, {run_percent:.0} % of the run, for {checkpoints} of {checkpoint_bytes}[; each takes {duration_s}, and the training between them {trains_s}]",
    ),
    words(
        "broadcast",
        "several accelerators read the same bytes",
        "`reader.file_access=broadcast`",
        "",
        "{overlap_percent:.0} % of the bytes are read by several of {all_accelerators}: {read_bytes} were read[ of {unique_bytes}]",
    ),
    words(
        "transfer_size",
        "requests are shorter than samples",
        "`reader.transfer_size`",
        "",
        "{reads_per_sample:.1} requests of {request_bytes} for a sample, each of them {read_s}",
    ),
    words(
        "chunk_is_sample",
        "HDF5 chunks hold half a sample or less, or two samples or more",
        "`dataset.hdf5.chunk_dims`",
        "",
        "a sample of {sample_bytes} is stored in chunks of {chunk_bytes}, {reads_per_sample:.1} reads[; {amplification:.1} bytes are read for each byte of samples]",
    ),
    words(
        "contiguous_shards",
        "reads go forwards but do not follow one another",
        "`reader.file_access=multi`",
        "",
        "{consecutive_percent:.0} % of the reads follow the one before: each of {all_accelerators} skips the samples of the others",
    ),
    words(
        "shards",
        "training waits for opening files of one sample",
        "`dataset.format=tfrecord`, fewer files",
        "",
        "each sample is a file, of {file_bytes}, and an open takes {open_s}: {shards} files instead of {files}",
    ),
    words(
        "samples_per_file",
        "training waits for opening small files",
        "fewer files with more samples",
        "",
        "a file has {file_bytes}, and an open takes {open_s}: {shards} files instead of {files}",
    ),
    words(
        "header_once",
        "files of several samples are opened again for most samples",
        "`reader.sample_shuffle=off`, shuffle files instead",
        "",
        "{opened_files} were opened, of {files}, each with its header: samples are shuffled over all of them",
    ),
    words(
        "whole_file",
        "a small file is read in many small reads",
        "`reader.stage=memory`",
        "",
        "a file of {file_bytes} is read in {reads_per_open:.0} requests of {request_bytes}",
    ),
    words(
        "binary_format",
        "decoding is slower than 400 MB/s, or two bytes are read for each byte of samples",
        "`dataset.format=hdf5`, or no compression",
        "",
        "[decoding a sample of {format} takes {decode_s}, {decoded_bytes_per_second}|files of {format} hold more than samples][; {amplification:.1} bytes are read for each byte of payload]",
    ),
    words(
        "decode_threads",
        "training waits for decoding",
        "more threads if there are cores, else cores",
        "{lacks_cores} more, [for {for_client}|to decode]",
        "[the client's work on a sample takes {client_s} of a processor|decoding a sample takes {decode_s}]: {needed_threads} threads for each accelerator would do, there are {threads}, and {cores}[; more workers only share them: {lacks_cores} more would do, or less work for each sample]",
    ),
    words(
        "read_threads",
        "threads wait for latency, one request each",
        "the smallest `reader.read_threads` that feeds",
        "",
        "a sample takes a thread {sample_s}[, its compute {compute_s}][; {in_flight:.1} reads are in flight]",
    ),
    words(
        "prefetch",
        "accelerators wait while threads are idle",
        "`reader.prefetch_size`",
        "",
        "the reading threads are busy {busy_percent:.0} % of the time and wait for room: {in_flight_batches} at most are in flight",
    ),
    words(
        "engine",
        "large uncached requests on busy processors, or many small ones",
        "`storage.engine`",
        "",
        "requests of {request_bytes} take {read_s} each by {engine}, {cached_percent:.0} % of the bytes were in the page cache",
    ),
    words(
        "fewer_accelerators",
        "the bandwidth feeds fewer",
        "`accelerators`",
        "",
        "{delivered_bytes_per_second} are delivered, and {instead_of} accelerators need {needed_bytes_per_second}",
    ),
    words(
        "storage",
        "bandwidth, requests or opens per second are lacking",
        "other storage",
        "[{lacks} more: reads in {wanted_read_s} instead of {read_s}|opens in {wanted_open_s} instead of {open_s}|{lacks} more storage]",
        "the storage lacks [{lacks_files_per_second:.0} opens/s|{lacks_bytes_per_second}, {lacks_reads_per_second:.0} reads/s]",
    ),
    words(
        "striping",
        "long files are stored on one Lustre target",
        "more stripes",
        "stripe the files over more targets (lfs setstripe -c -1)",
        "files of {file_bytes} have {stripes} stripe: {layout}",
    ),
    words(
        "read_at_start",
        "the dataset fits half of the memory, over enough epochs",
        "`reader.read_type`, `reader.read_at_start`",
        "",
        "the {dataset_bytes} of the dataset fit into {memory_bytes} of memory; reading them takes {load_s}, which is worth it from {break_even:.1} epochs on",
    ),
    words(
        "stage",
        "the dataset does not fit into memory, over enough epochs",
        "`reader.stage=DIR` on a local disk",
        "reader.stage=DIR, a folder of a local disk",
        "each epoch reads the {dataset_bytes} again; copying them takes {copy_s}, which is worth it from {break_even:.1} epochs on",
    ),
];

/// The evidence that a rule looks for and its proposal.
pub fn summary(rule: &str) -> String {
    let row = RULES.iter().find(|row| row.rule == rule);
    row.map_or_else(String::new, |row| format!("{}: {}", row.sees, row.proposes))
}

/// A template of the proposal's rule, filled in with its evidence.
fn rendered(proposal: &Proposal, template: fn(&RuleWords) -> &'static str) -> String {
    let row = RULES.iter().find(|row| row.rule == proposal.rule);
    row.map_or_else(String::new, |row| proposal.evidence.render(template(row)))
}

/// A proposed change: `reader.read_threads=4`, or instructions if no setting makes it.
pub fn change(proposal: &Proposal) -> String {
    if proposal.overrides.is_empty() {
        return rendered(proposal, |row| row.change);
    }
    proposal.overrides.join(" ")
}

/// The evidence of the record for a proposal.
pub fn why(proposal: &Proposal) -> String {
    rendered(proposal, |row| row.why)
}

/// The cost of a change and its side effect.
pub fn price(proposal: &Proposal) -> String {
    let cost = match proposal.cost {
        Cost::Setting => "a setting",
        Cost::Processors => "processor time",
        Cost::Memory => "memory",
        Cost::LocalDisk => "room on a local disk",
        Cost::Dataset => "a dataset written anew",
        Cost::Accelerators => "fewer accelerators at a time",
        Cost::Hardware => "other hardware",
        Cost::Run => "another run",
        Cost::Attention => "a look at it",
    };
    let risk = match proposal.risk {
        Risk::None => "",
        Risk::Memory => "; more memory",
        Risk::Shuffling => "; samples are shuffled less",
        Risk::Amplification => "; parts of samples cost whole ones",
        Risk::LaterCheckpoint => "; a crash loses more, as a checkpoint is whole later",
        Risk::LostWithMachine => "; lost with the machine",
        Risk::OneReader => "; one slow reader holds up all",
        Risk::LateStart => "; the first step waits for the reading",
        Risk::NoPageCache => "; the page cache is not used",
    };
    format!("{cost}{risk}")
}

/// The line of a run with as many changes as fit, at least one. What the storage lacks is always included.
pub fn would_help(proposals: &[Proposal]) -> Option<String> {
    let (first, rest) = proposals.split_first()?;
    // Another run is no estimate.
    let estimated = if first.cost == Cost::Run { "" } else { " (estimated)" };
    let mut line = format!("Would help{estimated}: {}", change(first));
    let mut is_full = false;
    for more in rest {
        let longer = format!("{line}, or {}", change(more));
        is_full |= LINE_WIDTH < longer.chars().count();
        if !is_full || more.evidence.get("lacks").is_some() {
            line = longer;
        }
    }
    Some(line)
}

/// A line on a run that opens its advice: `imagenet_cnn: 31 % AU, storage-bound: one request of 256 KiB in flight at 4.1 ms`.
pub fn opening(answer: &Answer, derived: &Derived) -> String {
    let name = &derived.record.plan.workload;
    let Some(au) = answer.au_percent else {
        return format!("{name}: {}", answer.kind.name());
    };
    let bound = match (answer.kind, answer.unknown_because) {
        (AnswerKind::Unknown, Some(because)) => because.name(),
        _ => answer.verdict.name(),
    };
    let pipeline = pipeline(answer.verdict, derived).map(|text| format!(": {text}"));
    format!("{name}: {au:.0} % AU, {bound}{}", pipeline.unwrap_or_default())
}

/// Times of the slow part if it is reading, opening, decoding or the client.
fn pipeline(bound: Bound, derived: &Derived) -> Option<String> {
    let io = &derived.io;
    let each = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / 1e9 / count as f64);
    let facts = match bound {
        Bound::StorageBound => {
            let in_flight = derived.value(&IN_FLIGHT)?;
            let requests = match in_flight.round() as u64 {
                0 | 1 => "one request".to_string(),
                count => format!("{count} requests"),
            };
            let bytes = units::bytes_binary(io.read_bytes.checked_div(io.reads)?);
            format!(
                "{requests} of {bytes} in flight at {}",
                units::seconds(each(io.read_ns, io.reads)?)
            )
        }
        Bound::MetadataBound => {
            format!("an open takes {}", units::seconds(each(io.open_ns, io.opens)?))
        }
        Bound::DecodeBound => {
            format!("decoding a sample takes {}", units::seconds(each(io.decode_ns, io.samples)?))
        }
        Bound::ClientBound => {
            let batches = derived.steps * u64::from(derived.record.plan.accelerators);
            if Waits::new(derived)?.are_for_training() {
                let receive_s = units::seconds(each(io.receive_ns, batches)?);
                format!("the training's own process takes {receive_s} for a batch")
            } else {
                let client_s = each(io.client_burnt_ns + io.client_own_ns, io.samples)?;
                let client_s = units::seconds(client_s);
                format!("the client's work on a sample takes {client_s} of a processor")
            }
        }
        _ => return None,
    };
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_analysis::advice::{self, Case, ranked_proposals as proposals};
    use feedrate_analysis::answer::AnsweredSummary;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::record::Record;
    use feedrate_spec::plan::ClientPlan;
    use feedrate_spec::workload::TimeSpec;

    /// Two accelerators that wait half of their time for reads of 2 MB.
    fn starved() -> Record {
        let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; 2];
        let mut plan = plan(2, 40);
        plan.train.compute = TimeSpec::Constant { mean: 0.1 };
        let mut record = record(plan, vec![epoch(1, blocks)]);
        // The threads have no time to spare.
        record.epochs[0].accelerators.iter_mut().for_each(|one| one.io.read_ns *= 2);
        record
    }

    #[track_caller]
    fn check(record: &Record, expected: Option<&str>, expected_opening: &str) {
        let AnsweredSummary { summary, answer } = AnsweredSummary::new(record);
        let derived = Derived::new(record);
        let found = proposals(&Case::new(&derived, &answer, &summary.doubts));
        assert_eq!(would_help(&found).as_deref(), expected);
        assert_eq!(opening(&answer, &derived), expected_opening);
        for proposal in found {
            let texts = [change(&proposal), why(&proposal), price(&proposal)];
            assert!(
                texts.iter().all(|text| !text.is_empty() && !text.contains(['{', '['])),
                "{texts:?}"
            );
        }
    }

    #[test]
    fn the_process_of_the_clients_work_is_named() {
        let mut record = starved();
        record.plan.loader.client = Some(ClientPlan::default());
        for epoch in &mut record.epochs {
            let causes = epoch.causes.as_mut().unwrap();
            causes.client_ns = std::mem::replace(&mut causes.read_ns, vec![0; causes.last.len()]);
            for io in epoch.accelerators.iter_mut().map(|one| &mut one.io) {
                (io.client_burnt_ns, io.client_own_ns) =
                    (100_000 * io.samples, 20_000 * io.samples);
            }
        }
        let text = |record: &Record| pipeline(Bound::ClientBound, &Derived::new(record)).unwrap();
        assert_eq!(text(&record), "the client's work on a sample takes 120 µs of a processor");
        let io = &mut record.epochs[0].accelerators[0].io;
        io.receive_ns = 2 * 4_000_000_000;
        assert_eq!(text(&record), "the training's own process takes 100 ms for a batch");
    }

    #[test]
    fn each_rule_has_words() {
        let known: Vec<&str> = RULES.iter().map(|row| row.rule).collect();
        let rules: Vec<&str> = advice::RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(known, rules);
        let guide = include_str!("../../../../docs/guide/advice.md");
        for row in RULES {
            let line = format!("| `{}` | {} | {} |", row.rule, row.sees, row.proposes);
            assert!(guide.contains(&line), "{line}");
        }
    }

    #[test]
    fn changes_that_would_help_fit_a_line() {
        let mut of_disk = starved();
        of_disk.plan.storage.throttle_bytes_per_second = Some(20e6);
        check(
            &of_disk,
            Some("Would help (estimated): accelerators=1, or 20 MB/s more storage"),
            "example: 50 % AU, storage-bound: 2 requests of 1.9 MiB in flight at 200 ms",
        );
        let mut of_latency = starved();
        of_latency.plan.storage.read_delay_s = 0.2;
        check(
            &of_latency,
            Some(
                "Would help (estimated): reader.read_threads=3, or 20 MB/s more: reads in 100 ms instead of 200 ms",
            ),
            "example: 50 % AU, storage-bound: 2 requests of 1.9 MiB in flight at 200 ms",
        );
    }

    #[test]
    fn a_fed_run_has_no_advice() {
        let mut fed = starved();
        fed.plan.metric.au_target_percent = 45.0;
        check(&fed, None, "example: 50 % AU, compute-bound");
    }

    #[test]
    fn an_inconclusive_run_is_to_be_repeated() {
        let mut cached = starved();
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(160_000_000);
        check(
            &cached,
            Some("Would help: use `--cold`, or a dataset of at least five times the memory"),
            "example: 50 % AU, cache-fed",
        );
        let mut stopped = starved();
        stopped.complete = false;
        let head = "example: 50 % AU, incomplete";
        check(&stopped, Some("Would help: run again to the end"), head);
    }
}
