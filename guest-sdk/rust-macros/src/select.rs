//! `select!`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::token::Brace;
use syn::{Error, Expr, ExprBlock, Ident, Pat, Result, Token};

struct Arm {
    pattern: Pat,
    future: Expr,
    body: Expr,
}

impl Parse for Arm {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let pattern = Pat::parse_single(input)?;
        input.parse::<Token![=]>()?;
        let future = input.parse()?;
        input.parse::<Token![=>]>()?;
        let body = if input.peek(Brace) {
            let block = input.parse()?;
            // As in a `match`: no comma needed after a block.
            input.parse::<Option<Token![,]>>()?;
            Expr::Block(ExprBlock {
                attrs: Vec::new(),
                label: None,
                block,
            })
        } else {
            let body = input.parse()?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            body
        };
        Ok(Self {
            pattern,
            future,
            body,
        })
    }
}

struct Arms(Vec<Arm>);

impl Parse for Arms {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arms = Vec::new();
        while !input.is_empty() {
            arms.push(input.parse()?);
        }
        if arms.is_empty() {
            return Err(Error::new(
                Span::call_site(),
                "expected `pattern = future => expression`",
            ));
        }
        Ok(Self(arms))
    }
}

pub(crate) fn expand(arms: TokenStream) -> Result<TokenStream> {
    let Arms(arms) = syn::parse2(arms)?;
    let names = |prefix: &str| -> Vec<Ident> {
        (0..arms.len())
            .map(|index| format_ident!("__{prefix}{index}", span = Span::mixed_site()))
            .collect()
    };
    let (future, variant) = (names("future"), names("Variant"));
    let patterns = arms.iter().map(|arm| &arm.pattern);
    let futures = arms.iter().map(|arm| &arm.future);
    let bodies = arms.iter().map(|arm| &arm.body);
    // A `match` and not a `let`: temporaries of the expressions live until one is ready.
    Ok(quote! {
        {
            #[allow(non_camel_case_types, reason = "generated")]
            enum __Winner<#(#variant),*> {
                #(#variant(#variant)),*
            }
            let winner = match (#(::core::future::IntoFuture::into_future(#futures),)*) {
                (#(#future,)*) => {
                    #(let mut #future = ::core::pin::pin!(#future);)*
                    ::core::future::poll_fn(move |task| {
                        #(
                            if let ::core::task::Poll::Ready(value) =
                                ::core::future::Future::poll(#future.as_mut(), task)
                            {
                                return ::core::task::Poll::Ready(__Winner::#variant(value));
                            }
                        )*
                        ::core::task::Poll::Pending
                    })
                    .await
                }
            };
            match winner {
                #(__Winner::#variant(#patterns) => #bodies,)*
            }
        }
    })
}
