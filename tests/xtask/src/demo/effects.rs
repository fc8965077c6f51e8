//! The outside world of the demo: a log of what has really happened, by idempotency key.
//!
//! It behaves like a payment service that takes idempotency keys: what has a key that it knows is
//! not done again, and gets the first answer.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Something that has happened once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) key: String,
    pub(crate) activity: String,
    pub(crate) order: String,
    pub(crate) answer: String,
}

/// The service.
#[derive(Debug)]
pub(crate) struct Effects {
    state: Mutex<(File, BTreeMap<String, String>)>,
}

impl Effects {
    /// Opens the log, with what an earlier worker has done.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let known = read(path)?
            .into_iter()
            .map(|effect| (effect.key, effect.answer))
            .collect();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            state: Mutex::new((file, known)),
        })
    }

    /// Does something, unless it has been done. Returns the answer, and whether it is new.
    pub(crate) fn apply(&self, key: &str, activity: &str, order: &str) -> Result<(String, bool)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, known) = &mut *state;
        if let Some(answer) = known.get(key) {
            return Ok((answer.clone(), false));
        }
        let answer = format!("{activity}-{}", known.len() + 1);
        let line = json!({"key": key, "activity": activity, "order": order, "answer": answer});
        // One write: a reader never sees half a line.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()?;
        known.insert(key.to_owned(), answer.clone());
        Ok((answer, true))
    }
}

/// Reads the log; one that does not exist is empty.
pub(crate) fn read(path: &Path) -> Result<Vec<Effect>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    text.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Effect> {
    let value: Value = serde_json::from_str(line).context("a line of the log is not JSON")?;
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let field = |name| field(name).with_context(|| format!("a line of the log has no {name}"));
    Ok(Effect {
        key: field("key")?,
        activity: field("activity")?,
        order: field("order")?,
        answer: field("answer")?,
    })
}

/// Keys that the log has more than once: there must be none.
pub(crate) fn repeated(effects: &[Effect]) -> Vec<&str> {
    let mut counts = BTreeMap::new();
    for effect in effects {
        *counts.entry(effect.key.as_str()).or_insert(0_u32) += 1;
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(key, _)| key)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_takes_effect_once_even_over_a_restart() {
        let path = std::env::temp_dir().join(format!("steadfast-effects-{}", std::process::id()));
        drop(std::fs::remove_file(&path));
        let effects = Effects::open(&path).unwrap();
        assert_eq!(
            effects.apply("k1", "charge", "o-1").unwrap(),
            ("charge-1".to_owned(), true)
        );
        drop(effects);
        let effects = Effects::open(&path).unwrap();
        assert_eq!(
            effects.apply("k1", "charge", "o-1").unwrap(),
            ("charge-1".to_owned(), false)
        );
        assert_eq!(
            effects.apply("k2", "ship", "o-1").unwrap(),
            ("ship-2".to_owned(), true)
        );
        let mut log = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(log.len(), 2);
        assert!(repeated(&log).is_empty());
        log.push(log[0].clone());
        assert_eq!(repeated(&log), ["k1"]);
    }
}
