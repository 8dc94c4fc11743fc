//! Standard output.

/// Prints what a command was asked for.
#[expect(
    clippy::print_stdout,
    reason = "the answer of a command goes to standard output; logs do not"
)]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
