import { Engine, closed } from './engine.js';
import { browser } from './platform.js';
import { Queue } from './queue.js';
import { Tokens, isToken } from './tokens.js';
import { toJSON, wellFormed } from './values.js';

/**
 * @typedef {import('./types.js').Configuration} Configuration
 * @typedef {import('./types.js').Receipt} Receipt
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').NewRow} NewRow
 */

export const version = '0.1.0';

const maximumEventBytes = 32 << 10;
/** The maximum number of events that wait for the storage. Further events are dropped and counted. */
const maximumUnsaved = 1000;
/** Maximum total size of the events in keepalive requests. Browsers allow 64 KiB (WHATWG Fetch, section 4.6). */
const farewellBytes = 60_000;
/** The maximum number of events of a page that are copied, to send them in keepalive requests. */
const maximumTail = 100;
/** Seconds that a page is hidden before a new session begins. */
const sessionTimeout = 1800;

/** `code` is stable: `invalid_configuration`, `invalid_event`, `event_too_large` or `storage_failed`. */
export class CountersignError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = 'CountersignError';
    this.code = code;
  }
}

/**
 * Records the actions of a page's users, and delivers each event once to a gateway, under its user's token.
 *
 * Tabs of one origin and write key share a queue, and one tab sends. Events on disk survive reloads and crashes until
 * a server has accepted them or a limit evicts them.
 */
export class Countersign {
  /** @type {Engine} */
  #engine;
  #queue;
  /** @type {Tokens} */
  #tokens;
  #platform;
  #url;
  #writeKey;
  #channel;
  #offPage;
  #closing = new AbortController();
  /**
   * Null when the queue is open and all calls that waited for it are done.
   * @type {Promise<void> | null}
   */
  #ready = null;
  #anonymousId = '';
  #userId = '';
  #sessionId = '';
  #hiddenAt = 0;
  /**
   * Members of every event's `context`.
   * @type {Record<string, any>}
   */
  #context;
  #dropped = 0;
  /** @type {{ row: NewRow, resolve: (receipt: Receipt) => void }[]} */
  #unsaved = [];
  /** @type {Promise<void> | null} */
  #saving = null;
  /**
   * The latest events of this page that no server has confirmed.
   * @type {Map<string, NewRow>}
   */
  #tail = new Map();
  /**
   * Pending requests to the tab that sends.
   * @type {Map<string, { ask: () => void, resolve: (result: any) => void }>}
   */
  #asks = new Map();
  /** @type {Set<(failure: import('./types.js').AuthenticationFailure) => void>} */
  #handlers = new Set();
  /**
   * The latest unresolved failure of each user.
   * @type {Map<string | null, import('./types.js').AuthenticationFailure>}
   */
  #standing = new Map();

  /**
   * Opens the queue in the background. Throws `CountersignError` with `invalid_configuration`.
   *
   * @param {Configuration} configuration
   * @param {import('./types.js').Platform} [platform] For tests.
   */
  constructor(configuration, platform = browser()) {
    const { endpoint, writeKey, tokenProvider, context } = configuration;
    // `test` would convert values of other types to texts.
    if (typeof endpoint !== 'string' || !/^https?:\/\/[^/]/i.test(endpoint)) throw invalid('endpoint: not an http URL');
    if (!isToken(writeKey)) throw invalid('writeKey: not ASCII');
    const { clock, random } = (this.#platform = platform);
    this.#url = endpoint.replace(/\/*$/, '/v1/batch');
    this.#writeKey = writeKey;
    const name = `countersign ${writeKey}`;
    let disk = null;
    try {
      disk = platform.store(name);
    } catch {}
    const queue = (this.#queue = new Queue(disk, clock, platform.journal(name)));
    this.#tokens = new Tokens({
      provider: tokenProvider, clock, random,
      load: (user) => queue.meta(`token ${user}`),
      save: (user, token, isBack = false) => {
        // A provider may return after `close`.
        if (this.#isClosed) return;
        queue.setMeta({ [`token ${user}`]: token });
        this.#post({ type: 'token', user, token, isBack });
      },
      changed: (user, generation) => this.#engine.tell((sender) => sender.tokenChanged(user, generation, clock.uptime())),
      resolved: (user) => this.#engine.tell((sender) => sender.tokenResolved(user)),
      failed: (failure) => this.#engine.report(failure),
    });
    this.#engine = new Engine({
      queue, tokens: this.#tokens, clock, random,
      send: (rows, token, signal) => this.#send(rows, token, false, signal),
      leads: () => {
        this.#post({ type: 'leads' });
        this.#askAgain();
      },
      settled: (ids) => this.#share({ type: 'settled', ids }),
      failed: (failure) => this.#share({ type: 'failed', failure }),
      solved: (user) => this.#standing.has(user || null) && this.#share({ type: 'solved', user }),
      warn: (text) => platform.warn(`countersign: ${text}`),
    });
    this.#engine.isHidden = platform.isHidden();
    this.#channel = platform.channel(name, (message) => this.#hear(message));
    this.#offPage = platform.onPage((event) => this.#onPage(event));
    this.#context = { app: { version: context?.appVersion, build: context?.appBuild }, ...platform.facts() };
    for (const part in this.#context) if (context?.parts?.includes(/** @type {any} */ (part)) === false) delete this.#context[part];
    this.#sessionId = this.#newId();
    this.#hold(this.#start(name));
  }

