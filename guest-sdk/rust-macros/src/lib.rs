//! Attribute and combinator macros of `steadfast-sdk`, which re-exports and documents them.

use proc_macro::TokenStream;

mod join;
mod select;
mod workflow;

/// Makes an `async fn(Context, Input) -> Result<Output, Failure>` a workflow.
///
/// The function stays what it is; beside it appears a type of the same name that implements
/// `Workflow`, which is what `component!` takes. The input may be left out. The function's doc
/// comment becomes the workflow's description. Options, all of them optional:
///
/// - `name = "order"`: the workflow type; default: the function's name;
/// - `signals(approve: Approval, "top-up": u64)`: the signals that it understands, for the
///   component's description;
/// - `queries(status: () -> Status)` and `updates(add: Item -> u64)`: the queries that it answers
///   and the updates that it handles, likewise;
/// - `schema`: describe input, output and messages by JSON Schema; their types must implement
///   `schemars::JsonSchema` and the SDK's feature `schema` must be on.
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    workflow::expand(options.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Waits for all of the futures and gives a tuple of their outputs. They are started, and polled
/// after each wake, in the written order.
#[proc_macro]
pub fn join(futures: TokenStream) -> TokenStream {
    join::expand(futures.into(), join::Flavor::All)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Waits for all of the futures, whose outputs are `Result`s with the same error type, or for the
/// first error: gives a `Result` of a tuple. On an error the other futures are dropped.
#[proc_macro]
pub fn try_join(futures: TokenStream) -> TokenStream {
    join::expand(futures.into(), join::Flavor::Try)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Waits for the first of several futures and runs its arm: `pattern = future => expression`.
///
/// Futures are started in the written order; of several that are ready, the first one written
/// wins. The losers are dropped before the arm runs, which cancels what they started; pass
/// `&mut future` to keep one. Arms may use `?`, `break`, `continue`, `return` and `.await`.
#[proc_macro]
pub fn select(arms: TokenStream) -> TokenStream {
    select::expand(arms.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
