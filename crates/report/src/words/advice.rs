//! Renders advice as text for terminals, reports and the line `Would help:`. Decides nothing.

use super::answer::percent_near_target;
use feedrate_analysis::advice::{Advice, Cost, Proposal, RULES, Risk, Rule};
use feedrate_analysis::answer::{Answer, AnswerKind};
use feedrate_analysis::predict::Prediction;
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::IN_FLIGHT;
use feedrate_measure::verdict::Bound;
use feedrate_measure::waits::Waits;
use feedrate_spec::units;

/// Maximum characters of the line of a run.
const LINE_WIDTH: usize = 80;

/// The evidence that triggers a rule, and its proposal.
pub fn summary(rule: &Rule) -> String {
    format!("{}: {}", rule.sees, rule.proposes)
}

/// A template of the proposal's rule, filled in with its evidence.
fn render_template(proposal: &Proposal, template: fn(&Rule) -> &'static str) -> String {
    let rule = RULES.iter().find(|rule| rule.name == proposal.rule);
    rule.map_or_else(String::new, |rule| proposal.evidence.render(template(rule)))
}

/// A proposed change: `reader.read_threads=4`, or instructions if no setting makes the change.
pub fn change(proposal: &Proposal) -> String {
    if proposal.overrides.is_empty() {
        return render_template(proposal, |rule| rule.change);
    }
    proposal.overrides.join(" ")
}

/// The evidence of the record for a proposal.
pub fn why(proposal: &Proposal) -> String {
    render_template(proposal, |rule| rule.why)
}

