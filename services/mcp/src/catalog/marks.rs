//! What a reader of lists knows of them, as numbers that differ when the lists do. Of nothing else: the fuzz target `session` reads it,
//! too.

/// Which lists a reader has seen: each differs when its list differs, `updates` when what some resource holds may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
    pub(crate) updates: u64,
}

impl Marks {
    /// Bytes of [`Marks::to_bytes`].
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

    /// Reads back; eight bytes are of a release that knew of tools only.
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
