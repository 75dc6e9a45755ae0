//! Designs against textbooks: Jain, "The Art of Computer Systems Performance Analysis" (1991), chapters 17 to 19; Montgomery, "Design and
//! Analysis of Experiments" (8th edition), chapters 6 and 8; Box, Hunter and Hunter, "Statistics for Experimenters" (2nd edition), chapter 6.

mod refused;

use super::*;
use crate::factor::Spacing;

/// Factors at `-` and `+`.
fn signs(count: usize) -> Vec<StudyFactor> {
    (0..count).map(|i| factor(&format!("f{i}"), &["-", "+"])).collect()
}

fn factor(name: &str, levels: &[&str]) -> StudyFactor {
    StudyFactor {
        name: name.into(),
        key: name.into(),
        levels: levels.iter().map(|level| level.to_string()).collect(),
        scale: Spacing::Linear,
        baseline: None,
    }
}

fn options(given: &[(&str, &str)]) -> DesignOptions {
    let words = |text: &str| text.split(',').map(str::to_string).collect();
    DesignOptions(given.iter().map(|(name, text)| (name.to_string(), words(text))).collect())
}

fn try_points(
    name: &str,
    factors: &[StudyFactor],
    given: &[(&str, &str)],
) -> Result<DesignPoints, Problems> {
    let options = options(given);
    find(name).unwrap().points(&DesignRequest { factors, options: &options })
}

#[track_caller]
fn points(name: &str, factors: &[StudyFactor], given: &[(&str, &str)]) -> DesignPoints {
    try_points(name, factors, given).unwrap()
}

fn text(point: &Point) -> String {
    point.iter().map(|level| level.as_deref().unwrap_or("0")).collect()
}

fn table(design: &DesignPoints) -> Vec<String> {
    design.points.iter().map(text).collect()
}

