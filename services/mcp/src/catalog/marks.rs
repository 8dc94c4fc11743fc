//! The version numbers of the lists that a reader has seen.
//!
//! This module depends on no other one, because the fuzz target `session` reads it too.

/// One number for each list, which differs when the list differs.
///
/// `updates` differs when the contents of a resource may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
    pub(crate) updates: u64,
}

impl Marks {
    /// Length of [`Marks::to_bytes`].
    pub(crate) const LEN: usize = 32;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        for (place, mark) in
            bytes
                .chunks_exact_mut(8)
                .zip([self.tools, self.prompts, self.resources, self.updates])
        {
            place.copy_from_slice(&mark.to_be_bytes());
        }
        bytes
    }

    /// Reads the bytes back. Eight bytes are from a release with marks for tools only.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::LEN && bytes.len() != 8 {
            return None;
        }
        let mut marks = bytes.chunks_exact(8).map(|chunk| {
            let mut mark = [0; 8];
            mark.copy_from_slice(chunk);
            u64::from_be_bytes(mark)
        });
        let mut next = || marks.next().unwrap_or(0);
        Some(Self {
            tools: next(),
            prompts: next(),
            resources: next(),
            updates: next(),
        })
    }
}
