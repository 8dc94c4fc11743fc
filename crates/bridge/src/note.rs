//! Notes for the person: lines on standard error.

use std::io::Write;

/// Where notes go, and how many there are. Cheap to copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notes {
    is_verbose: bool,
}

impl Notes {
    /// Details are written too.
    pub const fn verbose() -> Self {
        Self { is_verbose: true }
    }

    /// Writes what a person should know.
    pub fn say(self, text: &str) {
        // A client that closed the pipe loses the note, and nothing else.
        let _ = writeln!(std::io::stderr(), "portolan connect: {text}");
    }

    /// Writes what helps to find a fault.
    pub fn detail(self, text: &str) {
        if self.is_verbose {
            self.say(text);
        }
    }
}
