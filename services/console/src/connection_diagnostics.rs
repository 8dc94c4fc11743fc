//! Connection diagnostics (AUTH-X2): attempts of clients to connect, assembled from recorded steps.
//!
//! | Module | Subject |
//! |---|---|
//! | [`attempts`] | steps combined into attempts |
//! | [`paging`] | attempts, page by page |
//! | [`known`] | known faults of clients that match an attempt |

pub mod attempts;
pub mod known;
pub mod paging;
