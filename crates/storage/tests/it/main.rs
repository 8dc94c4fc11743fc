//! SQL on a real Postgres. What must happen once is tried by several nodes at the same instant.

mod database;
mod oauth;
mod scene;
