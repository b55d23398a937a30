//! Stores each event once in SQLite before it answers. See README.md.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{mpsc, Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{HeaderMap, AUTHORIZATION, CONTENT_TYPE};
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Method, Request, Response, StatusCode};
use jsonwebtoken::{decode, Algorithm, DecodingKey, Validation};
use rusqlite::{params, Connection, TransactionBehavior};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

const APP: i64 = 1;
const MAX_GROUP: usize = 256;
/// The number of tokens in each of the two generations of the cache.
const MAX_TOKENS: usize = 50_000;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS event (
    position INTEGER PRIMARY KEY, app INTEGER NOT NULL, user TEXT NOT NULL, message_id TEXT NOT NULL,
    received_ms INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (app, user, message_id))";
const INSERTION: &str = "INSERT INTO event (app, user, message_id, received_ms, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (app, user, message_id) DO NOTHING";

#[derive(Clone, Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
}

#[derive(Default)]
struct Cache {
    newer: HashMap<String, Claims>,
    older: HashMap<String, Claims>,
}

impl Cache {
    fn get(&mut self, token: &str) -> Option<Claims> {
        if let Some(claims) = self.newer.get(token) {
            return Some(claims.clone());
        }
        let claims = self.older.get(token)?.clone();
        self.insert(token, claims.clone());
        Some(claims)
    }

    fn insert(&mut self, token: &str, claims: Claims) {
        if self.newer.len() >= MAX_TOKENS {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(token.to_owned(), claims);
    }
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    batch: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    message_id: String,
    user_id: String,
}

struct Event {
    fields: Fields,
    body: String,
}

struct Job {
    events: Vec<Event>,
    is_stored: oneshot::Sender<bool>,
}

struct Server {
    write_key: String,
    key: DecodingKey,
    validation: Validation,
    cache: Mutex<Cache>,
    jobs: Mutex<mpsc::Sender<Job>>,
}

impl Server {
    /// Returns the user of a valid token; `None` also for a wrong write key.
    fn verify(&self, headers: &HeaderMap) -> Option<String> {
        let token = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
        if headers.get("x-write-key")?.as_bytes() != self.write_key.as_bytes() {
            return None;
        }
        let cached = self.cache.lock().unwrap().get(token);
        if let Some(claims) = cached {
            return (u128::from(claims.exp) * 1000 > now_ms()).then_some(claims.sub);
        }
        let claims = decode::<Claims>(token, &self.key, &self.validation).ok()?.claims;
        self.cache.lock().unwrap().insert(token, claims.clone());
        Some(claims.sub)
    }

    async fn answer(&self, request: Request<Body>) -> Result<usize, StatusCode> {
        if request.method() != Method::POST || request.uri().path() != "/v1/batch" {
            return Err(StatusCode::NOT_FOUND);
        }
        let user = self.verify(request.headers()).ok_or(StatusCode::UNAUTHORIZED)?;
        let malformed = StatusCode::BAD_REQUEST;
        let bytes = hyper::body::to_bytes(request.into_body()).await.map_err(|_| malformed)?;
        let batch: Batch = serde_json::from_slice(&bytes).map_err(|_| malformed)?;
        let mut events = Vec::with_capacity(batch.batch.len());
        for body in batch.batch {
            let fields: Fields = serde_json::from_str(body.get()).map_err(|_| malformed)?;
            if fields.message_id.is_empty() {
                return Err(malformed);
            }
            if fields.user_id != user {
                return Err(StatusCode::UNAUTHORIZED);
            }
            events.push(Event { fields, body: body.get().to_owned() });
        }
        let count = events.len();
        if count == 0 {
            return Err(malformed);
        }
        let (is_stored, receiver) = oneshot::channel();
        let job = Job { events, is_stored };
        self.jobs.lock().unwrap().send(job).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        match receiver.await {
            Ok(true) => Ok(count),
            _ => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Commits the waiting requests in one transaction.
fn write(mut connection: Connection, jobs: mpsc::Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(MAX_GROUP - 1));
        let is_stored = store(&mut connection, &group).is_ok();
        for job in group {
            let _ = job.is_stored.send(is_stored);
        }
    }
}

fn store(connection: &mut Connection, group: &[Job]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut insert = transaction.prepare_cached(INSERTION)?;
        let now = now_ms() as i64;
        for event in group.iter().flat_map(|job| &job.events) {
            let fields = &event.fields;
            insert.execute(params![APP, fields.user_id, fields.message_id, now, event.body])?;
        }
    }
    transaction.commit()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, port, database, key_file, write_key]: [String; 5] = arguments.try_into().expect("four arguments");
    let connection = Connection::open(database).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.execute(SCHEMA, []).unwrap();
    let mut validation = Validation::new(Algorithm::RS256);
    validation.leeway = 0;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(|| write(connection, receiver));
    let server = Arc::new(Server {
        write_key,
        key: DecodingKey::from_rsa_pem(&std::fs::read(key_file).unwrap()).unwrap(),
        validation,
        cache: Mutex::default(),
        jobs: Mutex::new(sender),
    });
    let service = make_service_fn(move |_| {
        let server = server.clone();
        async move {
            Ok::<_, Infallible>(service_fn(move |request| {
                let server = server.clone();
                async move {
                    let (status, text) = match server.answer(request).await {
                        Ok(count) => (StatusCode::OK, format!(r#"{{"success":true,"accepted":{count}}}"#)),
                        Err(status) => (status, r#"{"success":false}"#.to_owned()),
                    };
                    Response::builder()
                        .status(status)
                        .header(CONTENT_TYPE, "application/json")
                        .body(Body::from(text))
                }
            }))
        }
    });
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    hyper::Server::bind(&address).tcp_nodelay(true).serve(service).await.unwrap();
}
