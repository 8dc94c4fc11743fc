//! Three lists that must agree: what the code measures, what is described, and what dashboard and alarms ask for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use portolan_telemetry::{Kind, METRICS};
use regex::Regex;

/// Metrics of streams.md §20 that dashboard and alarms ask for and that nothing measures yet. It only shrinks: whoever adds one
/// takes it out here.
const NOT_MEASURED_YET: &[&str] = &[
    "beat_age_seconds",
    "clock_skew_seconds",
    "limit_wait_seconds",
    "listen_connected",
    "mcp_antientropy_repairs_total",
    "mcp_stream_delivery_seconds",
    "mcp_stream_memory_bytes",
    "notice_fanout_seconds",
    "redis_incarnation",
    "redis_inflight",
    "redis_used_memory_ratio",
    "registry_reload_seconds",
    "registry_stale_seconds",
    "server_requests_open",
    "tenant_log_bytes",
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

/// Every metric that the sources of the product name in an instrument, and in which.
fn measured() -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    for rooms in ["crates", "services"] {
        for room in fs::read_dir(repository().join(rooms)).unwrap() {
            sources(&room.unwrap().path().join("src"), &mut files);
        }
    }
    let texts: Vec<_> = files
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let constants: BTreeMap<String, String> =
        Regex::new(r#"const ([A-Z_]+): &str = "([a-z0-9_]+)";"#)
            .unwrap()
            .captures_iter(&texts.concat())
            .map(|found| (found[1].to_owned(), found[2].to_owned()))
            .collect();
    let instrument =
        Regex::new(r#"\b(counter|gauge|histogram)!\(\s*(?:"([a-z0-9_]+)"|([A-Z_]+))"#).unwrap();
    let mut measured: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for found in texts.iter().flat_map(|text| instrument.captures_iter(text)) {
        let name = match found.get(2) {
            Some(name) => name.as_str(),
            None => constants[&found[3]].as_str(),
        };
        measured
            .entry(name.to_owned())
            .or_default()
            .insert(found[1].to_owned());
    }
    measured
}

const fn instrument(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter | Kind::CounterFromZero => "counter",
        Kind::Gauge | Kind::GaugeFromZero => "gauge",
        Kind::Histogram => "histogram",
    }
}

/// X3: nobody measures under a name that is not written down, and nothing is written down that nobody measures.
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
    assert_eq!(measured(), described, "left: measured, right: described");
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

/// streams.md §20.
#[test]
fn dashboard_and_alarms_ask_only_for_what_is_measured_or_known_to_be_missing() {
    let deploy = repository().join("deploy");
    let read = |path: &str| fs::read_to_string(deploy.join(path)).unwrap();
    let mut asked = Vec::new();
    let alarms = serde_norway::from_str(&read("prometheus/alerts.yml")).unwrap();
    expressions(&alarms, &mut asked);
    let dashboard = serde_json::from_str(&read("grafana/portolan.json")).unwrap();
    expressions(&dashboard, &mut asked);
    assert!(asked.len() > 60, "{}", asked.len());

    let histograms: Vec<_> = METRICS
        .iter()
        .filter(|metric| metric.kind == Kind::Histogram)
        .map(|metric| metric.name)
        .chain(NOT_MEASURED_YET.iter().copied())
        .collect();
    let asked: BTreeSet<String> = asked
        .iter()
        .flat_map(|expression| names(expression))
        .map(|name| {
            ["_bucket", "_count", "_sum"]
                .iter()
                .filter_map(|end| name.strip_suffix(end))
                .find(|base| histograms.contains(base))
                .map_or_else(|| name.clone(), str::to_owned)
        })
        .filter(|name| !NOT_OURS.contains(&name.as_str()))
        .collect();
    let described: BTreeSet<String> = METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    let missing: Vec<_> = asked.difference(&described).map(String::as_str).collect();
    assert_eq!(
        missing, NOT_MEASURED_YET,
        "left: asked for and not measured, right: known to be missing"
    );
}

/// Operators find every metric where they look for it, with a mark on those that are not there yet.
#[test]
fn the_operators_page_lists_every_metric_and_marks_the_missing_ones() {
    let page = fs::read_to_string(repository().join("docs/operating.md")).unwrap();
    let page: String = page.lines().filter(|line| line.starts_with('|')).collect();
    let listed = |name: &str| {
        Regex::new(&format!(r"`{name}(?:\{{[a-z,]*\}})?`( \*)?"))
            .unwrap()
            .captures(&page)
            .map(|found| found.get(1).is_some())
    };
    for metric in METRICS {
        assert_eq!(listed(metric.name), Some(false), "{}", metric.name);
    }
    for name in NOT_MEASURED_YET {
        assert_eq!(listed(name), Some(true), "{name}");
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
