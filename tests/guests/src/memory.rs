//! Lays out the static data of an assembled guest.

/// Address where static data begins.
pub(crate) const DATA: u32 = 1024;

/// Static data, laid out from the front.
#[derive(Default)]
pub(crate) struct Memory(Vec<u8>);

impl Memory {
    /// Returns the address after the data.
    pub(crate) fn end(&self) -> u32 {
        DATA + u32::try_from(self.0.len()).expect("small data")
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.end();
        self.0.extend_from_slice(bytes);
        at
    }

    pub(crate) fn text(&mut self, text: &str) -> [u32; 2] {
        [self.put(text.as_bytes()), u32::try_from(text.len()).expect("a short text")]
    }

    pub(crate) fn words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    pub(crate) fn escaped(&self) -> String {
        escaped(&self.0)
    }
}

/// Escapes bytes for a string of the text format.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}
