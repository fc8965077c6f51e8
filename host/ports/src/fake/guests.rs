//! Components that are scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_model::component::{MessageDescription, WorkflowDescription};
use steadfast_model::limits::COMPONENT_BYTES_MAX;
use steadfast_model::{ComponentDescription, ComponentDigest};

use crate::fake::script::{BATCH_MAX, QUERIES, UPDATES};
use crate::fake::{Op, Rng, ScriptedGuest};
use crate::guest::{Admitted, Error, Fetch, Guest, Guests, Refusal};

#[derive(Debug, Default)]
struct Inner {
    /// Scripts that every component holds, by workflow type.
    shared: BTreeMap<String, Arc<[Op]>>,
    /// Scripts of one component; they hide shared ones of the same type.
    bound: BTreeMap<ComponentDigest, BTreeMap<String, Arc<[Op]>>>,
    /// What a real implementation would have in its cache of compiled code.
    compiled: BTreeSet<ComponentDigest>,
    /// How many instances were made.
    instances: u64,
}

impl Inner {
    fn scripts(&self, component: ComponentDigest) -> BTreeMap<String, Arc<[Op]>> {
        let mut scripts = self.shared.clone();
        scripts.extend(
            self.bound
                .get(&component)
                .into_iter()
                .flatten()
                .map(|(workflow_type, script)| (workflow_type.clone(), Arc::clone(script))),
        );
        scripts
    }
}

/// Admits any bytes as a component and runs scripts in its place.
#[derive(Debug, Default)]
pub struct ScriptedGuests {
    inner: Mutex<Inner>,
}

impl ScriptedGuests {
    /// No scripts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every component run this script for the workflow type. Instances made before keep
    /// what they had.
    pub fn register(&self, workflow_type: &str, script: Vec<Op>) {
        self.lock()
            .shared
            .insert(workflow_type.to_owned(), script.into());
    }

    /// Makes the component of these bytes run this script for the workflow type, and returns the
    /// component's digest.
    pub fn bind(&self, bytes: &[u8], workflow_type: &str, script: Vec<Op>) -> ComponentDigest {
        let digest = Self::digest(bytes);
        let mut inner = self.lock();
        let scripts = inner.bound.entry(digest).or_default();
        scripts.insert(workflow_type.to_owned(), script.into());
        digest
    }

    /// Forgets what was compiled, as a restart on another machine would: the next instance of a
    /// component fetches its bytes.
    pub fn clear_cache(&self) {
        self.lock().compiled.clear();
    }

    /// The digest that stands for SHA-256 here: it depends on every byte and on nothing else.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> ComponentDigest {
        let mut state = Rng::new(bytes.len() as u64).next_u64();
        for &byte in bytes {
            state = Rng::new(state ^ u64::from(byte)).next_u64();
        }
        let mut digest = [0; 32];
        Rng::new(state).fill(&mut digest);
        ComponentDigest(digest)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guests for ScriptedGuests {
    fn admit(&self, bytes: &[u8]) -> Result<Admitted, Refusal> {
        if bytes.is_empty() {
            return Err(Refusal::NotAComponent("there are no bytes".to_owned()));
        }
        if bytes.len() > COMPONENT_BYTES_MAX {
            return Err(Refusal::TooLarge(format!("{} bytes", bytes.len())));
        }
        let digest = Self::digest(bytes);
        let mut inner = self.lock();
        inner.compiled.insert(digest);
        let workflows = inner.scripts(digest).into_keys().map(workflow).collect();
        let description = ComponentDescription {
            sdk: "script/1".to_owned(),
            resume_batch_max: BATCH_MAX,
            workflows,
            imports: Vec::new(),
        };
        Ok(Admitted {
            digest,
            description,
        })
    }

    fn instantiate(
        &self,
        component: ComponentDigest,
        fetch: Fetch<'_>,
    ) -> Result<Box<dyn Guest>, Error> {
        if !self.lock().compiled.contains(&component) {
            // The fetch may read a store that calls back here: no lock meanwhile.
            let bytes = fetch().map_err(Error::Unavailable)?;
            let bytes = bytes
                .ok_or_else(|| Error::Unavailable(format!("there is no component {component}")))?;
            if Self::digest(&bytes) != component {
                let message = format!("the bytes of component {component} have another digest");
                return Err(Error::Unavailable(message));
            }
            self.lock().compiled.insert(component);
        }
        let mut inner = self.lock();
        inner.instances += 1;
        let (scripts, instance) = (inner.scripts(component), inner.instances);
        Ok(Box::new(ScriptedGuest::new(scripts, instance)))
    }
}

fn message(name: &str) -> MessageDescription {
    MessageDescription {
        name: name.to_owned(),
        doc: String::new(),
        input_schema: String::new(),
        output_schema: String::new(),
    }
}

fn workflow(name: String) -> WorkflowDescription {
    WorkflowDescription {
        name,
        doc: String::new(),
        input_schema: String::new(),
        output_schema: String::new(),
        signals: Vec::new(),
        queries: QUERIES.into_iter().map(message).collect(),
        updates: UPDATES.into_iter().map(message).collect(),
    }
}
