//! Reads the arguments of a `print fmt`: expressions in C.
//!
//! Decides which of C is understood: numbers, `REC->field`, casts to integers, the operators without an
//! effect, and the kernel's print functions that [`Expression`] names. Whatever else there is gives `None`,
//! and the event is then printed field by field. Depth and length of what is read are bounded.
//!
//! Source: ISO C, sections 6.4 (tokens) and 6.5 (expressions); Linux 6.18
//! include/trace/stages/stage3_trace_output.h (the print functions).

use super::expression::{CBinary, Expression, NamedNumber};
use super::field::{CNumber, EventField};

/// Expressions are nested so deep at most.
const DEPTH_MAX: usize = 64;
/// Operators of one format at most: each makes an expression deeper, also where it is not nested.
const OPERATORS_MAX: usize = 1024;
/// What kernels leave in a format as a name instead of a number (include/linux/hrtimer.h, since 4.16).
const HRTIMER_MODES: [(&str, u64); 5] = [("ABS", 0), ("REL", 1), ("PINNED", 2), ("SOFT", 4), ("HARD", 8)];

/// A piece of C.
#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Number(CNumber),
    Name(&'a str),
    Text(Vec<u8>),
    Sign(&'a str),
}

/// Signs of C, the longer ones first.
const SIGNS: [&str; 31] = [
    "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "&", "^", "|",
    "~", "!", "?", ":", ",", "(", ")", "{", "}", "[", "]", ".",
];

/// Reads expressions one after the other.
#[derive(Debug)]
pub(crate) struct ExpressionParser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    fields: &'a [EventField],
    depth: usize,
    operators: usize,
}

