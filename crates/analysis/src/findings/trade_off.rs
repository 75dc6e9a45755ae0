//! Finds factors that raise utilisation and lower throughput, or the reverse. A batch of more samples keeps an accelerator waiting for longer,
//! but delivers more samples; so a study of batch or record sizes that looks at utilisation alone recommends the slower setting.

use super::{JudgedResponse, exceeds_margin};
use crate::design::PROCESSES;
use crate::finding::{EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use feedrate_measure::metric::{Metric, Unit};

/// The trade-offs of one stratum. More processes always share the storage, so their trade-off is left to the finding on scaling.
pub(super) fn trade_offs(judged: &[JudgedResponse]) -> Vec<Finding> {
    let is_utilisation =
        |response: &&JudgedResponse| response.matrix.response.unit == Unit::Percent;
    let utilisation = judged.iter().find(is_utilisation);
    let throughput = judged.iter().find(|response| !is_utilisation(response));
    let Some((utilisation, throughput)) = utilisation.zip(throughput) else { return Vec::new() };
    let is_candidate =
        |finding: &&Finding| is_main_effect(finding) && finding.factors != [PROCESSES];
    let effects = utilisation.findings.iter().filter(is_candidate);
    effects.filter_map(|finding| trade_off(finding, utilisation, throughput)).collect()
}

fn is_main_effect(finding: &Finding) -> bool {
    matches!(finding.subject, Subject::MainEffect(_))
}

/// The trade-off at the level with the largest effect on utilisation among those with the opposite effect on throughput.
fn trade_off(
    finding: &Finding,
    utilisation: &JudgedResponse,
    throughput: &JudgedResponse,
) -> Option<Finding> {
    let is_about_same =
        |other: &&Finding| is_main_effect(other) && other.factors == finding.factors;
    let others: Vec<&Finding> = throughput.findings.iter().filter(is_about_same).collect();
    finding.effects.iter().find_map(|effect| {
        let other = others.iter().find(|other| opposite_effect(other, effect).is_some())?;
        let mut caveats = finding.caveats.clone();
        caveats.extend(
            other.caveats.iter().filter(|caveat| !finding.caveats.contains(caveat)).cloned(),
        );
        Some(Finding {
            kind: FindingKind::TradeOff,
            response: None,
            subject: Subject::TradeOff,
            effects: vec![
                with_response(effect, utilisation.matrix.response)?,
                with_response(opposite_effect(other, effect)?, throughput.matrix.response)?,
            ],
            caveats,
            is_supported: finding.is_supported && other.is_supported,
            ..finding.clone()
        })
    })
}

/// The effect of the same level, if both are relevant and have opposite directions.
fn opposite_effect<'a>(finding: &'a Finding, effect: &EffectSize) -> Option<&'a EffectSize> {
    let is_opposite = |other: &&EffectSize| {
        let directions = is_increase(effect) != is_increase(other);
        directions && exceeds_margin(effect) && exceeds_margin(other)
    };
    let same_level = finding.effects.iter().find(|other| other.quantity == effect.quantity);
    same_level.filter(is_opposite)
}

fn is_increase(effect: &EffectSize) -> bool {
    let unchanged = if effect.unit == EffectUnit::Ratio { 1.0 } else { 0.0 };
    unchanged < effect.estimate
}

/// The effect of a level, with the name of its response.
fn with_response(effect: &EffectSize, response: &Metric) -> Option<EffectSize> {
    let Quantity::Level { level, base } = effect.quantity.clone() else { return None };
    let quantity = Quantity::ResponseAtLevel { response: response.id.name(), level, base };
    Some(EffectSize { quantity, share_percent: None, ..effect.clone() })
}
