//! Dates as numbers of days, by the rules of the calendar.

const EPOCH_YEAR: i64 = 1970;

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of a date such as `2026-12-24`, counted from 1970-01-01.
pub fn day(date: &str) -> i64 {
    let numbers: Vec<i64> = date.split('-').map(|number| number.parse().unwrap()).collect();
    let (year, month, day) = (numbers[0], numbers[1], numbers[2]);
    let years: i64 = (EPOCH_YEAR..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = (1..month).map(|month| days_of_month(year, month)).sum();
    years + months + day - 1
}

/// The date of a day.
pub fn date(mut day: i64) -> String {
    let mut year = EPOCH_YEAR;
    while day >= if is_leap(year) { 366 } else { 365 } {
        day -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day + 1)
}

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The weekday of a day; the first day of 1970 was a Thursday.
pub fn weekday(day: i64) -> &'static str {
    WEEKDAYS[usize::try_from((day + 3).rem_euclid(7)).unwrap()]
}

/// The weekdays from one to another, both included, over the end of the week if need be.
pub fn weekdays(first: &str, last: &str) -> Vec<&'static str> {
    let mut days = WEEKDAYS.iter().copied().cycle().skip_while(|&day| day != first);
    let mut found = vec![days.next().unwrap()];
    while found.last() != Some(&WEEKDAYS[WEEKDAYS.iter().position(|&day| day == last).unwrap()]) {
        found.push(days.next().unwrap());
    }
    found
}
