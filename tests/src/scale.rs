//! How large a test is: as every run has time for, or as the load table and the floods of
//! `docs/design/testing.md` have it (`make full`, which sets `PORTOLAN_TEST_FULL`).

/// `pushed` in `make test`, `full` in `make full`.
pub fn sized<T>(pushed: T, full: T) -> T {
    match std::env::var_os("PORTOLAN_TEST_FULL") {
        Some(_) => full,
        None => pushed,
    }
}
