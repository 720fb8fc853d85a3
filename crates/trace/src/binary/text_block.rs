//! Text that is made in pieces and handed out in others.

/// So much text is made before it is handed out.
const TEXT_BYTES: usize = 64 * 1024;

/// A piece of text, of which some was handed out.
#[derive(Debug, Default)]
pub(crate) struct TextBlock {
    text: Vec<u8>,
    taken: usize,
}

impl TextBlock {
    /// Whether all was handed out.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.text.len()
    }

    /// Whether there is so much that it should be handed out first.
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= TEXT_BYTES
    }

    /// Forgets what was handed out, which is all.
    pub(crate) fn begin(&mut self) {
        self.text.clear();
        self.taken = 0;
    }

    /// Where the next lines are written.
    pub(crate) fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Hands out what fits into `buffer`.
    pub(crate) fn hand_out(&mut self, buffer: &mut [u8]) -> usize {
        let left = &self.text[self.taken..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.taken += count;
        count
    }
}
