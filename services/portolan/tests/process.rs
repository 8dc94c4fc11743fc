//! The built binary with a Redis of the test's own: what it says about it, and how it stops.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Kills the server when its standard input ends: also if the test is killed.
const WATCH: &str = r#""$@" & server=$!; read -r _; kill -9 $server; wait"#;
const LONG: Duration = Duration::from_secs(90);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port()
}

struct Redis {
    port: u16,
    child: Child,
}

impl Redis {
    fn start(port: u16, settings: &[&str]) -> Self {
        let child = Command::new("sh")
            .args(["-c", WATCH, "sh", "redis-server", "--save", "", "--port"])
            .arg(port.to_string())
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("Redis listens", || {
            TcpStream::connect(("127.0.0.1", port))
                .is_ok()
                .then_some(())
        });
        Self { port, child }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The binary with nothing of this process's settings.
fn portolan() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PORTOLAN_") {
            command.env_remove(name);
        }
    }
    command
}

/// A configuration that is complete and whose database is nowhere.
fn with_redis(url: &str) -> Command {
    let mut command = portolan();
    command
        .env("PORTOLAN_PUBLIC_URL", "https://mcp.example.com")
        .env(
            "PORTOLAN_DATABASE_URL",
            "postgres://nobody@127.0.0.1:1/none",
        )
        .env("PORTOLAN_MASTER_SECRET", "ab".repeat(32))
        .env("PORTOLAN_REDIS_URL", url);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What `doctor` found about Redis.
fn doctor(url: &str, settings: &[(&str, &str)]) -> (bool, String) {
    let output = with_redis(url)
        .envs(settings.iter().copied())
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["what"] == "redis")
        .unwrap();
    (
        finding["ok"].as_bool().unwrap(),
        finding["message"].as_str().unwrap().to_owned(),
    )
}

/// STREAM-17.2, STREAM-19.2.
#[test]
fn s17_2_doctor_says_what_is_wrong_with_redis_and_what_to_do() {
    let good = Redis::start(free_port(), &["--maxmemory", "64mb"]);
    let evicts = Redis::start(
        free_port(),
        &["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"],
    );
    let locked = Redis::start(free_port(), &["--requirepass", "right-word"]);
    let nowhere = format!("redis://127.0.0.1:{}/", free_port());
    let wrong_word = format!("redis://:wrong-word@127.0.0.1:{}/", locked.port);
    // A client with TLS that meets a server without it.
    let with_tls = good.url().replace("redis:", "rediss:");
    let told = [("PORTOLAN_REDIS_ALLOW_EVICTION", "true")];
    let cases: [(String, &[_], bool, &str); 6] = [
        (good.url(), &[], true, "reachable"),
        (
            evicts.url(),
            &[],
            false,
            "config set maxmemory-policy noeviction",
        ),
        (evicts.url(), &told, true, "reachable"),
        (wrong_word, &[], false, "password"),
        (nowhere, &[], false, "is it running"),
        (with_tls, &[], false, "rediss://"),
    ];
    // At once: each waits a while for a database that is nowhere.
    std::thread::scope(|scope| {
        for (url, settings, is_good, says) in &cases {
            scope.spawn(move || {
                let (ok, message) = doctor(url, settings);
                assert!(
                    ok == *is_good && message.contains(says) && !message.contains("word@"),
                    "{url}: {message}"
                );
            });
        }
    });
}

#[test]
fn check_connects_to_nothing_and_says_what_a_missing_redis_means() {
    let output = with_redis("redis://127.0.0.1:1/")
        .arg("check")
        .output()
        .unwrap();
    assert!(output.status.success() && !text(&output).contains("redis_url"));
    let output = with_redis("").arg("check").output().unwrap();
    assert!(
        output.status.success() && text(&output).contains("redis_url is not set"),
        "{}",
        text(&output)
    );
    let output = with_redis("http://:planted@cache/")
        .arg("check")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(
        text(&output).contains("redis_url") && !text(&output).contains("planted"),
        "{}",
        text(&output)
    );
}

struct Dev {
    child: Child,
    public: u16,
    admin: u16,
    data: TempDir,
}

