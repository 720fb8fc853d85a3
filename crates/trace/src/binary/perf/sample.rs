//! The forms of perf's records: which fields a sample has, and in which order.
//!
//! Source: Linux 6.18 include/uapi/linux/perf_event.h (`PERF_RECORD_SAMPLE`, `struct sample_id`).

/// What a sample holds, by the bits of `sample_type`.
mod has {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDRESS: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALL_CHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
mod read {
    pub(super) const TIME_ENABLED: u64 = 1;
    pub(super) const TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Of an attribute's flags: every record ends with what identifies it.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// The fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleForm {
    holds: u64,
    read_format: u64,
    has_ids: bool,
}

/// What is read of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleFields<'a> {
    pub(crate) at: Option<u64>,
    pub(crate) cpu: Option<u32>,
    /// The bytes of a tracepoint's event.
    pub(crate) raw: Option<&'a [u8]>,
}

/// Fields, one after the other.
struct FieldBytes<'a>(&'a [u8]);

impl<'a> FieldBytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().copied().map(u32::from_le_bytes)
    }
}

impl SampleForm {
    pub(crate) fn new(sample_type: u64, read_format: u64, flags: u64) -> Self {
        Self { holds: sample_type, read_format, has_ids: flags & SAMPLE_ID_ALL != 0 }
    }

    /// Whether a record says which of several events it belongs to.
    pub(crate) fn begins_with_its_id(&self) -> bool {
        self.holds & has::IDENTIFIER != 0
    }

    /// How many of these fields of eight bytes there are.
    fn count(&self, fields: u64) -> usize {
        (self.holds & fields).count_ones() as usize
    }

