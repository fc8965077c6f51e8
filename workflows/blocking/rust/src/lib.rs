//! Workflows of the world `blocking-workflow`: plain functions over the generated bindings. They
//! wait inside their calls, so they need no SDK and no `async`.

mod bindings;
mod host;
mod workflows;

use bindings::steadfast::workflow::description::{ComponentDescription, WorkflowDescription};
use bindings::steadfast::workflow::types::{Failure, Payload};

struct Component;

impl bindings::Guest for Component {
    fn describe() -> ComponentDescription {
        ComponentDescription {
            sdk: "none/0".to_owned(),
            resume_batch_max: 1,
            workflows: workflows::ALL
                .iter()
                .map(|(name, _)| WorkflowDescription {
                    name: (*name).to_owned(),
                    doc: String::new(),
                    input_schema: String::new(),
                    output_schema: String::new(),
                    signals: Vec::new(),
                    queries: Vec::new(),
                    updates: Vec::new(),
                })
                .collect(),
        }
    }

    fn run(workflow_type: String, input: Payload) -> Result<Payload, Failure> {
        let known = workflows::ALL
            .iter()
            .find(|(name, _)| *name == workflow_type);
        match known {
            Some((_, run)) => run(host::json(&input)).map(|value| host::payload(&value)),
            None => Err(host::failure("unknown-type", "there is no such workflow")),
        }
    }
}
