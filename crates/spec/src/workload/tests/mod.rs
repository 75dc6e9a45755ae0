//! Tests with complete workloads: from text and overrides to values, or to the text of all problems.

mod values;
mod problems;
mod interpolation;
mod laws;

use super::{Override, Strictness, Workload, parse};
use crate::problem::Problems;

fn read(yaml: &str, overrides: &[&str]) -> Result<(Workload, Problems), Problems> {
    let mut all = Vec::new();
    for text in overrides {
        all.push(Override::parse(text).map_err(|problem| Problems(vec![problem]))?);
    }
    parse("w.yaml", yaml, &all, Strictness::Error)
}

fn workload(yaml: &str, overrides: &[&str]) -> Workload {
    let (workload, warnings) =
        read(yaml, overrides).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(warnings.to_string(), "");
    workload
}

/// Returns the text of all problems, as users see it.
fn problems(yaml: &str, overrides: &[&str]) -> String {
    match read(yaml, overrides) {
        Ok((_, warnings)) => warnings.to_string(),
        Err(problems) => {
            assert!(problems.has_errors());
            problems.to_string()
        }
    }
}

const UNET3D: &str = include_str!("../../../workloads/perf_2025/unet3d_h100_custom.yaml");
