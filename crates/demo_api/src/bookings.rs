//! Bookings of berths: the only thing here that can be changed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Desk;
use crate::calendar::Day;
use crate::error::Problem;
use crate::harbours::{PORTS, ship_by_imo};

/// More bookings push the oldest out: the demo may run for months.
const MOST_BOOKINGS: usize = 1000;

/// All bookings by number.
#[derive(Default)]
pub(crate) struct Ledger {
    last: u32,
    bookings: BTreeMap<u32, Booking>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Booking {
    id: String,
    berth_id: &'static str,
    port_id: &'static str,
    ship_imo: u32,
    ship_name: &'static str,
    arrival: Day,
    departure: Day,
    services: Vec<Service>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Service {
    Pilot,
    Tug,
    ShorePower,
    FreshWater,
    WasteDisposal,
}

impl Ledger {
    pub(crate) fn is_free(&self, berth: &str, from: Day, to: Day) -> bool {
        !self
            .bookings
            .values()
            .any(|b| b.berth_id == berth && b.arrival <= to && from <= b.departure)
    }
}

/// A handler that panicked leaves the ledger as consistent as it was.
pub(crate) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(id: &str) -> Result<u32, Problem> {
    id.strip_prefix("BK-")
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| {
            Problem::not_found(format!(
                "There is no booking {id:?}. Bookings are named like BK-1001."
            ))
        })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    berth_id: String,
    ship_imo: u32,
    arrival: Day,
    departure: Day,
    #[serde(default)]
    services: Vec<Service>,
    note: Option<String>,
}

pub(crate) async fn create(
    State(desk): State<Desk>,
    wish: Result<Json<Wish>, JsonRejection>,
) -> Result<impl IntoResponse, Problem> {
    let Json(wish) =
        wish.map_err(|fault| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, fault.body_text()))?;
    let unprocessable = |text: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    let (port, berth) = PORTS
        .iter()
        .find_map(|port| {
            port.berths
                .iter()
                .find(|berth| berth.id == wish.berth_id)
                .map(|berth| (port, berth))
        })
        .ok_or_else(|| unprocessable(format!("There is no berth {:?}.", wish.berth_id)))?;
    let ship = ship_by_imo(wish.ship_imo).ok_or_else(|| {
        unprocessable(format!(
            "No ship with IMO number {} is known here.",
            wish.ship_imo
        ))
    })?;
    if wish.departure < wish.arrival {
        return Err(unprocessable(
            "The departure is before the arrival.".to_owned(),
        ));
    }
    if ship.length_m > f64::from(berth.length_m) || ship.draught_m > berth.depth_m {
        let text = format!(
            "{} is too large for {}: {} m long, {} m deep.",
            ship.name, berth.name, berth.length_m, berth.depth_m
        );
        return Err(Problem::conflict(text));
    }
    let mut ledger = lock(&desk.ledger);
    if !ledger.is_free(berth.id, wish.arrival, wish.departure) {
        return Err(Problem::conflict(format!(
            "{} is taken on these days.",
            berth.name
        )));
    }
    ledger.last = ledger.last.max(1000) + 1;
    let number = ledger.last;
    let booking = Booking {
        id: format!("BK-{number}"),
        berth_id: berth.id,
        port_id: port.id,
        ship_imo: ship.imo,
        ship_name: ship.name,
        arrival: wish.arrival,
        departure: wish.departure,
        services: wish.services,
        note: wish.note,
    };
    ledger.bookings.insert(number, booking.clone());
    while ledger.bookings.len() > MOST_BOOKINGS {
        ledger.bookings.pop_first();
    }
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, format!("/bookings/{}", booking.id))],
        Json(booking),
    ))
}

#[derive(Deserialize)]
pub(crate) struct WantedBooking {
    port_id: Option<String>,
}

pub(crate) async fn list(
    State(desk): State<Desk>,
    Query(wanted): Query<WantedBooking>,
) -> Json<Value> {
    let ledger = lock(&desk.ledger);
    let found: Vec<&Booking> = ledger
        .bookings
        .values()
        .filter(|booking| {
            wanted
                .port_id
                .as_ref()
                .is_none_or(|port| booking.port_id.eq_ignore_ascii_case(port))
        })
        .collect();
    Json(json!({ "total": found.len(), "items": found }))
}

pub(crate) async fn one(
    State(desk): State<Desk>,
    Path(id): Path<String>,
) -> Result<Json<Booking>, Problem> {
    let found = lock(&desk.ledger).bookings.get(&number(&id)?).cloned();
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found(format!("There is no booking {id}.")))
}

pub(crate) async fn cancel(
    State(desk): State<Desk>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    match lock(&desk.ledger).bookings.remove(&number(&id)?) {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(Problem::not_found(format!("There is no booking {id}."))),
    }
}
