//! What `tc` shows: properties, each with its text and its name and value in JSON, from one description.
//!
//! A kind describes itself with a list of them ([`TcProperties`]); what prints decides between text and
//! JSON behind that, so the two cannot differ. A template has `{}` where the value stands, `{:>12}` where
//! it ends a column of so many characters, or none for words alone, and the blanks that `tc` writes: some
//! are behind a property, some before, and some are two.
//!
//! ```
//! use quietcore_qdisc::tc::{TcProperties, TcStyle, TcValue};
//!
//! let mut shown = TcProperties::default();
//! shown.add("limit", "limit {}", 1000_u32);
//! let delay = TcValue::seconds(quietcore_core::Nanos(6_000_000));
//! shown.object("delay", |shown| shown.add("delay", " delay {}", delay));
//! shown.flag("ecn", " ecn", false);
//! assert_eq!(shown.text(TcStyle::default()), "limit 1000 delay 6ms");
//! assert_eq!(shown.json(TcStyle::default()), "{\"limit\":1000,\"delay\":{\"delay\":0.006},\"ecn\":false}");
//! ```

use super::json::{JsonLayout, JsonWriter, TcJson};
use super::text::{percent_text, rate_text, rate_text_binary, size_text, time_text};
use super::units::Percent;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use quietcore_core::Nanos;

/// What is asked for of what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcStyle {
    /// `-s`: what was counted.
    pub statistics: bool,
    /// `-d`: what is rarely asked for.
    pub details: bool,
    /// `-iec`: rates in units of 1024.
    pub binary: bool,
    /// `-p`: fields of headers by their names; JSON on many lines.
    pub pretty: bool,
    /// `-N`: protocols by their numbers.
    pub numeric: bool,
    /// `-q`, `-quietcore`: what `tc` does not have.
    pub ours: bool,
}

/// A value: its text, and what it is in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct TcValue {
    text: ValueText,
    json: TcJson,
}

#[derive(Clone, Debug, PartialEq)]
enum ValueText {
    Word(String),
    /// Bits per second: the style knows in which units.
    BitRate(u64),
}

impl TcValue {
    /// A value whose text and JSON differ.
    pub fn new(text: impl Into<String>, json: TcJson) -> Self {
        Self { text: ValueText::Word(text.into()), json }
    }

    /// A rate in bytes per second, which JSON has as such.
    #[must_use]
    pub const fn byte_rate(bytes: u64) -> Self {
        Self { text: ValueText::BitRate(bytes.saturating_mul(8)), json: TcJson::Unsigned(bytes) }
    }

    /// A rate in bytes per second, which JSON has in bits per second.
    #[must_use]
    pub const fn bit_rate(bits: u64) -> Self {
        Self { text: ValueText::BitRate(bits), json: TcJson::Unsigned(bits) }
    }

    /// A number of bytes.
    #[must_use]
    pub fn size(bytes: u64) -> Self {
        Self::new(size_text(bytes), TcJson::Unsigned(bytes))
    }

    /// A span of time, which JSON has in seconds.
    #[must_use]
    pub fn seconds(span: Nanos) -> Self {
        Self::new(time_text(span), TcJson::Float(span.0 as f64 / 1e9))
    }

    /// A span of time, which JSON has in whole microseconds.
    #[must_use]
    pub fn micros(span: Nanos) -> Self {
        Self::new(time_text(span), TcJson::Unsigned(span.0 / 1_000))
    }

    /// A span of time, which JSON has in nanoseconds.
    #[must_use]
    pub fn nanos(span: Nanos) -> Self {
        Self::new(time_text(span), TcJson::Unsigned(span.0))
    }

    /// A part of all, which JSON has as a part of 1.
    #[must_use]
    pub fn share(percent: Percent) -> Self {
        let part = f64::from(percent.share()) / f64::from(u32::MAX);
        Self::new(percent_text(percent), TcJson::Float(part))
    }

    fn put(&self, template: &str, style: TcStyle, out: &mut String) {
        let place = template.split_once('{').and_then(|(before, rest)| {
            let (form, behind) = rest.split_once('}')?;
            Some((before, form.strip_prefix(":>").and_then(|width| width.parse().ok()).unwrap_or(0), behind))
        });
        let Some((before, width, behind)) = place else {
            out.push_str(template);
            return;
        };
        out.push_str(before);
        let text = match &self.text {
            ValueText::Word(word) => word,
            ValueText::BitRate(bits) if style.binary => &rate_text_binary(*bits),
            ValueText::BitRate(bits) => &rate_text(*bits),
        };
        out.extend(core::iter::repeat_n(' ', width_left(width, text)));
        out.push_str(text);
        out.push_str(behind);
    }
}

