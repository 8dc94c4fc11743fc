//! A moment on a page: `<time>` for programs, with a date in UTC for people. `page.js` converts it
//! to the reader's time zone.

use std::fmt;

use askama::filters::HtmlSafe;
use portolan_model::Timestamp;
use time::{UtcOffset, format_description::well_known::Rfc3339, macros::format_description};

/// A past or future time.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at: Timestamp,
    is_day: bool,
}

impl Moment {
    /// A moment with the time of day: "5 minutes ago", or `24 November 2026, 02:10 UTC`.
    pub const fn new(at: Timestamp) -> Self {
        Self { at, is_day: false }
    }

    /// A moment with the day alone, for dates that are months ahead.
    pub const fn day(at: Timestamp) -> Self {
        Self { at, is_day: true }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self
            .at
            .to_offset(UtcOffset::UTC)
            .replace_nanosecond(0)
            .unwrap_or(self.at);
        let exact = at.format(&Rfc3339).map_err(|_| fmt::Error)?;
        let day = format_description!("[day padding:none] [month repr:long] [year]");
        let minute =
            format_description!("[day padding:none] [month repr:long] [year], [hour]:[minute] UTC");
        if self.is_day {
            let words = at.format(day).map_err(|_| fmt::Error)?;
            return write!(
                f,
                "<time datetime=\"{exact}\" data-form=\"day\">{words}</time>"
            );
        }
        let words = at.format(minute).map_err(|_| fmt::Error)?;
        write!(f, "<time datetime=\"{exact}\">{words}</time>")
    }
}

// The text has only digits, names of months and our own tags.
impl HtmlSafe for Moment {}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_readable_without_script_and_exact_for_it() {
        let at = datetime!(2026-11-24 02:10:33.5 UTC);
        assert_eq!(
            Moment::new(at).to_string(),
            "<time datetime=\"2026-11-24T02:10:33Z\">24 November 2026, 02:10 UTC</time>"
        );
        assert_eq!(
            Moment::day(at).to_string(),
            "<time datetime=\"2026-11-24T02:10:33Z\" data-form=\"day\">24 November 2026</time>"
        );
    }
}
