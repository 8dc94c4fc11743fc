//! Three lists that must agree: what the code measures, what is described, and what dashboard
//! and alarms ask for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use portolan_telemetry::{METRICS, MetricKind};
use regex::Regex;

/// What operators watch, and by which labels at least (STREAM-20).
const WATCHED: &[(&str, &[&str])] = &[
    ("mcp_streams_open", &["kind"]),
    ("mcp_stream_memory_bytes", &[]),
    ("mcp_stream_delivery_seconds", &[]),
    ("mcp_doorbells_total", &["type"]),
    ("mcp_doorbell_gaps_total", &[]),
    ("mcp_antientropy_repairs_total", &[]),
    ("mcp_resume_total", &["outcome"]),
    ("mcp_append_total", &["outcome"]),
    ("mcp_adoptions_total", &["outcome"]),
    ("mcp_calls_interrupted_total", &["executed"]),
    ("mcp_outage_mode_streams", &[]),
    ("mcp_ring_overflow_total", &[]),
    ("mcp_stream_seal_failures_total", &[]),
    ("redis_rtt_seconds", &["op"]),
    ("redis_inflight", &[]),
    ("redis_breaker_state", &[]),
    ("redis_incarnation", &[]),
    ("redis_used_memory_ratio", &[]),
    ("tenant_log_bytes", &["tenant"]),
    ("members", &[]),
    ("beat_age_seconds", &[]),
    ("clock_skew_seconds", &[]),
    ("registry_stale_seconds", &[]),
    ("registry_reload_seconds", &[]),
    ("listen_connected", &[]),
    ("notice_fanout_seconds", &[]),
    ("limit_decisions_total", &["limit", "result", "source"]),
    ("limit_wait_seconds", &[]),
    ("answers_total", &["outcome"]),
    ("cancels_total", &["outcome"]),
    ("server_requests_open", &[]),
    ("drain_seconds", &[]),
    ("drain_calls_cut_total", &[]),
];

