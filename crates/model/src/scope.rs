//! OAuth scopes (AUTH-A8, AUTH-K14).

use std::{collections::BTreeSet, fmt};

/// Ordinary use of an MCP server. The only scope that opens anything today.
pub const MCP: &str = "mcp";
/// Asks for a refresh token (OIDC's word; SEP-2207).
pub const OFFLINE_ACCESS: &str = "offline_access";
/// Every scope that can be granted.
pub const KNOWN: &[&str] = &[MCP, OFFLINE_ACCESS];

/// The request's `scope` is not a scope string (RFC 6749 §3.3), or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("scope must be a space-separated list of at most 50 tokens and 1024 bytes")]
pub struct InvalidScope;

/// A set of known scopes, written in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeSet(BTreeSet<&'static str>);

impl ScopeSet {
    /// `mcp` alone: the grant of a client that requests no known scope (AUTH-A8).
    pub fn default_grant() -> Self {
        Self([MCP].into())
    }

    /// Reads a request's scope: unknown tokens are dropped, never refused (AUTH-A8); grammar and
    /// bounds are checked.
    pub fn from_request(text: &str) -> Result<Self, InvalidScope> {
        if text.len() > 1024 {
            return Err(InvalidScope);
        }
        let tokens: Vec<&str> = text.split(' ').filter(|token| !token.is_empty()).collect();
        let grammatical = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if tokens.len() > 50 || !tokens.iter().all(|token| token.bytes().all(grammatical)) {
            return Err(InvalidScope);
        }
        Ok(Self(
            KNOWN
                .iter()
                .copied()
                .filter(|known| tokens.contains(known))
                .collect(),
        ))
    }

    /// Reads a stored set; what is no longer known is dropped.
    pub fn from_stored<S: AsRef<str>>(tokens: &[S]) -> Self {
        Self(
            KNOWN
                .iter()
                .copied()
                .filter(|known| tokens.iter().any(|token| token.as_ref() == *known))
                .collect(),
        )
    }

    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if `scope` is in it.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// True if every scope of `other` is in it too.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    /// The scopes that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The same set with one more scope.
    #[must_use]
    pub fn with(mut self, scope: &'static str) -> Self {
        self.0.insert(scope);
        self
    }

    /// The same set without one scope.
    #[must_use]
    pub fn without(mut self, scope: &str) -> Self {
        self.0.remove(scope);
        self
    }

    /// For storage.
    pub fn to_vec(&self) -> Vec<String> {
        self.0.iter().map(|&scope| scope.to_owned()).collect()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().copied()
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for scope in &self.0 {
            if !std::mem::take(&mut first) {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_unknown_scopes_are_dropped_and_never_refused() {
        assert_eq!(
            ScopeSet::from_request("claudeai openid mcp email")
                .unwrap()
                .to_string(),
            "mcp"
        );
        assert!(ScopeSet::from_request("openid profile").unwrap().is_empty());
    }

    #[test]
    fn a8_scope_grammar_and_bounds_hold() {
        assert_eq!(ScopeSet::from_request("mcp \"x\""), Err(InvalidScope));
        assert_eq!(ScopeSet::from_request(&"m ".repeat(51)), Err(InvalidScope));
        assert_eq!(ScopeSet::from_request(&"m".repeat(1025)), Err(InvalidScope));
    }
}
