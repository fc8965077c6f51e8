//! The mapping between events on the wire and the model's.

use steadfast_model as model;
use steadfast_model::event::{Started, UpdateOutcome};
use steadfast_model::{EventKind, EventNumber, Millis, Seq};

use crate::wire::chain::{fields_from_model, fields_to_model};
use crate::wire::{
    ActivityOptions, ChainOptions, Event, EventType, Failure, Invalid, Link, MarkerKind, Parent,
    Payload,
};

impl Event {
    /// The wire form of an event.
    #[must_use]
    pub fn from_model(event: model::Event) -> Self {
        let mut wire = Self::bare(event.number.0, event.time.into(), event_type(&event.kind));
        wire.fill(event.kind);
        wire
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one short arm for each kind of event"
    )]
    fn fill(&mut self, kind: EventKind) {
        match kind {
            EventKind::WorkflowExecutionStarted { started } => self.fill_started(*started),
            close @ (EventKind::WorkflowExecutionCompleted { .. }
            | EventKind::WorkflowExecutionFailed { .. }
            | EventKind::WorkflowExecutionTimedOut { .. }
            | EventKind::WorkflowExecutionContinuedAsNew { .. }) => self.fill_close(close),
            EventKind::WorkflowPropertiesModified { memo } => {
                self.memo = Some(fields_from_model(memo));
            }
            EventKind::WorkflowExecutionCanceled { failure } => {
                self.failure = Some(Failure::from_model(&failure));
            }
            EventKind::WorkflowExecutionCancelRequested {
                reason,
                identity,
                request_id,
            } => {
                self.reason = Some(reason);
                self.identity = Some(identity);
                self.request_id = Some(request_id.to_string());
            }
            EventKind::WorkflowExecutionSignaled {
                name,
                input,
                request_id,
                identity,
            } => {
                self.name = Some(name.to_string());
                self.input = Some(Payload::from_model(input));
                self.request_id = Some(request_id.to_string());
                self.identity = Some(identity);
            }
            EventKind::WorkflowExecutionUpdateAccepted {
                update_id,
                name,
                input,
                identity,
            } => {
                self.update_id = Some(update_id.to_string());
                self.name = Some(name.to_string());
                self.input = Some(Payload::from_model(input));
                self.identity = Some(identity);
            }
            EventKind::WorkflowExecutionUpdateCompleted {
                update_id,
                accepted,
                outcome,
            } => {
                self.update_id = Some(update_id.to_string());
                self.accepted_event = Some(accepted.0);
                match outcome {
                    UpdateOutcome::Success { result } => {
                        self.result = Some(Payload::from_model(result));
                    }
                    UpdateOutcome::Failure { failure } => {
                        self.failure = Some(Failure::from_model(&failure));
                    }
                }
            }
            EventKind::WorkflowExecutionTerminated { reason, identity } => {
                self.reason = Some(reason);
                self.identity = Some(identity);
            }
            EventKind::MarkerRecorded { marker } => {
                self.marker = Some(marker.kind.into());
                self.name = Some(marker.name.to_string());
                self.details = marker.details.map(Payload::from_model);
            }
            EventKind::TimerStarted {
                seq,
                duration,
                fire_at,
            } => {
                self.seq = Some(seq.0);
                self.duration_ms = Some(duration.0);
                self.fire_at = Some(fire_at.into());
            }
            EventKind::TimerFired { seq }
            | EventKind::TimerCanceled { seq }
            | EventKind::ActivityTaskCancelRequested { seq } => self.seq = Some(seq.0),
            activity @ (EventKind::ActivityTaskScheduled { .. }
            | EventKind::ActivityTaskCompleted { .. }
            | EventKind::ActivityTaskFailed { .. }
            | EventKind::ActivityTaskTimedOut { .. }
            | EventKind::ActivityTaskCanceled { .. }) => self.fill_activity(activity),
            child @ (EventKind::StartChildWorkflowExecutionInitiated { .. }
            | EventKind::StartChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionStarted { .. }
            | EventKind::ChildWorkflowExecutionCompleted { .. }
            | EventKind::ChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionCanceled { .. }
            | EventKind::ChildWorkflowExecutionTimedOut { .. }
            | EventKind::ChildWorkflowExecutionTerminated { .. }) => self.fill_child(child),
            message @ (EventKind::SignalExternalWorkflowExecutionInitiated { .. }
            | EventKind::SignalExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionSignaled { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. }) => {
                self.fill_message(message);
            }
        }
    }

    fn fill_started(&mut self, started: Started) {
        // Like a digest, 32 bytes in hexadecimal digits.
        let seed = model::ComponentDigest(started.random_seed).to_string();
        self.namespace = Some(started.namespace.to_string());
        self.workflow_id = Some(started.workflow_id.to_string());
        self.run_id = Some(started.run_id.to_string());
        self.workflow_type = Some(started.workflow_type.to_string());
        self.component = Some(started.component.to_string());
        self.task_queue = Some(started.task_queue.to_string());
        self.input = Some(Payload::from_model(started.input));
        self.random_seed = Some(seed);
        self.request_id = Some(started.request_id.to_string());
        self.identity = Some(started.identity);
        self.attempt = Some(started.attempt);
        self.parent = started.parent.as_deref().map(Parent::from_model);
        self.chain = (started.options != model::ChainOptions::default())
            .then(|| ChainOptions::from_model(started.options));
        self.link =
            (started.link != model::Link::default()).then(|| Link::from_model(started.link));
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`fill` names every event")]
    fn fill_activity(&mut self, kind: EventKind) {
        match kind {
            EventKind::ActivityTaskScheduled {
                seq,
                activity_type,
                input,
                options,
            } => {
                self.seq = Some(seq.0);
                self.activity_type = Some(activity_type.to_string());
                self.input = Some(Payload::from_model(input));
                self.options = Some(ActivityOptions::from_model(*options));
            }
            EventKind::ActivityTaskCompleted {
                seq,
                result,
                attempt,
                worker,
                started_at,
            } => {
                self.seq = Some(seq.0);
                self.result = Some(Payload::from_model(result));
                self.attempt = Some(attempt);
                self.worker = Some(worker);
                self.started_at = Some(started_at.into());
            }
            EventKind::ActivityTaskFailed {
                seq,
                failure,
                attempt,
                worker,
                retry_state,
            } => {
                self.seq = Some(seq.0);
                self.failure = Some(Failure::from_model(&failure));
                self.attempt = Some(attempt);
                self.worker = Some(worker);
                self.retry_state = Some(retry_state.into());
            }
            EventKind::ActivityTaskTimedOut {
                seq,
                failure,
                attempt,
                retry_state,
            } => {
                self.seq = Some(seq.0);
                self.failure = Some(Failure::from_model(&failure));
                self.attempt = Some(attempt);
                self.retry_state = Some(retry_state.into());
            }
            EventKind::ActivityTaskCanceled { seq, failure } => {
                self.seq = Some(seq.0);
                self.failure = Some(Failure::from_model(&failure));
            }
            _ => {}
        }
    }

    /// The event that it stands for. Attributes of other types are ignored.
    ///
    /// # Errors
    /// [`Invalid`] names the attribute that is missing or malformed.
    #[allow(
        clippy::too_many_lines,
        reason = "one short arm for each kind of event"
    )]
    pub fn to_model(&self) -> Result<model::Event, Invalid> {
        let kind = match self.kind {
            EventType::WorkflowExecutionStarted => EventKind::WorkflowExecutionStarted {
                started: Box::new(self.started()?),
            },
            EventType::WorkflowExecutionCompleted => EventKind::WorkflowExecutionCompleted {
                result: self.result()?,
                new_run_id: self.new_run_id()?,
            },
            EventType::WorkflowExecutionFailed => EventKind::WorkflowExecutionFailed {
                failure: self.failure()?,
                new_run_id: self.new_run_id()?,
                retry_state: self.retry_state.map(Into::into),
            },
            EventType::WorkflowExecutionTimedOut => EventKind::WorkflowExecutionTimedOut {
                scope: given("scope", self.scope)?.into(),
                new_run_id: self.new_run_id()?,
                retry_state: given("retry_state", self.retry_state)?.into(),
            },
            EventType::WorkflowExecutionContinuedAsNew => {
                EventKind::WorkflowExecutionContinuedAsNew {
                    new_run_id: self.new_run_id()?.ok_or_else(|| missing("new_run_id"))?,
                    workflow_type: name("workflow_type", &self.workflow_type)?,
                    input: self.input()?,
                    not_before: self.not_before.map(Into::into),
                }
            }
            EventType::WorkflowPropertiesModified => EventKind::WorkflowPropertiesModified {
                memo: fields_to_model(self.memo.as_ref().ok_or_else(|| missing("memo"))?)?,
            },
            EventType::WorkflowExecutionCanceled => EventKind::WorkflowExecutionCanceled {
                failure: self.failure()?,
            },
            EventType::WorkflowExecutionCancelRequested => {
                EventKind::WorkflowExecutionCancelRequested {
                    reason: text("reason", &self.reason)?,
                    identity: text("identity", &self.identity)?,
                    request_id: name("request_id", &self.request_id)?,
                }
            }
            EventType::WorkflowExecutionSignaled => EventKind::WorkflowExecutionSignaled {
                name: name("name", &self.name)?,
                input: self.input()?,
                request_id: name("request_id", &self.request_id)?,
                identity: text("identity", &self.identity)?,
            },
            EventType::WorkflowExecutionUpdateAccepted => {
                EventKind::WorkflowExecutionUpdateAccepted {
                    update_id: name("update_id", &self.update_id)?,
                    name: name("name", &self.name)?,
                    input: self.input()?,
                    identity: text("identity", &self.identity)?,
                }
            }
            EventType::WorkflowExecutionUpdateCompleted => {
                EventKind::WorkflowExecutionUpdateCompleted {
                    update_id: name("update_id", &self.update_id)?,
                    accepted: EventNumber(given("accepted_event", self.accepted_event)?),
                    outcome: self.update_outcome()?,
                }
            }
            EventType::WorkflowExecutionTerminated => EventKind::WorkflowExecutionTerminated {
                reason: text("reason", &self.reason)?,
                identity: text("identity", &self.identity)?,
            },
            EventType::TimerStarted => EventKind::TimerStarted {
                seq: self.seq()?,
                duration: Millis(given("duration_ms", self.duration_ms)?),
                fire_at: given("fire_at", self.fire_at)?.into(),
            },
            EventType::TimerFired => EventKind::TimerFired { seq: self.seq()? },
            EventType::TimerCanceled => EventKind::TimerCanceled { seq: self.seq()? },
            EventType::MarkerRecorded => EventKind::MarkerRecorded {
                marker: self.marker()?,
            },
            EventType::ActivityTaskCancelRequested => {
                EventKind::ActivityTaskCancelRequested { seq: self.seq()? }
            }
            EventType::ActivityTaskScheduled => self.scheduled()?,
            EventType::ActivityTaskCompleted => self.completed()?,
            EventType::ActivityTaskFailed => self.failed()?,
            EventType::ActivityTaskTimedOut => self.timed_out()?,
            EventType::ActivityTaskCanceled => EventKind::ActivityTaskCanceled {
                seq: self.seq()?,
                failure: self.failure()?,
            },
            EventType::RequestCancelExternalWorkflowExecutionInitiated
            | EventType::RequestCancelExternalWorkflowExecutionFailed
            | EventType::ExternalWorkflowExecutionCancelRequested
            | EventType::StartChildWorkflowExecutionInitiated
            | EventType::StartChildWorkflowExecutionFailed
            | EventType::ChildWorkflowExecutionStarted
            | EventType::ChildWorkflowExecutionCompleted
            | EventType::ChildWorkflowExecutionFailed
            | EventType::ChildWorkflowExecutionCanceled
            | EventType::ChildWorkflowExecutionTimedOut
            | EventType::ChildWorkflowExecutionTerminated
            | EventType::SignalExternalWorkflowExecutionInitiated
            | EventType::SignalExternalWorkflowExecutionFailed
            | EventType::ExternalWorkflowExecutionSignaled => self.outside()?,
        };
        Ok(model::Event {
            number: EventNumber(self.number),
            time: self.time.into(),
            kind,
        })
    }

    fn started(&self) -> Result<Started, Invalid> {
        let seed: model::ComponentDigest = name("random_seed", &self.random_seed)?;
        Ok(Started {
            namespace: name("namespace", &self.namespace)?,
            workflow_id: name("workflow_id", &self.workflow_id)?,
            run_id: name("run_id", &self.run_id)?,
            workflow_type: name("workflow_type", &self.workflow_type)?,
            component: name("component", &self.component)?,
            task_queue: name("task_queue", &self.task_queue)?,
            input: self.input()?,
            random_seed: seed.0,
            request_id: name("request_id", &self.request_id)?,
            identity: text("identity", &self.identity)?,
            attempt: given("attempt", self.attempt)?,
            options: match &self.chain {
                Some(chain) => chain.to_model()?,
                None => model::ChainOptions::default(),
            },
            link: match &self.link {
                Some(link) => link.to_model()?,
                None => model::Link::default(),
            },
            parent: self
                .parent
                .as_ref()
                .map(|parent| parent.to_model().map(Box::new))
                .transpose()?,
        })
    }

    fn new_run_id(&self) -> Result<Option<model::RunId>, Invalid> {
        self.new_run_id
            .as_ref()
            .map(|_| name("new_run_id", &self.new_run_id))
            .transpose()
    }

    fn scheduled(&self) -> Result<EventKind, Invalid> {
        let options = self.options.clone().ok_or_else(|| missing("options"))?;
        Ok(EventKind::ActivityTaskScheduled {
            seq: self.seq()?,
            activity_type: name("activity_type", &self.activity_type)?,
            input: self.input()?,
            options: Box::new(options.into_model()?),
        })
    }

    fn completed(&self) -> Result<EventKind, Invalid> {
        Ok(EventKind::ActivityTaskCompleted {
            seq: self.seq()?,
            result: self.result()?,
            attempt: given("attempt", self.attempt)?,
            worker: text("worker", &self.worker)?,
            started_at: given("started_at", self.started_at)?.into(),
        })
    }

    fn failed(&self) -> Result<EventKind, Invalid> {
        Ok(EventKind::ActivityTaskFailed {
            seq: self.seq()?,
            failure: self.failure()?,
            attempt: given("attempt", self.attempt)?,
            worker: text("worker", &self.worker)?,
            retry_state: given("retry_state", self.retry_state)?.into(),
        })
    }

    fn timed_out(&self) -> Result<EventKind, Invalid> {
        Ok(EventKind::ActivityTaskTimedOut {
            seq: self.seq()?,
            failure: self.failure()?,
            attempt: given("attempt", self.attempt)?,
            retry_state: given("retry_state", self.retry_state)?.into(),
        })
    }

    fn marker(&self) -> Result<model::Marker, Invalid> {
        Ok(model::Marker {
            kind: given("marker", self.marker)?.into(),
            name: name("name", &self.name)?,
            details: self.details.as_ref().map(Payload::to_model).transpose()?,
        })
    }

    pub(super) fn seq(&self) -> Result<Seq, Invalid> {
        given("seq", self.seq).map(Seq)
    }

    pub(super) fn input(&self) -> Result<model::Payload, Invalid> {
        self.input
            .as_ref()
            .ok_or_else(|| missing("input"))?
            .to_model()
    }

    pub(super) fn result(&self) -> Result<model::Payload, Invalid> {
        self.result
            .as_ref()
            .ok_or_else(|| missing("result"))?
            .to_model()
    }

    /// A result, unless there is a failure.
    fn update_outcome(&self) -> Result<UpdateOutcome, Invalid> {
        if self.failure.is_some() {
            let failure = self.failure()?;
            return Ok(UpdateOutcome::Failure { failure });
        }
        let result = self.result()?;
        Ok(UpdateOutcome::Success { result })
    }

    pub(super) fn failure(&self) -> Result<model::Failure, Invalid> {
        self.failure
            .as_ref()
            .ok_or_else(|| missing("failure"))?
            .to_model()
    }
}

