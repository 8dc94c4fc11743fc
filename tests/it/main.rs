//! Everything that people and clients can see, through the built binary.

mod asking;
mod attack_cases;
mod browser;
mod chaos;
mod checker;
mod clients;
mod conformance;
mod console;
mod dev;
mod endpoint;
mod house;
mod login;
mod matrix;
mod nodes;
mod oauth;
mod offers;
mod openapi;
mod revisions;
mod tenancy;
mod tools;
mod upstream;
mod upstream_accounts;
mod upstreams;