/// The cost of a change and its side effect: `effort: memory; samples are shuffled less`.
pub fn cost(proposal: &Proposal) -> String {
    let cost = match proposal.cost {
        Cost::Setting => "a setting",
        Cost::Processors => "processor time",
        Cost::Memory => "memory",
        Cost::LocalDisk => "room on a local disk",
        Cost::Dataset => "a dataset written anew",
        Cost::Accelerators => "fewer accelerators at a time",
        Cost::Hardware => "other hardware",
        Cost::Run => "another run",
        Cost::Attention => "finding the cause",
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
    format!("effort: {cost}{risk}")
}

/// The sentence on a run that no known change helps.
pub const NOTHING_HELPS: &str = "No known change would help";
/// The sentence on a run whose accelerators do not compute.
pub const NO_COMPUTE: &str = "Without compute there is no AU that a change could raise: set `train.computation_time`, which `feedrate.watch` in the training loop measures";
/// The sentence on a run whose bottleneck is unknown.
pub const TOO_NOISY: &str = "Nothing is advised: the measurement is too noisy to name a bottleneck";

/// The line of a run with as many changes as fit, at least one. A change that states the missing storage performance is always included.
/// `None` if there is no advice for a run whose accelerators were fed, or for a watched loop, which no rule examines.
pub fn would_help(advice: &[Advice], answer: &Answer) -> Option<String> {
    let required_percent = answer.required_percent;
    let Some((first, rest)) = advice.split_first() else {
        let was_watched = answer.verdict == Bound::InputBound;
        let is_advisable = answer.kind == AnswerKind::No && !was_watched;
        let says = if answer.noise.is_some() { TOO_NOISY } else { NOTHING_HELPS };
        return is_advisable.then(|| says.into());
    };
    // Another run is no estimate.
    let estimated = if first.proposal.cost == Cost::Run { "" } else { " (estimated)" };
    let mut line = format!("Would help{estimated}: {}", with_prediction(first, required_percent));
    let mut is_full = false;
    for more in rest {
        let longer = format!("{line}, or {}", with_prediction(more, required_percent));
        is_full |= LINE_WIDTH < longer.chars().count();
        if !is_full || more.proposal.evidence.get("lacks").is_some() {
            line = longer;
        }
    }
    Some(line)
}

/// A change with its predicted utilisation: `reader.read_threads=4 → 92 % AU [88, 95]`, `… → 70 % AU [66, 74], not enough`.
fn with_prediction(advice: &Advice, required_percent: f64) -> String {
    let change = change(&advice.proposal);
    let change = match advice
        .proposal
        .evidence
        .render("[ ({workers} workers on {exceeded_cores}, {memory_bytes})]")
    {
        workers if workers.is_empty() => change,
        workers => change + &workers,
    };
    let Some(prediction) = &advice.prediction else { return change };
    let Prediction { au_percent, interval: [low, high], .. } = prediction;
    let au = percent_near_target(*au_percent, required_percent);
    let enough = match (advice.reaches(required_percent), prediction.bottleneck) {
        (Some(true), _) => "",
        (_, Bound::CpuSaturated) => ", not enough: the cores limit next",
        _ => ", not enough",
    };
    format!("{change} → {au} % AU [{low:.0}, {high:.0}]{enough}")
}

/// A line on a run that opens its advice: `imagenet_cnn: 31 % AU, storage-bound: one request of 256 KiB in flight at 4.1 ms`.
pub fn opening(answer: &Answer, derived: &Derived) -> String {
    let name = &derived.record.plan.workload;
    let Some(au) = answer.au_percent else {
        let samples = answer.samples_per_second.map(|rate| units::per_second(rate, "samples"));
        let rate = samples.filter(|_| answer.kind == AnswerKind::Rate);
        let says = rate.map(|rate| format!("{rate}, {}", answer.verdict.name()));
        return format!("{name}: {}", says.as_deref().unwrap_or(answer.kind.name()));
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
            if Waits::new(derived)?.is_client_in_training_process() {
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
    use feedrate_analysis::advice::{Case, advise_without_plans};
    use feedrate_analysis::answer::AnsweredSummary;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::facts::Facts;
    use feedrate_measure::noise::Noise;
    use feedrate_measure::record::Record;
    use feedrate_spec::plan::ClientPlan;
    use feedrate_spec::workload::TimeSpec;

    /// Two accelerators that wait half of their time for reads of 2 MB.
    fn starved_run() -> Record {
        let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; 2];
        let mut plan = plan(2, 40);
        plan.train.compute = TimeSpec::Constant { mean: 0.1 };
        let mut record = record(plan, vec![epoch(1, blocks)]);
        // The threads have no time to spare.
        record.epochs[0]
            .accelerators
            .iter_mut()
            .for_each(|accelerator| accelerator.io.read_ns *= 2);
        record
    }

    #[track_caller]
    fn check(record: &Record, expected: Option<&str>, expected_opening: &str) {
        let AnsweredSummary { summary, answer } = AnsweredSummary::new(record);
        let derived = Derived::new(record);
        let found = advise_without_plans(&Case::new(&derived, &answer, &summary.doubts));
        assert_eq!(would_help(&found, &answer).as_deref(), expected);
        assert_eq!(opening(&answer, &derived), expected_opening);
        for Advice { proposal, .. } in found {
            let texts = [change(&proposal), why(&proposal), cost(&proposal)];
            assert!(
                texts.iter().all(|text| !text.is_empty() && !text.contains(['{', '['])),
                "{texts:?}"
            );
        }
    }

    #[test]
    fn a_change_is_shown_with_its_predicted_utilisation() {
        let proposal = Proposal {
            rule: "read_threads",
            overrides: vec!["reader.read_threads=108".into()],
            changes: Vec::new(),
            lost_s: None,
            evidence: Facts::new(),
            cost: Cost::Setting,
            risk: Risk::Memory,
        };
        let prediction = |au_percent: f64| Prediction {
            au_percent,
            au_kind: "au_all_steps_percent",
            interval: [au_percent - 4.0, au_percent + 3.5],
            bottleneck: Bound::StorageBound,
            bytes_per_second: 1e6,
            samples_per_second: 1.0,
        };
        let answer = AnsweredSummary::new(&starved_run()).answer;
        let line = |advice: &Advice| would_help(std::slice::from_ref(advice), &answer).unwrap();
        let mut advice = Advice { proposal, prediction: None };
        assert_eq!(line(&advice), "Would help (estimated): reader.read_threads=108");
        advice.prediction = Some(prediction(92.0));
        let sufficient = "Would help (estimated): reader.read_threads=108 → 92 % AU [88, 96]";
        assert_eq!(line(&advice), sufficient);
        advice.prediction = Some(prediction(89.8));
        let short =
            "Would help (estimated): reader.read_threads=108 → 89.8 % AU [86, 93], not enough";
        assert_eq!(line(&advice), short);
        let workers = Facts::new().with("workers", 108_u64).with("exceeded_cores", 2_u64);
        advice.proposal.evidence = workers.with("memory_bytes", 1_300_000_000_u64);
        let short = "Would help (estimated): reader.read_threads=108 (108 workers on 2 cores, 1.3 GB) → 89.8 % AU [86, 93], not enough";
        assert_eq!(line(&advice), short);
    }

    #[test]
    fn the_process_that_does_the_clients_work_is_named() {
        let mut record = starved_run();
        record.plan.loader.client = Some(ClientPlan::default());
        for epoch in &mut record.epochs {
            let causes = epoch.causes.as_mut().unwrap();
            causes.client_ns = std::mem::replace(&mut causes.read_ns, vec![0; causes.last.len()]);
            for io in epoch.accelerators.iter_mut().map(|accelerator| &mut accelerator.io) {
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
    fn changes_that_would_help_fit_a_line() {
        let mut of_disk = starved_run();
        of_disk.plan.storage.throttle_bytes_per_second = Some(20e6);
        check(
            &of_disk,
            Some("Would help (estimated): 20 MB/s more storage, or accelerators=1"),
            "example: 50 % AU, storage-bound: 2 requests of 1.9 MiB in flight at 200 ms",
        );
        let mut of_latency = starved_run();
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
        let mut fed = starved_run();
        fed.plan.metric.au_target_percent = 45.0;
        check(&fed, None, "example: 50 % AU, compute-bound");
    }

    #[test]
    fn a_run_that_no_known_change_helps_says_so() {
        let mut answer = AnsweredSummary::new(&starved_run()).answer;
        assert_eq!(would_help(&[], &answer).as_deref(), Some("No known change would help"));
        let noisy = Answer { noise: Some(Noise::WideInterval), ..answer.clone() };
        assert_eq!(would_help(&[], &noisy).as_deref(), Some(TOO_NOISY));
        // No rule examines a watched loop.
        answer.verdict = Bound::InputBound;
        assert_eq!(would_help(&[], &answer), None);
    }

    #[test]
    fn the_advice_for_an_inconclusive_run_is_to_repeat_it() {
        let mut cached = starved_run();
        cached.epochs[0].host.process_device_read_bytes = Some(0);
        cached.epochs[0].host.resident_before_bytes = Some(160_000_000);
        check(
            &cached,
            Some(
                "Would help: use `--cold` (in a study, `--cache cold`), or a dataset of at least five times the memory",
            ),
            "example: 50 % AU, cache-fed",
        );
        let mut without_compute = starved_run();
        for accelerator in &mut without_compute.epochs[0].accelerators {
            accelerator.blocks[0].compute_ns.fill(0);
        }
        check(&without_compute, None, "example: 10 samples/s, storage-bound");
        let mut stopped = starved_run();
        stopped.complete = false;
        let head = "example: 50 % AU, incomplete";
        check(&stopped, Some("Would help: run again to the end"), head);
    }
}
