#!/usr/bin/env python3
"""Checks a Perfetto trace, as `quietcore explain --perfetto FILE` writes it, against the published schema.

    perfetto_schema.py FILE

Needs the packages of requirements.txt: the schema is theirs, not ours. What must hold:

- FILE is a `Trace` message, with at least one track event, and no field that the schema does not know;
- a track event has a timestamp, a sequence id, and a track that an earlier packet described;
- a track has a name and, if it names a parent, that track was described too;
- on a track with slices timestamps never go back, every end has its beginning, and no slice is left open;
- a beginning or an instant has a name, inline or interned earlier on its sequence, and not empty;
- a flow begins once, on an instant, and ends once, later in the file and no earlier in time, on another
track.

Prints the counts as JSON and exits 0, or one sentence and exits 1.
"""

import json
import sys

try:
    from google.protobuf import message, unknown_fields
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError as error:
    sys.exit(f"perfetto_schema.py: {error}; install what tests/requirements.txt lists")

EVENT = schema.TrackEvent
STATE_CLEARED = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


class SchemaError(Exception):
    """What the trace does wrong, as one sentence."""


def refuse_unknown_fields(proto, path):
    """Raises for the first field, at any depth, that the schema does not have."""
    for field in unknown_fields.UnknownFieldSet(proto):
        raise SchemaError(f"{path}: field number {field.field_number} is not in the schema")
    for field, value in proto.ListFields():
        if field.message_type is None:
            continue
        below = f"{path}.{field.name}"
        if isinstance(value, message.Message):
            refuse_unknown_fields(value, below)
        elif hasattr(value, "items"):  # a map
            for key, item in value.items():
                if isinstance(item, message.Message):
                    refuse_unknown_fields(item, f"{below}[{key}]")
        else:
            for index, item in enumerate(value):
                refuse_unknown_fields(item, f"{below}[{index}]")


class Track:
    """What is known of one track while the packets go by."""

    def __init__(self, name):
        self.name = name
        self.last = 0
        self.open = 0
        self.has_slices = False
        self.back = ""  # where its time went back, if it did


