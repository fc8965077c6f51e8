//! Figures, as a table and as JSON.

use anyhow::{Context, Result};
use serde_json::json;

/// One figure.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    aim: &'static str,
}

/// All figures measured so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure; `aim` says what it should be, or is empty.
    pub(crate) fn add(
        &mut self,
        name: &'static str,
        value: f64,
        unit: &'static str,
        aim: &'static str,
    ) {
        eprintln!("  {name} = {} {unit}", rounded(value));
        self.figures.push(Figure {
            name,
            value,
            unit,
            aim,
        });
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        println!("{:<30} {:>14} {:<10} aim", "name", "value", "unit");
        for figure in &self.figures {
            let Figure {
                name,
                value,
                unit,
                aim,
            } = figure;
            println!("{name:<30} {:>14} {unit:<10} {aim}", rounded(*value));
        }
    }

    /// Writes the JSON array.
    pub(crate) fn write_json(&self, path: &str) -> Result<()> {
        let array: Vec<_> = self
            .figures
            .iter()
            .map(|f| json!({ "name": f.name, "value": f.value, "unit": f.unit }))
            .collect();
        std::fs::write(path, serde_json::to_string_pretty(&array)?)
            .with_context(|| format!("writing {path}"))
    }
}

fn rounded(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

/// The middle value.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
