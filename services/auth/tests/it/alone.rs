//! temporary
#[path = "../../../../crates/storage/tests/it/database.rs"]
mod database;
mod console;
mod house;
mod sessions;
mod sign_in;
mod sign_up;
mod verifications;
