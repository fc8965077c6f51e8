//! `join!` and `try_join!`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, Result, Token};

/// What ends the wait early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Nothing.
    All,
    /// An error.
    Try,
}

pub(crate) fn expand(futures: TokenStream, flavor: Flavor) -> Result<TokenStream> {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let futures: Vec<Expr> = parser.parse2(futures)?.into_iter().collect();
    let names = |prefix: &str| -> Vec<Ident> {
        (0..futures.len())
            .map(|index| {
                format_ident!("__{prefix}_{index}", span = proc_macro2::Span::mixed_site())
            })
            .collect()
    };
    let (future, output) = (names("future"), names("output"));
    let ready = match flavor {
        Flavor::All => quote!((#(#output,)*)),
        Flavor::Try => quote!(::core::result::Result::Ok((#(#output,)*))),
    };
    let keep = match flavor {
        Flavor::All => quote!(::core::option::Option::Some(value)),
        Flavor::Try => quote!(match value {
            ::core::result::Result::Ok(value) => ::core::option::Option::Some(value),
            ::core::result::Result::Err(error) => {
                return ::core::task::Poll::Ready(::core::result::Result::Err(error));
            }
        }),
    };
    // A `match` and not a `let`: temporaries of the expressions live until all is done.
    Ok(quote! {
        match (#(::core::future::IntoFuture::into_future(#futures),)*) {
            (#(#future,)*) => {
                #(let mut #future = ::core::pin::pin!(#future);)*
                #(let mut #output = ::core::option::Option::None;)*
                ::core::future::poll_fn(move |task| {
                    #(
                        if #output.is_none()
                            && let ::core::task::Poll::Ready(value) =
                                ::core::future::Future::poll(#future.as_mut(), task)
                        {
                            #output = #keep;
                        }
                    )*
                    match (#(#output.take(),)*) {
                        (#(::core::option::Option::Some(#output),)*) => {
                            ::core::task::Poll::Ready(#ready)
                        }
                        #[allow(unreachable_patterns, reason = "a join of nothing")]
                        pending => {
                            (#(#output,)*) = pending;
                            ::core::task::Poll::Pending
                        }
                    }
                })
                .await
            }
        }
    })
}
