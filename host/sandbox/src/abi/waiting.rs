//! The interface `waiting`: calls in which a guest of the world `blocking-workflow` waits. The fiber
//! is parked while its future is pending; whoever drives the guest polls it after each event.

use std::future::poll_fn;
use std::task::Poll;

use wasmtime::StoreContextMut;
use wasmtime::component::{LinkerInstance, WasmStr};

use super::lower::{OutcomeOwned, outcome as lowered};
use crate::state::State;

type Context<'a> = StoreContextMut<'a, State>;

/// Most operations that one `wait-any` may be given.
const WAIT_ANY_MAX: usize = 100_000;

/// Defines the functions of `waiting`.
///
/// # Errors
/// wasmtime's, when a name is defined twice.
pub(crate) fn define(waiting: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    waiting.func_wrap_async(
        "wait-any",
        |store: Context<'_>, (operations,): (Vec<u32>,)| Box::new(wait_any(store, operations)),
    )?;
    waiting.func_wrap_async("take", |store: Context<'_>, (operation,): (u32,)| {
        Box::new(take(store, operation))
    })?;
    waiting.func_wrap("receive-signal", receive_signal)?;
    waiting.func_wrap("receive-cancel", |mut store: Context<'_>, (): ()| {
        let operation = store
            .data_mut()
            .mailbox("waiting.receive-cancel", |mailbox| mailbox.receive_cancel())?;
        Ok((operation,))
    })?;
    waiting.func_wrap("is-cancel-requested", |mut store: Context<'_>, (): ()| {
        let is_requested = store
            .data_mut()
            .mailbox("waiting.is-cancel-requested", |mailbox| {
                Ok(mailbox.is_cancel_requested())
            })?;
        Ok((is_requested,))
    })?;
    waiting.func_wrap("release", |mut store: Context<'_>, (operation,): (u32,)| {
        store.data_mut().mailbox("waiting.release", |mailbox| {
            mailbox.release(operation);
            Ok(())
        })
    })
}

async fn wait_any(mut store: Context<'_>, operations: Vec<u32>) -> wasmtime::Result<(u32,)> {
    if operations.len() > WAIT_ANY_MAX {
        let count = operations.len();
        let text = format!("wait-any was given {count} operations; the limit is {WAIT_ANY_MAX}");
        return Err(steadfast_ports::guest::Stop::Limit(text).into());
    }
    let index = poll_fn(|_| {
        let first = store
            .data_mut()
            .mailbox("waiting.wait-any", |mailbox| mailbox.first_of(&operations));
        parked(&mut store, first)
    });
    Ok((index.await?,))
}

async fn take(mut store: Context<'_>, operation: u32) -> wasmtime::Result<(OutcomeOwned,)> {
    let outcome = poll_fn(|_| {
        let outcome = store
            .data_mut()
            .mailbox("waiting.take", |mailbox| mailbox.take(operation));
        parked(&mut store, outcome)
    });
    Ok((lowered(outcome.await?),))
}

/// Pending while there is no answer; what the guest holds then is noted for the instance cache.
fn parked<T>(
    store: &mut Context<'_>,
    answer: wasmtime::Result<Option<T>>,
) -> Poll<wasmtime::Result<T>> {
    match answer.transpose() {
        Some(answer) => Poll::Ready(answer),
        None => {
            store.data().note_memory();
            Poll::Pending
        }
    }
}

fn receive_signal(mut store: Context<'_>, (name,): (WasmStr,)) -> wasmtime::Result<(u32,)> {
    let name = name.to_str(&store)?.into_owned();
    let operation = store
        .data_mut()
        .mailbox("waiting.receive-signal", |mailbox| {
            mailbox.receive_signal(&name)
        })?;
    Ok((operation,))
}
