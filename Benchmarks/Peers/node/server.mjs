// Stores each event once in SQLite before it answers. See README.md.
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { jwtVerify } from 'jose';

const [port, path, keyFile, writeKey] = process.argv.slice(2);
const app = 1;
// The number of tokens in each of the two generations of the cache.
const maxTokens = 50_000;

const key = createPublicKey(readFileSync(keyFile));
const database = new DatabaseSync(path);
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS event (
    position INTEGER PRIMARY KEY, app INTEGER NOT NULL, user TEXT NOT NULL, message_id TEXT NOT NULL,
    received_ms INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (app, user, message_id))`);
const insert = database.prepare(
  `INSERT INTO event (app, user, message_id, received_ms, body) VALUES (?, ?, ?, ?, ?)
   ON CONFLICT (app, user, message_id) DO NOTHING`,
);

class HTTPError extends Error {
  constructor(status) {
    super(`status ${status}`);
    this.status = status;
  }
}

let newer = new Map();
let older = new Map();

function remember(token, claims) {
  if (newer.size >= maxTokens) {
    older = newer;
    newer = new Map();
  }
  newer.set(token, claims);
}

/** Returns the user of a valid token. */
async function verify(token) {
  let claims = newer.get(token);
  if (!claims) {
    claims = older.get(token);
    if (!claims) {
      ({ payload: claims } = await jwtVerify(token, key, { algorithms: ['RS256'] }));
      if (typeof claims.exp !== 'number' || typeof claims.sub !== 'string') throw new HTTPError(401);
    }
    remember(token, claims);
  }
  if (claims.exp * 1000 <= Date.now()) throw new HTTPError(401);
  return claims.sub;
}

let waiting = [];

/** Commits the waiting requests in one transaction. */
function commit() {
  const group = waiting;
  waiting = [];
  let error;
  try {
    const now = Date.now();
    database.exec('BEGIN IMMEDIATE');
    for (const { user, events } of group) {
      for (const event of events) insert.run(app, user, event.messageId, now, JSON.stringify(event));
    }
    database.exec('COMMIT');
  } catch (failure) {
    error = failure;
    if (database.isTransaction) database.exec('ROLLBACK');
  }
  for (const { resolve, reject } of group) error ? reject(error) : resolve();
}

function store(user, events) {
  return new Promise((resolve, reject) => {
    if (waiting.push({ user, events, resolve, reject }) === 1) setImmediate(commit);
  });
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const { batch } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    if (!batch.length || !batch.every((event) => event.messageId && typeof event.messageId === 'string')) {
      throw new HTTPError(400);
    }
    return batch;
  } catch {
    throw new HTTPError(400);
  }
}

async function batch(request) {
  if (request.method !== 'POST' || request.url !== '/v1/batch') throw new HTTPError(404);
  const authorization = request.headers.authorization ?? '';
  if (!authorization.startsWith('Bearer ') || request.headers['x-write-key'] !== writeKey) {
    throw new HTTPError(401);
  }
  const user = await verify(authorization.slice(7)).catch(() => {
    throw new HTTPError(401);
  });
  const events = await read(request);
  if (events.some((event) => event.userId !== user)) throw new HTTPError(401);
  await store(user, events);
  return events.length;
}

createServer((request, response) => {
  const send = (status, content) => {
    const text = JSON.stringify(content);
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
    response.end(text);
  };
  batch(request).then(
    (accepted) => send(200, { success: true, accepted }),
    (error) => send(error.status ?? 503, { success: false }),
  );
}).listen(Number(port), '127.0.0.1');
