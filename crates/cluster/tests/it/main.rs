//! Tests of the store: one contract suite for all implementations, a model, a comparison of both,
//! and failures that only Redis can have.

#![expect(clippy::too_many_lines, reason = "a scenario reads in order")]

// The checker of the chaos test also judges the simulation, which writes the same lines.
#[expect(unreachable_pub, reason = "the chaos test is another crate")]
#[expect(dead_code, reason = "the chaos test asks more of it")]
#[path = "../../../../tests/src/checker.rs"]
mod checker;
mod contract;
mod differential;
mod fixture;
#[expect(unreachable_pub, reason = "the chaos test is another crate")]
#[path = "../../../../tests/src/history/line.rs"]
mod history;
mod lost_replies;
mod model;
mod model_walks;
mod mutants;
mod node;
mod only_cluster;
mod only_redis;
mod orders;
mod roll_back;
#[expect(unreachable_pub, reason = "the chaos test is another crate")]
#[path = "../../../../tests/src/sse/position.rs"]
mod sse;
mod under_load;
mod walk;
