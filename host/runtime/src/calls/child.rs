//! Calls about children and other executions.

use steadfast_engine::child_options::{Given, Parent, given_id, normalise};
use steadfast_engine::replay::{self, Matched};
use steadfast_model::child::ExternalTarget;
use steadfast_model::command::Command;
use steadfast_model::limits::PAYLOAD_BYTES_MAX;
use steadfast_model::{Namespace, Payload, RunId, Seq, SignalName, WorkflowId, WorkflowType};
use steadfast_ports::guest::{ChildCall, ChildCallOptions, Stop, TargetCall};

use super::{Calls, mismatch};

impl Calls {
    pub(super) fn start_child_call(&mut self, call: ChildCall<'_>) -> Result<Seq, Stop> {
        self.look_ahead()?;
        let matched = self
            .replay
            .start_child(replay::ChildCall {
                workflow_type: call.workflow_type,
                workflow_id: given_id(&call.options.settings),
                input: call.input,
                encoding: call.encoding,
            })
            .map_err(mismatch)?;
        let seq = match matched {
            Matched::Replayed(seq) => return Ok(seq),
            Matched::Live(seq) => seq,
        };
        let name = call.workflow_type;
        check_size(&format!("input of child {name}"), call.input)?;
        let workflow_type = WorkflowType::new(name).map_err(invalid)?;
        let parent = Parent {
            namespace: &self.namespace,
            task_queue: &self.task_queue,
            run_id: self.info.run_id,
        };
        let options = normalise(&given(call.options), parent, seq)
            .map_err(|error| Stop::Invalid(format!("options of child {name}: {error}")))?;
        let input = Payload::encoded(call.encoding, call.input.to_vec());
        self.issue(Command::StartChild {
            workflow_type,
            input,
            options: Box::new(options),
        })?;
        Ok(seq)
    }

    pub(super) fn cancel_child_call(&mut self, seq: Seq, reason: &str) -> Result<(), Stop> {
        self.known(seq)?;
        self.look_ahead_until(|replay| replay.can_judge_cancel_child(seq))?;
        match self.replay.cancel_child(seq, reason).map_err(mismatch)? {
            Some(command) => self.issue(command),
            None => Ok(()),
        }
    }

    pub(super) fn signal_call(
        &mut self,
        target: TargetCall<'_>,
        name: &str,
        input: &[u8],
        encoding: &str,
    ) -> Result<Seq, Stop> {
        self.look_ahead()?;
        let matched = self
            .replay
            .signal_external(target.workflow_id, name, input, encoding)
            .map_err(mismatch)?;
        let seq = match matched {
            Matched::Replayed(seq) => return Ok(seq),
            Matched::Live(seq) => seq,
        };
        check_size(&format!("payload of signal {name}"), input)?;
        let target = Box::new(self.target(target)?);
        let name = SignalName::new(name).map_err(invalid)?;
        let input = Payload::encoded(encoding, input.to_vec());
        self.issue(Command::SignalExternal {
            target,
            name,
            input,
        })?;
        Ok(seq)
    }

    pub(super) fn cancel_external_call(
        &mut self,
        target: TargetCall<'_>,
        reason: &str,
    ) -> Result<Seq, Stop> {
        self.look_ahead()?;
        let matched = self
            .replay
            .cancel_external(target.workflow_id)
            .map_err(mismatch)?;
        let seq = match matched {
            Matched::Replayed(seq) => return Ok(seq),
            Matched::Live(seq) => seq,
        };
        let target = Box::new(self.target(target)?);
        self.issue(Command::RequestCancelExternal {
            target,
            reason: reason.to_owned(),
        })?;
        Ok(seq)
    }

    fn target(&self, call: TargetCall<'_>) -> Result<ExternalTarget, Stop> {
        let namespace = match call.namespace {
            "" => self.namespace.clone(),
            name => Namespace::new(name).map_err(invalid)?,
        };
        let run_id = match call.run_id {
            "" => None,
            id => Some(id.parse::<RunId>().map_err(invalid)?),
        };
        Ok(ExternalTarget {
            namespace,
            workflow_id: WorkflowId::new(call.workflow_id).map_err(invalid)?,
            run_id,
            child_only: call.child_only,
        })
    }
}

fn given(options: &ChildCallOptions) -> Given<'_> {
    Given {
        execution_timeout: options.execution_timeout,
        run_timeout: options.run_timeout,
        initial_interval: options.initial_interval,
        backoff_permille: options.backoff_permille,
        maximum_interval: options.maximum_interval,
        maximum_attempts: options.maximum_attempts,
        settings: &options.settings,
    }
}

fn check_size(what: &str, data: &[u8]) -> Result<(), Stop> {
    if data.len() > PAYLOAD_BYTES_MAX {
        let bytes = data.len();
        return Err(Stop::Limit(format!(
            "{what} is {bytes} bytes; the limit is {PAYLOAD_BYTES_MAX}"
        )));
    }
    Ok(())
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn invalid(error: steadfast_model::id::Invalid) -> Stop {
    Stop::Invalid(error.to_string())
}