  get #isClosed() {
    return this.#closing.signal.aborted;
  }

  /**
   * Sends a message to the other tabs.
   * @param {any} message
   */
  #post(message) {
    if (!this.#isClosed) this.#channel.post(message);
  }

  /** @param {string} name */
  async #start(name) {
    this.#anonymousId = await this.#queue.open(this.#newId());
    this.#userId = (await this.#queue.meta('userId').catch(() => null)) ?? '';
    await this.#tokens.load(this.#userId);
    // Log-outs that earlier pages did not complete. Earlier versions stored one user instead of an array.
    /** @type {string[]} */
    const signingOut = [(await this.#queue.meta('leaving').catch(() => null)) ?? []].flat();
    for (const user of signingOut) {
      if (user !== this.#userId) this.#tokens.signingOut.add(user);
      await this.#tokens.load(user);
    }
    this.#campaign(name);
    for (const user of signingOut) this.#leave(user);
  }

  /**
   * Sends while there is work. Only the tab that holds the lock sends. Without a disk, no lock is needed.
   * @param {string} name
   */
  async #campaign(name) {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (this.#queue.disk) await this.#platform.lock(name, signal, () => this.#engine.run());
      else await this.#engine.run();
      if (!signal.aborted) await this.#engine.rest();
    }
  }

  /**
   * Runs `body` once the queue is open, after all earlier calls.
   * @template T @param {() => T} body @returns {Promise<T>}
   */
  async #do(body) {
    if (!this.#ready) return body();
    const done = this.#ready.then(body);
    this.#hold(done);
    return done;
  }

  /**
   * Makes later calls wait for `work`.
   * @param {Promise<unknown>} work
   */
  #hold(work) {
    /** @type {Promise<void>} */
    const ready = (this.#ready = work.catch(() => {}).then(() => {
      if (this.#ready === ready) this.#ready = null;
    }));
  }

  // Users

  /** The current user, as identified on this page or an earlier one; null without a user or while the queue opens. */
  get userId() {
    return this.#userId || null;
  }

  /**
   * Sets the current user, on later pages too, until `logOut()`, `wipe()` or another call.
   *
   * Earlier events keep their user. An event is recorded if the user changes or if there are traits.
   *
   * @param {string} userId The id in the app's own systems: not empty, and byte for byte the `sub` of the token.
   * @param {string | null} [token] The token from the app's backend; null if there is a token provider.
   * @param {Record<string, unknown>} [traits] The user's attributes.
   * @returns {Promise<Receipt | null>} Where the event is stored; null without an event. Rejects as
   *   `track` does; then the user does not change.
   */
  async identify(userId, token, traits) {
    checkText(userId, 'userId');
    const event = this.#event('identify', {}, 'traits', traits);
    return this.#do(() => {
      // Rejects an event that is too large before the user changes.
      this.#row(event, userId);
      return this.#setUser(userId, token) || traits || this.#isClosed ? this.#save(event) : null;
    });
  }

  /**
   * As `identify`, without an event.
   * @param {string} userId @param {string | null} [token] @returns {Promise<void>}
   */
  async changeUser(userId, token) {
    checkText(userId, 'userId');
    await this.#do(() => this.#setUser(userId, token));
  }

  /**
   * Sets a new token of the current user. Events that wait for a token are sent at once. Ignored without a user.
   * @param {string} token Exactly as the backend made it. @returns {Promise<void>}
   */
  async setToken(token) {
    await this.#do(() => {
      if (this.#userId && !this.#isClosed) this.#tokens.take(this.#userId, token);
    });
  }

  /**
   * Returns true if the user has changed.
   * @param {string} userId @param {string | null} [token]
   */
  #setUser(userId, token) {
    if (this.#isClosed) return false;
    const isAnother = this.#userId !== userId;
    if (isAnother) {
      this.#userId = userId;
      this.#queue.setMeta({ userId });
      this.#tokens.load(userId);
    }
    if (token != null) this.#tokens.take(userId, token);
    if (isAnother) this.startSession();
    return isAnother;
  }

  /**
   * Signs the user out: sends the queued events under the user's token, then deletes the token in all tabs.
   * Events that cannot be sent now wait for another token, from the app or its provider, on later pages too. Without
   * a token provider, the events of a user who never had a token are sent later, without a token.
   */
  async logOut() {
    const user = await this.#do(() => {
      const user = this.#userId;
      if (this.#isClosed) return user;
      this.#userId = '';
      if (user) this.#tokens.signingOut.add(user);
      // If this page ends before the log-out is complete, the next page completes it.
      this.#queue.setMeta({ leaving: [...this.#tokens.signingOut], userId: null });
      this.startSession();
      return user;
    });
    return this.#leave(user);
  }

  /** @param {string} user */
  async #leave(user) {
    const result = await this.flush();
    // The user may have signed in again meanwhile. Then `left` keeps the new token.
    if (user && !this.#isClosed) {
      this.#tokens.left(user, result.isComplete);
      this.#queue.setMeta({ leaving: [...this.#tokens.signingOut] });
    }
    return result;
  }

  // Events

  /**
   * Records an action of the user. Resolves once the event is stored or dropped.
   *
   * Rejects with `CountersignError` for an event that can never be sent: `invalid_event`, `event_too_large`.
   *
   * @param {string} event The event's name, such as `Order Completed`.
   * @param {Record<string, unknown>} [properties] docs/reference/event-format.md lists how values are converted.
   * @returns {Promise<Receipt>}
   */
  async track(event, properties) {
    checkText(event, 'event');
    const made = this.#event('track', { event }, 'properties', properties);
    return this.#do(() => this.#save(made));
  }

  /**
   * The parts of an event that are known before the queue is open, as JSON.
   * @param {string} type @param {object} members @param {string} name The payload's name. @param {unknown} payload
   */
  #event(type, members, name, payload) {
    const messageId = this.#newId();
    const timestamp = new Date(this.#platform.clock.now()).toISOString();
    const json = JSON.stringify({ type, messageId, timestamp, ...members });
    if (payload == null) return { messageId, json };
    let text;
    try {
      text = toJSON(payload, maximumEventBytes);
    } catch {
      throw tooLarge();
    }
    if (text?.[0] !== '{') throw new CountersignError('invalid_event', `${name}: not an object`);
    return { messageId, json: `${json.slice(0, -1)},"${name}":${text}}` };
  }

  /** @param {{ messageId: string, json: string }} event @returns {NewRow} */
  #row({ messageId, json }, userId = this.#userId) {
    const context = { library: { name: 'countersign-web', version }, ...this.#context, sessionId: this.#sessionId };
    const who = userId ? { userId } : { anonymousId: this.#anonymousId };
    const body = wellFormed(`${json.slice(0, -1)},${JSON.stringify({ ...who, context }).slice(1)}`);
    const bytes = new TextEncoder().encode(body).length;
    if (bytes > maximumEventBytes) throw tooLarge();
    return { messageId, userId, body, bytes };
  }

  /** @param {{ messageId: string, json: string }} event @returns {Receipt | Promise<Receipt>} */
  #save(event) {
    const row = this.#row(event);
    const { messageId } = row;
    if (this.#isClosed || this.#unsaved.length >= maximumUnsaved) {
      this.#dropped += 1;
      return { messageId, stored: 'dropped' };
    }
    this.#keep(row);
    return new Promise((resolve) => {
      this.#unsaved.push({ row, resolve });
      this.#saving ??= this.#saveAll();
    });
  }

  /** Stores events, one transaction after another. Events that arrive during a transaction go into the next one. */
  async #saveAll() {
    while (this.#unsaved.length) {
      const batch = this.#unsaved;
      this.#unsaved = [];
      const rows = batch.map(({ row }) => row);
      const stored = await this.#queue.add(rows);
      for (const { row, resolve } of batch) resolve({ messageId: row.messageId, stored });
      this.#engine.stored(rows.length);
      if (!this.#engine.isLeading) this.#post({ type: 'stored', count: rows.length, rows: stored === 'memory' ? rows : [] });
    }
    this.#saving = null;
  }

  // Sending

  /**
   * Sends the events of all tabs that can be sent now. Ends waits after failures and resumes paused users.
   * @returns {Promise<import('./types.js').FlushResult>}
   */
  async flush() {
    await this.#do(() => this.#saving);
    return this.#ask('flush');
  }

  /**
   * Sends a request to the tab that sends events, and repeats it whenever another tab begins to send.
   * @param {'flush' | 'describe'} what @returns {Promise<any>}
   */
  #ask(what) {
    const id = this.#newId();
    return new Promise((resolve) => {
      const ask = async () => {
        if (!this.#engine.isLeading && !this.#isClosed) {
          if (this.#queue.disk) this.#post({ type: 'ask', id, what });
          return this.#engine.tell();
        }
        const result = this.#isClosed && what === 'flush' ? closed : await this.#engine[what]();
        if (result && this.#asks.delete(id)) resolve(result);
      };
      this.#asks.set(id, { ask, resolve });
      ask();
    });
  }

  /** @param {NewRow[]} rows @param {string | null} token @param {boolean} keepalive @param {AbortSignal} [signal] */
  #send(rows, token, keepalive, signal) {
    const sentAt = new Date(this.#platform.clock.now()).toISOString();
    /** @type {Record<string, string>} */
    const headers = { 'Content-Type': 'application/json', 'X-Write-Key': this.#writeKey };
    if (token) headers.Authorization = `Bearer ${token}`;
    const body = `{"batch":[${rows.map((row) => row.body).join()}],"sentAt":"${sentAt}"}`;
    return this.#platform.send({ url: this.#url, headers, body, keepalive, signal });
  }

  /** @param {NewRow} row */
  #keep(row) {
    this.#tail.set(row.messageId, row);
    const [oldest] = this.#tail.keys();
    if (this.#tail.size > maximumTail) this.#tail.delete(oldest);
  }

  /** Sends the page's events in keepalive requests, because the page may end. They stay in the queue too. */
  #farewell() {
    /** @type {Map<string, NewRow[]>} */
    const users = new Map();
    let room = farewellBytes;
    for (const row of this.#tail.values()) {
      room -= row.bytes + 1;
      if (room > 0) users.set(row.userId, [...(users.get(row.userId) ?? []), row]);
    }
    for (const [user, rows] of users) {
      // There is no time to get a new token. The gateway would store the failure of an invalid token with the events.
      if (this.#engine.maySend(user) && this.#tokens.isReady(user)) this.#send(rows, this.#tokens.token(user), true).catch(() => {});
    }
  }

  // Pages and tabs

  /** Begins a new session, and retries events that are paused after too many rejected tokens. */
  startSession() {
    this.#sessionId = this.#newId();
    if (this.#engine.isLeading) this.#engine.sessionStarted();
    else this.#post({ type: 'session' });
  }

  /** @param {'hidden' | 'visible' | 'leave' | 'return'} event */
  #onPage(event) {
    const now = this.#platform.clock.uptime();
    const isHidden = event === 'hidden' || event === 'leave';
    if (event === 'hidden') this.#hiddenAt = now;
    if (event === 'leave') {
      this.#farewell();
      // A page in the back/forward cache must not hold the lock.
      this.#engine.abort();
    }
    this.#engine.setHidden(isHidden);
    if (event === 'visible' && now - this.#hiddenAt >= sessionTimeout) this.startSession();
  }

  #askAgain() {
    for (const { ask } of this.#asks.values()) ask();
  }

  /**
   * Passes a message to this tab and the others.
   * @param {any} message
   */
  #share(message) {
    this.#hear(message);
    this.#post(message);
  }

  /** @param {any} message */
  async #hear(message) {
    // Without a disk this tab sends only its own events, which are in memory.
    const leads = this.#engine.isLeading && this.#queue.disk;
    switch (message.type) {
      case 'stored':
        if (!leads) return;
        // The other tab could not write to disk, and may be closed before it can send.
        if (message.rows.length) await this.#queue.memory.add(message.rows);
        return this.#engine.stored(message.count);
      case 'session':
        return leads && this.#engine.sessionStarted();
      case 'ask': {
        const result = leads && (await this.#engine[/** @type {'flush' | 'describe'} */ (message.what)]());
        return result && this.#post({ type: 'answer', id: message.id, result });
      }
      case 'answer':
        this.#asks.get(message.id)?.resolve(message.result);
        return this.#asks.delete(message.id);
      case 'leads': {
        this.#engine.isStale = true;
        const { rows } = this.#queue.memory;
        if (rows.length) this.#post({ type: 'stored', count: rows.length, rows });
        return this.#askAgain();
      }
      case 'token':
        if (message.token) return this.#tokens.take(message.user, message.token, false, message.isBack);
        return this.#tokens.forget(message.user, message.token);
      case 'settled':
        for (const id of message.ids) this.#tail.delete(id);
        return leads || this.#queue.delivered(new Set(message.ids));
      case 'failed':
        this.#standing.set(message.failure.userId, message.failure);
        return this.#handlers.forEach((handler) => this.#call(handler, message.failure));
      case 'solved':
        return this.#standing.delete(message.user || null);
      case 'wiped':
        return this.#do(() => this.#forget());
    }
  }

  // Failures

  /**
   * Calls back in every tab for each authentication failure. A repeated failure of the same user, token and code
   * is reported again after five minutes or in a new session. The latest unresolved failure of each user is
   * reported at once. Returns a function that unsubscribes.
   * @param {(failure: import('./types.js').AuthenticationFailure) => void} handler
   */
  onAuthenticationFailure(handler) {
    this.#handlers.add(handler);
    for (const failure of this.#standing.values()) this.#call(handler, failure);
    return () => void this.#handlers.delete(handler);
  }

  /**
   * Calls the handler in a microtask, so that an error of the handler reaches the page and not the send loop.
   * @param {(failure: import('./types.js').AuthenticationFailure) => void} handler
   * @param {import('./types.js').AuthenticationFailure} failure
   */
  #call(handler, failure) {
    queueMicrotask(() => handler(failure));
  }

  // Data

  /**
   * Returns the state of the queue and the reasons for waiting.
   * @returns {Promise<import('./types.js').Snapshot>}
   */
  async snapshot() {
    await this.#do(() => {});
    const [counts, described] = await Promise.all([stored(() => this.#queue.counts()), this.#ask('describe')]);
    const { problem } = this.#queue;
    return {
      ...counts, ...described, unsaved: this.#unsaved.length, dropped: this.#dropped, sessionId: this.#sessionId,
      storage: problem ? 'memory' : 'disk', storageProblem: problem,
    };
  }

  /** Events in quarantine, those on disk first. Rejects with `storage_failed`. */
  quarantinedEvents() {
    return stored(() => this.#queue.quarantined());
  }

  /**
   * Removes all events, all tokens, the user and the id of this browser, in all tabs. It does not cancel a
   * request in flight. Rejects with `storage_failed` if the storage cannot be written; in that case call it again.
   */
  async wipe() {
    await this.#do(() => {});
    this.#drop();
    const wiped = stored(() => this.#queue.wipe()).then(() => {
      this.#post({ type: 'wiped' });
      return this.#forget();
    });
    this.#hold(wiped);
    await wiped;
  }

  /** Drops events that are not stored yet. Otherwise they would be stored after the storage was wiped. */
  #drop() {
    for (const { row, resolve } of this.#unsaved.splice(0)) {
      this.#dropped += 1;
      resolve({ messageId: row.messageId, stored: 'dropped' });
    }
  }

  async #forget() {
    this.#drop();
    this.#userId = '';
    this.#tail.clear();
    this.#standing.clear();
    this.#tokens.forgetAll();
    this.#engine.reset();
    await this.#queue.forget();
    this.#anonymousId = await this.#queue.open(this.#newId());
    this.startSession();
  }

  /**
   * Stores pending events and ends all work. The next client with this queue sends the remaining events.
   *
   * Later events are `dropped`, and a later flush or log-out ends with `closed`. `wipe()` and `snapshot()` work.
   */
  async close() {
    await this.#do(() => this.#saving);
    this.#closing.abort();
    this.#offPage();
    this.#engine.close();
    this.#channel.close();
    this.#askAgain();
    await this.#queue.write(true);
  }

  /** Returns a random id that sorts by time. */
  #newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(10));
    return [this.#platform.clock.now(), ...bytes].map((part) => part.toString(16).padStart(2, '0')).join('');
  }
}

/**
 * Throws unless `text` is a non-empty string. An empty user id would stand for no user.
 * @param {unknown} text @param {string} name
 */
function checkText(text, name) {
  if (typeof text !== 'string' || !text) throw new CountersignError('invalid_event', `${name}: not a string`);
}

const tooLarge = () => new CountersignError('event_too_large', 'too large');

/** @param {string} message */
function invalid(message) {
  return new CountersignError('invalid_configuration', message);
}

/** @template T @param {() => Promise<T>} body @returns {Promise<T>} */
async function stored(body) {
  try {
    return await body();
  } catch (error) {
    throw new CountersignError('storage_failed', `${error}`);
  }
}
