//! Counts of tool calls, and what the log of calls keeps of them (`docs/design/metering.md`).
//!
//! Pure: no I/O and no clock. A node records each call in its [`Meter`], drains it every ten
//! seconds into [`Pending`], and writes the drained rows.
//!
//! | Module | Subject |
//! |---|---|
//! | [`histogram`] | durations as an exponential histogram, and its bytes |
//! | [`key`] | the dimensions of a count |
//! | [`totals`] | the sums of a key |
//! | [`rollup`] | sums by key, merged from many rows |
//! | [`meter`] | the counts of a running node |
//! | [`pending`] | drained counts until they are written |
//! | [`budget`] | which calls the log keeps |
//! | [`capture`] | which arguments and results are kept, and how much of them |
//! | [`masking`], [`detectors`] | texts without secrets and personal data |
//! | [`config`] | the settings |

pub mod budget;
pub mod capture;
pub mod config;
pub mod detectors;
pub mod histogram;
pub mod key;
pub mod masking;
pub mod meter;
pub mod pending;
pub mod rollup;
pub mod totals;

pub use budget::Budget;
pub use capture::{CallContent, CapturePolicy, Captured};
pub use config::MeteringConfig;
pub use histogram::Histogram;
pub use key::{CallEra, CallerKind, Key};
pub use meter::Meter;
pub use pending::{Batch, Pending};
pub use rollup::Rollup;
pub use totals::{Measures, Totals};