impl<'a> ExpressionParser<'a> {
    /// A parser of `text`, which uses `fields`; `None` when it is not made of pieces of C.
    pub(crate) fn new(text: &'a str, fields: &'a [EventField]) -> Option<Self> {
        let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            let (token, after) = token(rest)?;
            match (tokens.last_mut(), token) {
                // Texts that follow each other are one.
                (Some(Token::Text(text)), Token::Text(more)) => text.extend_from_slice(&more),
                (_, token) => tokens.push(token),
            }
            rest = after.trim_start();
        }
        Some(Self { tokens, at: 0, fields, depth: 0, operators: 0 })
    }

    /// How many operators were read.
    pub(crate) fn operators(&self) -> usize {
        self.operators
    }

    /// The text in quotes that comes next.
    pub(crate) fn literal(&mut self) -> Option<Vec<u8>> {
        match self.next()? {
            Token::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Takes `sign` if it comes next.
    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    /// The expression that comes next, up to a comma, a closing bracket or the end.
    pub(crate) fn expression(&mut self) -> Option<Expression> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let first = self.deeper(Self::expression)?;
        self.expect(":")?;
        let second = self.deeper(Self::expression)?;
        Some(Expression::Choice(Box::new([condition, first, second])))
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at)?.clone();
        self.at += 1;
        Some(token)
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.take(sign).then_some(())
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Operands joined by operators that bind at least so much.
    fn binary(&mut self, binding_min: u8) -> Option<Expression> {
        let mut left = self.unary()?;
        while let Some(Token::Sign(sign)) = self.tokens.get(self.at)
            && let Some((operator, binding)) = operator(sign)
            && binding >= binding_min
        {
            (self.at, self.operators) = (self.at + 1, self.operators + 1);
            if self.operators > OPERATORS_MAX {
                return None;
            }
            let right = self.deeper(|parser| parser.binary(binding + 1))?;
            left = Expression::Binary(operator, Box::new([left, right]));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expression> {
        self.deeper(|parser| {
            if parser.take("-") {
                return Some(Expression::Negative(Box::new(parser.unary()?)));
            }
            if parser.take("~") {
                return Some(Expression::Complement(Box::new(parser.unary()?)));
            }
            if parser.take("!") {
                return Some(Expression::Not(Box::new(parser.unary()?)));
            }
            if parser.take("+") {
                return parser.unary();
            }
            parser.operand()
        })
    }

    fn operand(&mut self) -> Option<Expression> {
        match self.next()? {
            Token::Number(number) => Some(Expression::Constant(number)),
            Token::Text(text) => Some(Expression::Literal(text.into())),
            Token::Name("REC") => {
                self.expect("->")?;
                let Token::Name(name) = self.next()? else { return None };
                Some(Expression::Field(self.field(name)?))
            }
            Token::Name("sizeof") => self.size_of(),
            Token::Name(name) if self.take("(") => self.call(name),
            Token::Name(name) => Some(Expression::Constant(CNumber::unsigned(hrtimer_mode(name)?))),
            Token::Sign("(") => self.in_brackets(),
            Token::Sign(_) => None,
        }
    }

    /// A cast and its operand, or an expression, behind an opening bracket.
    fn in_brackets(&mut self) -> Option<Expression> {
        let begun = self.at;
        if let Some((bytes, is_signed)) = self.type_name()
            && self.take(")")
        {
            let of = Box::new(self.unary()?);
            return Some(Expression::Cast { bytes, is_signed, of });
        }
        self.at = begun;
        let inner = self.expression()?;
        self.expect(")")?;
        Some(inner)
    }

    /// The size and the sign of the type that comes next; a pointer's is that of an `unsigned long`.
    fn type_name(&mut self) -> Option<(usize, bool)> {
        let mut words = Vec::new();
        while let Some(Token::Name(word)) = self.tokens.get(self.at) {
            words.push(*word);
            self.at += 1;
        }
        let mut is_pointer = false;
        while self.take("*") {
            is_pointer = true;
        }
        if is_pointer {
            return (!words.is_empty()).then_some((8, false));
        }
        integer_type(&words)
    }

    fn size_of(&mut self) -> Option<Expression> {
        self.expect("(")?;
        let (bytes, _) = self.type_name()?;
        self.expect(")")?;
        Some(Expression::Constant(CNumber::unsigned(bytes as u64)))
    }

    /// A call of one of the kernel's print functions, behind its opening bracket.
    fn call(&mut self, name: &str) -> Option<Expression> {
        let called = match name {
            "__print_flags" | "__print_flags_u64" => {
                let of = Box::new(self.expression()?);
                self.expect(",")?;
                let separator = self.literal()?.into();
                Expression::Flags { of, separator, names: self.named_numbers()? }
            }
            "__print_symbolic" | "__print_symbolic64" => {
                let of = Box::new(self.expression()?);
                Expression::Symbol { of, names: self.named_numbers()? }
            }
            "__get_str" | "__get_rel_str" | "__get_dynamic_array" | "__get_rel_dynamic_array" => {
                Expression::Field(self.named_field()?)
            }
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                Expression::Length(self.named_field()?)
            }
            "__get_cpumask" | "__get_rel_cpumask" | "__get_bitmask" | "__get_rel_bitmask" => {
                Expression::Mask(self.named_field()?)
            }
            "__print_ns_to_secs" | "__print_ns_without_secs" => {
                let second = Expression::Constant(CNumber::unsigned(1_000_000_000));
                let is_rest = name == "__print_ns_without_secs";
                let operator = if is_rest { CBinary::Remainder } else { CBinary::Divide };
                Expression::Binary(operator, Box::new([self.expression()?, second]))
            }
            "__print_hex" | "__print_hex_str" => {
                let Expression::Field(of) = self.expression()? else { return None };
                self.expect(",")?;
                let count = Box::new(self.expression()?);
                Expression::Hex { of, count, is_spaced: name == "__print_hex" }
            }
            _ => return None,
        };
        self.expect(")")?;
        Some(called)
    }

    /// `, { number, "name" }` until the bracket closes.
    fn named_numbers(&mut self) -> Option<Box<[NamedNumber]>> {
        let mut names = Vec::new();
        while self.take(",") {
            self.expect("{")?;
            let number = self.expression()?.number(&[])?.bits;
            self.expect(",")?;
            names.push(NamedNumber { number, name: self.literal()?.into() });
            self.expect("}")?;
        }
        Some(names.into())
    }

    fn named_field(&mut self) -> Option<EventField> {
        let Token::Name(name) = self.next()? else { return None };
        self.field(name)
    }

    fn field(&self, name: &str) -> Option<EventField> {
        self.fields.iter().find(|field| *field.name == *name).cloned()
    }
}

/// An operator and how much it binds.
fn operator(sign: &str) -> Option<(CBinary, u8)> {
    Some(match sign {
        "*" => (CBinary::Multiply, 9),
        "/" => (CBinary::Divide, 9),
        "%" => (CBinary::Remainder, 9),
        "+" => (CBinary::Add, 8),
        "-" => (CBinary::Subtract, 8),
        "<<" => (CBinary::ShiftLeft, 7),
        ">>" => (CBinary::ShiftRight, 7),
        "<" => (CBinary::Less, 6),
        "<=" => (CBinary::LessOrEqual, 6),
        ">" => (CBinary::Greater, 6),
        ">=" => (CBinary::GreaterOrEqual, 6),
        "==" => (CBinary::Equal, 5),
        "!=" => (CBinary::NotEqual, 5),
        "&" => (CBinary::And, 4),
        "^" => (CBinary::ExclusiveOr, 3),
        "|" => (CBinary::Or, 2),
        "&&" => (CBinary::BothTrue, 1),
        "||" => (CBinary::EitherTrue, 0),
        _ => return None,
    })
}

/// The size and the sign of a type of integers, on the machines that tracepoints are read from: 64 bits.
fn integer_type(words: &[&str]) -> Option<(usize, bool)> {
    let has = |word: &str| words.contains(&word);
    if let [name] = words {
        let sized = match name.trim_start_matches('_') {
            "u8" | "uint8_t" | "bool" => Some((1, false)),
            "u16" | "uint16_t" => Some((2, false)),
            "u32" | "uint32_t" | "gfp_t" | "umode_t" | "dev_t" => Some((4, false)),
            "u64" | "uint64_t" | "size_t" | "sector_t" => Some((8, false)),
            "s8" => Some((1, true)),
            "s16" => Some((2, true)),
            "s32" | "pid_t" => Some((4, true)),
            "s64" | "ssize_t" | "loff_t" => Some((8, true)),
            _ => None,
        };
        if sized.is_some() {
            return sized;
        }
    }
    let known = ["unsigned", "signed", "const", "char", "short", "int", "long"];
    if words.is_empty() || words.iter().any(|word| !known.contains(word)) {
        return None;
    }
    let bytes = match () {
        () if has("char") => 1,
        () if has("short") => 2,
        () if has("long") => 8,
        () => 4,
    };
    Some((bytes, !has("unsigned")))
}

/// `HRTIMER_MODE_ABS_PINNED` and the like: their parts are bits.
fn hrtimer_mode(name: &str) -> Option<u64> {
    name.strip_prefix("HRTIMER_MODE_")?.split('_').try_fold(0, |mode, part| {
        let (_, bit) = HRTIMER_MODES.iter().find(|(name, _)| *name == part)?;
        Some(mode | bit)
    })
}

/// The first piece of `text`, which is not empty, and what follows.
fn token(text: &str) -> Option<(Token<'_>, &str)> {
    let first = text.bytes().next()?;
    if first == b'"' {
        return quoted(&text[1..]);
    }
    if first.is_ascii_digit() {
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
        return Some((Token::Number(number(&text[..end])?), &text[end..]));
    }
    if first == b'_' || first.is_ascii_alphabetic() {
        let end = text.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
        let end = end.unwrap_or(text.len());
        return Some((Token::Name(&text[..end]), &text[end..]));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let letter = rest.bytes().next().filter(u8::is_ascii_graphic)?;
        let rest = rest.get(1..)?.strip_prefix('\'')?;
        return Some((Token::Number(CNumber::signed(i64::from(letter))), rest));
    }
    let sign = SIGNS.into_iter().find(|sign| text.starts_with(sign))?;
    Some((Token::Sign(sign), &text[sign.len()..]))
}

/// A number with what C allows behind it; one that says `U`, or does not fit, is unsigned.
fn number(text: &str) -> Option<CNumber> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = &text[digits.len()..];
    let bits = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    let is_signed = !suffix.contains(['u', 'U']) && bits <= i64::MAX as u64;
    Some(CNumber { bits, is_signed })
}

