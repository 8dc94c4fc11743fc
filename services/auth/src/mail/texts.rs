//! What our messages say. Links are absolute and built from configuration, never from a request (S10, case 154).

use portolan_model::member::Role;

use super::Letter;

/// A verification code (L7).
pub(crate) fn verification(name: &str, code: &str, link: &str) -> Letter {
    Letter::to(name, format!("{code} is your Portolan code"))
        .say("your code works for 10 minutes, in the browser where you signed up:")
        .code(code)
        .link("Fill the code in", link)
        .say("If you did not sign up at Portolan, ignore this message: nothing happens without the code.")
}

/// To somebody whose address was used for a second sign-up (L5).
pub(crate) fn known_address(login_url: &str) -> Letter {
    Letter::to_somebody("You already have a Portolan account")
        .say("somebody, probably you, tried to sign up at Portolan with this address. It has an account already.")
        .link("Sign in", login_url)
        .say("If it was not you, ignore this message: nothing was changed.")
}

/// A hint after several wrong passwords, at most one a day (L6).
pub(crate) fn misses(login_url: &str) -> Letter {
    Letter::to_somebody("Several failed sign-ins at Portolan")
        .say("somebody entered a wrong password for your Portolan account several times. Further tries are slowed down, and your account is not locked.")
        .link("Sign in", login_url)
        .say("If it was not you, nothing needs to be done, as long as your password is not used anywhere else.")
}

/// A token of an app was used again when it should be long forgotten (K11). `client` is the app's name, cleaned.
pub(crate) fn reuse(client: &str) -> Letter {
    Letter::to_somebody("An app was disconnected from Portolan")
        .say(format!(
            "an old key of the app {client} was used again. That happens when a copy of it got into other hands, or when the app was restored from a backup. To be safe, we ended its connection."
        ))
        .say("If you still use the app, connect it again. If you do not know it, nothing needs to be done.")
}

/// The link for a new password (L9).
pub(crate) fn reset(name: &str, link: &str) -> Letter {
    Letter::to(name, "A new password for Portolan")
        .say("somebody, probably you, asked for a new password for your Portolan account. The link works for 30 minutes, once.")
        .link("Choose a new password", link)
        .say("If it was not you, ignore this message: your password stays as it is.")
}

/// To an address without an account, for which somebody asked for a new password (L5).
pub(crate) fn reset_unknown(signup_url: &str) -> Letter {
    Letter::to_somebody("There is no Portolan account with this address")
        .say("somebody, probably you, asked for a new password at Portolan, but there is no account with this address. Perhaps you signed up with another one.")
        .link("Sign up", signup_url)
        .say("If it was not you, ignore this message.")
}

/// The password changed (L16).
pub(crate) fn password_changed(name: &str, reset_url: &str) -> Letter {
    Letter::to(name, "Your Portolan password was changed")
        .say("the password of your Portolan account was changed just now, and other browsers were signed out.")
        .say("If it was not you, take your account back at once:")
        .link("Choose a new password", reset_url)
}

/// The code that proves a new address (L10).
pub(crate) fn new_address(name: &str, code: &str) -> Letter {
    Letter::to(name, format!("{code} is your Portolan code"))
        .say("you want to use this address for your Portolan account. Enter this code within 10 minutes:")
        .code(code)
        .say("If you do not know what this is about, ignore this message: nothing happens without the code.")
}

/// To the new address, when somebody else uses it already (L5).
pub(crate) fn new_address_taken() -> Letter {
    Letter::to_somebody("This address is used for another Portolan account")
        .say("somebody wants to use this address for a Portolan account, but it belongs to another account already. Nothing was changed.")
        .say("If it was you, sign in to the other account with this address.")
}

/// To the former address, with the way back (L10).
pub(crate) fn address_changed(name: &str, new: &str, undo_url: &str) -> Letter {
    Letter::to(name, "The address of your Portolan account was changed")
        .say(format!("your Portolan account is now used with {new}. This address does not open it any more."))
        .say("If it was not you, go back to this address. That signs everybody out, and disconnects every app. It works for 72 hours:")
        .link("Go back to this address", undo_url)
}

