//! `component list`: what has been deployed.

use clap::Args;
use reqwest::Method;
use steadfast_api::wire::ComponentList;

use crate::client::Client;
use crate::error::Result;
use crate::output::{Output, Tone, size};
use crate::table::{Column, Table};

/// List the components of a server
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

pub(crate) async fn run(client: &Client, output: &Output) -> Result<()> {
    let list: ComponentList = client.call(Method::GET, &["components"]).send().await?;
    if output.is_json() {
        return output.json(&list.components);
    }
    if list.components.is_empty() {
        output.progress("no components; `steadfast deploy` uploads them");
        return Ok(());
    }
    let mut components = list.components;
    components.sort_by_key(|component| std::cmp::Reverse(component.uploaded_at));
    let mut table = Table::new([
        Column::fixed("DIGEST"),
        Column::number("SIZE"),
        Column::fixed("UPLOADED"),
        Column::flexible("SDK"),
        Column::flexible("WORKFLOW TYPES"),
    ]);
    for component in components {
        let types: Vec<_> = component
            .workflows
            .into_iter()
            .map(|workflow| workflow.name)
            .collect();
        let uploaded = component
            .uploaded_at
            .to_string()
            .chars()
            .take(19)
            .collect::<String>();
        table.row([
            (Tone::Strong, component.digest.chars().take(12).collect()),
            (Tone::Plain, size(component.size_bytes)),
            (Tone::Plain, uploaded.replace('T', " ")),
            (Tone::Plain, component.sdk),
            (Tone::Plain, types.join(", ")),
        ]);
    }
    output.text(&table.render(output))
}
