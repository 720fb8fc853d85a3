//! The packets of a Perfetto trace: tracks, the events on them, and the names they share.
//!
//! Seven tracks per CPU below a track `CPU N`; a track is described when its first event is
//! written. Invariants: on all tracks but [`Track::Causes`] time stamps never go back (one that
//! would is moved up to the last), every event's track and names are described earlier in the file,
//! a flow begins once, earlier in the file than it ends, and at most [`NAMES_MAX`] names are
//! remembered (further ones are written out each time).
//!
//! A cause is written when its effect begins, with its own time, which is earlier: its track has
//! instants alone, in the order of their effects. Readers sort packets by time stamp.
//!
//! No packet says which clock it uses. That means the trace's own clock, which every reader
//! accepts; a named one would need a `ClockSnapshot` that ties it to it, and a recording has none.
//! Not here: which events begin and end what (`writer.rs`).
//!
//! Source: the schema of the PyPI package `perfetto`, `perfetto_trace_pb2`; each field number
//! below stands with its message and name.

use super::protobuf::Message;
use quietcore_core::{CpuId, Nanos};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

const NAMES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 96;
const BUFFER_BYTES: usize = 64 * 1024;
/// Any number but 0: the file is one sequence of packets.
const SEQUENCE: u64 = 1;
/// A CPU and its tracks have so many numbers at most.
const CPU_UUIDS: u64 = 16;
/// Above the 17 bits that tell our tracks apart, so that they stay ours when traces are merged.
const UUID_BASE: u64 = 0x7175_6965_7463 << 17;
/// The number of the first flow; those are counted apart from tracks.
const FLOW_BASE: u64 = UUID_BASE;

mod field {
    pub(super) const TRACE_PACKET: u32 = 1; // Trace.packet
    pub(super) const TIMESTAMP: u32 = 8; // TracePacket.timestamp
    pub(super) const SEQUENCE_ID: u32 = 10; // TracePacket.trusted_packet_sequence_id
    pub(super) const TRACK_EVENT: u32 = 11; // TracePacket.track_event
    pub(super) const INTERNED_DATA: u32 = 12; // TracePacket.interned_data
    pub(super) const SEQUENCE_FLAGS: u32 = 13; // TracePacket.sequence_flags
    pub(super) const TRACK_DESCRIPTOR: u32 = 60; // TracePacket.track_descriptor

    pub(super) const TRACK_UUID: u32 = 1; // TrackDescriptor.uuid
    pub(super) const TRACK_NAME: u32 = 2; // TrackDescriptor.name
    pub(super) const TRACK_PARENT: u32 = 5; // TrackDescriptor.parent_uuid
    pub(super) const CHILD_ORDERING: u32 = 11; // TrackDescriptor.child_ordering
    pub(super) const SIBLING_RANK: u32 = 12; // TrackDescriptor.sibling_order_rank

    pub(super) const CATEGORY_IIDS: u32 = 3; // TrackEvent.category_iids
    pub(super) const DEBUG_ANNOTATIONS: u32 = 4; // TrackEvent.debug_annotations
    pub(super) const EVENT_TYPE: u32 = 9; // TrackEvent.type
    pub(super) const NAME_IID: u32 = 10; // TrackEvent.name_iid
    pub(super) const EVENT_TRACK: u32 = 11; // TrackEvent.track_uuid
    pub(super) const EVENT_NAME: u32 = 23; // TrackEvent.name
    pub(super) const FLOW_IDS: u32 = 47; // TrackEvent.flow_ids, fixed64
    pub(super) const TERMINATING_FLOW_IDS: u32 = 48; // TrackEvent.terminating_flow_ids, fixed64

    pub(super) const ANNOTATION_NAME_IID: u32 = 1; // DebugAnnotation.name_iid
    pub(super) const ANNOTATION_UINT: u32 = 3; // DebugAnnotation.uint_value

    pub(super) const CATEGORIES: u32 = 1; // InternedData.event_categories
    pub(super) const EVENT_NAMES: u32 = 2; // InternedData.event_names
    pub(super) const ANNOTATION_NAMES: u32 = 3; // InternedData.debug_annotation_names
    pub(super) const IID: u32 = 1; // EventCategory.iid, EventName.iid, DebugAnnotationName.iid
    pub(super) const NAME: u32 = 2; // EventCategory.name, EventName.name, DebugAnnotationName.name
}

