//! Opens the system's browser.

use std::{
    io,
    process::{Command, Stdio},
    thread,
};

use crate::pages;

/// Opens `address` by the commands `named`, or by the system's own without them. `%s` in a command
/// stands for the address, which is otherwise its last argument. Several commands are separated by
/// `:`, and the first one that starts is taken.
pub(crate) fn open(named: &str, address: &str) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no command is known");
    let commands = named.split(':').filter(|one| !one.trim().is_empty());
    let own = if named.is_empty() { OWN } else { &[] };
    for command in commands.chain(own.iter().copied()) {
        match start(command, address) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(target_os = "macos")]
const OWN: &[&str] = &["open"];
#[cfg(windows)]
const OWN: &[&str] = &["rundll32 url.dll,FileProtocolHandler"];
#[cfg(not(any(target_os = "macos", windows)))]
const OWN: &[&str] = &["xdg-open", "gio open", "wslview"];

fn start(command: &str, address: &str) -> io::Result<()> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut has_address = false;
    let mut command = Command::new(program);
    for word in words {
        has_address |= word.contains("%s");
        command.arg(word.replace("%s", address));
    }
    if !has_address {
        command.arg(address);
    }
    // Nothing of it may reach the client: standard output belongs to the protocol.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A browser inherits the setting, and lives longer than this program.
    pages::allow_huge(true);
    let started = command.spawn();
    pages::allow_huge(false);
    let mut child = started?;
    // Its end is awaited, so that it leaves no zombie.
    thread::spawn(move || child.wait());
    Ok(())
}
