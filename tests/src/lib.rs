//! The harness of the end-to-end tests: the built binary, seen from outside.
//!
//! [`stack::Stack`] starts `portolan dev` the way `make run` does, on free ports and with its own data. A [`person::Person`]
//! signs up and clicks through the real pages with a cookie jar and an HTML parser; [`console::Console`] is the JSON API as the
//! console uses it; [`mcp::McpClient`] sends raw messages, so that a test can also send wrong ones. [`program`] runs clients that
//! nobody of this project wrote and plays the person for them. [`fixture::FixtureApi`] is the API behind the tools.

pub mod browser;
pub mod console;
pub mod fixture;
pub mod mcp;
pub mod oauth;
pub mod person;
pub mod program;
pub mod scene;
pub mod stack;
pub mod stand_in;
