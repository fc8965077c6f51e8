//! The only unsafe code of the crate: two promises to wasmtime that it cannot check itself.
#![allow(unsafe_code, reason = "the one module that makes promises to wasmtime")]

use std::marker::PhantomData;

use sha2::{Digest, Sha256};
use wasmtime::component::{
    Component, ComponentNamedList, ComponentType, Func, Lift, Lower, TypedFunc,
};
use wasmtime::{Engine, Store};

use crate::abi::lift::{FailureValue, PayloadValue, StepValue};
use crate::abi::lower::{EventRef, PayloadRef};

/// Machine code whose bytes are what [`Engine::precompile_component`] wrote.
pub(crate) struct Code(Vec<u8>);

/// Length of the seal at the end of stored code.
const SEAL_BYTES: usize = 32;

impl Code {
    /// Compiles a component.
    ///
    /// # Errors
    /// wasmtime's, when the component is invalid or needs what this engine does not offer.
    pub(crate) fn compile(engine: &Engine, component: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(component).map(Self)
    }

    /// The code of a component that is loaded already.
    ///
    /// # Errors
    /// wasmtime's, when memory is short.
    pub(crate) fn of(component: &Component) -> wasmtime::Result<Self> {
        component.serialize().map(Self)
    }

    /// The code followed by a hash over it and its `key`, for storing. The key names the component
    /// and the engine, so that a file under a wrong name is noticed too.
    pub(crate) fn seal(mut self, key: &[u8]) -> Vec<u8> {
        let seal = seal(key, &self.0);
        self.0.extend_from_slice(&seal);
        self.0
    }

    /// Takes code back out of stored bytes; `None` when they are damaged, or were stored under
    /// another key.
    pub(crate) fn unseal(mut bytes: Vec<u8>, key: &[u8]) -> Option<Self> {
        let length = bytes.len().checked_sub(SEAL_BYTES)?;
        let (code, stored) = bytes.split_at(length);
        if seal(key, code) != stored {
            return None;
        }
        bytes.truncate(length);
        Some(Self(bytes))
    }

    /// Makes the code executable.
    ///
    /// # Errors
    /// wasmtime's, when the code belongs to another engine or does not fit into the pool.
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes came from `precompile_component` or `serialize` (the constructors
        // above), or from a file whose hash says that they are the very bytes that one of these
        // wrote. The cache folder belongs to this process's user; who can write there could as
        // well replace the program. wasmtime itself checks version, target and settings.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}

fn seal(key: &[u8], code: &[u8]) -> [u8; SEAL_BYTES] {
    let mut hash = Sha256::new();
    hash.update(u64::try_from(key.len()).unwrap_or(u64::MAX).to_le_bytes());
    hash.update(key);
    hash.update(code);
    hash.finalize().into()
}

/// An export that returns one value and takes arguments that borrow from the host.
///
/// [`TypedFunc`] fixes the lifetime of its parameters when it is made, so the type is checked once
/// with `'static` and put back for each call with the lifetime at hand.
pub(crate) struct Export<P: Params> {
    func: Func,
    params: PhantomData<fn(P)>,
}

/// Parameters of an [`Export`]: one type per lifetime, differing in nothing else. The promise in
/// [`Export::call`] rests on that, so all implementations are here.
pub(crate) trait Params {
    /// The parameters that borrow for `'a`.
    type With<'a>: ComponentNamedList + Lower;
    /// What the export returns.
    type Result: ComponentType + Lift + 'static;
}

/// Parameters of `start`: workflow type and input.
pub(crate) struct StartParams;

impl Params for StartParams {
    type With<'a> = (&'a str, PayloadRef<'a>);
    type Result = StepValue;
}

/// Parameters of `resume`: events.
pub(crate) struct ResumeParams;

impl Params for ResumeParams {
    type With<'a> = (&'a [EventRef<'a>],);
    type Result = StepValue;
}

/// Parameters of `query`: name and input.
pub(crate) struct QueryParams;

impl Params for QueryParams {
    type With<'a> = (&'a str, PayloadRef<'a>);
    type Result = Result<PayloadValue, FailureValue>;
}

/// Parameters of `validate-update`: name and input.
pub(crate) struct ValidateParams;

impl Params for ValidateParams {
    type With<'a> = (&'a str, PayloadRef<'a>);
    type Result = Result<(), FailureValue>;
}

impl<P: Params> Export<P> {
    /// Checks that the export has this type.
    ///
    /// # Errors
    /// wasmtime's, naming the difference.
    pub(crate) fn new<T>(func: Func, store: &Store<T>) -> wasmtime::Result<Self> {
        let _checked: TypedFunc<P::With<'static>, (P::Result,)> = func.typed(store)?;
        Ok(Self {
            func,
            params: PhantomData,
        })
    }

    /// Calls it.
    ///
    /// # Errors
    /// The guest's trap, or the error of a host call.
    pub(crate) fn call<T: 'static>(
        &self,
        store: &mut Store<T>,
        params: P::With<'_>,
    ) -> wasmtime::Result<P::Result> {
        // SAFETY: `new` had `Func::typed` accept this function for the same types with another
        // lifetime, and lifetimes take no part in that check.
        let func: TypedFunc<P::With<'_>, (P::Result,)> =
            unsafe { TypedFunc::new_unchecked(self.func) };
        let (result,) = func.call(store, params)?;
        Ok(result)
    }
}
