import { read } from '../src/answer.js';
import { select } from '../src/memory-store.js';
import { Sender } from '../src/sender.js';

export const hour = 3600;

/** Makes a response and returns its interpretation, which the sender gets. */
export function answer(status, body = {}, count = 1, headers = {}, token = null) {
  const header = (name) => headers[name] ?? null;
  return read({ status, header, body: typeof body === 'string' ? body : JSON.stringify(body) }, count, token);
}

export const accepted = (request, more = {}) =>
  answer(200, { success: true, accepted: request.events.length, duplicates: 0, ...more }, request.events.length);
export const status = (code, retryAfter) => () => answer(code, {}, 1, retryAfter ? { 'Retry-After': String(retryAfter) } : {});
export const rejectedToken = (error_code = 22, reason = 'EXPIRED') => () => answer(401, { auth_error: { error_code, reason } });
export const failing = (code) => () => ({ error: { code, reason: '' } });

/** Drives a `Sender` against a scripted server in simulated time, so that hours take milliseconds. */
export class Simulation {
  queue = [];
  now = 0;
  requests = [];
  delivered = [];
  quarantined = [];
  endings = [];
  failures = [];
  claims = 0;
  generations = {};
  providerCalls = 0;

  constructor(server, { provider, batch } = {}) {
    this.server = server;
    this.provider = provider;
    this.sender = new Sender(!!provider, batch);
  }

  record(count, userId = '', bytes = 100) {
    for (let index = 0; index < count; index += 1) {
      const sequence = this.queue.length + this.delivered.length + this.quarantined.length + 1;
      this.queue.push({ sequence, messageId: `m${sequence}`, userId, body: '', bytes });
    }
    this.sender.stored(count, this.now);
  }

  /** Runs until the sender has nothing to do before `end`. */
  run(end, steps = 100_000) {
    for (let step = 0; step < steps; step += 1) {
      const action = this.sender.next(this.now);
      switch (action.do) {
        case 'wait':
          if (action.until === null || action.until > end) {
            this.now = end;
            return;
          }
          this.now = Math.max(this.now, action.until);
          break;
        case 'claim':
          this.claims += 1;
          this.sender.claimed(select(this.queue, action.request), this.now);
          break;
        case 'authorize':
          this.#authorize(action.user, action.rejected);
          break;
        case 'send':
          this.#send(action.events);
          break;
        case 'settle':
          this.#settle(action.outcome);
          break;
        case 'finish':
          this.endings.push(action.ending);
      }
    }
    throw new Error('the sender never waits');
  }

  #authorize(user, rejected) {
    const current = this.generations[user] ?? 0;
    if (!user || !this.provider || (current !== 0 && current !== rejected)) return this.sender.authorized(current);
    this.providerCalls += 1;
    const fresh = this.provider(user);
    if (fresh === null) return this.sender.authorizationFailed({ code: 'no_token', reason: '' }, current, this.now, 1);
    this.generations[user] = fresh;
    return this.sender.authorized(fresh);
  }

  #send(events) {
    const request = { time: this.now, events, generation: this.generations[events[0].userId] ?? 0 };
    this.requests.push(request);
    const reply = this.server(request);
    const consequence = reply.error
      ? this.sender.failed(reply.error, this.now, 1) : this.sender.answered(reply, this.now, 1);
    if (consequence?.failure) this.failures.push(consequence.failure);
  }

  #settle({ delivered, quarantined }) {
    const set = quarantined.map(({ event }) => event);
    const gone = new Set([...delivered, ...set].map((event) => event.sequence));
    this.delivered.push(...delivered);
    this.quarantined.push(...set);
    this.queue = this.queue.filter((event) => !gone.has(event.sequence));
    this.sender.settled();
  }

  get sizes() {
    return this.requests.map((request) => request.events.length);
  }
}

export const sequences = (events) => events.map((event) => event.sequence);

/** Reproducible random numbers from 0 to 1 (mulberry32). */
export function seeded(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
