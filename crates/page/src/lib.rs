//! Reports for a browser: one file, no scripts, nothing from elsewhere, light and dark.
//!
//! [`page`] is the whole file, [`figure`] a picture with its caption, [`Svg`] what pictures are drawn with
//! (`svg.rs`). `style.css` has the colours and what all pages share; a page adds what it alone shows.
//! Invariant: every text of a caller is escaped, but for those parameters that are markup and say so.

#![forbid(unsafe_code)]

mod svg;

pub use svg::{Anchor, AxisScale, Svg, SvgPoint, escaped, point};

const STYLE: &str = include_str!("style.css");

/// A whole file. `style` is a page's own style sheet and `body` its markup, both as they are.
#[must_use]
pub fn page(title: &str, style: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// A picture with its title and what to know about it; `picture` is markup.
#[must_use]
pub fn figure(class: &str, title: &str, below: &str, picture: &str) -> String {
    format!(
        "<figure class=\"{}\"><figcaption>{}<small>{}</small></figcaption>\n{picture}</figure>\n",
        escaped(class),
        escaped(title),
        escaped(below)
    )
}
