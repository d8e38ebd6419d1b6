//! Numbers as people read them.

/// `16,384`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place != 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that need not be whole: `12.4`, `1,234`. Not a number is `-`.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let (sign, size) = (if value < 0.0 { "-" } else { "" }, value.abs());
    let text = match size {
        1_000.0.. => count(size.round() as u64),
        100.0.. => format!("{size:.0}"),
        10.0.. => trimmed(format!("{size:.1}")),
        0.1.. => trimmed(format!("{size:.2}")),
        // Small differences are differences too: two digits, wherever they begin.
        1e-6.. => {
            let digits = (1.0 - size.log10().floor()) as usize;
            trimmed(format!("{size:.digits$}"))
        }
        _ => return "0".to_owned(),
    };
    format!("{sign}{text}")
}

/// Without zeros at the end that say nothing.
fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share of one: `99.61%`. More digits where the nines begin to matter.
pub(super) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".to_owned();
    }
    let percent = share * 100.0;
    match percent {
        100.0 => "100%".to_owned(),
        // It must not look like everything where it is not.
        99.995..100.0 => format!("{:.4}%", (percent * 1e4).floor() / 1e4),
        0.0 => "0%".to_owned(),
        _ if percent.abs() < 1.0 || percent >= 90.0 => format!("{percent:.2}%"),
        _ => format!("{percent:.1}%"),
    }
}

/// A length of time in at most two units: `0.4s`, `12s`, `4m12s`, `3h20m`, `12d4h`.
pub(super) fn seconds(length: f64) -> String {
    if !length.is_finite() {
        return "-".to_owned();
    }
    let (sign, length) = (if length < 0.0 { "-" } else { "" }, length.abs());
    // Rounded first, so that 59.97 s is not shown as `60s`.
    let whole = length.round() as u64;
    let two = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{rest}"),
    };
    let text = match whole {
        0..10 => format!("{}s", trimmed(format!("{length:.1}"))),
        10..60 => format!("{whole}s"),
        60..3_600 => two(whole / 60, "m", whole % 60, "s"),
        3_600..86_400 => two(whole / 3_600, "h", whole % 3_600 / 60, "m"),
        86_400.. => two(whole / 86_400, "d", whole % 86_400 / 3_600, "h"),
    };
    if text == "s" || text == "0s" { "0s".to_owned() } else { format!("{sign}{text}") }
}

/// GPUs times time, in the unit that gives a number to remember: `14.2 GPU-days`.
pub(super) fn gpu_time(seconds: f64) -> String {
    let hours = seconds / 3_600.0;
    if hours.abs() < 48.0 {
        return format!("{} GPU-hours", number(hours));
    }
    format!("{} GPU-days", number(hours / 24.0))
}

/// `$1,234,567`, `$12.40`.
pub(super) fn dollars(amount: f64) -> String {
    if !amount.is_finite() {
        return "-".to_owned();
    }
    let (sign, size) = (if amount < 0.0 { "-" } else { "" }, amount.abs());
    let text = if size < 999.995 { format!("{size:.2}") } else { count(size.round() as u64) };
    if text == "0.00" { "$0".to_owned() } else { format!("{sign}${text}") }
}

/// `1 seed`, `20 seeds`.
pub(super) fn many(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", count(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true() {
        let rows: [(String, &str); 33] = [
            (count(0), "0"),
            (count(999), "999"),
            (count(16_384), "16,384"),
            (count(u64::MAX), "18,446,744,073,709,551,615"),
            (number(0.0), "0"),
            (number(-0.001), "-0.001"),
            (number(0.001_734), "0.0017"),
            (number(1e-9), "0"),
            (number(0.5), "0.5"),
            (number(-14.25), "-14.2"),
            (number(148.4), "148"),
            (number(21_233.7), "21,234"),
            (number(f64::NAN), "-"),
            (percent(1.0), "100%"),
            (percent(0.999_999), "99.9999%"),
            (percent(0.9961), "99.61%"),
            (percent(0.5), "50.0%"),
            (percent(0.0031), "0.31%"),
            (percent(0.0), "0%"),
            (seconds(0.0), "0s"),
            (seconds(0.42), "0.4s"),
            (seconds(59.97), "1m"),
            (seconds(252.0), "4m12s"),
            (seconds(12_000.0), "3h20m"),
            (seconds(1_051_200.0), "12d4h"),
            (seconds(-30.0), "-30s"),
            (gpu_time(3_600.0 * 5.0), "5 GPU-hours"),
            (gpu_time(86_400.0 * 14.2), "14.2 GPU-days"),
            (dollars(12.4), "$12.40"),
            (dollars(-1_234_567.0), "-$1,234,567"),
            (dollars(0.001), "$0"),
            (many(1, "seed"), "1 seed"),
            (many(1_000, "seed"), "1,000 seeds"),
        ];
        for (is, expected) in rows {
            assert_eq!(is, expected);
        }
    }
}
