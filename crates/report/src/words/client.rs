//! The client that an answer rests on, in a line. Decides nothing.

use super::untold::why;
use feedrate_analysis::predict::{NotPredictable, Prediction};
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{AU_ALL_STEPS, COMPUTE_S, Unit};

/// `Client: ideal, the storage's question`, or both utilisations over all steps: the measured one, and `ideal`, which is estimated. `None`
/// where no client was emulated: of checkpoints alone, and of loops that were watched.
pub fn line(
    derived: &Derived,
    ideal: Option<&Result<Prediction, NotPredictable>>,
) -> Option<String> {
    let record = derived.record;
    if record.watched.is_some() || record.plan.is_checkpoint_only() {
        return None;
    }
    let Some(client) = &record.plan.loader.client else {
        return Some("Client: ideal, the storage's question: your own code takes no time".into());
    };
    let name = client.name.as_deref().unwrap_or("calibrated");
    let head = format!("Client: {name}, the job's question");
    let Some(au) = au_percent(derived) else { return Some(head) };
    let of_ideal = match ideal {
        Some(Ok(of)) => {
            let [low, high] = of.interval;
            let within =
                if of.au_percent < au { "; the difference is within its error" } else { "" };
            format!("{:.0} % [{low:.0}, {high:.0}], estimated{within}", of.au_percent)
        }
        Some(Err(untold)) => format!("not told: {}", why(untold)),
        None => "not told by this run".into(),
    };
    Some(format!("{head}: {au:.0} % AU; ideal client: {of_ideal}"))
}

/// Sentence on a client that leaves less than is asked for.
pub fn leaves(percent: f64, asked_percent: f64) -> String {
    format!(
        "the client alone leaves at most {} AU of the {asked_percent} % asked, whatever the storage",
        Unit::Percent.text(percent)
    )
}

/// The measured utilisation over all steps; `None` where nothing was computed.
pub fn au_percent(derived: &Derived) -> Option<f64> {
    let computes = derived.value(&COMPUTE_S).is_some_and(|compute_s| compute_s > 0.0);
    derived.value(&AU_ALL_STEPS).filter(|au| computes && au.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{checkpoints_alone, simple};
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
    fn an_answer_says_which_client_it_rests_on() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        let ideal = "Client: ideal, the storage's question: your own code takes no time";
        check(&record, None, Some(ideal));
        for told in [
            include_str!("../../../../README.md"),
            include_str!("../../../../docs/guide/advice.md"),
        ] {
            assert!(told.contains(&format!("\n{ideal}\nDoubts: ")), "{told}");
        }
        let client = ClientPlan { per_sample_s: 0.1, ..ClientPlan::default() };
        record.plan.loader.client = Some(client.clone());
        let told = Prediction {
            au_percent: 97.6,
            interval: [95.1, 99.9],
            bottleneck: Bound::ComputeBound,
            bytes_per_second: 1e6,
            samples_per_second: 1.0,
        };
        let both = "Client: calibrated, the job's question: 50 % AU; ideal client: 98 % [95, 100], estimated";
        check(&record, Some(&Ok(told)), Some(both));
        // No client is slower than an ideal one.
        let below = Prediction { au_percent: 49.0, interval: [46.0, 52.0], ..told };
        let within = "Client: calibrated, the job's question: 50 % AU; ideal client: 49 % [46, 52], estimated; the difference is within its error";
        check(&record, Some(&Ok(below)), Some(within));
        record.plan.loader.client = Some(ClientPlan { name: Some("pytorch-npz".into()), ..client });
        let one = "Client: pytorch-npz, the job's question: 50 % AU; ideal client: not told: accelerators read together, or one for all, which is not modelled";
        check(&record, Some(&Err(NotPredictable::CollectiveReads)), Some(one));
        record.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
        check(&record, None, Some("Client: pytorch-npz, the job's question"));
        check(&checkpoints_alone(3), None, None);
    }
}
