//! The store: one contract suite for every implementation, a model, a comparison of both, and what only Redis can get wrong.

mod contract;
mod differential;
mod fixture;
mod lost_replies;
mod model;
mod model_walks;
mod node;
mod only_redis;
mod roll_back;
mod walk;
