//! Sources, tools, prompts, resources, servers and upstream servers of a tenant.

pub mod attachments;
pub mod catalog;
pub mod configuration;
pub mod credential_states;
pub mod credentials;
pub mod offered_servers;
pub mod prompts;
pub mod published_items;
pub mod registry_news;
pub mod resources;
pub mod saved_calls;
pub mod servers;
pub mod sources;
pub mod tool_weights;
pub mod tools;
pub mod trash;
pub mod upstream_oauth;
pub mod upstreams;
pub(crate) mod written;
