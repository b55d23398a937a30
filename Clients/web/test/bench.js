// The environment of clients in tests: a manual clock, an in-memory server, and tabs that share a disk.
import { Countersign } from '../src/index.js';
import { MemoryStore } from '../src/memory-store.js';

globalThis.crypto ??= (await import('node:crypto')).webcrypto;

export const start = 1_750_000_000_000;

export class ManualClock {
  time = start;
  seconds = 0;
  #timers = new Set();

  now = () => this.time;
  uptime = () => this.seconds;
  at = (instant, call) => {
    const timer = { instant, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** Advances the clock and runs due timers. */
  async advance(seconds) {
    const end = this.seconds + seconds;
    await settle();
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.instant <= end).sort((one, other) => one.instant - other.instant)[0];
      if (!due) break;
      this.#go(Math.max(this.seconds, due.instant));
      this.#timers.delete(due);
      due.call();
      await settle();
    }
    this.#go(end);
  }

  #go(instant) {
    this.time += (instant - this.seconds) * 1000;
    this.seconds = instant;
  }
}

/** Runs pending tasks until no call of a `watched` store is in progress. */
export async function settle() {
  do await turn(); while (underWay);
}

function turn() {
  if (globalThis.setImmediate) return new Promise(setImmediate);
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = resolve;
    port2.postMessage(null);
  });
}

let underWay = 0;

/** Wraps a store that does I/O, so that `settle` waits for its calls. */
export function watched(store) {
  return new Proxy(store, {
    get: (target, name) => (typeof target[name] !== 'function' ? target[name] : async (...given) => {
      underWay += 1;
      try {
        return await target[name](...given);
      } finally {
        underWay -= 1;
      }
    }),
  });
}

/** A gateway that stores each message once, unless `respond` returns another response. */
export class FakeGateway {
  requests = [];
  stored = new Map();
  duplicates = 0;
  respond = () => null;

  async answer(request) {
    const { batch } = JSON.parse(request.body);
    const token = request.headers.Authorization?.replace('Bearer ', '') ?? null;
    const received = { batch, token, body: request.body, keepalive: request.keepalive, signal: request.signal };
    this.requests.push(received);
    const reply = (await this.respond(received)) ?? this.store(received);
    const headers = reply.headers ?? {};
    return { status: reply.status, header: (name) => headers[name] ?? null, body: reply.text ?? JSON.stringify(reply.body ?? {}) };
  }

  store({ batch }) {
    const fresh = batch.filter((event) => !this.stored.has(event.messageId));
    for (const event of fresh) this.stored.set(event.messageId, event);
    this.duplicates += batch.length - fresh.length;
    return { status: 200, body: { success: true, accepted: fresh.length, duplicates: batch.length - fresh.length } };
  }

  get events() {
    return [...this.stored.values()].map((event) => event.event ?? event.type);
  }

  get tokens() {
    return this.requests.map((request) => request.token);
  }
}

export const reject = (error_code = 22, reason = 'EXPIRED', more = {}) =>
  ({ status: 401, body: { auth_error: { error_code, reason, ...more } } });

/** A store that fails: `add`, `claim`, `settle`, `wipe` and `setMeta` throw `fault` if it is set. */
export class FaultyStore extends MemoryStore {
  fault = null;
  #meta = new Map();

  #check(call) {
    if (this.fault) throw this.fault;
    return call();
  }

  async add(rows) { return this.#check(() => super.add(rows)); }
  async claim(request) {
    const excluded = new Set([...request.excluded].map((sequence) => -sequence));
    return onDisk(await this.#check(() => super.claim({ ...request, excluded })));
  }
  async settle(outcome) {
    const { delivered, quarantined } = outcome;
    return this.#check(() => super.settle({
      ...outcome, delivered: inMemory(delivered),
      quarantined: quarantined.map(({ event, problem }) => ({ event: inMemory([event])[0], problem })),
    }));
  }
  async wipe() {
    await this.#check(() => super.wipe());
    this.#meta.clear();
  }
  async meta(key, initial) {
    if (initial !== undefined && !this.#meta.has(key)) this.#meta.set(key, initial);
    return this.#meta.get(key);
  }
  async setMeta(values) {
    this.#check(() => values.forEach(([key, value]) => this.#meta.set(key, value)));
  }
}

