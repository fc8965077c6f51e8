//! The exports of a guest, found and checked once per instance.

use steadfast_model::{Event, Failure, Payload};
use steadfast_ports::guest::no_such_handler;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance};

use super::lift::{DescriptionValue, StepValue};
use super::lower::{EventRef, made_text};
use crate::fiber::at_once;
use crate::state::State;
use crate::trusted::{Export, Params, QueryParams, ResumeParams, StartParams, ValidateParams};

/// Where a component keeps its exports.
pub(crate) struct Indexes {
    describe: ComponentExportIndex,
    pub(crate) entry: Entry,
}

/// How a run is begun and continued.
pub(crate) enum Entry {
    /// The world `workflow`.
    Reactive(Reactive),
    /// The world `blocking-workflow`.
    Blocking { run: ComponentExportIndex },
}

/// The exports of the world `workflow`; the last two may be left out.
#[derive(Clone, Copy)]
pub(crate) struct Reactive {
    start: ComponentExportIndex,
    resume: ComponentExportIndex,
    query: Option<ComponentExportIndex>,
    validate_update: Option<ComponentExportIndex>,
}

impl Indexes {
    /// Finds the exports of either world; `None` when one is missing.
    pub(crate) fn find(component: &Component) -> Option<Self> {
        let find = |name| component.get_export_index(None, name);
        let entry = match find("run") {
            Some(run) if find("start").is_none() => Entry::Blocking { run },
            _ => Entry::Reactive(Reactive {
                start: find("start")?,
                resume: find("resume")?,
                query: find("query"),
                validate_update: find("validate-update"),
            }),
        };
        Some(Self {
            describe: find("describe")?,
            entry,
        })
    }
}

/// The functions that drive one instance.
pub(crate) struct Exports {
    start: Export<StartParams>,
    resume: Export<ResumeParams>,
    query: Option<Export<QueryParams>>,
    validate_update: Option<Export<ValidateParams>>,
}

impl Exports {
    /// Looks the exports of an instance up and checks their types.
    ///
    /// # Errors
    /// wasmtime's, naming the function and how its type differs.
    pub(crate) fn new(
        store: &mut Store<State>,
        instance: &Instance,
        reactive: Reactive,
    ) -> wasmtime::Result<Self> {
        let start = function(store, instance, reactive.start, "start")?;
        let resume = function(store, instance, reactive.resume, "resume")?;
        let query = optional(store, instance, reactive.query, "query")?;
        let validate_update =
            optional(store, instance, reactive.validate_update, "validate-update")?;
        Ok(Self {
            query,
            validate_update,
            start: Export::new(start, store).map_err(|e| e.context("export `start`"))?,
            resume: Export::new(resume, store).map_err(|e| e.context("export `resume`"))?,
        })
    }

    /// Calls `start`.
    ///
    /// # Errors
    /// The guest's trap, or the error of a host call.
    pub(crate) fn start(
        &self,
        store: &mut Store<State>,
        workflow_type: &str,
        input: &Payload,
    ) -> wasmtime::Result<StepValue> {
        self.start.call(store, (workflow_type, input.into()))
    }

    /// Calls `query`; a component without it has no queries.
    ///
    /// # Errors
    /// The guest's trap, or the error of a host call.
    pub(crate) fn query(
        &self,
        store: &mut Store<State>,
        name: &str,
        input: &Payload,
    ) -> wasmtime::Result<Result<Payload, Failure>> {
        let Some(query) = &self.query else {
            return Ok(Err(no_such_handler("query", name, &[])));
        };
        let answer = query.call(store, (name, input.into()))?;
        Ok(answer.map(Payload::from).map_err(Failure::from))
    }

    /// Calls `validate-update`; a component without it has no updates.
    ///
    /// # Errors
    /// The guest's trap, or the error of a host call.
    pub(crate) fn validate_update(
        &self,
        store: &mut Store<State>,
        name: &str,
        input: &Payload,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let Some(validate) = &self.validate_update else {
            return Ok(Err(no_such_handler("update", name, &[])));
        };
        let answer = validate.call(store, (name, input.into()))?;
        Ok(answer.map_err(Failure::from))
    }

    /// The handlers that a description may name without them: neither, one or both.
    pub(crate) fn missing(&self) -> (bool, bool) {
        (self.query.is_none(), self.validate_update.is_none())
    }

    /// Calls `resume`.
    ///
    /// # Errors
    /// The guest's trap, or the error of a host call; an event that guests are not told about.
    pub(crate) fn resume(
        &self,
        store: &mut Store<State>,
        events: &[Event],
    ) -> wasmtime::Result<StepValue> {
        // One event at a time is the rule, and then nearly nothing is allocated.
        if let [event] = events {
            let made = made_text(event);
            return self.resume.call(store, (&[view(event, &made)?],));
        }
        let made: Vec<String> = events.iter().map(made_text).collect();
        let views = events.iter().zip(&made);
        let views = views
            .map(|(event, made)| view(event, made))
            .collect::<Result<Vec<_>, _>>()?;
        self.resume.call(store, (&views,))
    }
}

/// An event that guests are not told about was to be delivered: a bug of the caller.
#[derive(Debug, thiserror::Error)]
#[error("event {number} ({kind}) is not delivered to guests")]
pub(crate) struct NotDelivered {
    number: u64,
    kind: &'static str,
}

fn view<'a>(event: &'a Event, made: &'a str) -> Result<EventRef<'a>, NotDelivered> {
    EventRef::new(event, made).ok_or(NotDelivered {
        number: event.number.0,
        kind: event.kind.name(),
    })
}

/// An export that a component may leave out.
fn optional<P: Params>(
    store: &mut Store<State>,
    instance: &Instance,
    index: Option<ComponentExportIndex>,
    name: &str,
) -> wasmtime::Result<Option<Export<P>>> {
    let Some(index) = index else {
        return Ok(None);
    };
    let function = function(store, instance, index, name)?;
    let export = Export::new(function, store).map_err(|e| e.context(format!("export `{name}`")))?;
    Ok(Some(export))
}

pub(crate) fn function(
    store: &mut Store<State>,
    instance: &Instance,
    index: ComponentExportIndex,
    name: &str,
) -> wasmtime::Result<wasmtime::component::Func> {
    instance
        .get_func(&mut *store, index)
        .ok_or_else(|| wasmtime::Error::msg(format!("export `{name}` is not a function")))
}

/// Calls `describe` once.
///
/// # Errors
/// The guest's trap, or the error of a host call.
pub(crate) fn describe(
    store: &mut Store<State>,
    instance: &Instance,
    indexes: &Indexes,
) -> wasmtime::Result<DescriptionValue> {
    let describe = function(store, instance, indexes.describe, "describe")?;
    let describe = describe
        .typed::<(), (DescriptionValue,)>(&*store)
        .map_err(|e| e.context("export `describe`"))?;
    let (description,) = match indexes.entry {
        Entry::Reactive { .. } => describe.call(store, ())?,
        // Nobody is behind its calls, so it cannot wait.
        Entry::Blocking { .. } => at_once(describe.call_async(store, ()))?,
    };
    Ok(description)
}