/// TracePacket.SequenceFlags: names interned before this packet are void, names count from here.
const STATE_CLEARED: u64 = 1;
/// TracePacket.SequenceFlags: this packet uses interned names.
const NEEDS_STATE: u64 = 2;
/// TrackDescriptor.ChildTracksOrdering.EXPLICIT: children are shown by their rank.
const EXPLICIT: u64 = 3;

/// Which of a CPU's tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    /// Wheel timers' callbacks.
    Timers,
    /// High-resolution timers' callbacks.
    Hrtimers,
    /// Softirq handlers.
    Softirqs,
    /// Handlers of devices' interrupts, and the processor's own interrupts.
    Interrupts,
    /// Work items.
    Work,
    /// Expiries that ran on another CPU than their base's.
    Pulls,
    /// What this CPU started that runs on another one.
    Causes,
}

const TRACKS: [&str; 7] = ["timers", "hrtimers", "softirqs", "interrupts", "work", "pulls", "causes"];
const ANNOTATIONS: [&str; 3] = ["armed_cpu", "base_cpu", "line"];

/// TrackEvent.Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begin = 1,
    End = 2,
    Instant = 3,
}

/// A name on a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// One of the remembered ones.
    Interned(usize),
    /// One for which there was no more room.
    Inline(Arc<str>),
}

/// What an event says besides when and where.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) label: Label,
    /// The line of the input that shows it.
    pub(super) line: u64,
    pub(super) armed_cpu: Option<CpuId>,
    pub(super) base_cpu: Option<CpuId>,
    /// The arrow that begins here, on [`Track::Causes`], or that ends here.
    pub(super) flow: Option<FlowId>,
}

/// An arrow from a cause to its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowId(u64);

/// A time on a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackTime {
    pub(super) cpu: CpuId,
    pub(super) track: Track,
    pub(super) at: Nanos,
}

/// The names in use; a name's position is its `iid` minus one.
#[derive(Debug, Default)]
struct EventNames {
    numbers: HashMap<Box<str>, usize>,
    texts: Vec<Box<str>>,
    /// Whether the file holds it already.
    written: Vec<bool>,
}

/// Per CPU and track: the last time stamp, once the track is described.
type LastTimes = [Option<Nanos>; TRACKS.len()];

/// See the module.
#[derive(Debug)]
pub(super) struct TrackPackets<W> {
    out: W,
    buffer: Message,
    names: EventNames,
    last_times: Vec<LastTimes>,
    flows: u64,
    has_begun: bool,
}

