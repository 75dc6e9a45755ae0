//! MLPerf Storage's workloads: the utilisation that it asks of them, and how long a step computes on which accelerator. Its rules of 0.5 to 3.0.

/// A workload.
struct Rule {
    model: &'static str,
    /// The least AU.
    au_percent: f64,
    /// Compute of a step by accelerator, in seconds.
    compute_s: &'static [(&'static str, f64)],
}

const RULES: [Rule; 7] = [
    Rule {
        model: "unet3d",
        au_percent: 90.0,
        compute_s: &[
            ("v100", 1.3604),
            ("a100", 0.636),
            ("h100", 0.323),
            ("b200", 0.162),
            ("mi355", 0.162),
        ],
    },
    Rule {
        model: "resnet50",
        au_percent: 90.0,
        compute_s: &[("v100", 0.195), ("a100", 0.435), ("h100", 0.224)],
    },
    Rule {
        model: "cosmoflow",
        au_percent: 70.0,
        compute_s: &[("v100", 0.00936), ("a100", 0.00551), ("h100", 0.0035)],
    },
    Rule { model: "retinanet", au_percent: 85.0, compute_s: &[("b200", 0.04755)] },
    Rule { model: "dlrm", au_percent: 70.0, compute_s: &[("b200", 0.000375)] },
    Rule { model: "flux", au_percent: 90.0, compute_s: &[("b200", 1.35)] },
    Rule { model: "bert", au_percent: 90.0, compute_s: &[("v100", 0.968)] },
];

/// Accelerators that names of folders have.
const ACCELERATORS: [&str; 5] = ["v100", "a100", "h100", "b200", "mi355"];

/// Share by which a configured compute may differ.
const COMPUTE_TOLERANCE: f64 = 1e-3;

/// The least AU of a workload by its name, which begins with its model.
pub(crate) fn au_percent(workload: &str) -> Option<f64> {
    let model = words(workload).next()?;
    RULES.iter().find(|rule| rule.model == model).map(|rule| rule.au_percent)
}

/// `unet3d_h100` of names that have both anywhere, nearest first; `unet3d` where no accelerator is named.
pub(crate) fn workload_of_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let (mut model, mut accelerator) = (None, None);
    for name in names {
        for word in words(name).collect::<Vec<_>>() {
            let known = RULES.iter().map(|rule| rule.model).find(|known| *known == word);
            model = model.or(known);
            let known = ACCELERATORS.iter().copied().find(|known| *known == word);
            accelerator = accelerator.or(known);
        }
        if model.is_some() && accelerator.is_some() {
            break;
        }
    }
    Some(join(model?, accelerator))
}

/// The name with its accelerator, where it is that of a model alone: by the compute of a step, else as `names` have it.
pub(crate) fn with_accelerator<'a>(
    workload: &str,
    compute_s: Option<f64>,
    names: impl Iterator<Item = &'a str>,
) -> String {
    let Some(rule) = RULES.iter().find(|rule| rule.model == workload) else {
        return workload.into();
    };
    let mut names = names.flat_map(words);
    let named = names.find_map(|word| ACCELERATORS.iter().copied().find(|known| *known == word));
    let computed = compute_s.and_then(|compute_s| rule.accelerator(compute_s, named));
    join(rule.model, computed.or(named))
}

/// The only workload of which a step computes so long.
pub(crate) fn workload_of_compute(compute_s: f64) -> Option<String> {
    let mut found = RULES.iter().flat_map(|rule| {
        rule.accelerator(compute_s, None).map(|accelerator| join(rule.model, Some(accelerator)))
    });
    let only = found.next();
    if found.next().is_none() { only } else { None }
}

impl Rule {
    /// The one of several that is `named`, else the first.
    fn accelerator(&self, compute_s: f64, named: Option<&str>) -> Option<&'static str> {
        let fits = self
            .compute_s
            .iter()
            .filter(|(_, own_s)| (compute_s / own_s - 1.0).abs() <= COMPUTE_TOLERANCE);
        let mut fits: Vec<&str> = fits.map(|(name, _)| *name).collect();
        fits.sort_by_key(|name| Some(*name) != named);
        fits.first().copied()
    }
}

fn join(model: &str, accelerator: Option<&str>) -> String {
    accelerator.map_or_else(|| model.into(), |accelerator| format!("{model}_{accelerator}"))
}

/// Words of a name in lower case: `unet3d` and `h100` of `UNET3D-H100`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_known_by_names_and_compute() {
        for (names, expected) in [
            (&["run_1", "unet3d-h100"][..], Some("unet3d_h100")),
            (&["run1", "H100", "unet3d"], Some("unet3d_h100")),
            (&["Vendor_resnet50_1Client_A100"], Some("resnet50_a100")),
            (&["run_1", "cosmoflow"], Some("cosmoflow")),
            (&["4", "unet3dish"], None),
        ] {
            let found = workload_of_names(names.iter().copied());
            assert_eq!(found.as_deref(), expected, "{names:?}");
        }
        assert_eq!(workload_of_compute(0.224).as_deref(), Some("resnet50_h100"));
        assert_eq!(workload_of_compute(0.3), None);
        let named =
            |names: &[&'static str]| with_accelerator("unet3d", Some(0.162), names.iter().copied());
        assert_eq!((named(&[]), named(&["mi355"])), ("unet3d_b200".into(), "unet3d_mi355".into()));
        assert_eq!(with_accelerator("mine", Some(0.323), [].into_iter()), "mine");
        assert_eq!(
            (au_percent("cosmoflow_h100"), au_percent("unet3d-a100")),
            (Some(70.0), Some(90.0))
        );
        assert_eq!(au_percent("mine"), None);
    }
}
