//! What the macros tell about a workflow.

use steadfast_sdk::{Context, Failure, Workflow, workflow};

/// Takes an order.
///
/// In two paragraphs.
#[workflow(name = "the-order", signals(approve: bool, "top-up": u64))]
async fn described(_ctx: Context, _input: u32) -> Result<String, Failure> {
    Ok(String::new())
}

#[workflow]
async fn plain(_ctx: Context) -> Result<(), Failure> {
    Ok(())
}

mod inner {
    use super::{Context, Failure, workflow};

    #[workflow]
    pub(super) async fn nested(_ctx: Context) -> Result<(), Failure> {
        Ok(())
    }
}

steadfast_sdk::component!(described, plain, inner::nested);

#[test]
fn attribute_and_doc_comment_describe_the_workflow() {
    assert_eq!(described::NAME, "the-order");
    assert_eq!(described::DOC, "Takes an order.\n\nIn two paragraphs.");
    let names: Vec<String> = described::signals()
        .into_iter()
        .map(|signal| signal.name)
        .collect();
    assert_eq!(names, ["approve", "top-up"]);
    assert_eq!(plain::NAME, "plain");
    assert_eq!(plain::DOC, "");
    assert_eq!(inner::nested::NAME, "nested");
}

#[test]
fn component_describes_itself() {
    use steadfast_sdk::{Definition, component};
    let description = component::describe(&[Definition::of::<described>()]);
    assert_eq!(
        description.sdk,
        concat!("steadfast-sdk/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(description.resume_batch_max, 256);
    assert_eq!(description.workflows[0].name, "the-order");
    assert_eq!(description.workflows[0].signals.len(), 2);
    assert_eq!(description.workflows[0].input_schema, "");
}

#[cfg(feature = "schema")]
#[test]
fn schema_option_describes_types() {
    #[workflow(schema, signals(more: u32))]
    async fn typed(_ctx: Context, _input: Vec<u32>) -> Result<String, Failure> {
        Ok(String::new())
    }
    assert!(
        typed::input_schema().contains("\"array\""),
        "{}",
        typed::input_schema()
    );
    assert!(typed::output_schema().contains("\"string\""));
    assert!(typed::signals()[0].input_schema.contains("\"integer\""));
}
