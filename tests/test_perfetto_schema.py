"""Tests of perfetto_schema.py; they need the packages of requirements.txt.

Goal: the check can fail. Method: one good trace, and for every rule a copy that breaks just it.
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import perfetto_schema as ps  # noqa: E402


FLOW = 1 << 63


def good():
    """A track with a slice, with an inline and an interned name, and an instant; and an earlier cause of the
    slice, with an arrow."""
    trace = ps.schema.Trace()
    track = trace.packet.add(trusted_packet_sequence_id=1, sequence_flags=1)
    track.track_descriptor.uuid = 7
    track.track_descriptor.name = "CPU 1"
    names = trace.packet.add(trusted_packet_sequence_id=1)
    names.interned_data.event_names.add(iid=1, name="process_timeout")
    events = ((5, "SLICE_BEGIN", "", 1), (9, "SLICE_END", "", 0), (9, "INSTANT", "pull", 0))
    for time, kind, name, iid in events:
        packet = trace.packet.add(trusted_packet_sequence_id=1, timestamp=time)
        packet.track_event.track_uuid = 7
        packet.track_event.type = getattr(ps.EVENT, f"TYPE_{kind}")
        if name:
            packet.track_event.name = name
        if iid:
            packet.track_event.name_iid = iid
    causes = trace.packet.add(trusted_packet_sequence_id=1)
    causes.track_descriptor.uuid = 9
    causes.track_descriptor.name = "causes"
    cause = trace.packet.add(trusted_packet_sequence_id=1, timestamp=3)
    cause.track_event.track_uuid = 9
    cause.track_event.type = ps.EVENT.TYPE_INSTANT
    cause.track_event.name = "arm process_timeout"
    cause.track_event.flow_ids.append(FLOW)
    effect = trace.packet.add(trusted_packet_sequence_id=1, timestamp=9)
    effect.track_event.track_uuid = 7
    effect.track_event.type = ps.EVENT.TYPE_INSTANT
    effect.track_event.name = "pull"
    effect.track_event.terminating_flow_ids.append(FLOW)
    return trace


class Schema(unittest.TestCase):
    def refused(self, change, part):
        """The good trace with one change is refused, for the reason that contains `part`."""
        trace = good()
        change(trace.packet)
        with self.assertRaisesRegex(ps.SchemaError, part):
            ps.check(trace.SerializeToString())

    def test_good_trace(self):
        want = {"packets": 8, "tracks": 2, "slices": 1, "instants": 3, "counters": 0, "flows": 1}
        self.assertEqual(ps.check(good().SerializeToString()), want)

    def test_bytes(self):
        whole = good().SerializeToString()
        with self.assertRaisesRegex(ps.SchemaError, "not a Trace"):
            ps.check(whole[:-1])
        with self.assertRaisesRegex(ps.SchemaError, "no slice"):
            ps.check(b"")
        with self.assertRaisesRegex(ps.SchemaError, r"packet\[8\]: field number 262143"):
            ps.check(whole + b"\x0a\x04\xfa\xff\x7f\x00")

    def test_events(self):
        self.refused(lambda p: p[2].ClearField("timestamp"), "without a timestamp")
        self.refused(lambda p: p[2].ClearField("trusted_packet_sequence_id"), "without a trusted")
        self.refused(lambda p: p[2].track_event.ClearField("track_uuid"), "not described")
        self.refused(lambda p: setattr(p[2].track_event, "track_uuid", 8), "not described")
        self.refused(lambda p: p[2].track_event.ClearField("type"), "without a type")
        self.refused(lambda p: setattr(p[3], "timestamp", 4), "time goes back from 5 to 4")

    def test_time_of_instants(self):
        """On a track without slices the order of the file is free, unless a slice follows."""
        trace = good()
        early = trace.packet.add(trusted_packet_sequence_id=1, timestamp=1)
        early.track_event.MergeFrom(trace.packet[6].track_event)
        early.track_event.ClearField("flow_ids")
        self.assertEqual(ps.check(trace.SerializeToString())["instants"], 4)
        late = trace.packet.add(trusted_packet_sequence_id=1, timestamp=2)
        late.track_event.MergeFrom(early.track_event)
        late.track_event.type = ps.EVENT.TYPE_SLICE_BEGIN
        with self.assertRaisesRegex(ps.SchemaError, "'causes' the time goes back from 3 to 1"):
            ps.check(trace.SerializeToString())

    def test_flows(self):
        again = ps.schema.TrackEvent(flow_ids=[FLOW])
        self.refused(lambda p: p[4].track_event.MergeFrom(again), "begins twice")
        self.refused(lambda p: p[7].track_event.MergeFrom(again), "begins twice")
        self.refused(lambda p: p.pop(6), "ends that did not begin")
        self.refused(lambda p: p.pop(7), f"flow {FLOW} never ends")
        self.refused(lambda p: p[7].track_event.terminating_flow_ids.append(FLOW), "ends twice")
        self.refused(lambda p: setattr(p[6], "timestamp", 10), "goes back from 10 to 9")
        self.refused(lambda p: setattr(p[7].track_event, "track_uuid", 9), "stays on track 9")
        begins = ps.schema.TrackEvent(flow_ids=[8])
        self.refused(lambda p: p[2].track_event.MergeFrom(begins), "no instant")

        def to_the_end(packets):
            packets[7].track_event.type = ps.EVENT.TYPE_SLICE_BEGIN
            packets[7].track_event.ClearField("terminating_flow_ids")
            end = packets.add(trusted_packet_sequence_id=1, timestamp=9).track_event
            end.track_uuid = 7
            end.type = ps.EVENT.TYPE_SLICE_END
            end.terminating_flow_ids.append(FLOW)

        self.refused(to_the_end, "ends where nothing begins")

    def test_slices(self):
        self.refused(lambda p: p.pop(2), "did not begin")
        self.refused(lambda p: p.pop(3), "never end")

    def test_names(self):
        self.refused(lambda p: p[4].track_event.ClearField("name"), "missing or empty")
        self.refused(lambda p: p.pop(1), "not interned")
        self.refused(lambda p: p[0].ClearField("sequence_flags"), "STATE_CLEARED")
        self.refused(lambda p: setattr(p[1].interned_data.event_names[0], "name", ""), "is empty")
        self.refused(lambda p: p[4].track_event.debug_annotations.add(uint_value=1), "debug_annotation_names")

    def test_tracks(self):
        self.refused(lambda p: p[0].track_descriptor.ClearField("name"), "has no name")
        self.refused(lambda p: p[0].track_descriptor.ClearField("uuid"), "has no uuid")
        self.refused(lambda p: setattr(p[0].track_descriptor, "parent_uuid", 3), "parent track 3")
        self.refused(lambda p: p.add().track_descriptor.MergeFrom(
            ps.schema.TrackDescriptor(uuid=7, name="CPU 2")), "was 'CPU 1' before")


if __name__ == "__main__":
    unittest.main()
