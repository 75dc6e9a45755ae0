//! Renders the schedule of checkpoints as text.

use feedrate_results::run::CheckpointSchedule;
use feedrate_spec::units::{self, counted};

/// When checkpoints are written, their size and their ranks: `after epoch 5, then every 2 epochs; 499.2 MB by 1 rank`.
pub fn schedule(schedule: &CheckpointSchedule) -> String {
    let when = match schedule.alone {
        Some(writes) => format!("{} and no training", counted(writes, "checkpoint")),
        None => times(schedule),
    };
    let ranks = schedule.ranks.map(|ranks| format!("by {}", counted(ranks, "rank")));
    let size = [schedule.bytes.map(units::bytes), ranks];
    let size: Vec<String> = size.into_iter().flatten().collect();
    [when, size.join(" ")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// When checkpoints are written during training: `after epoch 5, then every 2 epochs`.
pub fn times(schedule: &CheckpointSchedule) -> String {
    match (schedule.steps_between, schedule.epochs_between) {
        (Some(1), _) => "after every step".into(),
        (Some(steps), _) => format!("every {steps} steps"),
        (None, 0 | 1) => format!("after epoch {}, then after each", schedule.after_epoch),
        (None, epochs) => {
            format!("after epoch {}, then every {epochs} epochs", schedule.after_epoch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_its_size_and_ranks() {
        let epochs = CheckpointSchedule {
            after_epoch: 5,
            epochs_between: 2,
            bytes: Some(499_153_191),
            ranks: Some(1),
            ..CheckpointSchedule::default()
        };
        let each = CheckpointSchedule { after_epoch: 1, epochs_between: 1, ..epochs };
        let steps = CheckpointSchedule { steps_between: Some(250), ranks: Some(8), ..epochs };
        let alone = CheckpointSchedule { alone: Some(10), bytes: None, ..steps };
        let unknown = CheckpointSchedule { bytes: None, ranks: None, ..each };
        for (value, expected) in [
            (epochs, "after epoch 5, then every 2 epochs; 499.2 MB by 1 rank"),
            (each, "after epoch 1, then after each; 499.2 MB by 1 rank"),
            (steps, "every 250 steps; 499.2 MB by 8 ranks"),
            (alone, "10 checkpoints and no training; by 8 ranks"),
            (unknown, "after epoch 1, then after each"),
        ] {
            assert_eq!(schedule(&value), expected);
        }
    }
}
