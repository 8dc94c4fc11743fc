//! Ports, their tides, berths and charts.

use axum::Json;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::header;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Desk;
use crate::bookings::lock;
use crate::calendar::Day;
use crate::chart::draw;
use crate::error::Problem;
use crate::harbours::{Berth, Facility, PORTS, Port, port};

/// The principal lunar tide, in hours.
const LUNAR: f64 = 12.420_601;

fn known(id: &str) -> Result<&'static Port, Problem> {
    port(id).ok_or_else(|| {
        Problem::not_found(format!(
            "There is no port {id:?}. Ports are named by UN/LOCODE, like DEHAM."
        ))
    })
}

#[derive(Deserialize)]
pub(crate) struct WantedPort {
    country: Option<String>,
    min_draught_m: Option<f64>,
    limit: Option<usize>,
}

/// `facilities` may be repeated, which the query extractor does not read into a list.
fn wanted_facilities(query: Option<&str>) -> Result<Vec<Facility>, Problem> {
    query
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.strip_prefix("facilities="))
        .map(|name| {
            serde_json::from_value(Value::from(name)).map_err(|_| {
                Problem::invalid(format!(
                    "{name:?} is not a facility; see the enum in the document."
                ))
            })
        })
        .collect()
}

pub(crate) async fn list(
    Query(wanted): Query<WantedPort>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let facilities = wanted_facilities(query.as_deref())?;
    let limit = wanted.limit.unwrap_or(50);
    if !(1..=50).contains(&limit) {
        return Err(Problem::invalid("limit must be between 1 and 50."));
    }
    let found: Vec<&Port> = PORTS
        .iter()
        .filter(|port| {
            wanted
                .country
                .as_ref()
                .is_none_or(|country| port.country.eq_ignore_ascii_case(country))
        })
        .filter(|port| {
            wanted
                .min_draught_m
                .is_none_or(|depth| port.max_draught_m >= depth)
        })
        .filter(|port| {
            facilities
                .iter()
                .all(|facility| port.facilities.contains(facility))
        })
        .collect();
    Ok(Json(
        json!({ "total": found.len(), "items": &found[..limit.min(found.len())] }),
    ))
}

pub(crate) async fn one(Path(id): Path<String>) -> Result<Json<&'static Port>, Problem> {
    known(&id).map(Json)
}

#[derive(Deserialize)]
pub(crate) struct TideQuery {
    date: Day,
    units: Option<LengthUnit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LengthUnit {
    Metres,
    Feet,
}

impl LengthUnit {
    /// A length in metres, in this unit, to the centimetre.
    pub(crate) fn of(self, metres: f64) -> f64 {
        let length = if self == Self::Feet {
            metres / 0.3048
        } else {
            metres
        };
        (length * 100.0).round() / 100.0
    }
}

/// High and low waters of the day from the lunar tide, and the neap–spring cycle on its range: near enough to look right.
pub(crate) async fn tides(
    Path(id): Path<String>,
    Query(wanted): Query<TideQuery>,
) -> Result<Json<Value>, Problem> {
    let port = known(&id)?;
    let unit = wanted.units.unwrap_or(LengthUnit::Metres);
    let (range, first_high) = port.tide;
    let start = f64::from(wanted.date.number()) * 24.0;
    let age = start / 24.0 / 14.765;
    let range = range * (1.0 + 0.25 * (age * std::f64::consts::TAU).cos());
    let half = LUNAR / 2.0;
    // The first extreme of the day: a whole number of half tides after the first high water of day 0.
    let steps = ((start - first_high) / half).ceil();
    let mut extremes = Vec::new();
    for n in 0..4 {
        let step = steps + f64::from(n);
        let hours = first_high + step * half - start;
        if hours >= 24.0 {
            break;
        }
        let high = step.rem_euclid(2.0) < 0.5;
        let minutes = (hours * 60.0).floor();
        let height = if high {
            range / 2.0 + range * 0.6
        } else {
            range * 0.1
        };
        extremes.push(json!({
            "kind": if high { "high" } else { "low" },
            "time": format!("{:02}:{:02}", (minutes / 60.0).floor(), minutes % 60.0),
            "height": unit.of(height),
        }));
    }
    Ok(Json(
        json!({ "port_id": port.id, "date": wanted.date, "units": unit, "extremes": extremes }),
    ))
}

#[derive(Deserialize)]
pub(crate) struct BerthQuery {
    free_on: Option<Day>,
    min_length_m: Option<u32>,
    shore_power: Option<bool>,
}

pub(crate) async fn berths(
    State(desk): State<Desk>,
    Path(id): Path<String>,
    Query(wanted): Query<BerthQuery>,
) -> Result<Json<Value>, Problem> {
    let port = known(&id)?;
    let ledger = lock(&desk.ledger);
    let found: Vec<&Berth> = port
        .berths
        .iter()
        .filter(|berth| {
            wanted
                .min_length_m
                .is_none_or(|length| berth.length_m >= length)
        })
        .filter(|berth| {
            wanted
                .shore_power
                .is_none_or(|power| berth.shore_power == power)
        })
        .filter(|berth| {
            wanted
                .free_on
                .is_none_or(|day| ledger.is_free(berth.id, day, day))
        })
        .collect();
    Ok(Json(json!({ "port_id": port.id, "items": found })))
}

pub(crate) async fn chart(Path(id): Path<String>) -> Result<impl IntoResponse, Problem> {
    let port = known(&id)?;
    Ok((
        [
            (header::CONTENT_TYPE, "image/png"),
            (header::CACHE_CONTROL, "max-age=3600"),
        ],
        draw(port),
    ))
}
