//! Compares effects, allocations of variation and analyses of variance with published examples, to the printed digit.

use super::*;

fn cell(levels: &[usize], values: &[f64]) -> Cell {
    Cell { levels: levels.to_vec(), values: values.to_vec() }
}

/// Cells of two factors with two levels. Level 0 is the high level, which is coded as +1.
fn two_by_two(values: [&[f64]; 4]) -> Vec<Cell> {
    let levels = [[1, 1], [0, 1], [1, 0], [0, 0]];
    levels.iter().zip(values).map(|(levels, values)| cell(levels, values)).collect()
}

fn full_model() -> [Term; 3] {
    [vec![0], vec![1], vec![0, 1]]
}

fn rounded(values: impl IntoIterator<Item = f64>, digits: usize) -> Vec<String> {
    values.into_iter().map(|value| format!("{value:.digits$}")).collect()
}

fn shares(table: &Anova) -> Vec<f64> {
    table.terms.iter().map(|term| 100.0 * term.share.unwrap()).collect()
}

fn squares(table: &Anova) -> Vec<f64> {
    table.terms.iter().map(|term| term.part.squares).collect()
}

fn f_values(table: &Anova) -> Vec<f64> {
    table.terms.iter().map(|term| term.f.unwrap()).collect()
}

fn effects(model: &Model) -> Vec<Combination> {
    let effect = |levels: &[(usize, usize)]| model.effect(levels).unwrap();
    vec![
        model.grand_mean().unwrap(),
        effect(&[(0, 0)]),
        effect(&[(1, 0)]),
        effect(&[(0, 0), (1, 0)]),
    ]
}

/// Jain (1991), ch. 17.1 and example 17.1: effects of memory and cache of a workstation.
#[test]
fn effects_of_two_factors_equal_jains() {
    let cells = two_by_two([&[15.0], &[45.0], &[25.0], &[75.0]]);
    let model = Model::new(&cells, &[2, 2], &full_model());
    let found = effects(&model).iter().map(|effect| effect.estimate(&cells)).collect::<Vec<_>>();
    assert_eq!(rounded(found, 0), ["40", "20", "10", "5"]);
    let table = anova(&cells, &[2, 2], &full_model());
    assert_eq!(rounded([table.total], 0), ["2100"]);
    assert_eq!(rounded(squares(&table), 0), ["1600", "400", "100"]);
    assert_eq!(rounded(shares(&table), 0), ["76", "19", "5"]);
    assert_eq!((table.error.freedom, table.terms[0].p), (0, None), "no replicates, no test");
}

/// Jain (1991), ch. 18: the workstation with three replicates. Only lower ends of intervals are compared, as Jain's upper ends are rounded.
#[test]
fn effects_with_replicates_equal_jains() {
    let cells = two_by_two([
        &[15.0, 18.0, 12.0],
        &[45.0, 48.0, 51.0],
        &[25.0, 28.0, 19.0],
        &[75.0, 75.0, 81.0],
    ]);
    let model = Model::new(&cells, &[2, 2], &full_model());
    let table = anova(&cells, &[2, 2], &full_model());
    assert_eq!(rounded([table.total, table.error.squares], 0), ["7032", "102"]);
    assert_eq!(rounded(squares(&table), 0), ["5547", "1083", "300"]);
    assert_eq!(rounded(shares(&table), 2), ["78.88", "15.40", "4.27"]);
    let variance = table.error.mean_square().unwrap();
    assert_eq!(rounded([variance.sqrt()], 2), ["3.57"]);
    let found: Vec<Difference> = effects(&model)
        .iter()
        .map(|effect| effect.pooled_difference(&cells, variance, 8.0))
        .collect();
    let estimates = found.iter().map(|effect| effect.estimate);
    assert_eq!(rounded(estimates, 1), ["41.0", "21.5", "9.5", "5.0"]);
    assert!(found.iter().all(|effect| rounded([effect.standard_error], 2) == ["1.03"]));
    let low = found.iter().map(|effect| effect.interval(0.90).unwrap().low);
    assert_eq!(rounded(low, 2), ["39.08", "19.58", "7.58", "3.08"]);
}

