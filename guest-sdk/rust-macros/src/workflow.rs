//! `#[workflow]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Result, ReturnType,
    Token, Type, parenthesized,
};

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    signals: Vec<SignalOption>,
    queries: Vec<QuestionOption>,
    updates: Vec<QuestionOption>,
    has_schema: bool,
}

struct SignalOption {
    name: LitStr,
    kind: Type,
}

/// A query or an update: `name: Input -> Output`.
struct QuestionOption {
    message: SignalOption,
    output: Type,
}

impl Parse for QuestionOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let message = input.parse()?;
        input.parse::<Token![->]>()?;
        Ok(Self {
            message,
            output: input.parse()?,
        })
    }
}

impl Parse for SignalOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = if input.peek(LitStr) {
            input.parse()?
        } else {
            let name: Ident = input.parse()?;
            LitStr::new(&name.to_string(), name.span())
        };
        input.parse::<Token![:]>()?;
        Ok(Self {
            name,
            kind: input.parse()?,
        })
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if key == "name" {
                input.parse::<Token![=]>()?;
                options.name = Some(input.parse()?);
            } else if key == "signals" {
                let list;
                parenthesized!(list in input);
                let signals = Punctuated::<_, Token![,]>::parse_terminated(&list)?;
                options.signals.extend(signals);
            } else if key == "queries" || key == "updates" {
                let list;
                parenthesized!(list in input);
                let questions = Punctuated::<_, Token![,]>::parse_terminated(&list)?;
                if key == "queries" {
                    options.queries.extend(questions);
                } else {
                    options.updates.extend(questions);
                }
            } else if key == "schema" {
                options.has_schema = true;
            } else {
                let message = "expected `name = \"...\"`, `signals(name: Type)`, \
                               `queries(name: Type -> Type)`, `updates(name: Type -> Type)` or \
                               `schema`";
                return Err(Error::new(key.span(), message));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
    let function: ItemFn = syn::parse2(item)?;
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "a workflow is an `async fn`",
        ));
    }
    let ReturnType::Type(_, result) = &signature.output else {
        return Err(Error::new_spanned(
            signature,
            "a workflow returns `Result<Output, Failure>`",
        ));
    };
    let (input, arguments) = input(&function)?;
    let (ident, visibility) = (&signature.ident, &function.vis);
    let name = options
        .name
        .clone()
        .unwrap_or_else(|| LitStr::new(ident.to_string().trim_start_matches("r#"), ident.span()));
    let doc = doc(&function.attrs);
    let signals = signals(&options);
    let queries = questions(&options, "queries", &options.queries);
    let updates = questions(&options, "updates", &options.updates);
    let schemas = schemas(&options);
    Ok(quote! {
        #function

        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code, reason = "named after its function")]
        #visibility struct #ident {}

        impl ::steadfast_sdk::Workflow for #ident {
            type Input = #input;
            type Output = <#result as ::steadfast_sdk::WorkflowResult>::Output;
            const NAME: &'static str = #name;
            const DOC: &'static str = #doc;
            #signals
            #queries
            #updates
            #schemas
            async fn run(
                ctx: ::steadfast_sdk::Context,
                input: Self::Input,
            ) -> ::core::result::Result<Self::Output, ::steadfast_sdk::Failure> {
                ::steadfast_sdk::WorkflowResult::into_result(#ident(#arguments).await)
            }
        }
    })
}

/// Returns the input's type and the arguments of the call.
fn input(function: &ItemFn) -> Result<(TokenStream, TokenStream)> {
    let arguments: Vec<&FnArg> = function.sig.inputs.iter().collect();
    match arguments.as_slice() {
        [FnArg::Typed(_)] => Ok((
            quote!(::steadfast_sdk::NoInput),
            quote!({
                let _: Self::Input = input;
                ctx
            }),
        )),
        [FnArg::Typed(_), FnArg::Typed(input)] => {
            let kind = &input.ty;
            Ok((quote!(#kind), quote!(ctx, input)))
        }
        _ => {
            let message = "a workflow takes a `Context` and at most one input";
            Err(Error::new_spanned(&function.sig, message))
        }
    }
}

/// Returns the text of the doc comments, each line without its first blank.
fn doc(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(meta) = &attribute.meta
            && meta.path.is_ident("doc")
            && let Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) = &meta.value
        {
            let text = text.value();
            lines.push(
                text.strip_prefix(' ')
                    .unwrap_or(&text)
                    .trim_end()
                    .to_owned(),
            );
        }
    }
    lines.join("\n").trim().to_owned()
}

fn signals(options: &Options) -> TokenStream {
    if options.signals.is_empty() {
        return TokenStream::new();
    }
    let entries = options
        .signals
        .iter()
        .map(|signal| message(options, signal, &quote!(::std::string::String::new())));
    quote! {
        fn signals() -> ::std::vec::Vec<::steadfast_sdk::MessageDescription> {
            ::std::vec![#(#entries),*]
        }
    }
}

/// The method of that name that describes the queries or the updates.
fn questions(options: &Options, method: &str, questions: &[QuestionOption]) -> TokenStream {
    if questions.is_empty() {
        return TokenStream::new();
    }
    let method = Ident::new(method, proc_macro2::Span::call_site());
    let entries = questions.iter().map(|question| {
        let output = schema(options, &question.output);
        message(options, &question.message, &output)
    });
    quote! {
        fn #method() -> ::std::vec::Vec<::steadfast_sdk::MessageDescription> {
            ::std::vec![#(#entries),*]
        }
    }
}

fn message(options: &Options, message: &SignalOption, output: &TokenStream) -> TokenStream {
    let name = &message.name;
    let input = schema(options, &message.kind);
    quote! {
        ::steadfast_sdk::MessageDescription {
            name: ::std::string::String::from(#name),
            doc: ::std::string::String::new(),
            input_schema: #input,
            output_schema: #output,
        }
    }
}

fn schema(options: &Options, kind: &Type) -> TokenStream {
    if options.has_schema {
        quote!(::steadfast_sdk::json_schema::<#kind>())
    } else {
        quote!(::std::string::String::new())
    }
}

fn schemas(options: &Options) -> TokenStream {
    if !options.has_schema {
        return TokenStream::new();
    }
    quote! {
        fn input_schema() -> ::std::string::String {
            ::steadfast_sdk::json_schema::<Self::Input>()
        }

        fn output_schema() -> ::std::string::String {
            ::steadfast_sdk::json_schema::<Self::Output>()
        }
    }
}
