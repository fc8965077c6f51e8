//! The answer to the query `__metadata`: a workflow's description as JSON.

use std::fmt::Write as _;

use steadfast_model::component::{MessageDescription, WorkflowDescription};

/// The description: name, texts, schemas, and the messages that the workflow understands.
pub(crate) fn json(workflow: &WorkflowDescription) -> String {
    let mut text = String::from("{");
    describe(
        &mut text,
        &workflow.name,
        &workflow.doc,
        &workflow.input_schema,
        &workflow.output_schema,
    );
    let lists = [
        ("signals", &workflow.signals),
        ("queries", &workflow.queries),
        ("updates", &workflow.updates),
    ];
    for (name, list) in lists {
        field(&mut text, name, &messages(list));
    }
    text.push('}');
    text
}

fn messages(list: &[MessageDescription]) -> String {
    let messages: Vec<String> = list
        .iter()
        .map(|message| {
            let mut text = String::from("{");
            describe(
                &mut text,
                &message.name,
                &message.doc,
                &message.input_schema,
                &message.output_schema,
            );
            text.push('}');
            text
        })
        .collect();
    format!("[{}]", messages.join(","))
}

fn describe(text: &mut String, name: &str, doc: &str, input: &str, output: &str) {
    field(text, "name", &string(name));
    if !doc.is_empty() {
        field(text, "doc", &string(doc));
    }
    // Admission has checked that a schema is JSON.
    if !input.is_empty() {
        field(text, "input_schema", input);
    }
    if !output.is_empty() {
        field(text, "output_schema", output);
    }
}

fn field(text: &mut String, name: &str, value: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    text.push_str(&string(name));
    text.push(':');
    text.push_str(value);
}

fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            c if c < ' ' => drop(write!(json, "\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_json_with_its_schemas_inside() {
        let message = MessageDescription {
            name: "add".to_owned(),
            doc: "Adds \"one\"\n\u{1}".to_owned(),
            input_schema: r#"{"type":"integer"}"#.to_owned(),
            output_schema: String::new(),
        };
        let workflow = WorkflowDescription {
            name: "account".to_owned(),
            doc: String::new(),
            input_schema: String::new(),
            output_schema: "true".to_owned(),
            signals: vec![message.clone(), message],
            queries: Vec::new(),
            updates: Vec::new(),
        };
        let one =
            r#"{"name":"add","doc":"Adds \"one\"\n\u0001","input_schema":{"type":"integer"}}"#;
        let expected = format!(
            r#"{{"name":"account","output_schema":true,"signals":[{one},{one}],"queries":[],"updates":[]}}"#
        );
        assert_eq!(json(&workflow), expected);
    }
}
