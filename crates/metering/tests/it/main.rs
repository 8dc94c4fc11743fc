//! Tests of counts, histograms and budgets.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "shares and ranks of small numbers"
)]

mod budget;
mod capture;
mod histogram;
mod meter;
mod pending;