/// Jain (1991), ch. 20: code sizes of three processors.
#[test]
fn effects_of_one_factor_equal_jains() {
    let cells = [
        cell(&[0], &[144.0, 120.0, 176.0, 288.0, 144.0]),
        cell(&[1], &[101.0, 144.0, 211.0, 288.0, 72.0]),
        cell(&[2], &[130.0, 180.0, 141.0, 374.0, 302.0]),
    ];
    let model = Model::new(&cells, &[3], &[vec![0]]);
    let effect = |level| model.effect(&[(0, level)]).unwrap();
    let estimates = (0..3).map(|level| effect(level).estimate(&cells));
    assert_eq!(rounded(estimates, 1), ["-13.3", "-24.5", "37.7"]);
    let table = anova(&cells, &[3], &[vec![0]]);
    assert_eq!(rounded([table.total, table.error.squares], 1), ["105357.3", "94365.2"]);
    assert_eq!(rounded(squares(&table), 1), ["10992.1"]);
    assert_eq!(rounded(shares(&table), 1), ["10.4"]);
    assert_eq!(rounded(f_values(&table), 1), ["0.7"]);
    let variance = table.error.mean_square().unwrap();
    assert_eq!(rounded([variance.sqrt()], 1), ["88.7"]);
    let errors =
        (0..3).map(|level| effect(level).pooled_difference(&cells, variance, 12.0).standard_error);
    // Jain computes 32.4 as s_e = 88.7 times √(2 ÷ 15) = 0.365.
    assert_eq!(rounded(errors, 1), ["32.4", "32.4", "32.4"]);
    let contrast = model.difference(0, 1, 0).unwrap();
    assert_eq!(rounded([contrast.estimate(&cells)], 1), ["11.2"]);
}

/// Jain (1991), ch. 21: five workloads on a processor with two caches, one cache and no cache.
#[test]
fn effects_without_interaction_equal_jains() {
    let times = [
        [54.0, 55.0, 106.0],
        [60.0, 60.0, 123.0],
        [43.0, 43.0, 120.0],
        [49.0, 52.0, 111.0],
        [49.0, 50.0, 108.0],
    ];
    let mut cells = Vec::new();
    for (workload, times) in times.iter().enumerate() {
        cells.extend(
            times.iter().enumerate().map(|(cache, &time)| cell(&[cache, workload], &[time])),
        );
    }
    let terms = [vec![0], vec![1]];
    let model = Model::new(&cells, &[3, 5], &terms);
    let effect = |factor, level| model.effect(&[(factor, level)]).unwrap().estimate(&cells);
    assert_eq!(rounded([model.grand_mean().unwrap().estimate(&cells)], 1), ["72.2"]);
    assert_eq!(rounded((0..3).map(|level| effect(0, level)), 1), ["-21.2", "-20.2", "41.4"]);
    let workloads = (0..5).map(|level| effect(1, level));
    assert_eq!(rounded(workloads, 1), ["-0.5", "8.8", "-3.5", "-1.5", "-3.2"]);
    let table = anova(&cells, &[3, 5], &terms);
    assert_eq!(rounded(squares(&table), 1), ["12857.2", "308.4"]);
    assert_eq!(rounded([table.error.squares], 1), ["236.8"]);
    assert_eq!(rounded(shares(&table), 1), ["95.9", "2.3"]);
    assert_eq!(rounded(f_values(&table), 1), ["217.2", "2.6"]);
}

/// R's `PlantGrowth`: `summary(aov(weight ~ group))`.
#[test]
fn anova_of_one_factor_equals_rs() {
    let cells = [
        cell(&[0], &[4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]),
        cell(&[1], &[4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69]),
        cell(&[2], &[6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26]),
    ];
    let table = anova(&cells, &[3], &[vec![0]]);
    assert_eq!(rounded([squares(&table)[0], table.error.squares], 3), ["3.766", "10.492"]);
    assert_eq!(rounded(f_values(&table), 3), ["4.846"]);
    assert_eq!(rounded([table.terms[0].p.unwrap()], 4), ["0.0159"]);
}

const WARP_BREAKS: [[f64; 9]; 6] = [
    [26.0, 30.0, 54.0, 25.0, 70.0, 52.0, 51.0, 26.0, 67.0],
    [18.0, 21.0, 29.0, 17.0, 12.0, 18.0, 35.0, 30.0, 36.0],
    [36.0, 21.0, 24.0, 18.0, 10.0, 43.0, 28.0, 15.0, 26.0],
    [27.0, 14.0, 29.0, 19.0, 29.0, 31.0, 41.0, 20.0, 44.0],
    [42.0, 26.0, 19.0, 16.0, 39.0, 28.0, 21.0, 39.0, 29.0],
    [20.0, 21.0, 24.0, 17.0, 13.0, 15.0, 15.0, 16.0, 28.0],
];

/// R's `warpbreaks`: `summary(aov(breaks ~ wool * tension))`, as in R's help. The lack of fit of the additive model is the interaction.
#[test]
fn anova_of_two_factors_equals_rs() {
    let cells: Vec<Cell> = (0..6).map(|i| cell(&[i / 3, i % 3], &WARP_BREAKS[i])).collect();
    let table = anova(&cells, &[2, 3], &full_model());
    assert_eq!(rounded(squares(&table), 0), ["451", "2034", "1003"]);
    assert_eq!(rounded(f_values(&table), 3), ["3.765", "8.498", "4.189"]);
    let p = table.terms.iter().map(|term| term.p.unwrap());
    assert_eq!(rounded(p, 6), ["0.058213", "0.000693", "0.021044"]);
    let additive = anova(&cells, &[2, 3], &full_model()[..2]);
    assert_eq!(additive.lack_of_fit.part.freedom, 2);
    assert_eq!(rounded([additive.lack_of_fit.f.unwrap()], 3), ["4.189"]);
}

