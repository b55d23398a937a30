// Runs the scenarios of Conformance (see its README) against the client on a `Bench`, with or without a browser.
import { Bench, settle, start } from './bench.js';

/** The name of this client in the `clients` of a scenario. */
const name = 'web';

/** The scenarios in the text of a file that this client has to pass. */
export function scenariosOf(text) {
  const { mode, scenarios } = JSON.parse(text);
  if (mode !== 'signed_user') return [];
  return scenarios.filter(({ clients }) => !clients || clients.includes(name));
}

/** Runs the steps of a scenario and lets the client settle after each. Rejects at the first unexpected result. */
export async function run(scenario, bench = new Bench()) {
  const stage = new Stage(scenario, bench);
  await settle();
  for (const [index, step] of scenario.steps.entries()) {
    try {
      await Promise.race([stage.perform(step), stage.server.overrun]);
      await settle();
    } catch (error) {
      error.message = `step ${index + 1}: ${error.message}`;
      throw error;
    }
  }
  if (stage.server.overlaps) throw new Error('two requests at the same time');
}

/** `jwt ada 600` stands for a token of `ada` that expires 600 seconds after the start. */
function token(text) {
  const [kind, subject, seconds] = text?.split(' ') ?? [];
  if (kind !== 'jwt') return text;
  const part = (value) => btoa(JSON.stringify(value)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return `${part({ alg: 'RS256' })}.${part({ sub: subject, exp: start / 1000 + Number(seconds) })}.sig`;
}

/** Returns the first difference, or undefined. Ignores members of `observed` that are not in `expected`. */
function difference(expected, observed, path) {
  const differs = `${path}: expected ${JSON.stringify(expected)}, was ${JSON.stringify(observed)}`;
  if (Array.isArray(expected)) {
    if (!Array.isArray(observed) || observed.length !== expected.length) return differs;
    return expected.map((one, index) => difference(one, observed[index], `${path}[${index}]`)).find(Boolean);
  }
  if (expected && typeof expected === 'object') {
    if ('at_most' in expected || 'at_least' in expected) {
      return observed <= (expected.at_most ?? Infinity) && observed >= (expected.at_least ?? -Infinity) ? undefined : differs;
    }
    return Object.keys(expected).map((key) => difference(expected[key], observed?.[key] ?? null, `${path}.${key}`)).find(Boolean);
  }
  return (typeof expected === 'string' ? token(expected) : expected) === observed ? undefined : differs;
}

function check(expected, observed, path) {
  const found = expected === true ? undefined : difference(expected, observed, path);
  if (found) throw new Error(found);
}

/** The limit of unchecked requests. Stops a client that retries without waiting. */
const mostRequests = 2000;

/** A server that follows a scenario's rules, and otherwise stores each event once. */
class Server {
  requests = [];
  delivered = [];
  duplicates = 0;
  overlaps = 0;
  #underWay = 0;
  #stored = new Set();

  constructor(clock) {
    this.clock = clock;
    this.overrun = new Promise((_, reject) => {
      this.reject = () => reject(new Error('requests without end'));
    });
    // Prevents an unhandled rejection if no step awaits it.
    this.overrun.catch(() => {});
  }

  /** @param {object[]} rules */
  set rules(rules) {
    this.current = rules.map((rule) => ({ ...rule }));
  }

  async answer({ body, headers }) {
    const { batch } = JSON.parse(body);
    const events = batch.map((event) => ({ id: event.messageId, name: event.event ?? event.type }));
    const seen = {
      to: 'events', at: this.clock.uptime(), path: '/v1/batch', user: batch[0].userId ?? null,
      token: headers.Authorization?.replace('Bearer ', '') ?? null, events: events.map((event) => event.name), count: events.length,
    };
    this.requests.push(seen);
    if (this.requests.length > mostRequests) {
      this.reject();
      return new Promise(() => {});
    }
    if (this.#underWay++) this.overlaps += 1;
    await null;
    const rule = this.current.find((one) => one.times !== 0 && this.#matches(one.when ?? {}, seen));
    if (rule?.times) rule.times -= 1;
    if (rule?.stores) this.#take(events, {});
    if (rule?.hangs) return (this.#underWay -= 1, new Promise(() => {}));
    this.#underWay -= 1;
    if (rule?.error) throw { code: rule.error === 'cannot_connect' ? 'no_connection' : rule.error, reason: '' };
    const answer = rule?.refuse ? { status: 401, body: { success: false, auth_error: rule.refuse } }
      : rule?.status ? { status: rule.status, body: rule.body ?? {}, text: rule.text }
        : { status: 200, body: { ...this.#take(events, rule ?? {}), ...rule?.body } };
    const all = { ...rule?.headers };
    if (rule?.date !== undefined) all.Date = this.#date(rule.date);
    if (rule?.retry_date !== undefined) all['Retry-After'] = this.#date(rule.retry_date);
    return { status: answer.status, header: (key) => all[key] ?? null, body: answer.text ?? JSON.stringify(answer.body) };
  }

  #date(offset) {
    return new Date(start + (this.clock.uptime() + offset) * 1000).toUTCString();
  }

  #matches(when, seen) {
    return Object.entries(when).every(([key, value]) => {
      switch (key) {
        case 'events': return value.some((one) => seen.events.includes(one));
        case 'more_than': return seen.count > value;
        case 'before': return seen.at < value;
        default: return !difference(value, seen[key] ?? null, key);
      }
    });
  }

  #take(events, { reject = [] }) {
    const rejected = [];
    let duplicates = 0;
    events.forEach((event, index) => {
      if (reject === 'all' || reject.includes(event.name)) rejected.push({ index, code: 'invalid_event', reason: 'so' });
      else if (this.#stored.has(event.id)) duplicates += 1;
      else {
        this.#stored.add(event.id);
        this.delivered.push(event.name);
      }
    });
    this.duplicates += duplicates;
    return { success: true, accepted: events.length - rejected.length - duplicates, duplicates, rejected };
  }
}

/** The client, server and provider of one scenario, and the execution of its steps. */
class Stage {
  #callbacks = [];
  #calls = [];
  #serial = 0;
  #numbered = 0;
  #flush = null;

  constructor(scenario, bench) {
    this.bench = bench;
    this.configuration = scenario.configuration ?? {};
    this.server = new Server(bench.clock);
    this.server.rules = scenario.server ?? [];
    bench.gateway = this.server;
    this.provider = scenario.provider && [...scenario.provider];
    this.#open();
  }

  #open() {
    const { clock, disk } = this.bench;
    if (this.configuration.maximum_events) disk.limits.events = this.configuration.maximum_events;
    const life = (this.life = { isOver: false });
    // Timers of a killed page do nothing.
    const at = (instant, call) => clock.at(instant, () => life.isOver || call());
    const tokenProvider = this.provider ? (request) => (life.isOver ? new Promise(() => {}) : this.#ask(request)) : undefined;
    this.tab = this.bench.tab({ clock: { now: clock.now, uptime: clock.uptime, at } }, { tokenProvider });
    this.client = this.tab.client;
    this.client.onAuthenticationFailure((failure) => life.isOver || this.#callbacks.push({
      code: failure.code, reason: failure.reason, user: failure.userId, token: failure.token, is_optional: failure.isOptional,
      origin: failure.origin, clock_skew: failure.clockSkew, occurrences: failure.occurrences,
    }));
  }

  async #ask({ userId, reason, code }) {
    this.#calls.push({ user: userId, reason, code });
    this.#serial += 1;
    const serial = this.#serial;
    const answer = this.provider.length > 1 ? this.provider.shift() : this.provider[0];
    if (answer.hangs) return new Promise(() => {});
    const { clock } = this.bench;
    if (answer.takes) await new Promise((resolve) => clock.at(clock.uptime() + answer.takes, resolve));
    if (answer.fails) throw new Error('failure from the scenario');
    return answer.returns && token(answer.returns.replace('#', serial));
  }

  async perform(step) {
    const { client, tab, bench } = this;
    const [verb] = Object.keys(step);
    const value = step[verb];
    switch (verb) {
      case 'record': return this.#record(value, step.bytes ?? 0);
      case 'flush': return check(value, flushed(await client.flush()), verb);
      case 'begin_flush': return void (this.#flush = client.flush());
      case 'end_flush': return check(value, flushed(await this.#flush), verb);
      case 'wait': return bench.clock.advance(value);
      case 'start_session': return client.startSession();
      case 'background': tab.isHidden = true; return tab.page('hidden');
      case 'foreground': tab.isHidden = false; return tab.page('visible');
      case 'restart': await client.close(); return this.#reopen(value);
      case 'kill': this.life.isOver = true; tab.kill(); return this.#reopen(value);
      case 'server': return void (this.server.rules = value);
      case 'provider': return void (this.provider = [...value]);
      case 'device_clock': return void (bench.clock.time += value * 1000);
      case 'change_user': return client.changeUser(value, token(step.token)).then(() => { if (!value) throw new Error('an empty id was accepted'); }, (error) => { if (value) throw error; });
      case 'set_token': return client.setToken(token(value));
      case 'log_out': return void (await client.logOut());
      case 'wipe': return client.wipe();
      case 'expect': return this.#expect(value);
      default: throw new Error(`there is no step ${verb}`);
    }
  }

  #reopen(changes) {
    this.configuration = { ...this.configuration, ...changes };
    this.#open();
  }

  async #record(what, bytes) {
    const names = Array.isArray(what) ? what : Array.from({ length: what }, () => `${(this.#numbered += 1)}`);
    for (const one of names) await this.client.track(one, bytes ? { filler: 'x'.repeat(bytes) } : undefined);
  }

  async #expect(expected) {
    const { server, client } = this;
    const observed = { user: client.userId, delivered: server.delivered, delivered_count: server.delivered.length, duplicates: server.duplicates };
    if (['requests', 'request_count', 'request_times', 'request_sizes'].some((key) => key in expected)) {
      const requests = server.requests.splice(0);
      Object.assign(observed, {
        requests, request_count: requests.length, request_times: requests.map(({ at }) => at), request_sizes: requests.map(({ count }) => count),
      });
    }
    if ('callbacks' in expected) observed.callbacks = this.#callbacks.splice(0);
    if ('provider_calls' in expected) observed.provider_calls = this.#calls.splice(0);
    const snapshot = await client.snapshot();
    const quarantined = await client.quarantinedEvents();
    check(expected, {
      ...snapshot, ...observed,
      quarantined: quarantined.map(({ body }) => JSON.parse(body).event ?? JSON.parse(body).type),
      quarantine_codes: quarantined.map(({ code }) => code),
      parked: snapshot.parked.map((backoff) => ({
        user: backoff.userId, reason: backoff.reason, failures: backoff.failures, is_paused: backoff.isPaused, next_attempt_in: backoff.nextAttemptIn,
      })),
      is_stopped: snapshot.configurationProblem !== null, is_failing: snapshot.lastError !== null,
      next_attempt_in: snapshot.nextAttemptIn, authentication_failures: snapshot.authenticationFailures,
      clock_offset: snapshot.clockOffset,
    }, 'expect');
  }
}

const flushed = (result) => ({
  ending: result.ending, queued: result.queued,
  delivered: result.batches.reduce((sum, batch) => sum + batch.deliveredCount, 0),
  batches: result.batches.map((batch) => ({
    user: batch.userId, count: batch.eventCount, outcome: batch.outcome, delivered: batch.deliveredCount, code: batch.code,
  })),
});
