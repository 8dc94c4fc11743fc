//! The store: one contract suite for every implementation, a model, a comparison of both, and what only Redis can get wrong.

mod contract;
mod differential;
mod fixture;
mod lost_replies;
mod model;
mod model_walks;
mod mutants;
mod node;
mod only_cluster;
mod only_redis;
mod orders;
mod roll_back;
mod under_load;
mod walk;
