//! The policy of answers that no browser may render.

/// For everything that is not a page: it loads nothing, runs nothing and is framed nowhere, should
/// a browser render it.
pub(crate) const UNRENDERED_CSP: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";
