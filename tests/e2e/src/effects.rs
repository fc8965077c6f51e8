//! An external service double: it applies each effect once per idempotency key, and counts how
//! often it was asked and applied.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// What happened for one key.
#[derive(Debug, Clone, Default)]
pub struct Effect {
    /// Times that somebody asked for it.
    pub asked: u64,
    /// Times that it was applied.
    pub applied: u64,
    /// What was answered; the same every time.
    pub answer: Value,
    /// What was asked for.
    pub activity: String,
}

/// The service.
#[derive(Debug, Clone, Default)]
pub struct Effects(Arc<Mutex<BTreeMap<String, Effect>>>);

impl Effects {
    /// Applies an effect unless its key was seen before. The answer depends on the key, so that a
    /// workflow that saw two different answers could be told.
    #[must_use]
    pub fn apply(&self, activity: &str, key: &str, input: &Value) -> Value {
        let mut effects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = effects.len() + 1;
        let effect = effects.entry(key.to_owned()).or_default();
        effect.asked += 1;
        if effect.applied == 0 {
            effect.applied += 1;
            activity.clone_into(&mut effect.activity);
            let id = format!("{activity}-{count}");
            effect.answer = match activity {
                "echo" => input.clone(),
                "journal" => Value::Null,
                "square" => json!(input.as_u64().map(|n| n * n)),
                _ => json!(id),
            };
        }
        effect.answer.clone()
    }

    /// Everything that happened.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Effect> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
