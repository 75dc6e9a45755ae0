//! Tests of blocks, replicates, order, centre points and sentinels.

use super::*;
use crate::factor::Spacing;
use feedrate_results::setting::Setting;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn factor(key: &str, levels: &[&str], scale: Spacing) -> StudyFactor {
    StudyFactor {
        name: key.into(),
        key: key.into(),
        levels: levels.iter().map(|level| level.to_string()).collect(),
        scale,
        baseline: None,
    }
}

const PLAIN: Arrangement = Arrangement {
    replicates: 1,
    blocks: Blocking::Replicates,
    order: RunOrder::Standard,
    seed: 1,
    sentinel: None,
    centre_points: 0,
};

fn baseline() -> Row {
    let mut row = Row::new("m", 4);
    row.settings.push(Setting::new("reader.batch_size", "9"));
    row
}

/// Rows of one factor with this number of levels.
fn rows_of_levels(levels: u32, arrangement: &Arrangement) -> Vec<Row> {
    let levels: Vec<String> = (1..=levels).map(|n| n.to_string()).collect();
    let refs: Vec<&str> = levels.iter().map(String::as_str).collect();
    let points: Vec<Point> = levels.iter().map(|level| vec![Some(level.clone())]).collect();
    create_rows(
        &baseline(),
        &[factor("reader.read_threads", &refs, Spacing::Linear)],
        &points,
        arrangement,
    )
    .unwrap()
}

fn summarize(rows: &[Row]) -> Vec<String> {
    let level = |row: &Row| factor::row_level(row, "reader.read_threads").unwrap_or("-".into());
    let number = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
    let brief = |row: &Row| {
        format!(
            "{} {}/{} {}",
            number(row.order),
            number(row.block),
            number(row.replicate),
            level(row)
        )
    };
    rows.iter().map(|row| format!("{} {}", brief(row), row.note).trim_end().to_string()).collect()
}

#[test]
fn a_block_is_a_replicate_or_all_runs() {
    let two = Arrangement { replicates: 2, ..PLAIN };
    assert_eq!(summarize(&rows_of_levels(2, &two)), ["1 1/1 1", "2 1/1 2", "3 2/2 1", "4 2/2 2"]);
    let one_block = Arrangement { blocks: Blocking::None, ..two };
    assert_eq!(
        summarize(&rows_of_levels(2, &one_block)),
        ["1 1/1 1", "2 1/1 2", "3 1/2 1", "4 1/2 2"]
    );
}

#[test]
fn sentinels_are_first_last_and_after_every_n_runs() {
    let arrangement = Arrangement { sentinel: Some(2), ..PLAIN };
    assert_eq!(
        summarize(&rows_of_levels(3, &arrangement)),
        [
            "1 1/1 - sentinel",
            "2 1/1 1",
            "3 1/1 2",
            "4 1/2 - sentinel",
            "5 1/1 3",
            "6 1/3 - sentinel"
        ]
    );
    let blocks = Arrangement { replicates: 2, sentinel: Some(5), ..PLAIN };
    let notes: Vec<usize> = rows_of_levels(5, &blocks)
        .iter()
        .enumerate()
        .filter(|(_, row)| row.note == SENTINEL)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(notes, [0, 6, 7, 13]);
}

#[test]
fn sentinels_are_numbered_after_points_equal_to_the_baseline() {
    let points: Vec<Point> = vec![vec![None], vec![Some("2".into())]];
    let factors = [factor("reader.read_threads", &["2"], Spacing::Linear)];
    let arrangement = Arrangement { replicates: 2, sentinel: Some(9), ..PLAIN };
    let rows = create_rows(&baseline(), &factors, &points, &arrangement).unwrap();
    assert_eq!(
        summarize(&rows),
        [
            "1 1/3 - sentinel",
            "2 1/1 -",
            "3 1/1 2",
            "4 1/4 - sentinel",
            "5 2/5 - sentinel",
            "6 2/2 -",
            "7 2/2 2",
            "8 2/6 - sentinel",
        ]
    );
}