pub(super) fn missing(field: &'static str) -> Invalid {
    Invalid::new(field, "missing")
}

pub(super) fn given<T>(field: &'static str, value: Option<T>) -> Result<T, Invalid> {
    value.ok_or_else(|| missing(field))
}

#[allow(
    clippy::ref_option,
    reason = "called with fields, which stay where they are"
)]
pub(super) fn text(field: &'static str, value: &Option<String>) -> Result<String, Invalid> {
    value.clone().ok_or_else(|| missing(field))
}

#[allow(
    clippy::ref_option,
    reason = "called with fields, which stay where they are"
)]
pub(super) fn name<T: std::str::FromStr<Err = model::id::Invalid>>(
    field: &'static str,
    value: &Option<String>,
) -> Result<T, Invalid> {
    let text = value.as_deref().ok_or_else(|| missing(field))?;
    text.parse()
        .map_err(|error: model::id::Invalid| Invalid::new(field, error.to_string()))
}

impl From<model::MarkerKind> for MarkerKind {
    fn from(kind: model::MarkerKind) -> Self {
        match kind {
            model::MarkerKind::Patch => Self::Patch,
            model::MarkerKind::DeprecatedPatch => Self::DeprecatedPatch,
            model::MarkerKind::SideEffect => Self::SideEffect,
        }
    }
}

