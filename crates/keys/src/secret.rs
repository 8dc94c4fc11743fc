//! `Secret<T>`: wiped when dropped, mute in logs.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroize;

/// A value that never shows itself: `Debug` prints `Secret(…)`, there is no `Display` and no
/// `Serialize`, and its memory is wiped on drop. [`Secret::expose`] is the one way to it, easy to
/// find in a review.
#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes the value in.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Do not log it, do not keep a copy.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<'de, T: Zeroize + Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_a_secret_is_mute() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
