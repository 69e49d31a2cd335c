//! The string formats that the API server checks.

use jiff::civil::Date;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns true if this module checks the format. Other formats accept every string.
pub(super) fn is_known(format: &str) -> bool {
    matches!(format, "date-time" | "datetime" | "date" | "ipv4" | "ipv6" | "uuid" | "byte" | "password")
}

/// Returns true if a string has the format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uuid" => is_uuid(text),
        "byte" => is_base64(text),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

/// A date, `T` or `t`, and a time with an offset. Leap seconds are invalid.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else {
        return false;
    };
    let Some((clock, zone)) = time.split_at_checked(8) else {
        return false;
    };
    let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    is_date(date) && is_clock(clock) && (zone == "z" || is_offset(zone))
}

fn is_clock(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.as_slice(), [h, m, s] if below(h, 24) && below(m, 60) && below(s, 60))
}

fn is_offset(text: &str) -> bool {
    let Some(text) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    matches!(text.split_once(':'), Some((h, m)) if below(h, 100) && below(m, 100))
}

/// Parses two digits as a number below the limit.
fn below(digits: &str, limit: u32) -> bool {
    digits.len() == 2
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && digits.parse::<u32>().is_ok_and(|n| n < limit)
}

fn is_uuid(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit)
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_zone_and_a_real_date() {
        for good in ["2026-12-24T18:00:00Z", "2026-12-24t18:00:00.25+01:00", "2024-02-29T00:00:00Z"] {
            assert!(matches("date-time", good), "{good}");
        }
        for bad in
            ["2026-12-24T18:00:00", "2026-12-24", "2026-02-30T00:00:00Z", "2026-12-24T24:00:00Z", "now", ""]
        {
            assert!(!matches("date-time", bad), "{bad}");
        }
    }
}