/// Prometheus' own.
const NOT_OURS: &[&str] = &["up"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Uses of a metric in the sources.
#[derive(Debug, Default)]
struct Measured {
    kinds: BTreeSet<String>,
    labels: BTreeSet<String>,
}

/// Every metric that the sources of the product name in an instrument, and how.
fn measured() -> BTreeMap<String, Measured> {
    let mut files = Vec::new();
    for rooms in ["crates", "services"] {
        for room in fs::read_dir(repository().join(rooms)).unwrap() {
            sources(&room.unwrap().path().join("src"), &mut files);
        }
    }
    let tests = Regex::new(r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod \w+ \{").unwrap();
    let texts: Vec<_> = files
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        // Tests measure what they like.
        .map(|text| tests.split(&text).next().unwrap().to_owned())
        .collect();
    let constants: BTreeMap<String, String> =
        Regex::new(r#"const ([A-Z_]+): &str = "([a-z0-9_]+)";"#)
            .unwrap()
            .captures_iter(&texts.concat())
            .map(|found| (found[1].to_owned(), found[2].to_owned()))
            .collect();
    let instrument =
        Regex::new(r#"\b(counter|gauge|histogram)!\(\s*(?:"([a-z0-9_]+)"|([A-Z_]+))"#).unwrap();
    let label = Regex::new(r#""([a-z]+)"\s*=>"#).unwrap();
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for text in &texts {
        for found in instrument.captures_iter(text) {
            let name = match found.get(2) {
                Some(name) => name.as_str(),
                None => constants[&found[3]].as_str(),
            };
            let entry = measured.entry(name.to_owned()).or_default();
            entry.kinds.insert(found[1].to_owned());
            let rest = arguments(&text[found.get(0).unwrap().end()..]);
            let labels = label.captures_iter(rest);
            entry.labels.extend(labels.map(|label| label[1].to_owned()));
        }
    }
    measured
}

/// Returns the text before the bracket that closes the one before `text`.
fn arguments(text: &str) -> &str {
    let mut open = 1;
    let end = text.find(|char| {
        match char {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open == 0
    });
    &text[..end.unwrap_or(text.len())]
}

const fn instrument(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter | MetricKind::CounterFromZero => "counter",
        MetricKind::Gauge | MetricKind::GaugeFromZero => "gauge",
        MetricKind::Histogram => "histogram",
    }
}

/// AUTH-X3: every metric in the code is described, and every described metric is used in the code.
#[test]
fn every_metric_is_described_as_what_it_is_and_every_described_one_is_measured() {
    let described: BTreeMap<String, BTreeSet<String>> = METRICS
        .iter()
        .map(|metric| {
            let kind = instrument(metric.kind).to_owned();
            (metric.name.to_owned(), BTreeSet::from([kind]))
        })
        .collect();
    assert_eq!(described.len(), METRICS.len(), "a name stands there twice");
    let measured: BTreeMap<String, BTreeSet<String>> = measured()
        .into_iter()
        .map(|(name, measured)| (name, measured.kinds))
        .collect();
    assert_eq!(measured, described, "left: measured, right: described");
}

/// STREAM-20.
#[test]
fn everything_that_operators_watch_is_measured_with_its_labels() {
    let measured = measured();
    for (name, labels) in WATCHED {
        let found = measured.get(*name).unwrap_or_else(|| panic!("{name}"));
        for label in *labels {
            assert!(found.labels.contains(*label), "{name}: {label}: {found:?}");
        }
    }
}

/// Names of metrics in an expression of Prometheus.
fn names(expression: &str) -> BTreeSet<String> {
    let mut text = expression.to_owned();
    for (what, by) in [
        (r#""[^"]*""#, ""),
        (r"\{[^}]*\}", ""),
        (r"\[[^\]]*\]", ""),
        (
            r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)",
            " ",
        ),
        (r"\boffset\s+\w+", " "),
        (r"\b(?:and|or|unless|bool)\b", " "),
        (r"\b[a-z_0-9]+\s*\(", "("),
    ] {
        text = Regex::new(what)
            .unwrap()
            .replace_all(&text, by)
            .into_owned();
    }
    Regex::new(r"\b[a-z][a-z0-9_]*\b")
        .unwrap()
        .find_iter(&text)
        .map(|found| found.as_str().to_owned())
        .collect()
}

fn expressions(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(text) if name == "expr" => found.push(text.to_owned()),
                    _ => expressions(value, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

/// Every expression of the alarms and of the dashboard.
fn asked() -> Vec<String> {
    let deploy = repository().join("deploy");
    let read = |path: &str| fs::read_to_string(deploy.join(path)).unwrap();
    let mut asked = Vec::new();
    let alarms = serde_norway::from_str(&read("prometheus/alerts.yml")).unwrap();
    expressions(&alarms, &mut asked);
    let dashboard = serde_json::from_str(&read("grafana/portolan.json")).unwrap();
    expressions(&dashboard, &mut asked);
    assert!(asked.len() > 60, "{}", asked.len());
    asked
}

/// The metric of a name that Prometheus makes of a histogram.
fn base(name: &str) -> &str {
    ["_bucket", "_count", "_sum"]
        .iter()
        .filter_map(|end| name.strip_suffix(end))
        .find(|base| {
            METRICS
                .iter()
                .any(|metric| metric.kind == MetricKind::Histogram && metric.name == *base)
        })
        .unwrap_or(name)
}

/// STREAM-20.
#[test]
fn dashboard_and_alarms_ask_for_all_that_is_watched_and_only_for_what_is_measured() {
    let asked: BTreeSet<String> = asked()
        .iter()
        .flat_map(|expression| names(expression))
        .map(|name| base(&name).to_owned())
        .filter(|name| !NOT_OURS.contains(&name.as_str()))
        .collect();
    let described: BTreeSet<String> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    let missing: Vec<_> = asked.difference(&described).collect();
    assert!(
        missing.is_empty(),
        "asked for, but not measured: {missing:?}"
    );
    for (name, _) in WATCHED {
        assert!(asked.contains(*name), "{name} is shown nowhere");
    }
}

/// An alarm on a label, or on a label's value, that the code never writes cannot fire.
#[test]
fn dashboard_and_alarms_ask_for_labels_and_values_that_are_written() {
    let mut files = Vec::new();
    for rooms in ["crates", "services"] {
        sources(&repository().join(rooms), &mut files);
    }
    let texts: String = files
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let measured = measured();
    let selector = Regex::new(r"\b([a-z][a-z0-9_]*)\{([^}]*)\}").unwrap();
    let matcher = Regex::new(r#"([a-z]+)(=~|!=|!~|=)"([^"]*)""#).unwrap();
    let mut looked = 0;
    for expression in asked() {
        for found in selector.captures_iter(&expression) {
            let name = base(&found[1]);
            for matcher in matcher.captures_iter(&found[2]) {
                // Prometheus adds these two.
                if matches!(&matcher[1], "instance" | "job") {
                    continue;
                }
                assert!(
                    measured[name].labels.contains(&matcher[1]),
                    "{name} has no label {}",
                    &matcher[1]
                );
                for value in matcher[3].split('|') {
                    assert!(
                        texts.contains(&format!("\"{value}\"")),
                        "nobody writes {value}: {expression}"
                    );
                    looked += 1;
                }
            }
        }
    }
    assert!(looked > 8, "{looked}");
}

/// Operators find every metric where they look for it, with its labels.
#[test]
fn the_operators_page_lists_every_metric_with_its_labels() {
    let page = fs::read_to_string(repository().join("docs/operating.md")).unwrap();
    let page: String = page.lines().filter(|line| line.starts_with('|')).collect();
    let measured = measured();
    for metric in METRICS {
        let name = metric.name;
        let found = Regex::new(&format!(r"`{name}(?:\{{([a-z,]*)\}})?`"))
            .unwrap()
            .captures(&page)
            .unwrap_or_else(|| panic!("{name}"));
        let listed: BTreeSet<String> = found
            .get(1)
            .into_iter()
            .flat_map(|labels| labels.as_str().split(','))
            .map(str::to_owned)
            .collect();
        assert_eq!(listed, measured[name].labels, "{name}");
    }
}

#[test]
fn names_are_found_in_expressions() {
    let found = names(
        r#"sum by (le) (rate(a_seconds_bucket{x="y and z"}[5m])) > 0.9 * 40000 unless on () max_over_time(max(members)[15m:15s]) > min(b_total offset 10m)"#,
    );
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a_seconds_bucket", "b_total", "members"]
    );
}
