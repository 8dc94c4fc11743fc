//! Requests that an API holds back until the test lets them go, and the ground truth about what was executed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Query, State},
    http::header,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use crate::history::{History, What};

/// Longest time a test waits for a request to arrive or to be given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that breaks later after a request was not closed for its age: no GET is sent again for it (`portolan_net::egress`).
const STALE_WITHIN: Duration = Duration::from_millis(250);

/// Counts of the requests of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// Requests that came.
    pub arrived: usize,
    /// Requests that were answered.
    pub answered: usize,
    /// Requests whose caller hung up first.
    pub given_up: usize,
    /// Requests whose connection was broken before a byte of the answer, and so soon that a GET may be sent once more.
    pub broken: usize,
    released: bool,
}

/// Everything that was asked for, by key.
#[derive(Debug, Clone)]
pub struct Held {
    fates: Arc<Mutex<BTreeMap<String, Fate>>>,
    news: watch::Sender<u64>,
    mood: watch::Sender<Mood>,
    history: Arc<OnceLock<History>>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            fates: Arc::default(),
            news: watch::Sender::new(0),
            mood: watch::Sender::default(),
            history: Arc::default(),
        }
    }
}

/// How the API treats work ([`Work`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    /// It does it.
    #[default]
    Well,
    /// It breaks the connection when the work is done.
    Dead,
    /// It does not answer before it is in another mood.
    Hung,
    /// It answers with text that is no JSON, and labels it as JSON.
    Mad,
}

/// Work whose effect can be counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// Names the call. Every call of a test has a name of its own.
    pub call: String,
    /// How long it takes.
    #[serde(default)]
    pub millis: u64,
    /// Bytes of padding in the answer.
    #[serde(default)]
    pub size: usize,
}

impl Held {
    /// The counts of `key`.
    pub fn fate(&self, key: &str) -> Fate {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// How often each key was asked for.
    pub fn arrivals(&self) -> BTreeMap<String, usize> {
        let fates = self.fates().into_iter();
        fates.map(|(key, fate)| (key, fate.arrived)).collect()
    }

    /// The counts of each key.
    pub fn fates(&self) -> BTreeMap<String, Fate> {
        self.lock().clone()
    }

    /// Puts the API into another mood.
    pub fn set_mood(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// From now on it is written there when each request comes, and how it ends. The first history is kept to.
    pub fn write_to(&self, history: &History) {
        let _ = self.history.set(history.clone());
    }

    /// Adds a line to the history, if there is one.
    pub(crate) fn note(&self, what: What) {
        if let Some(history) = self.history.get() {
            history.add(what);
        }
    }

    /// Answers every request of `key`, now and later.
    pub fn release(&self, key: &str) {
        self.change(key, |fate| fate.released = true);
    }

    /// Waits until the requests of `key` have come to `wanted`.
    pub async fn until(&self, key: &str, wanted: impl Fn(Fate) -> bool) -> Result<Fate> {
        let mut news = self.news.subscribe();
        let wait = async {
            loop {
                let fate = self.fate(key);
                if wanted(fate) || news.changed().await.is_err() {
                    return fate;
                }
            }
        };
        timeout(PATIENCE, wait)
            .await
            .with_context(|| format!("request {key:?} came no further than {:?}", self.fate(key)))
    }

    /// Waits until so many requests of `key` have come.
    pub async fn arrived(&self, key: &str, count: usize) -> Result<()> {
        self.until(key, |fate| fate.arrived >= count)
            .await
            .map(|_| ())
    }

    /// Waits until so many callers of `key` have hung up.
    pub async fn given_up(&self, key: &str, count: usize) -> Result<()> {
        self.until(key, |fate| fate.given_up >= count)
            .await
            .map(|_| ())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Fate>> {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, key: &str, change: impl FnOnce(&mut Fate)) -> Fate {
        let fate = {
            let mut fates = self.lock();
            let fate = fates.entry(key.to_owned()).or_default();
            change(fate);
            *fate
        };
        self.news.send_modify(|count| *count += 1);
        fate
    }

    pub(crate) fn arrive(&self, key: &str) -> (Visit, usize) {
        let fate = self.change(key, |fate| fate.arrived += 1);
        self.note(What::Reached {
            call: key.to_owned(),
        });
        let visit = Visit {
            held: self.clone(),
            key: key.to_owned(),
            answered: false,
        };
        (visit, fate.arrived)
    }

    /// The operations, for a router.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/held/{key}", get(hold).post(hold))
            .route("/work", post(work))
            .route("/lookup", get(look_up))
            .with_state(self.clone())
    }

    /// The same for an OpenAPI document.
    pub(crate) fn describe(paths: &mut Value) {
        let key =
            json!([{"name": "key", "in": "path", "required": true, "schema": {"type": "string"}}]);
        let done = json!({"200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object"}}}}});
        paths["/held/{key}"] = json!({
            "get": {"operationId": "held_answer", "summary": "Answers when it may", "parameters": key, "responses": done},
            "post": {"operationId": "held_order", "summary": "Takes an order and confirms it when it may", "parameters": key, "responses": done}});
        let call = json!({"type": "string", "description": "Name of the call"});
        let number = json!({"type": "integer", "minimum": 0});
        paths["/work"] = json!({"post": {"operationId": "do_work", "summary": "Does something once",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "required": ["call"], "properties": {"call": call, "millis": number, "size": number}}}}},
            "responses": done}});
        paths["/lookup"] = json!({"get": {"operationId": "look_up", "summary": "Finds something, slowly",
            "parameters": [
                {"name": "call", "in": "query", "required": true, "schema": call},
                {"name": "millis", "in": "query", "schema": number},
                {"name": "size", "in": "query", "schema": number}],
            "responses": done}});
    }
}

