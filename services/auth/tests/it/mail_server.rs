//! A third-party mail server (npm `smtp-server`), started for a test.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use portolan_accounts::mail::config::{Certificates, Delivery, MailConfig, Security};
use serde_json::Value;
use tempfile::TempDir;

/// A running server, which ends when dropped.
pub(crate) struct MailServer {
    child: Child,
    // The server ends when its input closes.
    _stdin: ChildStdin,
    port: u16,
    security: Security,
    lines: Mutex<mpsc::Receiver<Value>>,
    seen: Arc<Mutex<Vec<Value>>>,
    certificate: Option<Vec<u8>>,
    _folder: TempDir,
}

impl MailServer {
    pub(crate) fn start(security: Security) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mail/server.mjs");
        assert!(
            script.with_file_name("node_modules").exists(),
            "the packages of tests/mail are not installed: make test-tools"
        );
        let folder = TempDir::with_prefix("portolan-mail-").unwrap();
        let mut command = Command::new("node");
        command.arg(script).arg(match security {
            Security::None => "none",
            Security::StartTls => "starttls",
            Security::Tls => "tls",
        });
        let mut certificate = None;
        if security != Security::None {
            let (key, cert) = make_certificate(folder.path());
            certificate = Some(std::fs::read(&cert).unwrap());
            command.args([key, cert]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str::<Value>(&line).unwrap());
            }
        });
        let first = lines.recv_timeout(Duration::from_secs(60)).unwrap();
        let port = u16::try_from(first["listens"].as_u64().unwrap()).unwrap();
        Self {
            _stdin: child.stdin.take().unwrap(),
            child,
            port,
            security,
            lines: Mutex::new(lines),
            seen: Arc::default(),
            certificate,
            _folder: folder,
        }
    }

    /// The settings to reach it.
    pub(crate) fn config(&self) -> MailConfig {
        MailConfig {
            delivery: Delivery::Smtp,
            host: Some("localhost".to_owned()),
            port: self.port,
            security: self.security,
            user: Some("portolan".to_owned()),
            password: Some("planted-mail-password".to_owned().into()),
            from: Some("Portolan <no-reply@portolan.test>".to_owned()),
            ca: self.certificate.clone().map(Certificates),
        }
    }

    /// Its output so far.
    fn said(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        let mut seen = self.seen.lock().unwrap();
        while let Ok(line) = lines.recv_timeout(Duration::from_millis(200)) {
            seen.push(line);
        }
        seen.clone()
    }

    /// The messages that it accepted.
    pub(crate) fn took(&self) -> Vec<Value> {
        self.said()
            .into_iter()
            .filter_map(|line| line.get("took").cloned())
            .collect()
    }

    /// The number of its temporary refusals.
    pub(crate) fn refusals(&self) -> usize {
        self.said()
            .iter()
            .filter(|line| line.get("refused").is_some())
            .count()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (key, cert) = (folder.join("key.pem"), folder.join("cert.pem"));
    let done = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args([
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success());
    (key, cert)
}
