//! Failures of Postgres, sorted by how the caller can react.

/// A storage failure.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A unique name is taken. Carries the constraint's name, which the caller turns into a
    /// sentence.
    #[error("already there: {constraint}")]
    Conflict {
        /// Name of the unique constraint or index.
        constraint: String,
        /// From the driver.
        #[source]
        source: sqlx::Error,
    },
    /// A rule of the schema refused the row (check, foreign key, trigger).
    #[error("refused by {constraint}")]
    Refused {
        /// Name of the constraint.
        constraint: String,
        /// From the driver.
        #[source]
        source: sqlx::Error,
    },
    /// The database does not answer, or answers too late: try again later.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// A row holds what no release ever wrote.
    #[error("inconsistent row in {table}.{column}")]
    Inconsistent {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
    },
    /// The failure of what was asked together with others.
    #[error("{0}")]
    Shared(#[source] std::sync::Arc<StorageError>),
    /// Anything else: a bug, or a schema of another release.
    #[error("the database refused a statement")]
    Database(#[source] sqlx::Error),
}

impl StorageError {
    /// True if the named unique constraint was violated.
    pub fn is_conflict_on(&self, name: &str) -> bool {
        matches!(self.own(), Self::Conflict { constraint, .. } if constraint == name)
    }

    /// True if the named rule of the schema refused it.
    pub fn is_refused_by(&self, name: &str) -> bool {
        matches!(self.own(), Self::Refused { constraint, .. } if constraint == name)
    }

    /// True if waiting may help.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.own(), Self::Unavailable(_))
    }

    /// True for text that Postgres cannot hold: U+0000, or half of a surrogate pair in JSON
    /// (REVIEW-S-6). The entrances refuse such text; this is for what reaches a statement by
    /// another way, as inside a signed token.
    pub fn is_unwritable_text(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self.own() else {
            return false;
        };
        matches!(error.code().as_deref(), Some("22021" | "22P05"))
    }

    fn own(&self) -> &Self {
        match self {
            Self::Shared(error) => error.own(),
            own => own,
        }
    }
}

impl From<sqlx::Error> for StorageError {
    fn from(source: sqlx::Error) -> Self {
        match &source {
            sqlx::Error::Database(error) => {
                let constraint = error.constraint().unwrap_or_default().to_owned();
                match error.code().as_deref().unwrap_or_default() {
                    "23505" => Self::Conflict { constraint, source },
                    // Check, foreign key, not null, exclusion.
                    code if code.starts_with("23") => Self::Refused { constraint, source },
                    // Connection, resources, operator intervention, disk full, time-outs and
                    // serialisation.
                    code if ["08", "53", "57", "40"]
                        .iter()
                        .any(|class| code.starts_with(class))
                        || code == "55P03" =>
                    {
                        Self::Unavailable(source)
                    }
                    _ => Self::Database(source),
                }
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(source),
            _ => Self::Database(source),
        }
    }
}