/// R's `warpbreaks` with 9, 8, 7, 6, 5 and 4 values in the six cells. Expected values are Type II squares of statsmodels 0.15 (`anova_lm(…, typ=2)`), and
/// coefficients and standard errors of the additive model.
#[test]
fn an_unbalanced_anova_equals_statsmodels() {
    let cells: Vec<Cell> =
        (0..6).map(|i| cell(&[i / 3, i % 3], &WARP_BREAKS[i][..9 - i])).collect();
    let table = anova(&cells, &[2, 3], &full_model());
    assert_eq!(rounded(squares(&table), 4), ["474.0325", "1451.4467", "1102.5608"]);
    assert_eq!(rounded([table.error.squares], 4), ["4598.6841"]);
    assert_eq!(rounded(f_values(&table), 5), ["3.40164", "5.20777", "3.95597"]);
    let p = table.terms.iter().map(|term| term.p.unwrap());
    assert_eq!(rounded(p, 5), ["0.07412", "0.01082", "0.02884"]);
    let additive = anova(&cells, &[2, 3], &full_model()[..2]);
    let model = Model::new(&cells, &[2, 3], &full_model()[..2]);
    let estimate_and_error = |combination: Option<Combination>| {
        let variance = additive.error.mean_square().unwrap();
        let found =
            combination.unwrap().pooled_difference(&cells, variance, additive.error.freedom as f64);
        rounded([found.estimate, found.standard_error], 4)
    };
    assert_eq!(estimate_and_error(model.grand_mean()), ["27.5774", "2.1183"]);
    assert_eq!(estimate_and_error(model.effect(&[(0, 0)])), ["3.5847", "2.1014"]);
    assert_eq!(estimate_and_error(model.effect(&[(1, 1)])), ["-3.6354", "2.9019"]);
}

/// R's `npk`: yields of peas, `summary(aov(yield ~ block + N * P * K))`. The interaction of N, P and K is confounded with the blocks.
#[test]
fn an_anova_with_blocks_equals_rs() {
    const YIELDS: [(f64, [usize; 3]); 24] = [
        (49.5, [0, 1, 1]),
        (62.8, [1, 1, 0]),
        (46.8, [0, 0, 0]),
        (57.0, [1, 0, 1]),
        (59.8, [1, 0, 0]),
        (58.5, [1, 1, 1]),
        (55.5, [0, 0, 1]),
        (56.0, [0, 1, 0]),
        (62.8, [0, 1, 0]),
        (55.8, [1, 1, 1]),
        (69.5, [1, 0, 0]),
        (55.0, [0, 0, 1]),
        (62.0, [1, 0, 0]),
        (48.8, [1, 1, 1]),
        (45.5, [0, 0, 1]),
        (44.2, [0, 1, 0]),
        (52.0, [1, 1, 0]),
        (51.5, [0, 0, 0]),
        (49.8, [1, 0, 1]),
        (48.8, [0, 1, 1]),
        (57.2, [1, 0, 1]),
        (59.0, [1, 1, 0]),
        (53.2, [0, 1, 1]),
        (56.0, [0, 0, 0]),
    ];
    let cell_of_run = |(run, (value, [n, p, k])): (usize, &(f64, [usize; 3]))| {
        cell(&[run / 4, 1 - n, 1 - p, 1 - k], &[*value])
    };
    let cells: Vec<Cell> = YIELDS.iter().enumerate().map(cell_of_run).collect();
    let terms: Vec<Term> = [&[0][..], &[1], &[2], &[3], &[1, 2], &[1, 3], &[2, 3], &[1, 2, 3]]
        .iter()
        .map(|term| term.to_vec())
        .collect();
    let counts = [6, 2, 2, 2];
    let table = anova(&cells, &counts, &terms[..7]);
    let expected = ["343.295", "189.282", "8.402", "95.202", "21.282", "33.135", "0.482"];
    assert_eq!(rounded(squares(&table), 3), expected);
    assert_eq!(
        (rounded([table.error.squares], 2), table.error.freedom),
        (vec!["185.29".into()], 12)
    );
    assert_eq!(rounded([table.terms[1].p.unwrap()], 5), ["0.00437"]);
    let model = Model::new(&cells, &counts, &terms);
    let n = model.difference(1, 1, 0).unwrap().estimate(&cells);
    assert_eq!(rounded([n], 3), ["5.617"]);
    assert_eq!(model.effect(&[(1, 0), (2, 0), (3, 0)]), None);
}
