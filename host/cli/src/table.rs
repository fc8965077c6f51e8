//! Tables that fit the terminal: flexible columns give way, fixed ones do not.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{Output, Tone, clean};

/// Blanks between two columns.
const GAP: usize = 2;

/// A flexible column is never narrower.
const FLEXIBLE_MIN: usize = 8;

/// Marks what was cut: an ellipsis.
const CUT: char = '\u{2026}';

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    is_flexible: bool,
    is_number: bool,
}

impl Column {
    /// A column that is always shown in full.
    pub(crate) fn fixed(title: &'static str) -> Self {
        Self {
            title,
            is_flexible: false,
            is_number: false,
        }
    }

    /// A column that is cut when the terminal is too narrow.
    pub(crate) fn flexible(title: &'static str) -> Self {
        Self {
            title,
            is_flexible: true,
            is_number: false,
        }
    }

    /// A column of numbers.
    pub(crate) fn number(title: &'static str) -> Self {
        Self {
            title,
            is_flexible: false,
            is_number: true,
        }
    }
}

/// Rows under titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Tone, String)>) {
        let cells: Vec<_> = cells
            .into_iter()
            .map(|(tone, text)| (tone, clean(&text)))
            .collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table as lines.
    pub(crate) fn render(&self, output: &Output) -> String {
        let widths = self.widths(output.width);
        let titles = self
            .columns
            .iter()
            .map(|c| (Tone::Strong, c.title.to_owned()))
            .collect();
        let mut text = self.line(output, &widths, &titles);
        for row in &self.rows {
            text.push_str(&self.line(output, &widths, row));
        }
        text
    }

    /// Natural widths, with what the terminal has not taken from the widest flexible columns.
    fn widths(&self, terminal: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| c.title.width()).collect();
        for row in &self.rows {
            for (width, (_, text)) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.width());
            }
        }
        let Some(terminal) = terminal else {
            return widths;
        };
        loop {
            let total: usize = widths.iter().map(|width| width + GAP).sum();
            let excess = total.saturating_sub(terminal + GAP);
            let columns = widths.iter_mut().zip(&self.columns);
            let widest = columns
                .filter(|(width, column)| column.is_flexible && **width > FLEXIBLE_MIN)
                .map(|(width, _)| width)
                .max();
            match widest {
                Some(width) if excess > 0 => *width -= 1,
                Some(_) | None => return widths,
            }
        }
    }

    fn line(&self, output: &Output, widths: &[usize], cells: &Vec<(Tone, String)>) -> String {
        let mut line = String::new();
        let mut pending_blanks = 0;
        for ((column, width), (tone, text)) in self.columns.iter().zip(widths).zip(cells) {
            let text = fit(text, *width);
            let blanks = width.saturating_sub(text.width());
            let (before, after) = if column.is_number {
                (blanks, 0)
            } else {
                (0, blanks)
            };
            // Blanks wait for the next text, so that no line ends with them.
            if !text.is_empty() {
                line.push_str(&" ".repeat(pending_blanks + before));
                line.push_str(&output.paint(*tone, &text));
                pending_blanks = after + GAP;
            } else {
                pending_blanks += width + GAP;
            }
        }
        line.push('\n');
        line
    }
}

/// The text cut to a width.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        cut.push(c);
    }
    cut.push(CUT);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::number("N"),
            Column::flexible("TEXT"),
            Column::fixed("LAST"),
        ]);
        table.row([
            (Tone::Plain, "7".to_owned()),
            (Tone::Good, "the quick brown fox\njumps".to_owned()),
            (Tone::Plain, "end".to_owned()),
        ]);
        table.row([
            (Tone::Plain, "12".to_owned()),
            (Tone::Plain, "short".to_owned()),
            (Tone::Plain, String::new()),
        ]);
        table
    }

    fn output(width: Option<usize>) -> Output {
        Output::plain(width)
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let text = table().render(&output(None));
        assert!(
            text.contains(" 7  the quick brown fox jumps  end\n"),
            "{text}"
        );
        assert!(text.ends_with("12  short\n"), "{text}");
    }

    #[test]
    fn flexible_columns_give_way_to_a_narrow_terminal() {
        let text = table().render(&output(Some(24)));
        assert!(text.lines().all(|line| line.width() <= 24), "{text}");
        assert!(text.contains(" 7  the quick bro\u{2026}  end\n"), "{text}");
    }

    #[test]
    fn a_hopeless_terminal_gets_the_smallest_table() {
        let text = table().render(&output(Some(3)));
        assert!(text.contains("the qui\u{2026}"), "{text}");
    }
}