class Checker:
    """Takes the packets in order; raises `SchemaError` at the first that is wrong."""

    def __init__(self):
        self.tracks = {}  # uuid -> Track
        self.parents = {}  # uuid -> where it was asked for
        self.interned = {}  # (sequence, kind, iid) -> name
        self.cleared = set()  # sequences whose incremental state was begun
        self.flows = {}  # number -> (track, time) of its beginning
        self.ended = set()  # flows that ended
        self.counts = {"packets": 0, "tracks": 0, "slices": 0, "instants": 0, "counters": 0, "flows": 0}

    def packet(self, packet, where):
        """One packet; `where` names it in an error."""
        self.counts["packets"] += 1
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & STATE_CLEARED:
            self.cleared.add(sequence)
            self.interned = {key: name for key, name in self.interned.items() if key[0] != sequence}
        for kind in ("event_names", "debug_annotation_names"):
            for entry in getattr(packet.interned_data, kind):
                if not entry.name:
                    raise SchemaError(f"{where}: the interned name {entry.iid} is empty")
                self.interned[sequence, kind, entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            self.descriptor(packet.track_descriptor, where)
        if packet.HasField("track_event"):
            self.event(packet, where)

    def descriptor(self, track, where):
        """A track makes itself known."""
        name = track.name or track.static_name or track.process.process_name or track.thread.thread_name
        if not track.uuid:
            raise SchemaError(f"{where}: the track '{name}' has no uuid")
        if not name:
            raise SchemaError(f"{where}: the track {track.uuid} has no name")
        if track.HasField("parent_uuid"):
            self.parents[track.parent_uuid] = where
        if track.uuid not in self.tracks:
            self.counts["tracks"] += 1
            self.tracks[track.uuid] = Track(name)
        elif self.tracks[track.uuid].name != name:
            raise SchemaError(f"{where}: the track {track.uuid} was '{self.tracks[track.uuid].name}' before")

    def event(self, packet, where):
        """A slice begins or ends, or something happens."""
        event = packet.track_event
        if not packet.HasField("timestamp"):
            raise SchemaError(f"{where}: a track event without a timestamp")
        if not packet.trusted_packet_sequence_id:
            raise SchemaError(f"{where}: a track event without a trusted_packet_sequence_id")
        track = self.tracks.get(event.track_uuid) if event.HasField("track_uuid") else None
        if track is None:
            raise SchemaError(f"{where}: the track {event.track_uuid} was not described before")
        if packet.timestamp < track.last and not track.back:
            track.back = (
                f"{where}: on track '{track.name}' the time goes back from {track.last} to {packet.timestamp}"
            )
        if event.type in (EVENT.TYPE_SLICE_BEGIN, EVENT.TYPE_SLICE_END):
            track.has_slices = True
        if track.has_slices and track.back:
            raise SchemaError(track.back)
        track.last = packet.timestamp
        if event.type == EVENT.TYPE_SLICE_BEGIN:
            track.open += 1
            self.counts["slices"] += 1
            self.event_name(packet, where)
        elif event.type == EVENT.TYPE_SLICE_END:
            track.open -= 1
            if track.open < 0:
                raise SchemaError(f"{where}: on track '{track.name}' a slice ends that did not begin")
        elif event.type == EVENT.TYPE_INSTANT:
            self.counts["instants"] += 1
            self.event_name(packet, where)
        elif event.type == EVENT.TYPE_COUNTER:
            self.counts["counters"] += 1
        else:
            raise SchemaError(f"{where}: a track event without a type")
        for note in event.debug_annotations:
            self.name_of(packet, note.name, note.name_iid, "debug_annotation_names", where)
        self.flow(packet, where)

    def flow(self, packet, where):
        """Arrows begin or end at an event."""
        event = packet.track_event
        for number in event.flow_ids:
            if number in self.flows:
                raise SchemaError(f"{where}: flow {number} begins twice")
            if event.type != EVENT.TYPE_INSTANT:
                raise SchemaError(f"{where}: flow {number} begins at what is no instant")
            self.flows[number] = (event.track_uuid, packet.timestamp)
            self.counts["flows"] += 1
        for number in event.terminating_flow_ids:
            if number not in self.flows:
                raise SchemaError(f"{where}: flow {number} ends that did not begin")
            if number in self.ended:
                raise SchemaError(f"{where}: flow {number} ends twice")
            if event.type not in (EVENT.TYPE_SLICE_BEGIN, EVENT.TYPE_INSTANT):
                raise SchemaError(f"{where}: flow {number} ends where nothing begins")
            track, time = self.flows[number]
            if packet.timestamp < time:
                raise SchemaError(f"{where}: flow {number} goes back from {time} to {packet.timestamp}")
            if event.track_uuid == track:
                raise SchemaError(f"{where}: flow {number} stays on track {track}")
            self.ended.add(number)

    def event_name(self, packet, where):
        event = packet.track_event
        self.name_of(packet, event.name, event.name_iid, "event_names", where)

    def name_of(self, packet, inline, iid, kind, where):
        """A name, inline or interned, must be there and not empty."""
        if inline:
            return
        sequence = packet.trusted_packet_sequence_id
        if not iid:
            raise SchemaError(f"{where}: a name is missing or empty ({kind})")
        if sequence not in self.cleared:
            raise SchemaError(f"{where}: sequence {sequence} interns without SEQ_INCREMENTAL_STATE_CLEARED")
        if (sequence, kind, iid) not in self.interned:
            raise SchemaError(f"{where}: the name {iid} was not interned before ({kind})")

    def finish(self):
        """What can only be judged at the end; the counts."""
        for uuid, where in self.parents.items():
            if uuid and uuid not in self.tracks:
                raise SchemaError(f"{where}: the parent track {uuid} is never described")
        for track in self.tracks.values():
            if track.open:
                raise SchemaError(f"on track '{track.name}' {track.open} slice(s) never end")
        for number in self.flows:
            if number not in self.ended:
                raise SchemaError(f"flow {number} never ends")
        if not self.counts["slices"] and not self.counts["instants"]:
            raise SchemaError("the trace has no slice and no instant")
        return self.counts


def check(data):
    """The counts of the trace in `data`, or a `SchemaError`."""
    try:
        trace = schema.Trace.FromString(data)
    except message.DecodeError as error:
        raise SchemaError(f"not a Trace message: {error}") from None
    refuse_unknown_fields(trace, "trace")
    checker = Checker()
    for index, packet in enumerate(trace.packet):
        checker.packet(packet, f"packet {index}")
    return checker.finish()


def main(argv):
    """0: the trace is right; 1: it is not; 2: it cannot be read."""
    if len(argv) != 1:
        print("usage: perfetto_schema.py FILE", file=sys.stderr)
        return 2
    try:
        with open(argv[0], "rb") as file:
            counts = check(file.read())
    except OSError as error:
        print(f"perfetto_schema.py: {error}", file=sys.stderr)
        return 2
    except SchemaError as error:
        print(f"{argv[0]}: {error}")
        return 1
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