impl From<MarkerKind> for model::MarkerKind {
    fn from(kind: MarkerKind) -> Self {
        match kind {
            MarkerKind::Patch => Self::Patch,
            MarkerKind::DeprecatedPatch => Self::DeprecatedPatch,
            MarkerKind::SideEffect => Self::SideEffect,
        }
    }
}

fn event_type(kind: &EventKind) -> EventType {
    match kind {
        EventKind::WorkflowExecutionStarted { .. } => EventType::WorkflowExecutionStarted,
        EventKind::WorkflowExecutionCompleted { .. } => EventType::WorkflowExecutionCompleted,
        EventKind::WorkflowExecutionFailed { .. } => EventType::WorkflowExecutionFailed,
        EventKind::WorkflowExecutionTimedOut { .. } => EventType::WorkflowExecutionTimedOut,
        EventKind::WorkflowExecutionContinuedAsNew { .. } => {
            EventType::WorkflowExecutionContinuedAsNew
        }
        EventKind::WorkflowPropertiesModified { .. } => EventType::WorkflowPropertiesModified,
        EventKind::ActivityTaskScheduled { .. } => EventType::ActivityTaskScheduled,
        EventKind::ActivityTaskCompleted { .. } => EventType::ActivityTaskCompleted,
        EventKind::ActivityTaskFailed { .. } => EventType::ActivityTaskFailed,
        EventKind::ActivityTaskTimedOut { .. } => EventType::ActivityTaskTimedOut,
        EventKind::ActivityTaskCancelRequested { .. } => EventType::ActivityTaskCancelRequested,
        EventKind::ActivityTaskCanceled { .. } => EventType::ActivityTaskCanceled,
        EventKind::TimerStarted { .. } => EventType::TimerStarted,
        EventKind::TimerFired { .. } => EventType::TimerFired,
        EventKind::TimerCanceled { .. } => EventType::TimerCanceled,
        EventKind::MarkerRecorded { .. } => EventType::MarkerRecorded,
        EventKind::WorkflowExecutionCancelRequested { .. } => {
            EventType::WorkflowExecutionCancelRequested
        }
        EventKind::WorkflowExecutionCanceled { .. } => EventType::WorkflowExecutionCanceled,
        EventKind::WorkflowExecutionSignaled { .. } => EventType::WorkflowExecutionSignaled,
        EventKind::WorkflowExecutionUpdateAccepted { .. } => {
            EventType::WorkflowExecutionUpdateAccepted
        }
        EventKind::WorkflowExecutionUpdateCompleted { .. } => {
            EventType::WorkflowExecutionUpdateCompleted
        }
        EventKind::WorkflowExecutionTerminated { .. } => EventType::WorkflowExecutionTerminated,
        EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. } => {
            EventType::RequestCancelExternalWorkflowExecutionInitiated
        }
        EventKind::RequestCancelExternalWorkflowExecutionFailed { .. } => {
            EventType::RequestCancelExternalWorkflowExecutionFailed
        }
        EventKind::ExternalWorkflowExecutionCancelRequested { .. } => {
            EventType::ExternalWorkflowExecutionCancelRequested
        }
        EventKind::StartChildWorkflowExecutionInitiated { .. } => {
            EventType::StartChildWorkflowExecutionInitiated
        }
        EventKind::StartChildWorkflowExecutionFailed { .. } => {
            EventType::StartChildWorkflowExecutionFailed
        }
        EventKind::ChildWorkflowExecutionStarted { .. } => EventType::ChildWorkflowExecutionStarted,
        EventKind::ChildWorkflowExecutionCompleted { .. } => {
            EventType::ChildWorkflowExecutionCompleted
        }
        EventKind::ChildWorkflowExecutionFailed { .. } => EventType::ChildWorkflowExecutionFailed,
        EventKind::ChildWorkflowExecutionCanceled { .. } => {
            EventType::ChildWorkflowExecutionCanceled
        }
        EventKind::ChildWorkflowExecutionTimedOut { .. } => {
            EventType::ChildWorkflowExecutionTimedOut
        }
        EventKind::ChildWorkflowExecutionTerminated { .. } => {
            EventType::ChildWorkflowExecutionTerminated
        }
        EventKind::SignalExternalWorkflowExecutionInitiated { .. } => {
            EventType::SignalExternalWorkflowExecutionInitiated
        }
        EventKind::SignalExternalWorkflowExecutionFailed { .. } => {
            EventType::SignalExternalWorkflowExecutionFailed
        }
        EventKind::ExternalWorkflowExecutionSignaled { .. } => {
            EventType::ExternalWorkflowExecutionSignaled
        }
    }
}