/** Converts sequences: `DiskStore` has positive ones, `MemoryStore` negative ones. */
const onDisk = (rows) => rows.map((row) => ({ ...row, sequence: -row.sequence }));
const inMemory = onDisk;

/** The tabs of an origin, and the state that they share. */
export class Bench {
  clock = new ManualClock();
  gateway = new FakeGateway();
  disk = new FaultyStore({ events: 10_000, bytes: 16 << 20 });
  tabs = new Set();
  /** The content of the journal, which is in `localStorage` in a browser. */
  journal = null;
  warnings = [];
  #locks = new Map();

  constructor(configuration = {}) {
    this.configuration = { endpoint: 'https://gateway.example/', writeKey: 'wk', ...configuration };
  }

  /** The browser APIs of a tab. */
  platform(tab = {}) {
    return {
      clock: this.clock,
      random: () => 1,
      facts: () => ({ os: { name: 'Linux' }, locale: 'de-DE' }),
      send: async (request) => {
        if (tab.isDead) return new Promise(() => {});
        const answer = this.gateway.answer(request);
        const aborted = new Promise((_, reject) => {
          request.signal?.addEventListener('abort', () => reject({ code: 'no_connection', reason: 'aborted' }));
        });
        return Promise.race([answer, aborted]);
      },
      store: () => this.disk,
      journal: () => ({
        read: () => this.journal && JSON.parse(this.journal),
        write: (values) => (this.journal = values && JSON.stringify(values)),
      }),
      warn: (text) => this.warnings.push(text),
      lock: (name, signal, body) => this.#lock(tab, signal, body),
      channel: (name, hear) => {
        tab.hear = hear;
        this.tabs.add(tab);
        return {
          post: (message) => {
            // A closed BroadcastChannel throws too.
            if (!this.tabs.has(tab) && !tab.isDead) throw new Error('InvalidStateError');
            const copy = structuredClone(message);
            for (const other of this.tabs) if (other !== tab && !tab.isDead) queueMicrotask(() => other.isDead || other.hear(copy));
          },
          close: () => this.tabs.delete(tab),
        };
      },
      isHidden: () => tab.isHidden,
      onPage: (hear) => {
        tab.hearPage = hear;
        return () => {};
      },
    };
  }

  /** Opens a tab. `page` sends a page event, such as `hidden`. `kill` ends the tab without one. */
  tab(more = {}, configuration = {}) {
    const tab = { isHidden: false, isDead: false, hear: null, hearPage: null };
    const platform = { ...this.platform(tab), ...more };
    tab.client = new Countersign({ ...this.configuration, ...configuration }, platform);
    tab.page = (event) => tab.hearPage(event);
    tab.kill = () => {
      tab.isDead = true;
      this.tabs.delete(tab);
      tab.release?.();
    };
    return tab;
  }

  client(configuration = {}) {
    return this.tab({}, configuration).client;
  }

  /** Runs one body at a time, in the order of the calls. A killed tab releases the lock. */
  async #lock(tab, signal, body) {
    const before = this.#locks.get('') ?? Promise.resolve();
    const turn = (async () => {
      await before;
      if (tab.isDead || signal.aborted) return;
      await Promise.race([body(), new Promise((resolve) => (tab.release = resolve))]);
    })();
    this.#locks.set('', turn);
    return turn;
  }
}

/** An unsigned token that expires at `expiresAt`, in seconds since 1970. */
export function fakeToken(expiresAt, subject = 'ada') {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part({ sub: subject, exp: expiresAt })}.sig`;
}