/// A text behind its opening quote, and what follows its closing one.
fn quoted(text: &str) -> Option<(Token<'_>, &str)> {
    let (mut read, mut letters) = (Vec::new(), text.char_indices());
    loop {
        let (at, letter) = letters.next()?;
        match letter {
            '"' => return Some((Token::Text(read), &text[at + 1..])),
            '\\' => read.push(match letters.next()?.1 {
                'n' => b'\n',
                't' => b'\t',
                escaped @ ('\\' | '"' | '\'') => escaped as u8,
                _ => return None,
            }),
            _ => read.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, ExpressionParser, OPERATORS_MAX};
    use crate::binary::expression::Expression;
    use crate::binary::field::{CNumber, EventField, FieldShape};

    fn field(name: &str, offset: usize, size: usize, is_signed: bool, shape: FieldShape) -> EventField {
        EventField { name: name.into(), offset, size, is_signed, is_text: false, shape }
    }

    /// Four bytes of flags, four of a signed number, a word that refers to the five bytes at 12.
    fn fields() -> [EventField; 3] {
        [
            field("flags", 0, 4, false, FieldShape::Number),
            field("state", 4, 4, true, FieldShape::Number),
            field("name", 8, 4, false, FieldShape::Located),
        ]
    }

    const EVENT: &[u8] = b"\x08\0\x3c\0\xfe\xff\xff\xff\x0c\0\x05\0abcd\0";

    fn parsed(text: &str) -> Option<Expression> {
        let fields = fields();
        let mut parser = ExpressionParser::new(text, &fields)?;
        let expression = parser.expression()?;
        parser.tokens.get(parser.at).is_none().then_some(expression)
    }

    fn number(text: &str) -> Option<i64> {
        Some(parsed(text)?.number(EVENT)?.bits as i64)
    }

    fn written(text: &str) -> Option<String> {
        let mut out = Vec::new();
        parsed(text)?.write_text(EVENT, &mut out)?;
        String::from_utf8(out).ok()
    }

    /// Goal: operators bind as in C. Method: each level against the next, and both orders of one level.
    #[test]
    fn operators_bind_as_in_c() {
        for (text, value) in [
            ("2 + 3 * 4", 14),
            ("2 * 3 + 4", 10),
            ("10 - 3 - 2", 5),
            ("24 / 4 / 2", 3),
            ("7 % 4 * 2", 6),
            ("1 << 2 + 1", 8),
            ("64 >> 1 << 2", 128),
            ("1 < 2 << 1", 1),
            ("3 > 2 == 1", 1),
            ("4 <= 4 != 1", 0),
            ("5 >= 6 == 0", 1),
            ("6 & 3 == 2", 0),
            ("6 ^ 3 & 1", 7),
            ("4 | 1 ^ 1", 4),
            ("0 && 1 | 1", 0),
            ("1 || 0 && 0", 1),
            ("0 || 0 ? 1 : 0 ? 2 : 3", 3),
            ("-2 + ~0 + !5 + !0 + +1", -1),
            ("(2 + 3) * 4", 20),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
    }

    /// Goal: numbers of every form, and what is none. Method: three bases, suffixes, a letter.
    #[test]
    fn numbers_have_several_forms() {
        for (text, value) in [
            ("0x1fUL", Some(31)),
            ("0X1F", Some(31)),
            ("017", Some(15)),
            ("0", Some(0)),
            ("12ull", Some(12)),
            ("'A'", Some(65)),
            ("18446744073709551615", Some(-1)),
            ("18446744073709551616", None),
            ("0xfg", None),
            ("'", None),
            ("1 $ 2", None),
            ("sizeof(long) + sizeof(u16) + sizeof(struct x *)", Some(18)),
            ("sizeof(struct x)", None),
            ("HRTIMER_MODE_REL_PINNED_HARD", Some(11)),
            ("HRTIMER_MODE_ODD", None),
            ("SOME_NAME", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        // 2^63 is unsigned, so that it is the larger one.
        assert_eq!(number("0x8000000000000000 > 1"), Some(1));
        assert_eq!(number("-1 > 1"), Some(0));
        assert_eq!(number("-1 > 1U"), Some(1));
    }

    /// Goal: fields, casts and what is signed. Method: those of an event, -2 among them.
    #[test]
    fn fields_and_casts_have_their_sizes() {
        for (text, value) in [
            ("REC->flags", Some(0x3c_0008)),
            ("REC->flags >> 18", Some(15)),
            ("REC->state", Some(-2)),
            ("(unsigned int)REC->state", Some(0xffff_fffe)),
            ("(u8)REC->state", Some(0xfe)),
            ("(s8)(u8)REC->state", Some(-2)),
            ("(unsigned long long)REC->state > 5", Some(1)),
            ("(long)REC->state > 5", Some(0)),
            ("REC->state >> 1", Some(-1)),
            ("REC->state / 2", Some(-1)),
            ("REC->state % 2", Some(0)),
            ("(unsigned char)300", Some(44)),
            ("(short)0x18000", Some(-0x8000)),
            ("(void *)REC->flags", Some(0x3c_0008)),
            ("(const unsigned int)1", Some(1)),
            ("1 / (REC->flags - REC->flags)", None),
            ("1 % 0", None),
            ("REC->none", None),
            ("REC.flags", None),
            ("(struct x)REC->flags", None),
            ("__get_dynamic_array_len(name)", Some(5)),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        assert_eq!(parsed("REC->state").and_then(|field| field.number(&EVENT[..7])), None, "it is cut");
    }

    /// Goal: what is chosen alone is worth something. Method: what is not chosen divides by zero.
    #[test]
    fn what_is_not_chosen_is_not_asked() {
        assert_eq!(number("1 ? 2 : 1 / 0"), Some(2));
        assert_eq!(number("0 && 1 / 0"), Some(0));
        assert_eq!(number("3 || 1 / 0"), Some(1));
        assert_eq!(number("1 && 7"), Some(1));
        assert_eq!(number("0 || 1 / 0"), None);
    }

    /// Goal: texts as the kernel prints them. Method: its print functions, each with what is known and what
    /// is not.
    #[test]
    fn texts_are_the_kernels() {
        let flags = r#"__print_flags(REC->flags & X, "|", { 0x40000, "M" }, { 0x80000, "D" }, { 8, "I" })"#;
        for (text, expected) in [
            (flags.replace("REC->flags & X", "REC->flags"), Some("M|D|I|0x300000")),
            (flags.replace("REC->flags & X", "0"), Some("")),
            (flags.replace("REC->flags & X", "0x10"), Some("0x10")),
            (flags.replace("REC->flags & X", "0x80000"), Some("D")),
            (r#"__print_symbolic(1 + 1, { 1, "one" }, { (1 << 1), "two" })"#.into(), Some("two")),
            (r#"__print_symbolic(31, { 1, "one" })"#.into(), Some("0x1f")),
            (r#"REC->state ? "a" "b" : "c""#.into(), Some("ab")),
            (r#""\"\\\n\t'""#.into(), Some("\"\\\n\t'")),
            ("__get_str(name)".into(), Some("abcd")),
            ("__get_bitmask(name)".into(), Some("00000000,64636261")),
            ("__print_hex(__get_str(name), 3)".into(), Some("61 62 63")),
            ("__print_hex_str(__get_str(name), 3)".into(), Some("616263")),
            ("__print_hex(__get_str(name), 6)".into(), None),
            ("__unknown(1)".into(), None),
            (r#""open"#.into(), None),
            (r#""\x41""#.into(), None),
            ("1".into(), None),
        ] {
            assert_eq!(written(&text).as_deref(), expected, "{text}");
        }
    }

    /// Goal: no format makes us recurse without bounds. Method: brackets and operators up to the limits, and
    /// beyond.
    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!((number(&nested(DEPTH_MAX - 1)), number(&nested(DEPTH_MAX))), (Some(1), None));
        let joined = |operators: usize| format!("1{}", "+1".repeat(operators));
        assert_eq!(number(&joined(OPERATORS_MAX)), Some(OPERATORS_MAX as i64 + 1));
        assert_eq!(number(&joined(OPERATORS_MAX + 1)), None);
        assert_eq!(number(&"-".repeat(100_000)), None);
        assert_eq!(number(&"1?".repeat(100_000)), None);
        assert_eq!(parsed("1"), Some(Expression::Constant(CNumber::signed(1))));
    }
}