impl Dev {
    fn start(settings: &[(&str, &str)]) -> Self {
        let data = TempDir::with_prefix("portolan-process-").unwrap();
        let admin = free_port();
        let mut child = portolan()
            .args(["dev", "--listen", "127.0.0.1:0", "--demo-listen"])
            .args(["127.0.0.1:0", "--admin-listen"])
            .arg(format!("127.0.0.1:{admin}"))
            .arg("--data")
            .arg(data.path())
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find(|line| line.contains("is ready at"));
        let line = line.unwrap_or_else(|| panic!("it did not start: {:?}", child.wait()));
        Self {
            public: line.rsplit(':').next().unwrap().trim().parse().unwrap(),
            child,
            admin,
            data,
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("TERM");
            let _ = self.child.wait();
        }
        // One that was ended at once has left its database to the next start, which never comes.
        let pid = self.data.path().join("postgres/data/postmaster.pid");
        if let Some(pid) = std::fs::read_to_string(pid)
            .ok()
            .and_then(|text| text.lines().next()?.trim().parse::<u32>().ok())
        {
            let _ = Command::new("kill")
                .args(["-QUIT", &pid.to_string()])
                .status();
        }
    }
}

/// Sends a GET request on a keep-alive connection. `None` if the port is closed.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"
    )
    .ok()?;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n) = stream.read(&mut buffer) {
        text.extend_from_slice(&buffer[..n]);
        let so_far = String::from_utf8_lossy(&text);
        // All of an answer of a known length, or up to the end.
        let is_whole = so_far.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            head.lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .is_some_and(|length| length.parse() == Ok(body.len()))
        });
        if n == 0 || is_whole {
            break;
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// STREAM-17.4, and STREAM-16.4 at 0 s.
#[test]
fn s17_4_a_node_stays_ready_without_redis_and_s16_4_one_that_stops_is_not_but_takes_requests() {
    let redis = Redis::start(free_port(), &[]);
    let port = redis.port;
    let mut dev = Dev::start(&[
        ("PORTOLAN_REDIS_URL", &redis.url()),
        ("PORTOLAN_DRAIN_ACCEPT_SECS", "25"),
    ]);
    let ready = get(dev.admin, "/readyz").unwrap();
    assert!(
        ready.starts_with("HTTP/1.1 200")
            && ready.ends_with("ready\nclock: ok\ndatabase: ok\nredis: ok\n"),
        "{ready}"
    );
    drop(redis);
    let away = until("Redis is away", || {
        get(dev.admin, "/readyz").filter(|answer| !answer.contains("redis: ok"))
    });
    assert!(
        away.starts_with("HTTP/1.1 200")
            && away.contains("ready\nclock: ok\ndatabase: ok\nredis: "),
        "{away}"
    );
    until("the gauge tells", || {
        get(dev.admin, "/metrics")
            .filter(|text| text.contains(r#"dependency_up{dependency="redis"} 0"#))
    });
    assert!(
        get(dev.admin, "/healthz")
            .unwrap()
            .starts_with("HTTP/1.1 200")
    );
    let _redis = Redis::start(port, &[]);
    until("Redis is back", || {
        get(dev.admin, "/readyz").filter(|answer| answer.contains("redis: ok"))
    });
    assert!(
        !get(dev.public, "/login")
            .unwrap()
            .contains("connection: close")
    );

    dev.signal("TERM");
    until("it is not ready", || {
        get(dev.admin, "/readyz").filter(|answer| answer.starts_with("HTTP/1.1 503"))
    });
    let page = until("answers say close", || {
        get(dev.public, "/login").filter(|answer| answer.contains("connection: close\r\n"))
    });
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(
        get(dev.admin, "/healthz")
            .unwrap()
            .starts_with("HTTP/1.1 200")
    );
    // A second signal ends at once.
    dev.signal("TERM");
    let ended = until("it ended", || dev.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(130));
}

/// STREAM-16.4: with nothing to wait for, a drain takes no time, and its end is a good one.
#[test]
fn s16_4_an_idle_node_without_a_balancer_ends_well_and_soon() {
    let mut dev = Dev::start(&[]);
    let ready = get(dev.admin, "/readyz").unwrap();
    assert!(
        ready.ends_with("ready\nclock: ok\ndatabase: ok\n"),
        "{ready}"
    );
    let began = Instant::now();
    dev.signal("TERM");
    let ended = until("it ended", || dev.child.try_wait().unwrap());
    assert!(ended.success(), "{ended:?}");
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    assert!(get(dev.public, "/login").is_none());
}
