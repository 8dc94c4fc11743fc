//! Records: versioned bytes of one owner, each with its own life.
//!
//! A record is named like a stream. Its list takes the place of the session and decides the
//! partition. The list shows the small head of each record; the rest is read with the record alone.

use std::time::Duration;

use bytes::Bytes;

use super::{Nonce, Version};

/// Bounds of a list of records. Expired records do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordBounds {
    /// Maximum number of records.
    pub items: usize,
    /// Maximum number of bytes of all heads and rests together.
    pub bytes: usize,
}

/// Parameters of `put_record`, which creates a record or changes it by compare and swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRecord {
    /// Version that the record must have; `None` creates the record.
    pub expect: Option<Version>,
    /// Life of a new record. Changes do not prolong it.
    pub life: Duration,
    /// Bytes that the list shows.
    pub head: Bytes,
    /// Bytes that the list does not show; `None` leaves them unchanged.
    pub rest: Option<Bytes>,
    /// Bounds of the list.
    pub room: RecordBounds,
}

/// Reply of `put_record`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPut {
    /// The record has these bytes. A repetition with the same bytes changes nothing.
    Done(Version),
    /// Another writer changed the record first. This is the stored record.
    Conflict(Record),
    /// The list is full, and nothing changed. A change that makes a record smaller always fits.
    Full,
    /// The record does not exist or has expired.
    Unknown,
}

/// Stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Name of the record.
    pub nonce: Nonce,
    /// Raised by every change.
    pub version: Version,
    /// Remaining life.
    pub left: Duration,
    /// Bytes that the list shows.
    pub head: Bytes,
    /// Bytes that the list does not show; empty if the whole list was read.
    pub rest: Bytes,
}
