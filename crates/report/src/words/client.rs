//! Renders the client of an answer as a line. Decides nothing.

use super::unpredicted::why;
use feedrate_analysis::predict::{NotPredictable, Prediction};
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_measure::supply::deciding_metric;

/// A line on the client. An emulated client has two utilisations of the kind that decides the answer: the estimate for an `ideal` client, which is what the storage can
/// reach, and the measured one. `None` for runs without a client: runs of only checkpoints, and watched loops.
pub fn line(
    derived: &Derived,
    ideal: Option<&Result<Prediction, NotPredictable>>,
) -> Option<String> {
    let record = derived.record;
    if record.watched.is_some() || record.plan.is_checkpoint_only() {
        return None;
    }
    let Some(client) = &record.plan.loader.client else {
        return Some("Client: ideal (tests the storage): your own code takes no time".into());
    };
    let name = client.name.as_deref().unwrap_or("calibrated");
    let head = format!("Client: {name} (tests the job)");
    let Some(au) = au_percent(derived, ideal) else { return Some(head) };
    let storage_text = match ideal {
        Some(Ok(prediction)) => {
            let [low, high] = prediction.interval;
            let percent = prediction.au_percent;
            let within = if low <= au { ", the difference is within its error" } else { "" };
            format!("{percent:.0} % [{low:.0}, {high:.0}], estimated{within}")
        }
        Some(Err(reason)) => format!("unknown: {}", why(reason)),
        None => "unknown from this run".into(),
    };
    let source = if derived.is_memory_served() { "Memory" } else { "The storage" };
    Some(format!("{head}. {source} could feed it: {storage_text}; your code gets {au:.0} %"))
}

/// A sentence on a client that cannot reach the target on any storage.
pub fn client_limit(percent: f64, target_percent: f64) -> String {
    format!(
        "the client alone limits AU to {}, below the target of {target_percent} %, on any storage",
        Unit::Percent.text(percent)
    )
}

/// The measured utilisation of the estimate's kind, or without an estimate of the kind that decides the answer; `None` if nothing was computed.
pub fn au_percent(
    derived: &Derived,
    ideal: Option<&Result<Prediction, NotPredictable>>,
) -> Option<f64> {
    let deciding = deciding_metric(derived)?;
    let estimated = ideal.and_then(|ideal| Metric::find(ideal.as_ref().ok()?.au_kind).ok());
    derived.value(estimated.unwrap_or(deciding)).filter(|au| au.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{checkpoint_only_record, simple};
    use feedrate_measure::record::Record;
    use feedrate_measure::verdict::Bound;
    use feedrate_spec::plan::ClientPlan;

    #[track_caller]
    fn check(
        record: &Record,
        ideal: Option<&Result<Prediction, NotPredictable>>,
        expected: Option<&str>,
    ) {
        assert_eq!(line(&Derived::new(record), ideal).as_deref(), expected);
    }

    #[test]
    fn an_answer_names_its_client() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        let ideal = "Client: ideal (tests the storage): your own code takes no time";
        check(&record, None, Some(ideal));
        for page in [
            include_str!("../../../../README.md"),
            include_str!("../../../../docs/guide/first-run.md"),
        ] {
            assert!(page.contains(&format!("\n{ideal}\nDoubts: ")), "{page}");
        }
        let client = ClientPlan { per_sample_s: 0.1, ..ClientPlan::default() };
        record.plan.loader.client = Some(client.clone());
        let prediction = Prediction {
            au_percent: 97.6,
            au_kind: "au_all_steps_percent",
            interval: [95.1, 99.9],
            bottleneck: Bound::ComputeBound,
            bytes_per_second: 1e6,
            samples_per_second: 1.0,
        };
        let both = "Client: calibrated (tests the job). The storage could feed it: 98 % [95, 100], estimated; your code gets 50 %";
        check(&record, Some(&Ok(prediction)), Some(both));
        // No client is slower than an ideal one.
        let below = Prediction { au_percent: 49.0, interval: [46.0, 52.0], ..prediction };
        let within = "Client: calibrated (tests the job). The storage could feed it: 49 % [46, 52], estimated, the difference is within its error; your code gets 50 %";
        check(&record, Some(&Ok(below)), Some(within));
        let mut cached = record.clone();
        let host = &mut cached.epochs[0].host;
        (host.process_device_read_bytes, host.resident_before_bytes) = (Some(0), Some(1 << 30));
        let memory = "Client: calibrated (tests the job). Memory could feed it: 98 % [95, 100], estimated; your code gets 50 %";
        check(&cached, Some(&Ok(prediction)), Some(memory));
        record.plan.loader.client = Some(ClientPlan { name: Some("pytorch-npz".into()), ..client });
        let unpredicted = "Client: pytorch-npz (tests the job). The storage could feed it: unknown: accelerators read together, or one reads for all, which is not modelled; your code gets 50 %";
        check(&record, Some(&Err(NotPredictable::CollectiveReads)), Some(unpredicted));
        record.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        check(&record, None, Some("Client: pytorch-npz (tests the job)"));
        check(&checkpoint_only_record(3), None, None);
    }
}