/// To the address that is used again.
pub(crate) fn address_restored(name: &str, reset_url: &str) -> Letter {
    Letter::to(name, "Your Portolan account is back at this address")
        .say("the change of address was undone, every browser was signed out, and every app was disconnected. Choose a new password now, because somebody else knew the old one:")
        .link("Choose a new password", reset_url)
}

/// A factor was added, replaced or removed (L16).
pub(crate) fn second_factor_changed(name: &str, reset_url: &str) -> Letter {
    Letter::to(name, "The second factor of your Portolan account was changed")
        .say("an authenticator app or the recovery codes of your Portolan account were changed just now, and other browsers were signed out.")
        .say("If it was not you, take your account back at once:")
        .link("Choose a new password", reset_url)
}

/// An account at a provider signs in from now on (L16).
pub(crate) fn sign_in_method_added(name: &str, provider: &str, url: &str) -> Letter {
    Letter::to(name, "Your Portolan account has a new way to sign in")
        .say(format!(
            "a {provider} account was connected with your Portolan account just now, and signs in to it from now on."
        ))
        .link("Sign-in methods", url)
        .say("If it was not you, disconnect it there, and choose a new password.")
}

/// An account at a provider does not sign in any more (L16).
pub(crate) fn sign_in_method_removed(name: &str, provider: &str, url: &str) -> Letter {
    Letter::to(name, "A way to sign in to your Portolan account was removed")
        .say(format!(
            "a {provider} account was disconnected from your Portolan account just now, and other browsers were signed out."
        ))
        .link("Sign-in methods", url)
        .say("If it was not you, choose a new password at once.")
}

/// A recovery code was used (L12).
pub(crate) fn recovery_code_used(name: &str, left: i64, url: &str) -> Letter {
    Letter::to(name, "A recovery code opened your Portolan account")
        .say(format!(
            "a recovery code was used in place of your authenticator app. {left} are left."
        ))
        .link("Second factor", url)
        .say("If it was not you, choose a new password and make new recovery codes.")
}

/// An invitation (M5).
pub(crate) fn invitation(workspace: &str, inviter: &str, role: Role, link: &str) -> Letter {
    Letter::to_somebody(format!("{inviter} invites you to {workspace} on Portolan"))
        .say(format!(
            "{inviter} invites you to the workspace {workspace} as {role}. The invitation is for this address and works for 7 days."
        ))
        .link("Look at the invitation", link)
        .say("If you do not know what this is about, ignore this message.")
}

/// How somebody comes to a role that gives roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stronger {
    /// By an invitation.
    Invited,
    /// As a member with a weaker role until now.
    Raised,
}

/// To the other owners: an admin or owner more (S-3). `whom` is an address.
pub(crate) fn stronger_role(
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

/// Somebody asks for an app that an administrator has to allow (M7). The app's name is its own word, and cleaned.
pub(crate) fn client_requested(
    name: &str,
    workspace: &str,
    asker: &str,
    client: &str,
    client_id: &str,
    link: &str,
) -> Letter {
    Letter::to(
        name,
        format!("{asker} asks for an app in the workspace {workspace}"),
    )
    .say(format!(
        "{asker} wants to connect the app {client} to the workspace {workspace}, where an administrator has to allow apps first. The app is known as {client_id}."
    ))
    .link("Look at it", link)
    .say("Until you allow it, it cannot connect.")
}

/// An administrator allowed an app that this person asked for (M7).
pub(crate) fn client_allowed(name: &str, workspace: &str, client: &str) -> Letter {
    Letter::to(name, format!("{client} may connect to {workspace} now"))
        .say(format!(
            "an administrator of the workspace {workspace} allowed the app {client}, for which you asked. Go to the app and connect again."
        ))
        .say("If you did not ask for it, nothing needs to be done: it cannot do anything until you agree.")
}

/// A workspace was deleted (M6, L16).
pub(crate) fn workspace_deleted(
    name: &str,
    workspace: &str,
    by: &str,
    until: &str,
    link: &str,
) -> Letter {
    Letter::to(name, format!("The workspace {workspace} was deleted"))
        .say(format!(
            "{by} deleted the workspace {workspace}, which you own. Its servers stopped, and AI apps cannot use it any more."
        ))
        .say(format!(
            "Until {until} any of its owners can restore it. After that everything in it is destroyed."
        ))
        .link("Restore it", link)
}
