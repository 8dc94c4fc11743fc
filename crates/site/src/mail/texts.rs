//! Texts of messages. Links are absolute and built from configuration, never from a request
//! (AUTH-S10, CASE-154).

use portolan_model::member::Role;

use crate::mail::letter::Letter;

/// A verification code (AUTH-L7).
pub fn verification(name: &str, code: &str, link: &str) -> Letter {
    Letter::to(name, format!("{code} is your Portolan code"))
        .say("This is your code. It works for 10 minutes, in the browser where you signed up:")
        .code(code)
        .link("Enter the code", link)
        .say("If you didn’t sign up for Portolan, ignore this message. Nothing happens without the code.")
}

/// To the owner of an address that was used for a second sign-up (AUTH-L5).
pub fn known_address(login_url: &str) -> Letter {
    Letter::to_somebody("You already have a Portolan account")
        .say("Someone, probably you, tried to sign up for Portolan with this address. It already has an account.")
        .link("Sign in", login_url)
        .say("If this wasn’t you, ignore this message. Nothing was changed.")
}

/// A warning after several wrong passwords, at most one a day (AUTH-L6).
pub fn misses(login_url: &str) -> Letter {
    Letter::to_somebody("Failed sign-ins to your Portolan account")
        .say("Someone entered a wrong password for your Portolan account several times. Further attempts are slowed down; your account is not locked.")
        .link("Sign in", login_url)
        .say("If this wasn’t you, you don’t need to do anything, as long as you use this password nowhere else.")
}

/// An old token of an app was used again (AUTH-K11). `client` is the app's name, cleaned.
pub fn reuse(client: &str) -> Letter {
    Letter::to_somebody("An app was disconnected from Portolan")
        .say(format!(
            "An old token of the app {client} was used again. This happens when someone has a copy of it, or when the app was restored from a backup. To be safe, we disconnected the app."
        ))
        .say("If you still use the app, connect it again. Otherwise you don’t need to do anything.")
}

/// The link for a new password (AUTH-L9).
pub fn reset(name: &str, link: &str) -> Letter {
    Letter::to(name, "Choose a new Portolan password")
        .say("Someone, probably you, asked for a new password for your Portolan account. The link works once, within 30 minutes.")
        .link("Choose a new password", link)
        .say("If this wasn’t you, ignore this message. Your password stays the same.")
}

/// To an address without an account, for which a new password was requested (AUTH-L5).
pub fn reset_unknown(signup_url: &str) -> Letter {
    Letter::to_somebody("No Portolan account uses this address")
        .say("Someone, probably you, asked for a new Portolan password, but no account uses this address. You may have signed up with another address.")
        .link("Create account", signup_url)
        .say("If this wasn’t you, ignore this message.")
}

/// The password changed (AUTH-L16).
pub fn password_changed(name: &str, reset_url: &str) -> Letter {
    Letter::to(name, "Your Portolan password was changed")
        .say("The password of your Portolan account was changed, and your other browsers were signed out.")
        .say("If this wasn’t you, take your account back now:")
        .link("Choose a new password", reset_url)
}

/// The code that proves a new address (AUTH-L10).
pub fn new_address(name: &str, code: &str) -> Letter {
    Letter::to(name, format!("{code} is your Portolan code"))
        .say("Enter this code within 10 minutes to use this address for your Portolan account:")
        .code(code)
        .say("If you didn’t ask for this, ignore this message. Nothing happens without the code.")
}

/// To the new address, if another account uses it already (AUTH-L5).
pub fn new_address_taken() -> Letter {
    Letter::to_somebody("Another Portolan account uses this address")
        .say("Someone tried to use this address for a Portolan account, but another account already uses it. Nothing was changed.")
        .say("If this was you, sign in to the other account with this address.")
}

/// To the former address, with the link to undo (AUTH-L10).
pub fn address_changed(name: &str, new: &str, undo_url: &str) -> Letter {
    Letter::to(name, "The e-mail of your Portolan account was changed")
        .say(format!("Your Portolan account now uses {new}. This address no longer signs in to it."))
        .say("If this wasn’t you, undo the change within 72 hours. This signs out all browsers and disconnects all apps:")
        .link("Restore this address", undo_url)
}

/// To the address that was restored.
pub fn address_restored(name: &str, reset_url: &str) -> Letter {
    Letter::to(name, "The e-mail of your Portolan account was restored")
        .say("Your account uses this address again. All browsers were signed out and all apps were disconnected. Choose a new password now, because someone else knew the old one:")
        .link("Choose a new password", reset_url)
}

/// Two-step verification was turned on or off, or has new recovery codes (AUTH-L16). `action` is
/// its name in the audit log.
pub fn two_step_verification(name: &str, action: &str, reset_url: &str) -> Letter {
    let (subject, text) = match action {
        "second_factor.added" => (
            "Two-step verification was turned on",
            "Signing in to your Portolan account with your password now needs a code from your authenticator app. Your other browsers were signed out.",
        ),
        "second_factor.removed" => (
            "Two-step verification was turned off",
            "The authenticator app was removed: your password alone now opens your Portolan account. Your other browsers were signed out.",
        ),
        _ => (
            "Your recovery codes were replaced",
            "New recovery codes were created for your Portolan account. Earlier codes no longer work, and your other browsers were signed out.",
        ),
    };
    Letter::to(name, subject)
        .say(text)
        .say("If this wasn’t you, take your account back now:")
        .link("Choose a new password", reset_url)
}

