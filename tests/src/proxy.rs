//! A balancer in front of the nodes, with the configuration that we give to operators: HAProxy or nginx.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    process::{Daemon, eventually},
    stack::{free_port, program, repository},
};

/// Which program balances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Asks the nodes whether they are ready.
    #[default]
    HaProxy,
    /// Notices when a node refuses connections.
    Nginx,
}

impl Balancer {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::HaProxy => Self::Nginx,
            Self::Nginx => Self::HaProxy,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::HaProxy => "haproxy",
            Self::Nginx => "nginx",
        }
    }
}

/// A running balancer. Ended when dropped.
#[derive(Debug)]
pub struct Proxy {
    process: Option<Daemon>,
    balancer: Balancer,
    listen: SocketAddr,
    auth: Behind,
    mcp: Vec<Behind>,
    folder: PathBuf,
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
    /// Starts what `deploy/` has for this balancer, with other addresses: round robin over `mcp`, everything else to `auth`.
    pub async fn start(
        balancer: Balancer,
        listen: SocketAddr,
        auth: Behind,
        mcp: &[Behind],
        folder: &Path,
    ) -> Result<Self> {
        let mut proxy = Self {
            process: None,
            balancer,
            listen,
            auth,
            mcp: mcp.to_vec(),
            folder: folder.to_owned(),
        };
        proxy.start_again(balancer).await?;
        Ok(proxy)
    }

    /// Ends it without a word: every connection through it breaks.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Starts one, of the same kind or the other, at the same address.
    pub async fn start_again(&mut self, balancer: Balancer) -> Result<()> {
        ensure!(self.process.is_none(), "a balancer is running");
        self.balancer = balancer;
        let command = match balancer {
            Balancer::HaProxy => self.haproxy()?,
            Balancer::Nginx => self.nginx()?,
        };
        let process = Daemon::start(command, &self.folder.join("balancer.log"))?;
        let listens = async || TcpStream::connect(self.listen).is_ok();
        eventually("the balancer listens", Duration::from_secs(10), listens)
            .await
            .with_context(|| process.last_words())?;
        self.process = Some(process);
        Ok(())
    }

    /// Its process id; nginx has a child that works.
    pub fn id(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("no balancer runs")?.id())
    }

    /// Which one runs.
    pub fn balancer(&self) -> Balancer {
        self.balancer
    }

    /// The log of this balancer and of those before it: one line a request.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("balancer.log")).unwrap_or_default()
    }

    fn program(&self) -> Result<PathBuf> {
        program(
            self.balancer.name(),
            "these tests need HAProxy 2.6 and nginx 1.18, or newer",
        )
    }

    fn haproxy(&self) -> Result<Command> {
        let text = fs::read_to_string(repository().join("deploy/haproxy/haproxy.cfg"))?;
        let file = self.folder.join("haproxy.cfg");
        fs::write(&file, self.in_haproxy(&text)?)?;
        let mut command = Command::new(self.program()?);
        command.arg("-db").arg("-f").arg(&file);
        Ok(command)
    }

    /// The operators' file with our addresses. Fails if it no longer has the lines that we change.
    fn in_haproxy(&self, text: &str) -> Result<String> {
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
                    out.push_str(&format!("    bind {}\n", self.listen));
                    changed += 1;
                }
                ["server", "mcp-1", ..] => {
                    for (number, node) in self.mcp.iter().enumerate() {
                        out.push_str(&server(&format!("mcp-{}", number + 1), node));
                    }
                    changed += 1;
                }
                ["server", name, ..] if name.starts_with("mcp-") => {}
                ["server", "auth-1", ..] => {
                    out.push_str(&server("auth-1", &self.auth));
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

    fn nginx(&self) -> Result<Command> {
        let folder = self.folder.join("nginx");
        fs::create_dir_all(&folder)?;
        let text = fs::read_to_string(repository().join("deploy/nginx/portolan.conf"))?;
        fs::write(folder.join("portolan.conf"), self.in_nginx(&text)?)?;
        let place = folder.display();
        let is_root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        let user = if is_root { "user root;" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {place}/{kind};"))
            .concat();
        let file = folder.join("nginx.conf");
        fs::write(
            &file,
            // One process, so that a kill ends all of it.
            format!(
                "{user} daemon off; master_process off; pid {place}/nginx.pid; error_log stderr;\n\
                 events {{ worker_connections 4000; }}\n\
                 http {{ access_log {}/balancer.log; {temporary} include {place}/portolan.conf; }}\n",
                self.folder.display()
            ),
        )?;
        let mut command = Command::new(self.program()?);
        command
            .args(["-e", "stderr", "-p"])
            .arg(&folder)
            .arg("-c")
            .arg(&file);
        Ok(command)
    }

    /// The operators' file with our addresses and without TLS.
    fn in_nginx(&self, text: &str) -> Result<String> {
        let plain = free_port()?;
        let (mut out, mut changed) = (String::new(), 0);
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["listen", "80;"] => {
                    out.push_str(&format!("    listen {plain};\n"));
                    changed += 1;
                }
                ["listen", "443", ..] => {
                    out.push_str(&format!("    listen {};\n", self.listen));
                    changed += 1;
                }
                [name, ..] if name.starts_with("ssl_") => {}
                ["server", address, rest @ ..] if address.contains(":8080") => {
                    let nodes = match *address {
                        "10.0.0.11:8080" => self.mcp.as_slice(),
                        "10.0.0.10:8080" => std::slice::from_ref(&self.auth),
                        _ => &[],
                    };
                    for node in nodes {
                        out.push_str(&format!("    server {} {}\n", node.listen, rest.join(" ")));
                    }
                    changed += usize::from(!nodes.is_empty());
                }
                _ => {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        }
        ensure!(
            changed == 4,
            "deploy/nginx/portolan.conf has no longer the lines with addresses"
        );
        Ok(out)
    }
}
