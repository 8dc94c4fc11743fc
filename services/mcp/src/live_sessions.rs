//! Sessions as this node saw them, for people who look (PLAY-8, PLAY-9).
//!
//! A node keeps them in memory alone. The console asks all nodes, and they reply: without a question,
//! a session costs the store nothing (STREAM-0.6).

pub(crate) mod board;
pub(crate) mod directory;
pub(crate) mod enquiry;
