//! Tests of counts, histograms and budgets.

mod budget;
mod histogram;
mod meter;
mod pending;