/// How much of a column a text leaves free.
fn width_left(width: usize, text: &str) -> usize {
    width.saturating_sub(text.len())
}

macro_rules! numbers {
    ($variant:ident $wide:ty: $($ty:ty)*) => {
        $(impl From<$ty> for TcValue {
            fn from(number: $ty) -> Self {
                Self::new(number.to_string(), TcJson::$variant(<$wide>::from(number)))
            }
        })*
    };
}

numbers!(Unsigned u64: u8 u16 u32 u64);
numbers!(Signed i64: i32 i64);

impl From<&str> for TcValue {
    fn from(word: &str) -> Self {
        Self::new(word, TcJson::Word(word.into()))
    }
}

impl From<String> for TcValue {
    fn from(word: String) -> Self {
        Self::new(word.clone(), TcJson::Word(word))
    }
}

impl From<bool> for TcValue {
    fn from(is: bool) -> Self {
        Self::new(is.to_string(), TcJson::Bool(is))
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Property {
    /// In text and in JSON; without a name in text only, without a template in JSON only.
    Value { name: &'static str, template: Option<&'static str>, value: TcValue },
    /// In text only.
    Text(String),
    /// An object in JSON.
    Object { name: &'static str, members: TcProperties },
    /// A list in JSON; in text each value in its own template.
    List { name: &'static str, template: &'static str, values: Vec<TcValue> },
    /// A list of objects in JSON; in text one behind the other.
    Objects { name: &'static str, all: Vec<TcProperties> },
    /// With `-d` only, or without it.
    Details { details: bool, shown: TcProperties },
    /// With `-s` only.
    Statistics(TcProperties),
    /// With `-q` only.
    Ours(TcProperties),
    /// As fields of headers by their names (`-p`), or not.
    Pretty { pretty: bool, shown: TcProperties },
    /// By numbers (`-N`), or not.
    Numeric { numeric: bool, shown: TcProperties },
}

/// What `tc` shows of something, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcProperties(Vec<Property>);

impl TcProperties {
    /// A property.
    pub fn add(&mut self, name: &'static str, template: &'static str, value: impl Into<TcValue>) {
        self.0.push(Property::Value { name, template: Some(template), value: value.into() });
    }

    /// A property that text has and JSON has not.
    pub fn add_text(&mut self, template: &'static str, value: impl Into<TcValue>) {
        self.0.push(Property::Value { name: "", template: Some(template), value: value.into() });
    }

    /// A property that JSON has and text has not.
    pub fn add_json(&mut self, name: &'static str, value: impl Into<TcValue>) {
        self.0.push(Property::Value { name, template: None, value: value.into() });
    }

    /// Words and blanks that only text has.
    pub fn text_only(&mut self, text: impl Into<String>) {
        self.0.push(Property::Text(text.into()));
    }

    /// `text` if it is so; JSON says it in any case.
    pub fn flag(&mut self, name: &'static str, text: &'static str, is: bool) {
        self.0.push(Property::Value { name, template: is.then_some(text), value: is.into() });
    }

    /// `text`, which stands for `true` in JSON.
    pub fn mark(&mut self, name: &'static str, text: &'static str) {
        self.flag(name, text, true);
    }

    /// `text`, which stands for `null` in JSON.
    pub fn mark_null(&mut self, name: &'static str, text: &'static str) {
        self.add(name, text, TcValue::new("", TcJson::Null));
    }

    /// Properties that are members of an object in JSON.
    pub fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        let members = Self::of(fill);
        self.0.push(Property::Object { name, members });
    }

    /// Values that are a list in JSON; in text each stands in `template`.
    pub fn list<T: Into<TcValue>>(
        &mut self,
        name: &'static str,
        template: &'static str,
        values: impl IntoIterator<Item = T>,
    ) {
        let values = values.into_iter().map(Into::into).collect();
        self.0.push(Property::List { name, template, values });
    }

    /// Objects that are a list in JSON; in text they stand one behind the other.
    pub fn objects(&mut self, name: &'static str, all: Vec<Self>) {
        self.0.push(Property::Objects { name, all });
    }

    /// What is there with `-d`, and what is without.
    pub fn details_or(&mut self, with: impl FnOnce(&mut Self), without: impl FnOnce(&mut Self)) {
        self.0.push(Property::Details { details: true, shown: Self::of(with) });
        self.0.push(Property::Details { details: false, shown: Self::of(without) });
    }

    /// What `-d` adds.
    pub fn details(&mut self, fill: impl FnOnce(&mut Self)) {
        self.0.push(Property::Details { details: true, shown: Self::of(fill) });
    }

    /// What `-s` adds.
    pub fn statistics(&mut self, fill: impl FnOnce(&mut Self)) {
        self.0.push(Property::Statistics(Self::of(fill)));
    }

    /// What `-q` adds: it is ours and not `tc`'s.
    pub fn ours(&mut self, fill: impl FnOnce(&mut Self)) {
        self.0.push(Property::Ours(Self::of(fill)));
    }

    /// What is there with `-p`, and what is without.
    pub fn pretty(&mut self, with: impl FnOnce(&mut Self), without: impl FnOnce(&mut Self)) {
        self.0.push(Property::Pretty { pretty: true, shown: Self::of(with) });
        self.0.push(Property::Pretty { pretty: false, shown: Self::of(without) });
    }

    /// What is there with `-N`, and what is without.
    pub fn numeric(&mut self, with: impl FnOnce(&mut Self), without: impl FnOnce(&mut Self)) {
        self.0.push(Property::Numeric { numeric: true, shown: Self::of(with) });
        self.0.push(Property::Numeric { numeric: false, shown: Self::of(without) });
    }

    /// All of `others`, behind these.
    pub fn append(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    fn of(fill: impl FnOnce(&mut Self)) -> Self {
        let mut properties = Self::default();
        fill(&mut properties);
        properties
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As text.
    #[must_use]
    pub fn text(&self, style: TcStyle) -> String {
        let mut out = String::new();
        self.put_text(style, &mut out);
        out
    }

    fn put_text(&self, style: TcStyle, out: &mut String) {
        for property in &self.0 {
            match property {
                Property::Value { template, value, .. } => {
                    template.iter().for_each(|template| value.put(template, style, out));
                }
                Property::Text(text) => out.push_str(text),
                Property::Object { members, .. } => members.put_text(style, out),
                Property::Objects { all, .. } => all.iter().for_each(|one| one.put_text(style, out)),
                Property::List { template, values, .. } => {
                    values.iter().for_each(|value| value.put(template, style, out));
                }
                other => other.asked_for(style).into_iter().for_each(|shown| shown.put_text(style, out)),
            }
        }
    }

    /// As an object of JSON, on one line.
    #[must_use]
    pub fn json(&self, style: TcStyle) -> String {
        let mut json = JsonWriter::new(JsonLayout::Line);
        json.begin_object();
        self.put_members(style, &mut json);
        json.end_object();
        json.finish().trim_end().to_string()
    }

    /// As members of the object of JSON that is open.
    pub fn put_members(&self, style: TcStyle, json: &mut JsonWriter) {
        for property in &self.0 {
            match property {
                Property::Value { name: "", .. } | Property::Text(_) => {}
                Property::Value { name, value, .. } => {
                    json.name(name);
                    json.value(&value.json);
                }
                Property::Object { name, members } => {
                    json.name(name);
                    json.begin_object();
                    members.put_members(style, json);
                    json.end_object();
                }
                Property::Objects { name, all } => {
                    json.name(name);
                    json.begin_list();
                    for one in all {
                        json.next();
                        json.begin_object();
                        one.put_members(style, json);
                        json.end_object();
                    }
                    json.end_list();
                }
                Property::List { name, values, .. } => {
                    json.name(name);
                    json.value(&TcJson::List(values.iter().map(|value| value.json.clone()).collect()));
                }
                other => other.asked_for(style).into_iter().for_each(|shown| shown.put_members(style, json)),
            }
        }
    }
}

impl Property {
    /// What is inside, if the style asks for it.
    fn asked_for(&self, style: TcStyle) -> Option<&TcProperties> {
        let (is_asked, inside) = match self {
            Self::Details { details, shown } => (style.details == *details, shown),
            Self::Statistics(inside) => (style.statistics, inside),
            Self::Ours(inside) => (style.ours, inside),
            Self::Numeric { numeric, shown } => (style.numeric == *numeric, shown),
            Self::Pretty { pretty, shown } => (style.pretty == *pretty, shown),
            _ => return None,
        };
        is_asked.then_some(inside)
    }
}
