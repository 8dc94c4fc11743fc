//! How many files the process may have open: each connection is one, and each stream of a client
//! keeps its own.

use rustix::process::{Resource, getrlimit, setrlimit};

/// A limit below this is too small for the database, Redis, and the connections of a small
/// installation.
pub const FEW: u64 = 4_096;

/// Raises what the process may have open to what the system lets it, as a shell's default (1,024)
/// is for people and not for servers. Answers the number that holds now; `None` is no limit.
pub fn raise() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit;
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            limit = before;
        }
    }
    if let Some(files) = limit.current.filter(|files| *files < FEW) {
        tracing::warn!(
            files,
            "few files may be open at once: each connection is one; raise the hard limit (ulimit -Hn, LimitNOFILE of systemd, ulimits of compose)"
        );
    }
    limit.current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }
}