impl<W: Write> TrackPackets<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            buffer: Message::default(),
            names: EventNames::default(),
            last_times: Vec::new(),
            flows: 0,
            has_begun: false,
        }
    }

    /// `name` as a label: at most 96 bytes of it, bytes that are no UTF-8 replaced.
    pub(super) fn label(&mut self, name: &[u8]) -> Label {
        self.names.label(&readable(name))
    }

    /// The label of an instant on [`Track::Pulls`].
    pub(super) fn pull_label(&mut self, name: &[u8], base: CpuId) -> Label {
        self.names.label(&format!("pull {} from CPU {base}", readable(name)))
    }

    /// The label of an instant on [`Track::Causes`].
    pub(super) fn cause_label(&mut self, verb: &str, name: &[u8]) -> Label {
        self.names.label(&format!("{verb} {}", readable(name)))
    }

    /// Writes what started something on another CPU, with an arrow that is to end there; `line` shows the
    /// start.
    pub(super) fn cause(&mut self, cpu: CpuId, at: Nanos, line: u64, label: Label) -> io::Result<FlowId> {
        let flow = FlowId(FLOW_BASE.wrapping_add(self.flows));
        self.flows += 1;
        let content = Content { flow: Some(flow), ..Content::new(label, line) };
        self.event(TrackTime { cpu, track: Track::Causes, at }, Phase::Instant, Some(&content))?;
        Ok(flow)
    }

    /// Writes an event; [`Phase::End`] needs no content, the others do.
    pub(super) fn event(
        &mut self,
        place: TrackTime,
        phase: Phase,
        content: Option<&Content>,
    ) -> io::Result<()> {
        self.begin();
        let at = self.described(place);
        let new_name = content.and_then(|content| self.names.first_use(&content.label));
        self.buffer.nested(field::TRACE_PACKET, |packet| {
            packet.uint(field::TIMESTAMP, at.as_u64());
            packet.uint(field::SEQUENCE_ID, SEQUENCE);
            packet.uint(field::SEQUENCE_FLAGS, NEEDS_STATE);
            if let Some((number, text)) = new_name {
                packet.nested(field::INTERNED_DATA, |data| interned(data, field::EVENT_NAMES, number, text));
            }
            packet.nested(field::TRACK_EVENT, |event| {
                event.uint(field::EVENT_TYPE, phase as u64);
                event.uint(field::EVENT_TRACK, track_uuid(place.cpu, place.track));
                if let Some(content) = content {
                    event.uint(field::CATEGORY_IIDS, place.track as u64 + 1);
                    content.write(event);
                    if let Some(FlowId(flow)) = content.flow {
                        let begins = place.track == Track::Causes;
                        event.fixed(if begins { field::FLOW_IDS } else { field::TERMINATING_FLOW_IDS }, flow);
                    }
                }
            });
        });
        self.write_out(BUFFER_BYTES)
    }

    /// Writes what is left and gives the output back.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.begin();
        self.write_out(0)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// The first packet: the fixed names.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        self.buffer.nested(field::TRACE_PACKET, |packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE);
            packet.uint(field::SEQUENCE_FLAGS, STATE_CLEARED);
            packet.nested(field::INTERNED_DATA, |data| {
                for (number, name) in TRACKS.iter().enumerate() {
                    interned(data, field::CATEGORIES, number, name);
                }
                for (number, name) in ANNOTATIONS.iter().enumerate() {
                    interned(data, field::ANNOTATION_NAMES, number, name);
                }
            });
        });
    }

    /// Describes the track if it is new; the time at which its next event may stand.
    fn described(&mut self, TrackTime { cpu, track, at }: TrackTime) -> Nanos {
        if self.last_times.len() <= cpu.index() {
            self.last_times.resize(cpu.index() + 1, LastTimes::default());
        }
        let times = self.last_times[cpu.index()];
        let root = cpu_uuid(cpu);
        if times.iter().all(Option::is_none) {
            self.descriptor(&format!("CPU {cpu}"), |track| {
                track.uint(field::TRACK_UUID, root);
                track.uint(field::CHILD_ORDERING, EXPLICIT);
                track.uint(field::SIBLING_RANK, cpu.index() as u64);
            });
        }
        if times[track as usize].is_none() {
            self.descriptor(TRACKS[track as usize], |descriptor| {
                descriptor.uint(field::TRACK_UUID, track_uuid(cpu, track));
                descriptor.uint(field::TRACK_PARENT, root);
                descriptor.uint(field::SIBLING_RANK, track as u64);
            });
        }
        let last = times[track as usize].filter(|_| track != Track::Causes);
        let at = last.map_or(at, |last| last.max(at));
        self.last_times[cpu.index()][track as usize] = Some(at);
        at
    }

    fn descriptor(&mut self, name: &str, fill: impl FnOnce(&mut Message)) {
        self.buffer.nested(field::TRACE_PACKET, |packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE);
            packet.nested(field::TRACK_DESCRIPTOR, |track| {
                track.text(field::TRACK_NAME, name);
                fill(track);
            });
        });
    }

    /// Hands the buffer on when it holds more than `bytes_max`.
    fn write_out(&mut self, bytes_max: usize) -> io::Result<()> {
        if self.buffer.bytes().len() > bytes_max {
            self.out.write_all(self.buffer.bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl Content {
    pub(super) fn new(label: Label, line: u64) -> Self {
        Self { label, line, armed_cpu: None, base_cpu: None, flow: None }
    }

    fn write(&self, event: &mut Message) {
        match &self.label {
            Label::Interned(number) => event.uint(field::NAME_IID, *number as u64 + 1),
            Label::Inline(text) => event.text(field::EVENT_NAME, text),
        }
        let cpu = |cpu: Option<CpuId>| cpu.map(|cpu| cpu.index() as u64);
        let values = [cpu(self.armed_cpu), cpu(self.base_cpu), Some(self.line)];
        for (number, value) in values.into_iter().enumerate() {
            let Some(value) = value else { continue };
            event.nested(field::DEBUG_ANNOTATIONS, |note| {
                note.uint(field::ANNOTATION_NAME_IID, number as u64 + 1);
                note.uint(field::ANNOTATION_UINT, value);
            });
        }
    }
}

impl EventNames {
    fn label(&mut self, text: &str) -> Label {
        if let Some(&number) = self.numbers.get(text) {
            return Label::Interned(number);
        }
        if self.texts.len() >= NAMES_MAX {
            return Label::Inline(text.into());
        }
        let number = self.texts.len();
        self.numbers.insert(text.into(), number);
        self.texts.push(text.into());
        self.written.push(false);
        Label::Interned(number)
    }

    /// The name behind `label` if the file does not hold it yet; the caller writes it.
    fn first_use(&mut self, label: &Label) -> Option<(usize, &str)> {
        let &Label::Interned(number) = label else { return None };
        let is_written = std::mem::replace(&mut self.written[number], true);
        (!is_written).then(|| (number, &*self.texts[number]))
    }
}

impl Label {
    /// A number that only this one has, if it is remembered.
    pub(super) fn number(&self) -> Option<usize> {
        match self {
            Self::Interned(number) => Some(*number),
            Self::Inline(_) => None,
        }
    }
}

/// `name` for a person: cut, readable, never empty.
fn readable(name: &[u8]) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("(no name)");
    }
    String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)])
}

