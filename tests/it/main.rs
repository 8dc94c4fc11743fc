//! Everything that people and clients can see, through the built binary.

mod browser;
mod clients;
mod conformance;
mod console;
mod dev;
mod endpoint;
mod house;
mod login;
mod matrix;
mod oauth;
mod openapi;
mod tenancy;
mod tools;
