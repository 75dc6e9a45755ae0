//! Resolves unquoted scalars as PyYAML does, with OmegaConf's rule for floats.

/// The value of an unquoted scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text,
}

/// Resolves unquoted text.
pub(super) fn resolve(text: &str) -> Plain {
    if is_null(text) {
        return Plain::Null;
    }
    if let Some(bool) = boolean(text) {
        return Plain::Bool(bool);
    }
    if let Some(int) = integer(text) {
        return Plain::Int(int);
    }
    float(text).map_or(Plain::Text, Plain::Float)
}

/// Whether `text` is one of YAML's nulls.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns the value of a boolean of PyYAML, which is spelt in lower case, in capitals, or capitalized.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Returns the value of a decimal or hexadecimal integer with optional underscores. Returns `None` for a leading zero, which means octal in
/// YAML 1.1.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = split_sign(text);
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        if hex.starts_with(['+', '-']) {
            return None;
        }
        i128::from_str_radix(&hex.replace('_', ""), 16).ok()?
    } else {
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let well_formed = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        if leading_zero || !well_formed {
            return None;
        }
        digits.replace('_', "").parse().ok()?
    };
    Some(if negative { -value } else { value })
}

/// Returns the value of a float such as `1.5`, `.5`, `1e-3`, `1_000.0`, `.inf` or `nan`, or of an integer that is too large for
/// [`integer`].
pub(super) fn float(text: &str) -> Option<f64> {
    let (negative, body) = split_sign(text);
    let value = match body.strip_prefix('.').unwrap_or(body).to_ascii_lowercase().as_str() {
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            let has_digit = body.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
            let well_formed = body.bytes().all(|b| b.is_ascii_digit() || b"_.eE+-".contains(&b));
            let is_octal =
                body.len() > 1 && body.starts_with('0') && body.bytes().all(|b| b.is_ascii_digit());
            if !has_digit || !well_formed || is_octal {
                return None;
            }
            body.replace('_', "").parse().ok()?
        }
    };
    Some(if negative { -value } else { value })
}

/// Splits `text` into whether it is negative, and the digits.
fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Formats a float as Python's `repr` does.
pub(super) fn python_float(float: f64) -> String {
    if !float.is_finite() {
        return float.to_string().to_ascii_lowercase();
    }
    let text = format!("{float:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Plain) {
        assert_eq!(resolve(text), expected, "{text}");
    }

    #[test]
    fn scalars_resolve_as_pyyaml_does() {
        for text in ["", "~", "null", "NULL"] {
            check(text, Plain::Null);
        }
        for text in ["yes", "On", "TRUE"] {
            check(text, Plain::Bool(true));
        }
        for text in ["no", "off", "False"] {
            check(text, Plain::Bool(false));
        }
        check("1_000", Plain::Int(1000));
        check("-7", Plain::Int(-7));
        check("+7", Plain::Int(7));
        check("0", Plain::Int(0));
        check("0x10", Plain::Int(16));
        check("1e-3", Plain::Float(0.001));
        check("1E3", Plain::Float(1000.0));
        check("0.323", Plain::Float(0.323));
        check(".5", Plain::Float(0.5));
        check("1.", Plain::Float(1.0));
        check("-.inf", Plain::Float(f64::NEG_INFINITY));
        for text in [
            "010", "0x", "0x-1", "1:30", "yEs", "e5", "1__a", "-", "+", ".", "--1", "+-1", "1e",
            "nano", "_1",
        ] {
            check(text, Plain::Text);
        }
        assert!(matches!(resolve("nan"), Plain::Float(x) if x.is_nan()));
    }
}
