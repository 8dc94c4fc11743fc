//! Tables on a terminal: columns as wide as what stands in them, nothing cut off, nothing that a
//! terminal would obey.

use std::fmt;

use portolan_model::Timestamp;
use time::{UtcOffset, macros::format_description};

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row. Control characters, which names of other people may hold, become spaces.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| {
                    cell.chars()
                        .map(|c| if c.is_control() { ' ' } else { c })
                        .collect()
                })
                .collect(),
        );
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return f.write_str("None.");
        }
        let width = |text: &str| text.chars().count();
        let mut widths: Vec<usize> = self.head.iter().map(|name| width(name)).collect();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                if let Some(widest) = widths.get_mut(column) {
                    *widest = (*widest).max(width(cell));
                }
            }
        }
        let head: Vec<String> = self.head.iter().map(|name| (*name).to_owned()).collect();
        for (number, row) in std::iter::once(&head).chain(&self.rows).enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            let mut line = String::new();
            for (cell, widest) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(widest - width(cell) + 2));
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// A time as people read it: UTC, to the second.
pub fn when(at: Timestamp) -> String {
    at.to_offset(UtcOffset::UTC)
        .format(format_description!(
            "[year]-[month]-[day] [hour]:[minute]:[second]Z"
        ))
        .unwrap_or_else(|_| at.to_string())
}

/// The same, or a dash.
pub fn when_if(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), when)
}

/// A text, or a dash.
pub fn text_if(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or("-")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_names_cannot_move_the_cursor() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(["Zoë\u{1b}[2J".to_owned(), "1".to_owned()]);
        table.row(["a rather long name".to_owned(), "22".to_owned()]);
        assert_eq!(
            table.to_string(),
            "NAME                N\nZoë [2J             1\na rather long name  22"
        );
        assert_eq!(Table::new(&["NAME"]).to_string(), "None.");
    }
}