fn cpu_uuid(cpu: CpuId) -> u64 {
    UUID_BASE + (cpu.index() as u64) * CPU_UUIDS
}

fn track_uuid(cpu: CpuId, track: Track) -> u64 {
    cpu_uuid(cpu) + 1 + track as u64
}

/// An entry of InternedData: EventCategory, EventName and DebugAnnotationName look alike.
fn interned(data: &mut Message, kind: u32, number: usize, name: &str) {
    data.nested(kind, |entry| {
        entry.uint(field::IID, number as u64 + 1);
        entry.text(field::NAME, name);
    });
}

#[cfg(test)]
mod tests {
    use super::{EventNames, Label, NAMES_MAX, TRACKS, Track, cpu_uuid, track_uuid};
    use quietcore_core::CpuId;
    use std::collections::BTreeSet;

    /// Goal: names are bounded, early ones stay, late ones are not lost, each is written once.
    #[test]
    fn the_names_are_bounded() {
        let mut names = EventNames::default();
        for number in 0..2 * NAMES_MAX {
            names.label(&format!("f{number}"));
        }
        assert_eq!(names.texts.len(), NAMES_MAX);
        let early = names.label("f7");
        assert_eq!(early, Label::Interned(7));
        assert_eq!(names.first_use(&early), Some((7, "f7")));
        assert_eq!(names.first_use(&early), None);
        let late = names.label("f9999");
        assert_eq!(late, Label::Inline("f9999".into()));
        assert_eq!(names.first_use(&late), None);
    }

    /// Goal: no two tracks share a number. Method: all tracks of all possible CPUs.
    #[test]
    fn all_tracks_differ() {
        let tracks = [
            Track::Timers,
            Track::Hrtimers,
            Track::Softirqs,
            Track::Interrupts,
            Track::Work,
            Track::Pulls,
            Track::Causes,
        ];
        assert_eq!(tracks.len(), TRACKS.len());
        let mut uuids = BTreeSet::new();
        for cpu in (0..8192).map(|cpu| CpuId::new(cpu).unwrap()) {
            for track in tracks {
                assert!(uuids.insert(track_uuid(cpu, track)), "CPU {cpu}, {track:?}");
            }
            assert!(uuids.insert(cpu_uuid(cpu)), "CPU {cpu} itself");
        }
    }
}
