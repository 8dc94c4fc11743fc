//! Messages about passkeys (AUTH-L13, AUTH-L16).

use crate::mail::letter::Letter;

/// A passkey was added or removed.
pub fn changed(
    name: &str,
    what: &str,
    passkey: &str,
    reset_url: &str,
    passkeys_url: &str,
) -> Letter {
    Letter::to(name, format!("A passkey of your Portolan account was {what}"))
        .say(format!(
            "The passkey “{passkey}” of your Portolan account was {what}, and your other browsers were signed out."
        ))
        .say("If this wasn’t you, take your account back now. Choose a new password:")
        .link("Choose a new password", reset_url)
        .say("Then remove every passkey that you don’t recognize, because a new password doesn’t remove them:")
        .link("Passkeys", passkeys_url)
}

/// The counter of a passkey went backwards.
pub fn copied(name: &str, passkey: &str, url: &str) -> Letter {
    Letter::to(name, "Your passkey may have been copied")
        .say(format!(
            "The passkey “{passkey}” was used for your Portolan account in a way that suggests a copy of it. The sign-in was refused."
        ))
        .say("Sign in another way, remove this passkey, and add a new one:")
        .link("Passkeys", url)
}
