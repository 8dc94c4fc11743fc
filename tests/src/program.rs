//! Runs a third-party program, and plays the person in front of it.
//!
//! Clients write `open <address>` to open a browser, as a desktop client does. The person walks
//! through the pages and follows the redirect to the client's own callback.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use regex::Regex;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::{person::Person, stack::repository};

/// The result of a program.
#[derive(Debug)]
pub struct Finished {
    /// Did it end with 0?
    pub success: bool,
    /// Everything it wrote.
    pub output: String,
}

/// How to recognise an authorization address in a line of output. The address is the first group.
#[derive(Debug, Clone)]
pub struct OpensBrowser(Regex);

impl OpensBrowser {
    /// The word of our own client programs.
    pub fn with_open() -> Result<Self> {
        Ok(Self(Regex::new(r"^open (\S+)$")?))
    }

    /// Any line that holds the address of the authorization endpoint.
    pub fn with_authorize_address() -> Result<Self> {
        Ok(Self(Regex::new(
            r#"(https?://[^\s"'<>]+/oauth/authorize\?[^\s"'<>]+)"#,
        )?))
    }
}

/// Runs `command` to its end, within `limit`.
pub async fn run(
    mut command: Command,
    person: &Person,
    opens: &OpensBrowser,
    limit: Duration,
) -> Result<Finished> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| {
            format!("cannot start {command:?}; `make test-tools` installs what it needs")
        })?;
    let mut lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
    let mut stderr = child.stderr.take().context("a pipe")?;
    let mut output = String::new();
    let mut errors = String::new();
    let talk = async {
        while let Some(line) = lines.next_line().await? {
            output.push_str(&line);
            output.push('\n');
            if let Some(address) = opens.0.captures(&line).map(|found| found[1].to_owned()) {
                person
                    .agree_and_return(&address)
                    .await
                    .context("the person could not finish")?;
            }
        }
        Ok::<_, anyhow::Error>(())
    };
    let both = async { tokio::join!(talk, stderr.read_to_string(&mut errors)) };
    let outcome = timeout(limit, both).await;
    let status = match outcome {
        Ok((Ok(()), _)) => timeout(limit, child.wait())
            .await
            .context("still running")??,
        Ok((Err(error), _)) => {
            return Err(error.context(format!("after this output:\n{output}{errors}")));
        }
        Err(_) => bail!("still running after {limit:?}. It wrote:\n{output}{errors}"),
    };
    Ok(Finished {
        success: status.success(),
        output: output + &errors,
    })
}

/// A file of the tests, or a clear message about how to get it.
pub fn needs(path: &str) -> Result<PathBuf> {
    let path = repository().join(path);
    if !Path::new(&path).exists() {
        bail!("{} is missing: run `make test-tools`", path.display());
    }
    Ok(path)
}
