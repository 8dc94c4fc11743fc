//! HAProxy in front of the nodes, with the configuration that we give to operators.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    process::{Daemon, eventually},
    stack::{program, repository},
};

/// A running HAProxy. Ended when dropped.
#[derive(Debug)]
pub struct Proxy {
    process: Daemon,
}

/// Where one node listens: for clients, and for probes.
#[derive(Debug, Clone, Copy)]
pub struct Behind {
    /// For clients.
    pub listen: SocketAddr,
    /// For probes.
    pub admin: SocketAddr,
}

impl Proxy {
    /// Starts `deploy/haproxy/haproxy.cfg` with other addresses: round robin over `mcp`, everything else to `auth`.
    pub async fn start(
        listen: SocketAddr,
        auth: Behind,
        mcp: &[Behind],
        folder: &Path,
    ) -> Result<Self> {
        let text = fs::read_to_string(repository().join("deploy/haproxy/haproxy.cfg"))?;
        let file = folder.join("haproxy.cfg");
        fs::write(&file, moved(&text, listen, auth, mcp)?)?;
        let mut command =
            Command::new(program("haproxy", "these tests need HAProxy 2.6 or newer")?);
        command.arg("-db").arg("-f").arg(&file);
        let process = Daemon::start(command, &folder.join("haproxy.log"))?;
        let listens = async || TcpStream::connect(listen).is_ok();
        eventually("HAProxy listens", Duration::from_secs(10), listens)
            .await
            .with_context(|| process.last_words())?;
        Ok(Self { process })
    }

    /// What it has written: one line a request.
    pub fn log(&self) -> String {
        self.process.output()
    }
}

/// The operators' file with our addresses. Fails if it no longer has the lines that we change.
fn moved(text: &str, listen: SocketAddr, auth: Behind, mcp: &[Behind]) -> Result<String> {
    let server = |name: &str, node: &Behind| {
        format!(
            "    server {name} {} check port {}\n",
            node.listen,
            node.admin.port()
        )
    };
    let (mut out, mut changed) = (String::new(), 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["bind", ":8080"] => {
                out.push_str(&format!("    bind {listen}\n"));
                changed += 1;
            }
            ["server", "mcp-1", ..] => {
                for (number, node) in mcp.iter().enumerate() {
                    out.push_str(&server(&format!("mcp-{}", number + 1), node));
                }
                changed += 1;
            }
            ["server", name, ..] if name.starts_with("mcp-") => {}
            ["server", "auth-1", ..] => {
                out.push_str(&server("auth-1", &auth));
                changed += 1;
            }
            ["maxconn", _] => out.push_str("    maxconn 4000\n"),
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    ensure!(
        changed == 3,
        "deploy/haproxy/haproxy.cfg has no longer the lines with addresses"
    );
    Ok(out)
}