/// An account at a provider became a sign-in method (AUTH-L16).
pub fn sign_in_method_added(name: &str, provider: &str, url: &str) -> Letter {
    Letter::to(name, "A sign-in method was added to your Portolan account")
        .say(format!(
            "A {provider} account was connected to your Portolan account and can now sign in to it."
        ))
        .link("Sign-in methods", url)
        .say("If this wasn’t you, disconnect it on that page and choose a new password.")
}

/// An account at a provider is no sign-in method any more (AUTH-L16).
pub fn sign_in_method_removed(name: &str, provider: &str, url: &str) -> Letter {
    Letter::to(name, "A sign-in method was removed from your Portolan account")
        .say(format!(
            "A {provider} account was disconnected from your Portolan account, and your other browsers were signed out."
        ))
        .link("Sign-in methods", url)
        .say("If this wasn’t you, choose a new password now.")
}

/// A recovery code was used (AUTH-L12).
pub fn recovery_code_used(name: &str, left: i64, url: &str) -> Letter {
    Letter::to(name, "A recovery code was used for your Portolan account")
        .say(format!(
            "A recovery code was used instead of your authenticator app. You have {left} left."
        ))
        .link("Two-step verification", url)
        .say("If this wasn’t you, choose a new password and create new recovery codes.")
}

/// An invitation (AUTH-M5).
pub fn invitation(workspace: &str, inviter: &str, role: Role, link: &str) -> Letter {
    Letter::to_somebody(format!("{inviter} invited you to {workspace} on Portolan"))
        .say(format!(
            "{inviter} invited you to the workspace {workspace} {}. The invitation is for this address and expires in 7 days.",
            in_words(role)
        ))
        .link("View invitation", link)
        .say("If you don’t know the sender, ignore this message.")
}

/// `as a member`: the role with its article.
pub fn in_words(role: Role) -> String {
    let word = role.to_string();
    let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("as {article} {word}")
}

/// How a person gets a role that gives roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stronger {
    /// By an invitation.
    Invited,
    /// By a change from a weaker role.
    Raised,
}

/// To the other owners: there is one more admin or owner (REVIEW-S-3). `whom` is an address.
pub fn stronger_role(
    name: &str,
    workspace: &str,
    by: &str,
    (how, whom, role): (Stronger, &str, Role),
    link: &str,
) -> Letter {
    let (subject, what, undo) = match how {
        Stronger::Invited => (
            format!("{whom} is invited to {workspace} as {role}"),
            format!("{by} invited {whom} to the workspace {workspace}, which you own, as {role}."),
            "If this is not what you want, take the invitation back",
        ),
        Stronger::Raised => (
            format!("{whom} is {role} of {workspace} now"),
            format!("{by} made {whom} {role} of the workspace {workspace}, which you own."),
            "If this is not what you want, change the role back",
        ),
    };
    Letter::to(name, subject)
        .say(what)
        .link("Look at the members", link)
        .say(format!(
            "{undo}, and ask {by} whether it was them: somebody else may be signed in as {by}."
        ))
}

/// A person requests an app that an administrator has to allow (AUTH-M7). The name is the app's
/// own, cleaned.
pub fn client_requested(
    name: &str,
    workspace: &str,
    asker: &str,
    client: &str,
    client_id: &str,
    link: &str,
) -> Letter {
    Letter::to(
        name,
        format!("{asker} requests an app for the workspace {workspace}"),
    )
    .say(format!(
        "{asker} wants to connect the app {client} to the workspace {workspace}, where an administrator must allow apps first. The client ID of the app is {client_id}."
    ))
    .link("Review the request", link)
    .say("The app cannot connect until you allow it.")
}

/// An administrator allowed an app that this person requested (AUTH-M7).
pub fn client_allowed(name: &str, workspace: &str, client: &str) -> Letter {
    Letter::to(name, format!("{client} can now connect to {workspace}"))
        .say(format!(
            "An administrator of the workspace {workspace} allowed the app {client} that you requested. Go to the app and connect again."
        ))
        .say("If you didn’t request it, you don’t need to do anything. The app has no access until you agree.")
}

/// The account was deleted (AUTH-L16).
pub fn account_deleted(name: &str) -> Letter {
    Letter::to(name, "Your Portolan account was deleted")
        .say("Your Portolan account and its sign-in methods were deleted, and you left all workspaces.")
        .say("If this wasn’t you, contact the operator of the service. A deleted account cannot be restored.")
}

/// A workspace was deleted (AUTH-M6, AUTH-L16).
pub fn workspace_deleted(name: &str, workspace: &str, by: &str, until: &str, link: &str) -> Letter {
    Letter::to(name, format!("The workspace {workspace} was deleted"))
        .say(format!(
            "{by} deleted the workspace {workspace}, which you own. Its servers are stopped, and AI apps can no longer use it."
        ))
        .say(format!(
            "Any owner can restore it until {until}. After that everything in it is permanently deleted."
        ))
        .link("Restore workspace", link)
}
