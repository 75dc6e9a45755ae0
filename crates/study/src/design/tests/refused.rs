//! Requests that designs refuse.

use super::*;

#[track_caller]
fn check_refused(name: &str, factors: &[StudyFactor], given: &[(&str, &str)], expected: &str) {
    let problems = try_points(name, factors, given).unwrap_err().to_string();
    assert!(
        problems.contains(expected) && problems.contains("hint:"),
        "{name} {given:?}: {problems}"
    );
}

#[test]
fn unsuitable_factors_and_options_are_refused() {
    let many = [factor("a", &["1", "2", "3"]), factor("b", &["x", "y"])];
    let levels: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    let thousand = [factor("a", &levels), factor("b", &levels)];
    for (name, factors, given, expected) in [
        ("two_level", &many[..], vec![], "factors.a: has 3 levels, `two_level` takes two"),
        ("two_level", &signs(17), vec![], "131072 points, the limit is 100000"),
        ("two_level", &signs(64), vec![], "more points than can be counted"),
        ("full_factorial", &thousand, vec![], "1000000 points"),
    ] {
        check_refused(name, factors, &given, expected);
    }
}

#[test]
fn fractions_that_confound_too_much_are_refused() {
    for (factors, given, expected) in [
        (5, vec![], "a fraction needs exactly one of"),
        (5, vec![("p", "1"), ("resolution", "3")], "a fraction needs exactly one of"),
        (5, vec![("p", "3")], "p may be 1, 2"),
        (5, vec![("p", "x")], "`x` is not a whole number"),
        (26, vec![("p", "1")], "26 factors, more than the maximum of 25"),
        (5, vec![("resolution", "6")], "no standard fraction of 5 factors has resolution 6"),
        (4, vec![("generators", "D")], "`D` has no `=`"),
        (4, vec![("generators", "D=ABE")], "`E` is not the letter"),
        (4, vec![("generators", "D=ABA")], "`A` is not the letter of a factor, or occurs twice"),
        (4, vec![("generators", "D=A")], "`AD` would be the same in all runs"),
        (4, vec![("generators", "D=")], "`D` would be the same in all runs"),
        (4, vec![("generators", "CD=AB")], "needs exactly one letter on the left"),
        (4, vec![("generators", "D=AB,D=ABC")], "`D` is defined twice"),
        (5, vec![("generators", "D=AB,E=AD")], "product of factors that are products themselves"),
        (5, vec![("generators", "D=AB,E=AB")], "`DE` would be the same"),
        (3, vec![("generators", "A=BC,B=AC,C=AB")], "3 generators for 3 factors"),
        (1, vec![("generators", "A=")], "1 generator for 1 factor"),
    ] {
        check_refused("fractional", &signs(factors), &given, expected);
    }
}
