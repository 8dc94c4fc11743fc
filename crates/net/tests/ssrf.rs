//! The SSRF list of the test plan (TEST-SSRF-1 to TEST-SSRF-13, MCP-AB-15…MCP-AB-19, AUTH-C2):
//! every spelling in every place, against real listeners on loopback that must never see a
//! connection, and a dialler that writes down every address it was asked for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of a test end with its runtime"
)]

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method};
use portolan_net::egress::{
    AllowedDestination, Egress, EgressError, EgressPolicy, EgressRequest, Redirects, parse_url,
};
use portolan_net::resolve::{BoxFuture, Dial, Network, Resolve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A listener that counts connections and answers each request with a fixed text.
struct Listener {
    address: SocketAddr,
    reached: Arc<AtomicUsize>,
}

async fn listener(answer: impl Into<String>) -> Listener {
    let answer = answer.into();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut buffer = [0_u8; 4096];
                while let Ok(n) = stream.read(&mut buffer).await {
                    if n == 0 || stream.write_all(answer.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    Listener { address, reached }
}

/// Answers of a name server that may change from question to question.
#[derive(Default)]
struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    fn tell(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|a| a.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut all = self.answers.lock().unwrap();
        let answer = match all.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => Vec::new(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

/// Writes down what it was asked to dial and leads every connection to one listener, as if the
/// internet were there.
struct Internet {
    stands_for: SocketAddr,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Dial for Internet {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.stands_for))
    }
}

struct World {
    egress: Egress,
    names: Arc<Names>,
    internet: Arc<Internet>,
}

fn world(stands_for: SocketAddr, policy: EgressPolicy) -> World {
    let names = Arc::new(Names::default());
    let internet = Arc::new(Internet {
        stands_for,
        dialled: Mutex::new(Vec::new()),
    });
    let network = Network {
        resolver: Arc::clone(&names) as _,
        dialer: Arc::clone(&internet) as _,
    };
    World {
        egress: Egress::with_network(policy, network).unwrap(),
        names,
        internet,
    }
}

fn open_policy() -> EgressPolicy {
    // Plain HTTP is admitted, so that nothing but the guard of addresses can be what refuses.
    EgressPolicy {
        allow_plain_http: true,
        ..EgressPolicy::default()
    }
}

const REFUSED_ADDRESSES: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.1.2.3",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.1",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.169.123",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "192.88.99.1",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "5f00::1",
    "4000::1",
];

/// Other ways to write 127.0.0.1, 169.254.169.254 and friends, as hosts of URLs.
const SPELLINGS: &[&str] = &[
    "2130706433",
    "0x7f000001",
    "0x7F000001",
    "017700000001",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0177.1",
    "0x7f.0x0.0x0.0x1",
    "127.0.0.1.",
    "127.1.",
    "0",
    "0x0",
    "0.0",
    "00.0.0.0",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "127.0.0。1",
    "１２７.0.0.1",
    "127%2e0%2e0%2e1",
    "%31%32%37.0.0.1",
    "2852039166",
    "0xa9fea9fe",
    "0xA9FEA9FE",
    "025177524776",
    "169.254.43518",
    "169.16689662",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "169.254.169.254.",
    "169。254。169。254",
    "3232235521",
    "0xc0a80001",
    "192.168.1",
    "10.1",
    "0xa.1",
    "012.1",
    "167772161",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7F00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[2002:7f00:0001::]",
    "[2001:0000:7f00:1::1]",
    "[fd00:ec2::254]",
    "[FD00:EC2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
];

/// Names that are refused without resolving them.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "LOCALHOST.",
    "a.localhost",
    "a.b.localhost",
    "A.LocalHost.",
    "localhost.localdomain",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL",
    "metadata.google.internal.",
    "metadata",
    "instance-data.ec2.internal",
    "printer.local",
    "redis",
    "postgres",
    "kubernetes",
    "nas.lan",
    "router.home.arpa",
    "intranet",
    "wiki.corp",
    "host.docker.internal",
    "ｌｏｃａｌｈｏｓｔ",
    "loc%61lhost",
    "1.0.0.127.in-addr.arpa",
];

const OTHER_SCHEMES: &[&str] = &[
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:6379/_PING",
    "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/stats",
    "unix:/var/run/docker.sock",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "ws://127.0.0.1/",
    "wss://example.com/",
    "ldap://127.0.0.1/",
    "tftp://127.0.0.1/x",
    "jar:http://127.0.0.1!/",
    "blob:http://127.0.0.1/x",
    "about:blank",
    "mailto:a@example.com",
    "http+unix://%2Ftmp%2Fx/",
    "view-source:http://127.0.0.1/",
    "ssh://example.com/",
    "netdoc:///etc/passwd",
];

/// Text that is no URL, or names a zone, or carries credentials.
const UNREADABLE: &[&str] = &[
    "",
    "/relative",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://",
    "https://",
    "http://[::1",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1%lo]/",
    "http://256.256.256.256/",
    "http://127.0.0.1.1/",
    "http://0x100000000/",
    "http://1.2.3.4.5/",
    "http://exa mple.com/",
    "http://a<b>.com/",
    "http://[v1.x]/",
    "http://example.com:99999/",
    "http://user@127.0.0.1/",
    "http://user:pass@example.com/",
    "https://example.com:443@127.0.0.1/",
    "https://example.com%40127.0.0.1/",
    "http://:pw@example.com/",
    "http:///",
    "https://%00.example.com/",
    "https://exam%0aple.com/",
];

