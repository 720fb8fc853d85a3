//! A reader of the wire format of Perfetto traces that shares no code with the writer.
//!
//! It panics when anything is out of order: a track before its description, an end without a beginning, a
//! track on which time goes back, but for causes, and an arrow that does not go from one cause to one effect.

use std::collections::{BTreeMap, BTreeSet};

/// One event of a Perfetto trace, its track and names looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) track: String,
    pub(crate) at: u64,
    /// `B` begins a slice, `E` ends it, `i` is an instant.
    pub(crate) kind: char,
    pub(crate) name: String,
    pub(crate) notes: BTreeMap<String, u64>,
    /// The other end of the arrow that ends here: where, when and what.
    pub(crate) cause: Option<String>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("bytes where a number belongs"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("a number where bytes belong"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("strings are UTF-8")
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("the message ends inside a number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

/// The fields of a message, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(value.try_into().expect("eight bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn one<'a, 'b>(fields: &'b [(u64, Value<'a>)], number: u64) -> Option<&'b Value<'a>> {
    let mut found = fields.iter().filter(|field| field.0 == number).map(|field| &field.1);
    let first = found.next();
    assert!(found.next().is_none(), "field {number} twice");
    first
}

/// What was learned from the packets so far.
#[derive(Default)]
struct Decoder {
    tracks: BTreeMap<u64, String>,
    /// By kind (1 category, 2 event, 3 annotation) and iid.
    names: BTreeMap<(u64, u64), String>,
    open: BTreeMap<String, Vec<String>>,
    last: BTreeMap<String, u64>,
    /// When and what began an arrow that has not ended.
    arrows: BTreeMap<u64, (u64, String)>,
    arrows_seen: BTreeSet<u64>,
    shown: Vec<Shown>,
}

impl Decoder {
    fn packet(&mut self, packet: &[(u64, Value<'_>)]) {
        assert!(one(packet, 10).expect("a sequence id").number() > 0);
        for (kind, entry) in one(packet, 12).iter().flat_map(|data| fields(data.bytes())) {
            let entry = fields(entry.bytes());
            let iid = one(&entry, 1).expect("an iid").number();
            let name = one(&entry, 2).expect("a name").text();
            assert_eq!(self.names.insert((kind, iid), name), None, "interned twice");
        }
        if let Some(track) = one(packet, 60) {
            let track = fields(track.bytes());
            let name = one(&track, 2).expect("a name").text();
            let parent = one(&track, 5).map(|parent| self.tracks[&parent.number()].clone() + "/");
            let uuid = one(&track, 1).expect("a uuid").number();
            let before = self.tracks.insert(uuid, parent.unwrap_or_default() + &name);
            assert_eq!(before, None, "described twice");
        }
        if let Some(event) = one(packet, 11) {
            let at = one(packet, 8).expect("a timestamp").number();
            self.event(at, &fields(event.bytes()));
        }
    }

    fn event(&mut self, at: u64, event: &[(u64, Value<'_>)]) {
        let uuid = one(event, 11).expect("a track").number();
        let track = self.tracks.get(&uuid).expect("a track described earlier").clone();
        let last = self.last.insert(track.clone(), at).unwrap_or(0);
        assert!(at >= last || track.ends_with("/causes"), "{track}: from {last} back to {at}");
        let interned = one(event, 10).map(|iid| self.names[&(2, iid.number())].clone());
        let mut name = interned.or(one(event, 23).map(Value::text)).unwrap_or_default();
        let open = self.open.entry(track.clone()).or_default();
        let kind = match one(event, 9).expect("a type").number() {
            1 => 'B',
            2 => 'E',
            3 => 'i',
            other => panic!("type {other}"),
        };
        match kind {
            'B' => open.push(name.clone()),
            'E' => name = open.pop().expect("a beginning before the end"),
            _ => {}
        }
        let notes = event.iter().filter(|field| field.0 == 4).map(|note| {
            let note = fields(note.1.bytes());
            let name = self.names[&(3, one(&note, 1).expect("a name").number())].clone();
            (name, one(&note, 3).expect("a value").number())
        });
        let notes = notes.collect();
        let cause = self.arrow(event, at, &format!("{track} {at} {name}"));
        assert_eq!(track.ends_with("/causes"), one(event, 47).is_some(), "{track}: {name}");
        self.shown.push(Shown { track, at, kind, name, notes, cause });
    }

    /// What began the arrow that ends at an event; `here` is the event itself.
    fn arrow(&mut self, event: &[(u64, Value<'_>)], at: u64, here: &str) -> Option<String> {
        if let Some(begun) = one(event, 47).map(Value::number) {
            assert!(self.arrows_seen.insert(begun), "{here}: arrow {begun} begins twice");
            self.arrows.insert(begun, (at, here.to_owned()));
        }
        let ended = one(event, 48)?.number();
        let (since, cause) = self.arrows.remove(&ended).expect("an arrow that has begun");
        assert!(since <= at, "from {cause} back to {here}");
        assert_ne!(cause.split('/').next(), here.split('/').next(), "an arrow within a CPU");
        Some(cause)
    }
}

/// All events of a trace file, in its order; panics when anything is out of order.
pub(crate) fn decode(file: &[u8]) -> Vec<Shown> {
    let mut decoder = Decoder::default();
    for (index, (number, packet)) in fields(file).into_iter().enumerate() {
        assert_eq!(number, 1, "a Trace holds packets");
        let packet = fields(packet.bytes());
        let flags = one(&packet, 13).map(Value::number);
        assert_eq!(flags == Some(1), index == 0, "the state is cleared by the first packet only");
        decoder.packet(&packet);
    }
    let open: Vec<_> = decoder.open.iter().filter(|(_, open)| !open.is_empty()).collect();
    assert!(open.is_empty(), "never closed: {open:?}");
    assert!(decoder.arrows.is_empty(), "without an effect: {:?}", decoder.arrows);
    decoder.shown
}
