//! What every setting is called and means.

/// The name, default and meaning of a setting. The page `docs/configuration.md` is made from these.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Name in the file; `PORTOLAN_` + upper case in the environment.
    pub name: &'static str,
    /// Default as it would be written; empty if there is none.
    pub default: &'static str,
    /// Can it be read from a file by `<name>_file`?
    pub secret: bool,
    /// Meaning, in a sentence or two.
    pub meaning: &'static str,
}

/// Every setting there is.
pub const SETTINGS: &[Described] = &[
    Described {
        name: "public_url",
        default: "",
        secret: false,
        meaning: "Origin under which people and clients reach the service, such as https://mcp.example.com. It is the OAuth issuer, byte for byte. Plain http only for loopback addresses.",
    },
    Described {
        name: "listen",
        default: "127.0.0.1:8080",
        secret: false,
        meaning: "Address of the public listener.",
    },
    Described {
        name: "listen_max_connections",
        default: "40000",
        secret: false,
        meaning: "Most connections that the public listener serves at once, 1-1000000; more wait unaccepted. Each needs an open file, and a running call another one.",
    },
    Described {
        name: "listen_max_connections_per_address",
        default: "",
        secret: false,
        meaning: "Most connections that one client address (IPv6: one /64) holds at the public listener; more are refused. Default: a twentieth of listen_max_connections, but at least 64, or half of them where that is less. 0: no limit, the default of `portolan dev`. Proxies in trusted_proxies are exempt; behind a proxy that is not named there, all clients have its address. Whatever this says, the last tenth of the listener is for addresses that were authorised within the last hour.",
    },
    Described {
        name: "admin_listen",
        default: "127.0.0.1:9090",
        secret: false,
        meaning: "Address of the second listener: /healthz, /readyz, /metrics. Never publish it.",
    },
    Described {
        name: "database_url",
        default: "",
        secret: true,
        meaning: "Postgres (15 or newer) for the service: a login role that is a member of portolan_app and nothing else.",
    },
    Described {
        name: "database_owner_url",
        default: "",
        secret: true,
        meaning: "Postgres as the role that owns the tables. Only `portolan migrate` uses it.",
    },
    Described {
        name: "database_max_connections",
        default: "16",
        secret: false,
        meaning: "Most connections to Postgres held by one process, 4-500. Two of them only listen for news.",
    },
    Described {
        name: "redis_url",
        default: "",
        secret: true,
        meaning: "Redis (7.0 or newer, or Valkey 7.2) in which nodes share sessions, streams and limits: redis://user:password@host:6379/0, or rediss:// with TLS. Of a Redis Cluster: one of its masters, or several with commas between. Without it a process keeps them in its own memory, and only one process may serve MCP endpoints.",
    },
    Described {
        name: "redis_seal",
        default: "true",
        secret: false,
        meaning: "Whether events of streams are sealed before they are written to Redis, each bound to its session and stream. The key is derived from master_secret.",
    },
    Described {
        name: "redis_allow_eviction",
        default: "false",
        secret: false,
        meaning: "Whether to start although Redis throws keys away when its memory is full (maxmemory-policy other than noeviction). Sessions and streams then vanish without notice.",
    },
    Described {
        name: "master_secret",
        default: "",
        secret: true,
        meaning: "32 random bytes as 64 hex digits (openssl rand -hex 32). Every key of the service is derived from it or sealed under it: losing it loses stored credentials and signing keys.",
    },
    Described {
        name: "master_secret_previous",
        default: "",
        secret: true,
        meaning: "Former values of master_secret, with commas between: what they sealed still opens. Needed while the secret is changed, until `portolan admin vault rewrap` has sealed everything again.",
    },
    Described {
        name: "breached_passwords_list",
        default: "",
        secret: false,
        meaning: "File with stolen passwords that are refused: one password or one SHA-1 in hex a line, as such lists are published. Read at the start; takes 8 bytes of memory for each.",
    },
    Described {
        name: "breached_passwords_url",
        default: "",
        secret: false,
        meaning: "Service that knows stolen passwords, such as https://api.pwnedpasswords.com/range/: the first five digits of a new password's SHA-1 are appended, and nothing else leaves. If it does not answer within a second, its check is skipped. Private addresses have to stand in egress_allow.",
    },
    Described {
        name: "login_providers",
        default: "",
        secret: true,
        meaning: "Providers of accounts with which people sign in, as TOML: one table [[login_providers]] each, with name, label, kind (\"oidc\", \"entra\" or \"github\"), issuer or base_url and api_url, client_id, client_secret or client_secret_file, scope, algorithms. In the configuration file the tables stand in the file itself. See \"Sign-in with other accounts\" in operating.md.",
    },
    Described {
        name: "mail",
        default: "queue",
        secret: false,
        meaning: "Where mail goes. \"smtp\" hands it to the mail server of smtp_host; \"queue\" keeps it in the table mails, where nothing delivers it; \"log\" writes address and sign-in code to the log: for trials only.",
    },
    Described {
        name: "mail_from",
        default: "",
        secret: false,
        meaning: "Sender of mail, such as Portolan <portolan@example.com>. Needed with mail = \"smtp\".",
    },
    Described {
        name: "smtp_host",
        default: "",
        secret: false,
        meaning: "Mail server, by the name that its certificate has.",
    },
    Described {
        name: "smtp_port",
        default: "0",
        secret: false,
        meaning: "Port of the mail server. 0 is the usual one: 587 for \"starttls\", 465 for \"tls\", 25 for \"none\".",
    },
    Described {
        name: "smtp_security",
        default: "starttls",
        secret: false,
        meaning: "How the connection to the mail server is protected. \"starttls\" sends nothing when the server does not offer it, \"tls\" is TLS from the first byte, \"none\" is only for a mail server on this machine.",
    },
    Described {
        name: "smtp_user",
        default: "",
        secret: false,
        meaning: "User name at the mail server, with smtp_password. Neither: the server takes our mail without.",
    },
    Described {
        name: "smtp_password",
        default: "",
        secret: true,
        meaning: "Password at the mail server.",
    },
    Described {
        name: "smtp_ca_file",
        default: "",
        secret: false,
        meaning: "File with certificates (PEM) to trust for the mail server beside those of the system.",
    },
    Described {
        name: "log_filter",
        default: "info",
        secret: false,
        meaning: "What is logged, in the syntax of tracing's EnvFilter: info,portolan_mcp=debug.",
    },
    Described {
        name: "log_format",
        default: "text",
        secret: false,
        meaning: "\"text\" for people, \"json\" for machines.",
    },
    Described {
        name: "otlp_endpoint",
        default: "",
        secret: false,
        meaning: "Collector to which nodes send traces of tool calls, by OTLP over HTTP (protobuf): http://collector:4318. Without it there are no traces.",
    },
    Described {
        name: "trace_sample_ratio",
        default: "0.1",
        secret: false,
        meaning: "Share of the calls that are traced when their client says nothing about it, 0-1. A client that sends a traceparent decides itself, as far as trace_asked_per_second goes.",
    },
    Described {
        name: "trace_asked_per_second",
        default: "10",
        secret: false,
        meaning: "Calls a second and node that are traced because their client asks for it (the sampled flag of traceparent). Beyond, trace_sample_ratio decides. 0: clients ask in vain.",
    },
    Described {
        name: "trusted_proxies",
        default: "",
        secret: false,
        meaning: "Networks of proxies whose word on the client's address is believed, such as 10.0.0.0/8.",
    },
    Described {
        name: "proxy_header",
        default: "x-forwarded-for",
        secret: false,
        meaning: "The one header that the trusted proxies write: \"x-forwarded-for\" or \"forwarded\".",
    },
    Described {
        name: "allowed_origins",
        default: "",
        secret: false,
        meaning: "Web origins besides the own one that may call MCP endpoints from a browser.",
    },
    Described {
        name: "egress_allow",
        default: "",
        secret: false,
        meaning: "host:port pairs in private or loopback networks that tools may call all the same. Everything else private is refused.",
    },
    Described {
        name: "egress_allow_plain_http",
        default: "false",
        secret: false,
        meaning: "Whether tools may call public APIs over http without TLS.",
    },
    Described {
        name: "egress_ca_file",
        default: "",
        secret: false,
        meaning: "File with certificate authorities (PEM) to trust beside those of the machine for the APIs, MCP servers and documents of clients that are called: a company's own. Read at the start. Private addresses have to stand in egress_allow all the same.",
    },
    Described {
        name: "page_size",
        default: "100",
        secret: false,
        meaning: "Tools per page of tools/list, 1-1000.",
    },
    Described {
        name: "calls_per_minute",
        default: "600",
        secret: false,
        meaning: "Requests a minute that one person may make through one client, where the workspace has set nothing else.",
    },
    Described {
        name: "tenant_calls_per_minute",
        default: "",
        secret: false,
        meaning: "Tool calls a minute of one workspace, where it has set nothing else. Without it: ten times calls_per_minute.",
    },
    Described {
        name: "tool_calls_per_minute",
        default: "0",
        secret: false,
        meaning: "Calls a minute of any one tool, where the workspace has set nothing else; 0: no limit of its own.",
    },
    Described {
        name: "tenant_running_calls",
        default: "500",
        secret: false,
        meaning: "Calls of one workspace that run at once, over all nodes, where it has set nothing else.",
    },
    Described {
        name: "tenant_open_streams",
        default: "20000",
        secret: false,
        meaning: "Event streams of one workspace that are open at once, over all nodes, where it has set nothing else.",
    },
    Described {
        name: "stream_opens_per_minute",
        default: "600",
        secret: false,
        meaning: "New event streams a minute that one person may open through one client, where the workspace has set nothing else, 0-1000000; 0: no limit. A client that comes back for a stream that broke, with the id of the last event it got (Last-Event-ID), opens no new one: it may have to wait, and is never refused.",
    },
    Described {
        name: "session_open_streams",
        default: "4",
        secret: false,
        meaning: "GET streams of one session that are open at once on one node, where the workspace has set nothing else, 1-1000. More are answered 409; a client that comes back for one takes the place of the oldest.",
    },
    Described {
        name: "client_listens",
        default: "50",
        secret: false,
        meaning: "subscriptions/listen streams (2026-07-28) of one person with one client that are open at once on one node, where the workspace has set nothing else, 1-10000.",
    },
    Described {
        name: "client_parked_calls",
        default: "16",
        secret: false,
        meaning: "Calls of one person with one client (2026-07-28) that wait for an answer to what they asked, at once on one node, where the workspace has set nothing else, 1-10000.",
    },
    Described {
        name: "client_tasks",
        default: "64",
        secret: false,
        meaning: "Tasks of one person with one client on one server that are kept at once, over all nodes, where the workspace has set nothing else, 1-1000.",
    },
    Described {
        name: "tenant_limits_headroom",
        default: "10",
        secret: false,
        meaning: "How many times these defaults owners and admins of a workspace may set in the console, 1-1000. 1: they may only lower them.",
    },
    Described {
        name: "address_requests_per_minute",
        default: "600",
        secret: false,
        meaning: "Requests a minute of one client address (IPv6: one /64) that show no access token known to the node, 0-1000000; 0: no limit. Behind proxies, set trusted_proxies first: without it all clients have the proxy's address.",
    },
    Described {
        name: "node_running_calls",
        default: "2000",
        secret: false,
        meaning: "Calls that one node runs at once; more are answered 503 with Retry-After. One workspace gets three quarters of them at most, two that want everything three sevenths each, and so on, so that another workspace always finds capacity.",
    },
    Described {
        name: "node_open_streams",
        default: "40000",
        secret: false,
        meaning: "Event streams that clients hold open on one node, shared out among workspaces as node_running_calls; more are answered 503 with Retry-After. Keep it below listen_max_connections.",
    },
    Described {
        name: "node_parked_calls",
        default: "1000",
        secret: false,
        meaning: "Calls (2026-07-28) that wait on one node for an answer to what they asked their clients, 1-100000.",
    },
    Described {
        name: "node_resumes_per_second",
        default: "2000",
        secret: false,
        meaning: "Clients that one node serves in a second when they come for an event stream, new or broken, 1-100000: after a node's death they come together. The others wait for their turn, for 5 s at most.",
    },
    Described {
        name: "node_resumes_waiting",
        default: "20000",
        secret: false,
        meaning: "Clients that may wait on one node for node_resumes_per_second, 0-1000000; beyond, those that open a new stream are answered 503 with Retry-After. Those that come back for one wait in any case.",
    },
    Described {
        name: "revocation_max_staleness_secs",
        default: "60",
        secret: false,
        meaning: "Seconds, 15-3600, for which a node goes on to judge access tokens when it receives no revocations from Postgres. Afterwards it answers them 503 with Retry-After until it receives them again, unless Redis shows that no other node receives any: then Postgres is away for all, and calls go on. Without redis_url they always do.",
    },
    Described {
        name: "drain_secs",
        default: "25",
        secret: false,
        meaning: "Seconds after SIGTERM until calls that still run are ended, 0-300. The process is gone at most 5 s later.",
    },
    Described {
        name: "drain_accept_secs",
        default: "5",
        secret: false,
        meaning: "Seconds after SIGTERM during which new connections are still taken, because a balancer needs a while to see that the node is not ready: twice its check interval and 1 s more, 0-60, never longer than drain_secs.",
    },
    Described {
        name: "password_cost",
        default: "standard",
        secret: false,
        meaning: "\"standard\", or \"test\" in debug builds: argon2id with little memory, for test suites.",
    },
];

/// The page that lists every setting, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Made by `portolan emit configuration`; do not edit.\n\n\
         A setting is `name = value` in the TOML file named by `--config`, or `PORTOLAN_NAME` in the environment, which wins. Lists in \
         the environment are separated by commas. Settings marked *secret* can be read from a file: `name_file`, `PORTOLAN_NAME_FILE`. \
         An unknown name refuses to start.\n\n| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let default = if setting.default.is_empty() {
            "–".to_owned()
        } else {
            format!("`{}`", setting.default)
        };
        let secret = if setting.secret { " *(secret)*" } else { "" };
        page.push_str(&format!(
            "| `{}`{secret} | `PORTOLAN_{}` | {default} | {} |\n",
            setting.name,
            setting.name.to_ascii_uppercase(),
            setting.meaning
        ));
    }
    page
}