#[test]
fn every_kind_has_a_name_a_summary_and_refuses_bad_requests() {
    for design in DESIGNS {
        assert!(design.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", design.name);
        assert!(design.summary.ends_with('.') && !design.estimates.is_empty(), "{}", design.name);
        assert_eq!(find(&design.name.replace('_', "-")).unwrap().name, design.name);
        let none = try_points(design.name, &[], &[]);
        assert!(none.unwrap_err().to_string().contains("without factors"));
        let unknown =
            try_points(design.name, &signs(3), &[("poits", "4")]).unwrap_err().to_string();
        assert!(unknown.contains("design.poits: ") && unknown.contains("hint:"), "{unknown}");
    }
    for (name, hint) in [
        ("full_factorail", "did you mean `full_factorial`?"),
        ("latin-hypercube", "`full_factorial` with ranges cut into levels"),
        ("plackett_burman", "screen with `fractional`"),
    ] {
        let problem = find(name).err().unwrap().to_string();
        assert!(problem.contains(hint), "{problem}");
    }
}

#[test]
fn one_factor_at_a_time_is_the_baseline_and_each_other_level_once() {
    let mut factors = [factor("a", &["1", "2", "4"]), factor("b", &["x", "y"])];
    assert_eq!(
        table(&points("one_factor_at_a_time", &factors, &[])),
        ["00", "10", "20", "40", "0x", "0y"]
    );
    factors[0].baseline = Some("2.0".into());
    factors[1].baseline = Some("X".into());
    assert_eq!(table(&points("one_factor_at_a_time", &factors, &[])), ["00", "10", "40", "0y"]);
}

#[test]
fn a_full_factorial_is_every_combination_once() {
    let factors = [factor("a", &["1", "2", "3"]), factor("b", &["x", "y"])];
    assert_eq!(
        table(&points("full_factorial", &factors, &[])),
        ["1x", "2x", "3x", "1y", "2y", "3y"]
    );
}

/// Jain, chapter 17: the columns of the factors in the sign tables of 2^2 and 2^3.
#[test]
fn two_levels_are_in_the_order_of_the_sign_table() {
    assert_eq!(table(&points("two_level", &signs(2), &[])), ["--", "+-", "-+", "++"]);
    let three = ["---", "+--", "-+-", "++-", "--+", "+-+", "-++", "+++"];
    assert_eq!(table(&points("two_level", &signs(3), &[])), three);
}

/// Jain, example 19.1: 2^(7-4). D, E, F and G take the columns AB, AC, BC and ABC.
#[test]
fn seven_factors_fit_eight_runs() {
    let design = points("fractional", &signs(7), &[("p", "4")]);
    let expected =
        ["---+++-", "+----++", "-+--+-+", "++-+---", "--++--+", "+-+-+--", "-++--+-", "+++++++"];
    assert_eq!(table(&design), expected);
    let aliases = design.aliases.unwrap();
    assert_eq!(aliases.generators, ["D = AB", "E = AC", "F = BC", "G = ABC"]);
    assert_eq!(aliases.resolution, 3);
    // Montgomery, section 8.6.1: the complete defining relation.
    let words = "ABD ACE AFG BCF BEG CDG DEF ABCG ABEF ACDF ADEG BCDE BDFG CEFG ABCDEFG";
    assert_eq!(aliases.defining.join(" "), words);
    // The same section, without words of three and more factors: A + BD + CE + FG and so on.
    let pairs = |chain: &Chain| {
        let words = chain.aliases.iter().filter(|word| word.len() == 2);
        format!("{} {}", chain.effect, words.map(String::as_str).collect::<Vec<_>>().join(" "))
    };
    let chains: Vec<String> = aliases.chains.iter().map(pairs).collect();
    let expected = [
        "A BD CE FG",
        "B AD CF EG",
        "C AE BF DG",
        "D AB CG EF",
        "E AC BG DF",
        "F AG BC DE",
        "G AF BE CD",
    ];
    assert_eq!(chains, expected);
}

/// Jain, chapter 19, on confounding: the 2^(4-1) design of D = ABC.
#[test]
fn the_aliases_of_a_half_of_four_factors_match_the_textbook() {
    let expected = [
        ("A", "BCD"),
        ("B", "ACD"),
        ("C", "ABD"),
        ("D", "ABC"),
        ("AB", "CD"),
        ("AC", "BD"),
        ("AD", "BC"),
    ];
    for given in [
        [("generators", "D=ABC")],
        [("generators", "d = cab")],
        [("p", "1")],
        [("resolution", "4")],
    ] {
        let aliases = points("fractional", &signs(4), &given).aliases.unwrap();
        assert_eq!((aliases.defining.join(" ").as_str(), aliases.resolution), ("ABCD", 4));
        let chains: Vec<(&str, &str)> =
            aliases.chains.iter().map(|c| (c.effect.as_str(), c.aliases[0].as_str())).collect();
        assert_eq!(chains, expected);
    }
}

/// Jain, chapter 19, the other 2^(4-1) design: D = AB confounds factors with pairs, resolution III.
#[test]
fn a_worse_generator_has_a_lower_resolution() {
    let aliases = points("fractional", &signs(4), &[("generators", "D=AB")]).aliases.unwrap();
    assert_eq!((aliases.defining.join(" ").as_str(), aliases.resolution), ("ABD", 3));
    let chains: Vec<String> =
        aliases.chains.iter().map(|c| format!("{}={}", c.effect, c.aliases.join("="))).collect();
    assert_eq!(chains, ["A=BD", "B=AD", "C=ABCD", "D=AB", "AC=BCD", "BC=ACD", "CD=ABC"]);
}

/// Montgomery, example 8.2: 2^(5-1) of E = ABCD, resolution V. The runs by their treatment letters, in standard order.
#[test]
fn a_half_of_five_factors_does_not_confound_pairs() {
    let design = points("fractional", &signs(5), &[("p", "1")]);
    let runs: Vec<String> = design
        .points
        .iter()
        .map(|point| {
            (0..5)
                .filter(|&i| point[i].as_deref() == Some("+"))
                .map(|i| "abcde".chars().nth(i).unwrap())
                .collect()
        })
        .collect();
    let expected = [
        "e", "a", "b", "abe", "c", "ace", "bce", "abc", "d", "ade", "bde", "abd", "cde", "acd",
        "bcd", "abcde",
    ];
    assert_eq!(runs, expected);
    let aliases = design.aliases.unwrap();
    assert_eq!(aliases.resolution, 5);
    assert!(aliases.chains.iter().all(|chain| chain.aliases.iter().all(|word| word.len() >= 3)));
}

/// The other half: Montgomery, section 8.2.1, I = -ABC.
#[test]
fn a_negative_generator_selects_the_other_half() {
    let design = points("fractional", &signs(3), &[("generators", "C=-AB")]);
    assert_eq!(table(&design), ["---", "+-+", "-++", "++-"]);
    let aliases = design.aliases.unwrap();
    assert_eq!(aliases.defining, ["-ABC"]);
    assert_eq!(
        aliases.chains[0],
        Chain { effect: "A".into(), aliases: vec!["-BC".into()], further: 0 }
    );
}

/// Montgomery, table 8.14: (k, p, resolution).
const RESOLUTIONS: &[(usize, usize, u32)] = &[
    (3, 1, 3),
    (4, 1, 4),
    (5, 1, 5),
    (5, 2, 3),
    (6, 1, 6),
    (6, 2, 4),
    (6, 3, 3),
    (7, 1, 7),
    (7, 2, 4),
    (7, 3, 4),
    (7, 4, 3),
    (8, 2, 5),
    (8, 3, 4),
    (8, 4, 4),
    (9, 2, 6),
    (9, 3, 4),
    (9, 4, 4),
    (9, 5, 3),
    (10, 3, 5),
    (10, 4, 4),
    (10, 5, 4),
    (10, 6, 3),
    (11, 4, 5),
    (11, 5, 4),
    (11, 6, 4),
    (11, 7, 3),
    (12, 8, 3),
    (13, 9, 3),
    (14, 10, 3),
    (15, 11, 3),
];

#[test]
fn standard_fractions_have_the_resolution_of_the_table() {
    for &(k, p, resolution) in RESOLUTIONS {
        let design = points("fractional", &signs(k), &[("p", &p.to_string())]);
        assert_eq!(design.points.len(), 1 << (k - p), "2^({k}-{p})");
        assert_eq!(design.aliases.unwrap().resolution, resolution, "2^({k}-{p})");
    }
}

/// Number of defining words by length, the shortest first.
fn word_lengths(words: &[aliases::Word], factors: usize) -> Vec<u32> {
    let mut lengths = vec![0; factors + 1];
    words.iter().for_each(|word| lengths[word.order() as usize] += 1);
    lengths
}

/// Fries and Hunter, Technometrics 22 (1980): a design of minimum aberration has the smallest list of word lengths, compared from the shortest on. The
/// test compares with all sets of generators.
#[test]
fn standard_fractions_have_minimum_aberration() {
    fn find_least(chosen: &mut Vec<u32>, from: u32, base: usize, p: usize, least: &mut Vec<u32>) {
        if chosen.len() == p {
            let word = |(i, &g): (usize, &u32)| aliases::Word {
                factors: g | 1 << (base + i),
                is_negative: false,
            };
            let words: Vec<_> = chosen.iter().enumerate().map(word).collect();
            let lengths = word_lengths(&aliases::group(&words), base + p);
            if least.is_empty() || lengths < *least {
                *least = lengths;
            }
            return;
        }
        for generator in (from..1 << base).filter(|g| g.count_ones() > 1) {
            chosen.push(generator);
            find_least(chosen, generator + 1, base, p, least);
            chosen.pop();
        }
    }
    for (k, p) in [
        (5, 2),
        (6, 2),
        (6, 3),
        (7, 2),
        (7, 3),
        (7, 4),
        (8, 2),
        (8, 3),
        (8, 4),
        (9, 2),
        (9, 4),
        (9, 5),
        (10, 6),
        (11, 7),
        (12, 8),
    ] {
        let aliases = points("fractional", &signs(k), &[("p", &p.to_string())]).aliases.unwrap();
        let ours = aliases
            .defining
            .iter()
            .map(|word| aliases::Word::parse(word, k).unwrap())
            .collect::<Vec<_>>();
        let mut least = Vec::new();
        find_least(&mut Vec::new(), 1, k - p, p, &mut least);
        assert_eq!(word_lengths(&ours, k), least, "2^({k}-{p})");
    }
}

fn column(design: &DesignPoints, factor: usize) -> Vec<i32> {
    design
        .points
        .iter()
        .map(|point| if point[factor].as_deref() == Some("+") { 1 } else { -1 })
        .collect()
}

/// Each column sums to 0, and so does the product of any two.
#[track_caller]
fn assert_orthogonal(design: &DesignPoints, factors: usize) {
    for i in 0..factors {
        assert_eq!(column(design, i).iter().sum::<i32>(), 0, "{i}");
        for j in 0..i {
            let product: i32 =
                column(design, i).iter().zip(column(design, j)).map(|(a, b)| a * b).sum();
            assert_eq!(product, 0, "{i} {j}");
        }
    }
}

#[test]
fn every_design_of_two_levels_is_orthogonal() {
    for k in 1..9 {
        assert_orthogonal(&points("two_level", &signs(k), &[]), k);
    }
    for &(k, p, _) in RESOLUTIONS {
        assert_orthogonal(&points("fractional", &signs(k), &[("p", &p.to_string())]), k);
    }
}
