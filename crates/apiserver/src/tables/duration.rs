//! Ages in the format of `kubectl`.

use jiff::Timestamp;

/// The time since an RFC 3339 instant: `45s`, `3m20s`, `5h`, `2d`.
pub(super) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    human(now.as_second() - since.as_second())
}

fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let pair = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => pair(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_lose_detail_with_age() {
        let cases = [
            (0, "0s"),
            (90, "90s"),
            (200, "3m20s"),
            (1200, "20m"),
            (11_000, "3h3m"),
            (40_000, "11h"),
            (200_000, "2d7h"),
            (900_000, "10d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
