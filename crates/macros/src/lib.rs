//! `#[quietcore::test]` and `#[quietcore::main]`.
//!
//! They decide one thing: which builder the function runs on. The attributes of tokio already read all
//! arguments, report mistakes and build the function, and take the path of the crate whose `runtime::Builder`
//! they call; that path is all that is added here. So every argument means what it means there. One is taken
//! out: `start_paused`, which they refuse with `multi_thread`, chooses another builder.
//!
//! Not here: what the builder does (`quietcore::tokio::runtime`).

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// A test whose future runs on a runtime with a machine of its own, which is shut down after it. Time can be
/// paused in it.
///
/// Takes the arguments of tokio's attribute of this name: `flavor = "current_thread"` (the default) or
/// `"multi_thread"`, `worker_threads`, `start_paused`, `name`, and `crate` when the crate has another name.
/// Time can be paused on both flavors.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    forward("test", arguments, item)
}

/// An async function that runs on a runtime with a machine: the process's default one if it was installed,
/// else one of its own, which is shut down after it.
///
/// Takes the arguments of tokio's attribute of this name: `flavor = "multi_thread"` (the default) or
/// `"current_thread"`, `worker_threads`, `start_paused`, `name`, and `crate` when the crate has another name.
/// Time can be paused only with `start_paused = true`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    forward("main", arguments, item)
}

/// `item` below tokio's attribute `name`, with the path of our builder.
fn forward(name: &str, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let Given { kept, path, starts_paused } = Given::read(arguments);
    let mut inner = kept;
    let word = |word: &str| TokenTree::from(Ident::new(word, Span::call_site()));
    let sign = |sign, spacing| TokenTree::from(Punct::new(sign, spacing));
    let builder = if starts_paused { "paused" } else { name };
    let target = Literal::string(&format!("{path}::attributes::for_{builder}"));
    inner.extend([word("crate"), sign('=', Spacing::Alone), target.into()]);

    let mut attribute: TokenStream =
        format!("{path}::attributes::{name}").parse().expect("a path was given for `crate`");
    attribute.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, inner))]);
    let mut output = TokenStream::from(sign('#', Spacing::Alone));
    output.extend([TokenTree::from(Group::new(Delimiter::Bracket, attribute))]);
    output.extend(item);
    output
}

/// The arguments of an attribute.
struct Given {
    /// All but the two below, each with a comma after it.
    kept: TokenStream,
    /// Where this project's crate is.
    path: String,
    /// Time is paused from the start.
    starts_paused: bool,
}

impl Given {
    fn read(arguments: TokenStream) -> Self {
        let mut given =
            Self { kept: TokenStream::new(), path: "::quietcore".to_owned(), starts_paused: false };
        let mut argument = Vec::new();
        for token in arguments {
            if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',') {
                given.add(core::mem::take(&mut argument));
            } else {
                argument.push(token);
            }
        }
        given.add(argument);
        given
    }

    fn add(&mut self, argument: Vec<TokenTree>) {
        let words: Vec<String> = argument.iter().map(ToString::to_string).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => {}
            ["crate", "=", path] if path.starts_with('"') => self.path = path.trim_matches('"').to_owned(),
            ["start_paused", "=", value @ ("true" | "false")] => self.starts_paused = *value == "true",
            // Right or wrong, tokio's attribute knows.
            _ => self.kept.extend(argument.into_iter().chain([Punct::new(',', Spacing::Alone).into()])),
        }
    }
}
