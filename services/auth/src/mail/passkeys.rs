//! What our messages say of passkeys (`auth.md` L13, L16).

use super::Letter;

/// A passkey was added or removed.
pub(crate) fn changed(
    name: &str,
    what: &str,
    passkey: &str,
    reset_url: &str,
    passkeys_url: &str,
) -> Letter {
    Letter::to(name, format!("A passkey of your Portolan account was {what}"))
        .say(format!(
            "the passkey \"{passkey}\" of your Portolan account was {what} just now, and other browsers were signed out."
        ))
        .say("If it was not you, take your account back at once. Choose a new password:")
        .link("Choose a new password", reset_url)
        .say("Then remove every passkey that you do not know, because a new password alone does not end them:")
        .link("Passkeys", passkeys_url)
}

/// The count of a passkey went backwards.
pub(crate) fn copied(name: &str, passkey: &str, url: &str) -> Letter {
    Letter::to(name, "Somebody may have a copy of your passkey")
        .say(format!(
            "the passkey \"{passkey}\" was used for your Portolan account in a way that happens when there is a copy of it. Nobody was signed in."
        ))
        .say("Sign in another way, remove this passkey, and add a new one:")
        .link("Passkeys", url)
}