    /// Reads the body of a sample; `None` where it is too short.
    pub(crate) fn sample<'a>(&self, body: &'a [u8]) -> Option<SampleFields<'a>> {
        let (mut bytes, mut fields) = (FieldBytes(body), SampleFields::default());
        bytes.take(8 * self.count(has::IDENTIFIER | has::IP | has::TID))?;
        if self.holds & has::TIME != 0 {
            fields.at = Some(bytes.u64()?);
        }
        bytes.take(8 * self.count(has::ADDRESS | has::ID | has::STREAM_ID))?;
        if self.holds & has::CPU != 0 {
            fields.cpu = Some(bytes.u32()?);
            bytes.u32()?;
        }
        bytes.take(8 * self.count(has::PERIOD))?;
        if self.holds & has::READ != 0 {
            self.skip_read(&mut bytes)?;
        }
        if self.holds & has::CALL_CHAIN != 0 {
            let count = usize::try_from(bytes.u64()?).ok()?;
            bytes.take(count.checked_mul(8)?)?;
        }
        if self.holds & has::RAW != 0 {
            let count = bytes.u32()? as usize;
            fields.raw = Some(bytes.take(count)?);
        }
        Some(fields)
    }

    fn skip_read(&self, bytes: &mut FieldBytes<'_>) -> Option<()> {
        let count = |bits: u64| (self.read_format & bits).count_ones() as usize;
        let times = count(read::TIME_ENABLED | read::TIME_RUNNING);
        let of_each = 1 + count(read::ID | read::LOST);
        let words = if self.read_format & read::GROUP != 0 {
            let members = usize::try_from(bytes.u64()?).ok()?;
            times.checked_add(members.checked_mul(of_each)?)?
        } else {
            times + of_each
        };
        bytes.take(words.checked_mul(8)?).map(drop)
    }

    /// What the end of another record says, and what stands before it.
    pub(crate) fn other<'a>(&self, body: &'a [u8]) -> Option<(&'a [u8], SampleFields<'a>)> {
        if !self.has_ids {
            return Some((body, SampleFields::default()));
        }
        let all = has::TID | has::TIME | has::ID | has::STREAM_ID | has::CPU | has::IDENTIFIER;
        let (before, end) = body.split_at_checked(body.len().checked_sub(8 * self.count(all))?)?;
        let (mut bytes, mut fields) = (FieldBytes(end), SampleFields::default());
        bytes.take(8 * self.count(has::TID))?;
        if self.holds & has::TIME != 0 {
            fields.at = Some(bytes.u64()?);
        }
        bytes.take(8 * self.count(has::ID | has::STREAM_ID))?;
        if self.holds & has::CPU != 0 {
            fields.cpu = Some(bytes.u32()?);
        }
        Some((before, fields))
    }
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE_ID_ALL, SampleForm, has, read};

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Goal: time, CPU and event are found whatever else a sample holds. Method: every combination of the
    /// fields that may stand before them.
    #[test]
    fn fields_are_found_whatever_else_there_is() {
        let others = [has::IDENTIFIER, has::IP, has::TID, has::ADDRESS, has::ID, has::STREAM_ID, has::PERIOD];
        for chosen in 0..1u32 << others.len() {
            let holds = |field: u64| {
                others.iter().enumerate().any(|(bit, other)| *other == field && chosen >> bit & 1 == 1)
            };
            let mut body = Vec::new();
            let mut put = |field: u64, value: u64| {
                if field == has::TIME || field == has::CPU || holds(field) {
                    body.push(value);
                }
            };
            for field in [has::IDENTIFIER, has::IP, has::TID] {
                put(field, 99);
            }
            put(has::TIME, 1234);
            for field in [has::ADDRESS, has::ID, has::STREAM_ID] {
                put(field, 99);
            }
            put(has::CPU, 0xffff_ffff_0000_0003);
            put(has::PERIOD, 99);
            let all = others.iter().filter(|field| holds(**field)).sum::<u64>();
            let form = SampleForm::new(all | has::TIME | has::CPU | has::RAW, 0, 0);
            let body = [words(&body), 5u32.to_le_bytes().to_vec(), b"event...".to_vec()].concat();
            let fields = form.sample(&body).expect("it is whole");
            assert_eq!(
                (fields.at, fields.cpu, fields.raw),
                (Some(1234), Some(3), Some(&b"event"[..])),
                "{chosen:b}"
            );
            assert_eq!(form.sample(&body[..body.len() - 4]), None, "{chosen:b}: it is cut");
            assert_eq!(form.begins_with_its_id(), holds(has::IDENTIFIER));
        }
    }

    /// Goal: counters and call chains before the event are passed over. Method: each form of counters.
    #[test]
    fn counters_and_chains_are_passed_over() {
        for (format, counters) in [
            (0, vec![9]),
            (read::TIME_ENABLED | read::TIME_RUNNING, vec![9, 9, 9]),
            (read::ID, vec![9, 9]),
            (read::ID | read::LOST, vec![9, 9, 9]),
            (read::GROUP, vec![2, 9, 9]),
            (read::GROUP | read::ID | read::TIME_ENABLED, vec![2, 9, 9, 9, 9, 9]),
        ] {
            let form = SampleForm::new(has::READ | has::CALL_CHAIN | has::RAW, format, 0);
            let chain = words(&[3, 7, 7, 7]);
            let body = [words(&counters), chain, 2u32.to_le_bytes().to_vec(), b"ab".to_vec()].concat();
            assert_eq!(form.sample(&body).and_then(|fields| fields.raw), Some(&b"ab"[..]), "{format}");
        }
        let form = SampleForm::new(has::CALL_CHAIN, 0, 0);
        assert_eq!(form.sample(&words(&[u64::MAX])), None);
        let form = SampleForm::new(has::READ, read::GROUP, 0);
        assert_eq!(form.sample(&words(&[u64::MAX])), None);
    }

    /// Goal: a record that is no sample ends with its time and its CPU, if it is identified.
    #[test]
    fn other_records_end_with_their_time() {
        let holds = has::TID | has::TIME | has::ID | has::CPU | has::IDENTIFIER | has::RAW | has::IP;
        let body = [b"contents".to_vec(), words(&[99, 1234, 99, 3, 99])].concat();
        let (before, fields) = SampleForm::new(holds, 0, SAMPLE_ID_ALL).other(&body).expect("it is whole");
        assert_eq!((before, fields.at, fields.cpu), (&b"contents"[..], Some(1234), Some(3)));
        let (before, fields) = SampleForm::new(holds, 0, 0).other(&body).expect("it has no end");
        assert_eq!((before.len(), fields.at, fields.cpu), (body.len(), None, None));
        assert_eq!(SampleForm::new(holds, 0, SAMPLE_ID_ALL).other(&body[..39]), None);
    }
}
