//! Days, as text and as numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A day of the Gregorian calendar, written `2026-11-21`. Orders by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day {
    year: i32,
    month: u32,
    of_month: u32,
}

impl Day {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
            return None;
        }
        let found = Self {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            of_month: day.parse().ok()?,
        };
        ((1..=12).contains(&found.month) && (1..=found.month_length()).contains(&found.of_month))
            .then_some(found)
    }

    fn month_length(self) -> u32 {
        let leap = (self.year % 4 == 0 && self.year % 100 != 0) || self.year % 400 == 0;
        match self.month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Days since 1970-01-01 (the usual algorithm with years that begin in March).
    pub(crate) fn number(self) -> i32 {
        let year = if self.month <= 2 {
            self.year - 1
        } else {
            self.year
        };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = i32::try_from((self.month + 9) % 12).unwrap_or_default();
        let day_of_year =
            (153 * month + 2) / 5 + i32::try_from(self.of_month).unwrap_or_default() - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.of_month)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("a day is written like 2026-11-21"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2026-11-21", 20_778),
        ] {
            let day = Day::parse(text).unwrap();
            assert_eq!((day.number(), day.to_string()), (number, text.to_owned()));
        }
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-11-31",
            "yesterday",
            "",
        ] {
            assert!(Day::parse(text).is_none(), "{text}");
        }
    }
}