/// Montgomery, section 6.8: centre points of numeric factors, at each level of the others.
#[test]
fn centre_points_are_in_the_middle_of_numbers() {
    let factors = [
        factor("reader.read_threads", &["1", "9"], Spacing::Linear),
        factor("dataset.format", &["npz", "png"], Spacing::Linear),
        factor("dataset.record_length_bytes", &["1000", "100000"], Spacing::Log),
    ];
    let arrangement = Arrangement { centre_points: 2, ..PLAIN };
    let rows = create_rows(&baseline(), &factors, &[], &arrangement).unwrap();
    let settings = |row: &Row| {
        let values = row.settings.iter().skip(1).filter_map(|setting| setting.value.clone());
        (row.replicate.unwrap(), values.collect::<Vec<_>>().join(" "), row.note.clone())
    };
    let expected = |n, text: &str| (n, text.to_string(), CENTRE_POINT.to_string());
    let found: Vec<_> = rows.iter().map(settings).collect();
    assert_eq!(
        found,
        [
            expected(1, "5 npz 10000"),
            expected(1, "5 png 10000"),
            expected(2, "5 npz 10000"),
            expected(2, "5 png 10000")
        ]
    );
}

#[test]
fn a_level_replaces_the_setting_of_the_baseline() {
    let points = vec![vec![Some("3".to_string()), Some("2".to_string())]];
    let factors = [
        factor("reader.batch_size", &["3"], Spacing::Linear),
        factor("processes", &["2"], Spacing::Linear),
    ];
    let rows = create_rows(&baseline(), &factors, &points, &PLAIN).unwrap();
    assert_eq!(rows[0].settings, [Setting::new("reader.batch_size", "3")]);
    assert_eq!(rows[0].accelerators, 2);
}

#[test]
fn too_many_runs_are_refused_before_they_are_created() {
    for arrangement in [
        Arrangement { replicates: u32::MAX, ..PLAIN },
        Arrangement { replicates: u32::MAX, blocks: Blocking::None, ..PLAIN },
        Arrangement { replicates: 50_000, sentinel: Some(1), ..PLAIN },
        Arrangement { centre_points: u32::MAX, ..PLAIN },
    ] {
        let points: Vec<Point> = vec![vec![Some("1".into())]];
        let factors = [factor("reader.read_threads", &["1", "9"], Spacing::Linear)];
        let problems = create_rows(&baseline(), &factors, &points, &arrangement).unwrap_err();
        assert!(problems.to_string().contains("the limit is 100000"), "{problems}");
    }
}

proptest! {
    #[test]
    fn each_block_has_each_point_once_and_each_run_its_own_key(
        levels in 1_u32..12, replicates in 1_u32..5, seed: u64, sentinel in proptest::option::of(1_u32..6),
        centre_points in 0_u32..3, random: bool, one_block: bool,
    ) {
        let arrangement = Arrangement {
            replicates,
            blocks: if one_block { Blocking::None } else { Blocking::Replicates },
            order: if random { RunOrder::Random } else { RunOrder::Standard },
            seed,
            sentinel,
            centre_points: if levels > 2 { centre_points } else { 0 },
        };
        let rows = rows_of_levels(levels, &arrangement);
        prop_assert_eq!(&rows, &rows_of_levels(levels, &arrangement), "the same seed gives the same order");
        let keys: BTreeSet<RowKey> = rows.iter().map(Row::key).collect();
        prop_assert_eq!(keys.len(), rows.len());
        prop_assert!(rows.iter().enumerate().all(|(i, row)| row.order == Some(i as u32 + 1)));
        let blocks = if one_block { 1 } else { replicates };
        for block in 1..=blocks {
            let block_rows: Vec<&Row> = rows.iter().filter(|row| row.block == Some(block)).collect();
            let mut points: Vec<(Option<u32>, String)> = block_rows.iter().filter(|row| row.note.is_empty())
                .map(|row| (row.replicate, factor::row_level(row, "reader.read_threads").unwrap())).collect();
            points.sort();
            let numbers = if one_block { 1..=replicates } else { block..=block };
            let mut expected: Vec<(Option<u32>, String)> = numbers
                .flat_map(|n| (1..=levels).map(move |level| (Some(n), level.to_string()))).collect();
            expected.sort();
            prop_assert_eq!(points, expected);
            if let Some(interval) = sentinel {
                let sentinels: Vec<usize> = (0..block_rows.len()).filter(|&i| block_rows[i].note == SENTINEL).collect();
                prop_assert_eq!(sentinels[0], 0);
                prop_assert_eq!(*sentinels.last().unwrap(), block_rows.len() - 1);
                prop_assert!(sentinels.windows(2).all(|pair| pair[1] - pair[0] <= interval as usize + 1));
            }
        }
    }
}
