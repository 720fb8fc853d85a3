"""Tests of perfetto_schema.py; they need the packages of requirements.txt.

Goal: the check can fail. Method: one good trace, and for every rule a copy that breaks just it.
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import perfetto_schema as ps  # noqa: E402


def good():
    """One track with a slice, with an inline and an interned name, and an instant."""
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
    return trace


class Schema(unittest.TestCase):
    def refused(self, change, part):
        """The good trace with one change is refused, for the reason that contains `part`."""
        trace = good()
        change(trace.packet)
        with self.assertRaisesRegex(ps.SchemaError, part):
            ps.check(trace.SerializeToString())

    def test_good_trace(self):
        want = {"packets": 5, "tracks": 1, "slices": 1, "instants": 1, "counters": 0}
        self.assertEqual(ps.check(good().SerializeToString()), want)

    def test_bytes(self):
        whole = good().SerializeToString()
        with self.assertRaisesRegex(ps.SchemaError, "not a Trace"):
            ps.check(whole[:-1])
        with self.assertRaisesRegex(ps.SchemaError, "no slice"):
            ps.check(b"")
        with self.assertRaisesRegex(ps.SchemaError, r"packet\[5\]: field number 262143"):
            ps.check(whole + b"\x0a\x04\xfa\xff\x7f\x00")

    def test_events(self):
        self.refused(lambda p: p[2].ClearField("timestamp"), "without a timestamp")
        self.refused(lambda p: p[2].ClearField("trusted_packet_sequence_id"), "without a trusted")
        self.refused(lambda p: p[2].track_event.ClearField("track_uuid"), "not described")
        self.refused(lambda p: setattr(p[2].track_event, "track_uuid", 8), "not described")
        self.refused(lambda p: p[2].track_event.ClearField("type"), "without a type")
        self.refused(lambda p: setattr(p[3], "timestamp", 4), "time goes back from 5 to 4")

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
