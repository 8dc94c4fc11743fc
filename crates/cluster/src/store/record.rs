//! What is kept in a record list: things of one owner that somebody asks for later, each with a life of its own.
//!
//! A thing is named like a stream: the shelf stands where the session stands, and decides the partition. Its head is small and listed, its rest
//! is fetched with the thing alone.

use std::time::Duration;

use bytes::Bytes;

use super::{Nonce, Version};

/// What a shelf holds at most. Things that are over do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordBounds {
    /// Things.
    pub items: usize,
    /// Bytes of all heads and rests together.
    pub bytes: usize,
}

/// `put_record`: makes a thing, or changes one by compare and swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRecord {
    /// The version that it has to have; `None` makes it.
    pub expect: Option<Version>,
    /// How long a new one is kept. Changes do not prolong it.
    pub life: Duration,
    /// What is listed.
    pub head: Bytes,
    /// What is not; `None` leaves it as it is.
    pub rest: Option<Bytes>,
    /// What the shelf holds at most.
    pub room: RecordBounds,
}

/// What became of a `put_record`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPut {
    /// It is there. The same bytes once more are the same.
    Done(Version),
    /// Somebody else was first: this is what there is.
    Conflict(Record),
    /// There is no room. Nothing changed; what makes a thing smaller always fits.
    Full,
    /// There is no such thing, or no more.
    Unknown,
}

/// A thing in a record list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Raised by every change.
    pub version: Version,
    /// What is left of its life.
    pub left: Duration,
    /// What is listed.
    pub head: Bytes,
    /// What is not.
    pub rest: Bytes,
}

/// A thing in the list of its shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSummary {
    /// Its name.
    pub nonce: Nonce,
    /// What is left of its life.
    pub left: Duration,
    /// What is listed.
    pub head: Bytes,
}
