//! The harness of the end-to-end tests: the built binary, seen from outside.
//!
//! [`stack::Stack`] starts `portolan dev` the way `make run` does, on free ports and with its own
//! data. A [`person::Person`] signs up and clicks through the real pages with a cookie jar and an
//! HTML parser; [`console::Console`] is the JSON API as the console uses it; [`mcp::McpClient`]
//! sends raw messages, so that a test can also send wrong ones, and [`raw::RawHttp`] bytes that are
//! no HTTP at all. [`program`] runs third-party clients and plays the person for them.
//! [`fixture::FixtureApi`] is the API behind the tools, [`upstream::Upstream`] an MCP server behind
//! them, [`https::HttpsServer`] a server that is called over TLS.
//!
//! [`cluster::Cluster`] is the service as operators run it: several nodes behind HAProxy or nginx,
//! over a [`redis::RedisServer`] and a [`postgres::PostgresServer`]. A test can kill, hold or drain
//! each node, and let the servers fail. A [`caller::Caller`] follows the protocol through all of
//! that and writes a [`history`]; [`checker::check`] finds the broken promises.

pub mod asker;
pub mod attached;
pub mod authenticator;
pub mod authority;
pub mod behind;
pub mod browser;
pub mod caller;
pub mod checker;
pub mod cluster;
pub mod collector;
pub mod connected;
pub mod console;
pub mod fixture;
pub mod fleet;
pub mod guarded_api;
pub mod held;
pub mod history;
pub mod https;
pub mod link;
pub mod mcp;
pub mod modules;
pub mod native;
pub mod oauth;
mod offered;
pub mod people;
pub mod person;
pub mod postgres;
pub mod process;
pub mod program;
pub mod prose;
pub mod proxy;
pub mod races;
pub mod raw;
pub mod redis;
pub mod revision_upstream;
mod rmcp_upstream;
pub mod scale;
pub mod scene;
pub mod sdk;
pub mod sentinels;
pub mod sources;
pub mod speaker;
pub mod sql;
pub mod sse;
pub mod stack;
pub mod stand_in;
pub mod upstream;
pub mod written_upstream;