const REFUSED_PORTS: &[u16] = &[
    22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 2375, 2379, 3306, 3389, 5432, 6000, 6379, 9092,
    10250, 11211, 27017,
];

async fn outcome(egress: &Egress, url: &str) -> Result<(), EgressError> {
    let url = parse_url(url)?;
    let mut request = EgressRequest::get(url);
    request.timeout = Duration::from_secs(5);
    egress.send(request).await.map(|_| ())
}

#[tokio::test]
async fn no_spelling_of_a_private_destination_is_dialled() {
    let trap = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let world = world(trap.address, open_policy());
    let port = trap.address.port();
    let hosts = REFUSED_ADDRESSES
        .iter()
        .map(|a| {
            if a.contains(':') {
                format!("[{a}]")
            } else {
                (*a).to_owned()
            }
        })
        .chain(SPELLINGS.iter().chain(LOCAL_NAMES).map(|s| (*s).to_owned()));
    let mut urls: Vec<String> = Vec::new();
    for host in hosts {
        for scheme in ["http", "https"] {
            urls.push(format!("{scheme}://{host}:{port}/"));
        }
        urls.push(format!("https://{host}/latest/meta-data/"));
    }
    urls.extend(
        OTHER_SCHEMES
            .iter()
            .chain(UNREADABLE)
            .map(|s| (*s).to_owned()),
    );
    urls.extend(
        REFUSED_PORTS
            .iter()
            .map(|port| format!("https://example.com:{port}/")),
    );
    let mut cases = 0;
    for url in &urls {
        let refused = outcome(&world.egress, url).await.expect_err(url);
        assert!(refused.is_refusal(), "{url} was answered by {refused:?}");
        cases += 1;
    }
    assert!(cases >= 300, "only {cases} cases");
    assert_eq!(
        world.internet.dialled.lock().unwrap().as_slice(),
        &[],
        "nothing may be dialled"
    );
    assert_eq!(
        world.names.asked.load(Ordering::SeqCst),
        0,
        "nothing needs to be resolved to be refused"
    );
    assert_eq!(trap.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn no_spelling_reaches_a_listener_on_the_real_network() {
    let trap = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let egress = Egress::new(open_policy()).unwrap();
    let port = trap.address.port();
    for host in SPELLINGS
        .iter()
        .chain(LOCAL_NAMES)
        .chain(&["127.0.0.1", "127.0.0.2", "0.0.0.0"])
    {
        let refused = outcome(&egress, &format!("http://{host}:{port}/"))
            .await
            .expect_err(host);
        assert!(refused.is_refusal(), "{host}: {refused:?}");
    }
    assert_eq!(trap.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_resolves_to_any_refused_address_is_never_dialled() {
    let trap = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let world = world(trap.address, open_policy());
    for (n, address) in REFUSED_ADDRESSES.iter().enumerate() {
        // alone; last of many, as when a CNAME chain ends there; first of many
        for (place, answer) in [
            vec![*address],
            vec!["93.184.216.34", "2606:4700::1111", address],
            vec![address, "93.184.216.34"],
        ]
        .iter()
        .enumerate()
        {
            let name = format!("n{n}-{place}.example.com");
            world.names.tell(&name, &[answer]);
            let refused = outcome(&world.egress, &format!("http://{name}/"))
                .await
                .expect_err(&name);
            assert!(
                matches!(refused, EgressError::BlockedAddress { .. }),
                "{address}: {refused:?}"
            );
            assert!(
                !refused.to_string().contains(address),
                "the address behind a name is nobody's business: {refused}"
            );
        }
    }
    assert_eq!(world.internet.dialled.lock().unwrap().as_slice(), &[]);
    assert_eq!(trap.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_the_dialled_one() {
    // MCP-AB-18: public at the check, private right after.
    let server =
        listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
    let world = world(server.address, open_policy());
    world
        .names
        .tell("turns.example.com", &[&["93.184.216.34"], &["127.0.0.1"]]);
    outcome(&world.egress, "http://turns.example.com/")
        .await
        .unwrap();
    assert_eq!(world.names.asked.load(Ordering::SeqCst), 1);
    assert_eq!(
        world.internet.dialled.lock().unwrap().as_slice(),
        &["93.184.216.34:80".parse().unwrap()]
    );
    // The next connection resolves the name again, gets the private address, and is refused.
    let refused = outcome(&world.egress, "http://turns.example.com/")
        .await
        .unwrap_err();
    assert!(
        matches!(refused, EgressError::BlockedAddress { .. }),
        "{refused:?}"
    );
    assert_eq!(world.internet.dialled.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_reused_connection_asks_no_name_server() {
    let server = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let world = world(server.address, open_policy());
    world.names.tell("kept.example.com", &[&["93.184.216.34"]]);
    for _ in 0..20 {
        outcome(&world.egress, "http://kept.example.com/")
            .await
            .unwrap();
    }
    assert_eq!(world.names.asked.load(Ordering::SeqCst), 1);
    assert_eq!(server.reached.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_redirect_leads_to_a_refused_destination_or_another_origin() {
    let trap = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let port = trap.address.port();
    let targets: Vec<String> = SPELLINGS
        .iter()
        .step_by(4)
        .chain(LOCAL_NAMES.iter().step_by(4))
        .map(|host| format!("http://{host}:{port}/"))
        .chain(
            [
                "file:///etc/passwd",
                "gopher://127.0.0.1/",
                "data:text/plain,x",
                "https://api.example.com/",
                "http://api.example.com:8080/",
                "http://evil.example.com/",
                "//evil.example.com/x",
                "http://user:pw@api.example.com/",
            ]
            .map(str::to_owned),
        )
        .collect();
    for status in [301, 302, 303, 307, 308] {
        for target in &targets {
            let server =
                listener(format!("HTTP/1.1 {status} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")).await;
            let world = world(server.address, open_policy());
            world.names.tell("api.example.com", &[&["93.184.216.34"]]);
            world.names.tell("evil.example.com", &[&["93.184.216.35"]]);
            let mut request = EgressRequest::get(parse_url("http://api.example.com/").unwrap());
            request.redirects = Redirects::SameOrigin;
            request.headers.insert(
                http::header::AUTHORIZATION,
                "Bearer planted".parse().unwrap(),
            );
            let refused = world.egress.send(request).await.expect_err(target);
            assert!(
                matches!(
                    refused,
                    EgressError::Redirect { .. } | EgressError::BlockedUrl { .. }
                ),
                "{status} {target}: {refused:?}"
            );
            assert_eq!(
                server.reached.load(Ordering::SeqCst),
                1,
                "{status} {target}"
            );
        }
    }
    assert_eq!(trap.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_allowance_admits_exactly_what_it_names() {
    let demo = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let other = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let (port, other_port) = (demo.address.port(), other.address.port());
    let allow = vec![AllowedDestination::address([127, 0, 0, 1].into(), port)];
    let egress = Egress::new(EgressPolicy {
        allow: allow.clone(),
        ..EgressPolicy::default()
    })
    .unwrap();
    outcome(&egress, &format!("http://127.0.0.1:{port}/"))
        .await
        .unwrap();
    // Another spelling of the same address is the same address.
    outcome(&egress, &format!("http://2130706433:{port}/"))
        .await
        .unwrap();
    let before = demo.reached.load(Ordering::SeqCst);
    for url in [
        format!("http://127.0.0.1:{other_port}/"),
        format!("http://127.0.0.2:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("ftp://127.0.0.1:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
    ] {
        assert!(
            outcome(&egress, &url).await.expect_err(&url).is_refusal(),
            "{url}"
        );
    }
    // A public name that points at the admitted address is not what the allowance names.
    let world = world(
        demo.address,
        EgressPolicy {
            allow,
            ..open_policy()
        },
    );
    world.names.tell("rebound.example.com", &[&["127.0.0.1"]]);
    let refused = outcome(
        &world.egress,
        &format!("http://rebound.example.com:{port}/"),
    )
    .await
    .unwrap_err();
    assert!(refused.is_refusal());
    assert_eq!(demo.reached.load(Ordering::SeqCst), before);
    assert_eq!(other.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_allowed_name_may_be_private_but_never_a_metadata_address() {
    let server =
        listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
    let allow = vec![AllowedDestination::host("Erp.Internal", 8069)];
    let world = world(
        server.address,
        EgressPolicy {
            allow,
            ..EgressPolicy::default()
        },
    );
    world.names.tell(
        "erp.internal",
        &[
            &["10.1.2.3"],
            &["169.254.169.254"],
            &["0.0.0.0"],
            &["::ffff:10.1.2.3"],
        ],
    );
    outcome(&world.egress, "http://erp.internal:8069/")
        .await
        .unwrap();
    for _ in 0..3 {
        let refused = outcome(&world.egress, "http://erp.internal:8069/")
            .await
            .unwrap_err();
        assert!(
            matches!(refused, EgressError::BlockedAddress { .. }),
            "{refused:?}"
        );
    }
    assert!(
        outcome(&world.egress, "http://erp.internal:8070/")
            .await
            .unwrap_err()
            .is_refusal()
    );
    assert!(
        outcome(&world.egress, "http://x.erp.internal:8069/")
            .await
            .unwrap_err()
            .is_refusal()
    );
}

#[tokio::test]
async fn plain_http_to_a_public_host_needs_the_policy() {
    // MCP-AB-16
    let server = listener("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let world = world(server.address, EgressPolicy::default());
    world.names.tell("api.example.com", &[&["93.184.216.34"]]);
    let refused = outcome(&world.egress, "http://api.example.com/")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("https://"), "{refused}");
    assert_eq!(server.reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn headers_that_frame_the_message_are_not_taken_from_the_caller() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let seen = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut text = Vec::new();
        let mut buffer = [0_u8; 2048];
        while !text.ends_with(b"hello") {
            let n = stream.read(&mut buffer).await.unwrap();
            text.extend_from_slice(&buffer[..n]);
        }
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8(text).unwrap().to_ascii_lowercase()
    });
    let allow = vec![AllowedDestination::address(address.ip(), address.port())];
    let egress = Egress::new(EgressPolicy {
        allow,
        ..EgressPolicy::default()
    })
    .unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "evil"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("connection", "upgrade"),
        ("te", "trailers"),
        ("accept-encoding", "gzip"),
        ("expect", "100-continue"),
        ("proxy-authorization", "x"),
        ("x-api-key", "k"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let mut request = EgressRequest::new(
        Method::POST,
        parse_url(&format!("http://{address}/x?a=1#part")).unwrap(),
    );
    request.headers = headers;
    request.body = "hello".into();
    let answer = egress.send(request).await.unwrap();
    assert_eq!(answer.status, 204);
    let seen = seen.await.unwrap();
    assert!(seen.starts_with("post /x?a=1 http/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("host: {address}\r\n")), "{seen}");
    assert!(
        seen.contains("content-length: 5\r\n")
            && seen.contains("x-api-key: k\r\n")
            && seen.contains("user-agent: portolan/"),
        "{seen}"
    );
    for absent in [
        "transfer-encoding",
        "upgrade",
        "\nte:",
        "accept-encoding",
        "expect",
        "proxy-",
        "evil",
    ] {
        assert!(!seen.contains(absent), "{absent} in {seen}");
    }
}
