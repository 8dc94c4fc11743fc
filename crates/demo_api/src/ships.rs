//! Ships that are known at the desk.

use axum::Json;
use axum::extract::{Path, Query};
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Problem;
use crate::harbours::{SHIPS, Ship, ShipKind, ship_by_imo};
use crate::ports::LengthUnit;

#[derive(Deserialize)]
pub(crate) struct WantedShips {
    name: Option<String>,
    kind: Option<ShipKind>,
    #[serde(rename = "length[min]")]
    shortest: Option<f64>,
    #[serde(rename = "length[max]")]
    longest: Option<f64>,
}

fn unit(headers: &HeaderMap) -> Result<LengthUnit, Problem> {
    match headers
        .get("x-length-unit")
        .map(|value| value.to_str().unwrap_or_default())
    {
        None | Some("metres") => Ok(LengthUnit::Metres),
        Some("feet") => Ok(LengthUnit::Feet),
        Some(_) => Err(Problem::invalid("X-Length-Unit must be metres or feet.")),
    }
}

fn shown(ship: &Ship, unit: LengthUnit) -> Value {
    json!({
        "imo": ship.imo,
        "name": ship.name,
        "kind": ship.kind,
        "flag": ship.flag,
        "length": unit.of(ship.length_m),
        "draught": unit.of(ship.draught_m),
        "length_unit": unit,
        "gross_tonnage": ship.gross_tonnage,
    })
}

pub(crate) async fn search(
    headers: HeaderMap,
    Query(wanted): Query<WantedShips>,
) -> Result<Json<Value>, Problem> {
    let unit = unit(&headers)?;
    let part = wanted.name.unwrap_or_default().to_lowercase();
    let found: Vec<Value> = SHIPS
        .iter()
        .filter(|ship| ship.name.to_lowercase().contains(&part))
        .filter(|ship| wanted.kind.is_none_or(|kind| ship.kind == kind))
        .filter(|ship| {
            wanted
                .shortest
                .is_none_or(|length| unit.of(ship.length_m) >= length)
        })
        .filter(|ship| {
            wanted
                .longest
                .is_none_or(|length| unit.of(ship.length_m) <= length)
        })
        .map(|ship| shown(ship, unit))
        .collect();
    Ok(Json(json!({ "total": found.len(), "items": found })))
}

pub(crate) async fn one(headers: HeaderMap, Path(imo): Path<u32>) -> Result<Json<Value>, Problem> {
    let unit = unit(&headers)?;
    let ship = ship_by_imo(imo).ok_or_else(|| {
        Problem::not_found(format!("No ship with IMO number {imo} is known here."))
    })?;
    Ok(Json(shown(ship, unit)))
}
