//! Changes of a line that leave most of its structure: a fuzzer's own changes rarely do.

use arbitrary::Arbitrary;

/// One change of a line. A field is what stands between two spaces.
#[derive(Arbitrary, Debug)]
pub enum Damage {
    /// What stands behind `=` in a field (or all of it) becomes these bytes.
    Bytes(u8, Vec<u8>),
    /// ... this number.
    Number(u8, i128),
    /// ... this pointer.
    Pointer(u8, u64),
    /// A field goes.
    Drop(u8),
    /// A field stands twice.
    Repeat(u8),
    /// Two fields change places.
    Swap(u8, u8),
    /// The line ends here.
    Cut(u16),
    /// Bytes come in between.
    Insert(u16, Vec<u8>),
}

impl Damage {
    /// The damaged line.
    pub fn apply(&self, text: Vec<u8>) -> Vec<u8> {
        let at = |position: &u16| usize::from(*position) % (text.len() + 1);
        match self {
            Self::Cut(position) => return text[..at(position)].to_vec(),
            Self::Insert(position, bytes) => {
                let (front, back) = text.split_at(at(position));
                return [front, bytes, back].concat();
            }
            _ => {}
        }
        let mut fields: Vec<Vec<u8>> = text.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect();
        let count = fields.len();
        let index = |number: &u8| usize::from(*number) % count;
        match self {
            Self::Bytes(number, bytes) => set(&mut fields[index(number)], bytes),
            Self::Number(number, value) => set(&mut fields[index(number)], value.to_string().as_bytes()),
            Self::Pointer(number, value) => set(&mut fields[index(number)], format!("{value:x}").as_bytes()),
            Self::Drop(number) => drop(fields.remove(index(number))),
            Self::Repeat(number) => fields.insert(index(number), fields[index(number)].clone()),
            Self::Swap(one, other) => fields.swap(index(one), index(other)),
            Self::Cut(_) | Self::Insert(..) => {}
        }
        fields.join(&b' ')
    }
}

fn set(field: &mut Vec<u8>, value: &[u8]) {
    let key = field.iter().position(|&byte| byte == b'=').map_or(0, |equals| equals + 1);
    field.truncate(key);
    field.extend_from_slice(value);
}