/// One request. Dropping it unanswered counts its caller as lost.
#[derive(Debug)]
pub(crate) struct Visit {
    held: Held,
    key: String,
    answered: bool,
}

impl Visit {
    pub(crate) fn answer(mut self) {
        self.answered = true;
        self.held.change(&self.key, |fate| fate.answered += 1);
        self.held.note(What::Served {
            call: self.key.clone(),
        });
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.answered {
            self.held.change(&self.key, |fate| fate.given_up += 1);
            self.held.note(What::GivenUp {
                call: self.key.clone(),
            });
        }
    }
}

async fn hold(State(held): State<Held>, Path(key): Path<String>) -> Json<Value> {
    let mut news = held.news.subscribe();
    let (visit, arrival) = held.arrive(&key);
    while !held.fate(&key).released {
        if news.changed().await.is_err() {
            break;
        }
    }
    visit.answer();
    Json(json!({"key": key, "arrival": arrival}))
}

async fn work(State(held): State<Held>, Json(work): Json<Work>) -> Response {
    answer(&held, &work).await
}

async fn look_up(State(held): State<Held>, Query(work): Query<Work>) -> Response {
    answer(&held, &work).await
}

async fn answer(held: &Held, work: &Work) -> Response {
    let came = Instant::now();
    let (visit, arrival) = held.arrive(&work.call);
    tokio::time::sleep(Duration::from_millis(work.millis)).await;
    let mut mood = held.mood.subscribe();
    // The sender lives as long as `held`.
    let _ = mood.wait_for(|mood| *mood != Mood::Hung).await;
    let mood = *mood.borrow();
    visit.answer();
    match mood {
        Mood::Well | Mood::Hung => {
            Json(json!({"call": work.call, "arrival": arrival, "padding": padding(work)}))
                .into_response()
        }
        Mood::Mad => (
            [(header::CONTENT_TYPE, "application/json")],
            format!("garbage for {}", work.call),
        )
            .into_response(),
        Mood::Dead => {
            if came.elapsed() < STALE_WITHIN {
                held.change(&work.call, |fate| fate.broken += 1);
            }
            let broken = futures_util::stream::once(async {
                Err::<Vec<u8>, _>(std::io::Error::other("the API fell over"))
            });
            Body::from_stream(broken).into_response()
        }
    }
}

/// The answer's padding: it repeats the call's name, so that a piece of another answer shows.
pub fn padding(work: &Work) -> String {
    work.call.chars().cycle().take(work.size).collect()
}
