//! `portolan connect`: the built binary as a stdio MCP server, in front of the product and of
//! servers that other SDKs made.

mod authorizing;
mod cancelling;
mod clients;
mod eras;
mod installing;
mod passing;
mod product;
mod signing_in;
