//! What a `perf.data` says of its recording: its events, its machine, the forms of its records.
//!
//! Source: Linux 6.18 tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.

use super::sample::SampleForm;
use crate::binary::bytes::{DatCursor, ReadAt, invalid};
use crate::binary::tracing_data::TracingData;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Attributes of events: one each for what `perf record -e` names.
const ATTRIBUTES_BYTES_MAX: u64 = 4 << 20;
/// One number for each event and CPU.
const IDS_MAX: usize = 1 << 20;
const TEXT_BYTES_MAX: u64 = 4096;
const FEATURES: usize = 256;
const TRACING_DATA: usize = 1;
const HOSTNAME: usize = 3;
const OS_RELEASE: usize = 4;
const ARCHITECTURE: usize = 6;
const CPU_COUNT: usize = 7;
/// The part of an attribute that is read, of those that kernels since 2.6.31 have.
const ATTRIBUTE_BYTES_MIN: u64 = 64;

/// All but the records.
#[derive(Debug, Default)]
pub(crate) struct PerfHeader {
    pub(crate) data: Range<u64>,
    pub(crate) forms: SampleForms,
    pub(crate) tracing: TracingData,
    cpu_count: u32,
    hostname: String,
    pub(crate) release: String,
    architecture: String,
}

/// The forms of records, by the number that a record begins with.
#[derive(Debug, Default)]
pub(crate) struct SampleForms {
    forms: Vec<SampleForm>,
    by_id: HashMap<u64, usize>,
}

impl PerfHeader {
    pub(crate) fn read(file: &impl ReadAt) -> io::Result<Self> {
        let mut cursor = DatCursor::new(file, 8);
        let _size = cursor.u64()?;
        let attribute_bytes = cursor.u64()?;
        let attributes = section(&mut cursor)?;
        let data = section(&mut cursor)?;
        let _event_types = section(&mut cursor)?;
        let flags = cursor.bytes(FEATURES as u64 / 8, FEATURES as u64 / 8, "the features")?;
        let mut header = Self { data: data.clone(), ..Self::default() };
        header.forms = SampleForms::read(file, attributes, attribute_bytes)?;
        let mut features = DatCursor::new(file, data.end);
        for feature in (0..FEATURES).filter(|feature| flags[feature / 8] >> (feature % 8) & 1 == 1) {
            let place = section(&mut features)?;
            header.feature(feature, &mut DatCursor::new(file, place.start))?;
        }
        Ok(header)
    }

    fn feature(&mut self, feature: usize, cursor: &mut DatCursor<'_, impl ReadAt>) -> io::Result<()> {
        match feature {
            TRACING_DATA => self.tracing.read_perf(cursor)?,
            HOSTNAME => self.hostname = text(cursor)?,
            OS_RELEASE => self.release = text(cursor)?,
            ARCHITECTURE => self.architecture = text(cursor)?,
            CPU_COUNT => {
                let (_online, available) = (cursor.u32()?, cursor.u32()?);
                self.cpu_count = available;
            }
            _ => {}
        }
        Ok(())
    }

    /// The first line of the text, as a `trace.dat` has it; perf may know no names of functions.
    pub(crate) fn first_line(&self, has_names: bool) -> String {
        let Self { cpu_count, hostname, release, architecture, .. } = self;
        let uname = if release.is_empty() {
            String::new()
        } else {
            format!("; uname: Linux {hostname} {release} {architecture}")
        };
        let names = if has_names { "" } else { "; functions have no names" };
        format!("cpus={cpu_count}{uname}{names}\n")
    }
}

impl SampleForms {
    fn read(file: &impl ReadAt, attributes: Range<u64>, attribute_bytes: u64) -> io::Result<Self> {
        let bytes = attributes.end - attributes.start;
        let entry = attribute_bytes.max(ATTRIBUTE_BYTES_MIN + 16);
        if attribute_bytes != entry
            || !bytes.is_multiple_of(entry)
            || bytes == 0
            || bytes > ATTRIBUTES_BYTES_MAX
        {
            return Err(invalid(format!("{bytes} bytes of attributes of {attribute_bytes} bytes each")));
        }
        let mut forms = Self::default();
        for at in attributes.step_by(entry as usize) {
            let mut cursor = DatCursor::new(file, at + 24);
            let (sample_type, read_format, flags) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            let form = SampleForm::new(sample_type, read_format, flags);
            let ids = section(&mut DatCursor::new(file, at + entry - 16))?;
            let mut cursor = DatCursor::new(file, ids.start);
            for _ in 0..(ids.end - ids.start) / 8 {
                if forms.by_id.len() == IDS_MAX {
                    return Err(invalid(format!("it has more than {IDS_MAX} numbers of events")));
                }
                forms.by_id.insert(cursor.u64()?, forms.forms.len());
            }
            forms.forms.push(form);
        }
        if forms.forms.iter().all(|form| *form == forms.forms[0]) {
            (forms.by_id, forms.forms) = (HashMap::new(), vec![forms.forms[0]]);
        } else if !forms.forms.iter().all(SampleForm::begins_with_its_id) {
            return Err(invalid(
                "its events have records of several forms, and do not say which: perf script -i FILE",
            ));
        }
        Ok(forms)
    }

    /// The form of a sample.
    pub(crate) fn of_sample(&self, body: &[u8]) -> Option<&SampleForm> {
        if self.by_id.is_empty() {
            return self.forms.first();
        }
        let id = u64::from_le_bytes(*body.first_chunk()?);
        self.forms.get(*self.by_id.get(&id)?)
    }

    /// The form of the end of other records.
    pub(crate) fn of_others(&self, body: &[u8]) -> Option<&SampleForm> {
        if self.by_id.is_empty() {
            return self.forms.first();
        }
        let id = u64::from_le_bytes(*body.last_chunk()?);
        self.forms.get(*self.by_id.get(&id)?)
    }
}

/// A place and a length.
fn section(cursor: &mut DatCursor<'_, impl ReadAt>) -> io::Result<Range<u64>> {
    let at = cursor.at;
    let (start, length) = (cursor.u64()?, cursor.u64()?);
    let end = start.checked_add(length);
    end.map(|end| start..end).ok_or_else(|| invalid(format!("the part at byte {at} ends beyond all files")))
}

/// A length, and the text with zeros behind it.
fn text(cursor: &mut DatCursor<'_, impl ReadAt>) -> io::Result<String> {
    let length = cursor.u32()?;
    let bytes = cursor.bytes(length.into(), TEXT_BYTES_MAX, "a text")?;
    let text = &bytes[..memchr::memchr(0, &bytes).unwrap_or(bytes.len())];
    // One word of a line: the name of a machine can hold anything.
    Ok(String::from_utf8_lossy(text).replace(|letter: char| letter.is_control() || letter == ' ', "_"))
}
