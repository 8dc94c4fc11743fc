//! The authentication that a session needs before it may act in a tenant (AUTH-L14), in the terms
//! of RFC 8176.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The authentication methods of a session, as they stand in `amr` of sessions and grants.
pub mod amr {
    /// A password.
    pub const PASSWORD: &str = "pwd";
    /// A code of an authenticator app, or one for when it is lost.
    pub const ONE_TIME_CODE: &str = "otp";
    /// A key that stays in one piece of hardware.
    pub const HARDWARE_KEY: &str = "hwk";
    /// A key that is copied among a person's devices.
    pub const SOFTWARE_KEY: &str = "swk";
    /// The person was there, and said so by a touch.
    pub const USER_PRESENCE: &str = "user";
    /// More than one factor.
    pub const MULTIPLE: &str = "mfa";
}

/// A tenant's requirement for the sign-in of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecondFactor {
    /// Any sign-in method is enough.
    #[default]
    Off,
    /// More than one factor, of any kind.
    Required,
    /// A passkey, alone or beside something else.
    Passkey,
}

impl SecondFactor {
    /// Whether a session that was proved in these ways may act.
    pub fn is_met_by<S: AsRef<str>>(self, amr: &[S]) -> bool {
        let has = |word: &str| amr.iter().any(|known| known.as_ref() == word);
        let has_key = has(amr::HARDWARE_KEY) || has(amr::SOFTWARE_KEY);
        match self {
            Self::Off => true,
            // Sessions from before `mfa` was recorded hold both of its component methods.
            Self::Required => {
                has(amr::MULTIPLE) || (has(amr::PASSWORD) && (has(amr::ONE_TIME_CODE) || has_key))
            }
            Self::Passkey => has_key && (has(amr::MULTIPLE) || has(amr::PASSWORD)),
        }
    }

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Required => "required",
            Self::Passkey => "passkey",
        }
    }
}

impl fmt::Display for SecondFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is none of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a rule: use off, required or passkey")]
pub struct InvalidRule;

impl FromStr for SecondFactor {
    type Err = InvalidRule;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Off, Self::Required, Self::Passkey]
            .into_iter()
            .find(|rule| rule.as_str() == text)
            .ok_or(InvalidRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l14_each_rule_asks_for_what_it_says_and_no_more() {
        for (amr, required, passkey) in [
            (&[] as &[&str], false, false),
            (&["pwd"], false, false),
            // A code alone proves only possession of the app.
            (&["otp"], false, false),
            (&["pwd", "otp"], true, false),
            (&["pwd", "otp", "mfa"], true, false),
            (&["swk", "user", "mfa"], true, true),
            (&["hwk", "user", "mfa"], true, true),
            (&["pwd", "hwk", "user"], true, true),
            // A key without user verification.
            (&["hwk", "user"], false, false),
            (&["mfa"], true, false),
        ] {
            assert!(SecondFactor::Off.is_met_by(amr));
            assert_eq!(SecondFactor::Required.is_met_by(amr), required, "{amr:?}");
            assert_eq!(SecondFactor::Passkey.is_met_by(amr), passkey, "{amr:?}");
        }
        for rule in [
            SecondFactor::Off,
            SecondFactor::Required,
            SecondFactor::Passkey,
        ] {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!("always".parse::<SecondFactor>(), Err(InvalidRule));
    }
}
