import { delay, longestServerDelay, network } from './retry.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {'refused' | 'tooLarge' | 'serverFault'} Cause
 *   Why requests with the culprit fail. `refused`: when one part is accepted, the culprit is in the other. `tooLarge`: two
 *   parts that are accepted one by one may well be too large together. `serverFault`: it may have been a bad moment.
 */

/** How long a server that failed on what it took later is called flaky, in seconds. */
const flakyDuration = 86_400;
/** Events refused one after the other, with none accepted in between, before it must be something else than them. */
const maximumRefusals = 3;

/**
 * An event that failed alone. Whether it is the event or the server shows only when the server takes others in between: it
 * is set aside after it has failed alone twice, with an accepted request of others before the second time. While the server
 * also fails on what it takes later, it has to fail three times, with five accepted requests before each.
 */
class Suspect {
  /** Not tried before this, as long as nothing else is accepted. */
  retryAt = -Infinity;
  /** How often it was sent alone. */
  tries = 0;
  failures = 0;
  #neededFailures = 2;
  /** Requests of others that were accepted since it failed last. */
  successes = 0;
  #neededSuccesses = 1;

  /** @param {Row} event @param {Cause} cause */
  constructor(event, cause) {
    this.event = event;
    this.cause = cause;
  }

  /** True when another try would tell something. */
  get isRipe() {
    return this.successes >= this.#neededSuccesses;
  }

  /**
   * Returns true when it is the event.
   * @param {boolean} isFlaky
   */
  failedAlone(isFlaky) {
    this.#neededFailures = isFlaky ? 3 : 2;
    if (this.failures === 0 || this.isRipe) this.failures += 1;
    this.#neededSuccesses = isFlaky ? 5 : 1;
    this.tries += 1;
    this.successes = 0;
    return this.failures >= this.#neededFailures;
  }
}

/** Which events are at fault when the server refuses requests, if any. */
export class Suspicion {
  /**
   * A request failed as a whole, and goes on in parts: at most log2(n) + 1 requests.
   * @type {{ cause: Cause, among: Row[] } | null}
   */
  #search = null;
  #flakyUntil = -Infinity;
  #refusalsInARow = 0;
  /**
   * Events that failed alone, in the order of their last try. They stay in the queue and are passed over.
   * @type {Suspect[]}
   */
  suspects = [];

  /** What to send next, as long as there is a search. */
  get probe() {
    if (!this.#search) return null;
    const { cause, among } = this.#search;
    // Of the last two, the second: if it is the culprit, the first goes out with what comes after.
    if (among.length === 2 && cause !== 'refused') return [among[1]];
    return among.slice(0, Math.max(1, among.length >> 1));
  }

  /** True when the newest suspect may be none: the server failed. */
  get isFault() {
    return this.suspects[this.suspects.length - 1]?.cause === 'serverFault';
  }

  get isOfEverything() {
    return this.#refusalsInARow >= maximumRefusals;
  }

  endSearch() {
    this.#search = null;
  }

  reset() {
    this.#search = null;
    this.suspects = [];
  }

  forgiveRefusals() {
    this.#refusalsInARow = 0;
  }

  /** Somebody wants another try of everything. */
  resume() {
    for (const suspect of this.suspects) suspect.retryAt = -Infinity;
  }

  /**
   * The server has taken a request with these events.
   * @param {Row[]} events @param {number} now
   */
  accepted(events, now) {
    const sent = new Set(events.map((event) => event.sequence));
    if (this.#search) {
      this.#search.among = this.#search.among.filter((event) => !sent.has(event.sequence));
      if (!this.#search.among.length) {
        if (this.#search.cause === 'serverFault') this.#flakyUntil = now + flakyDuration;
        this.#search = null;
      }
    }
    // It was not the event, then.
    const isCleared = (/** @type {Suspect} */ suspect) => sent.has(suspect.event.sequence);
    if (this.suspects.some((one) => one.cause === 'serverFault' && isCleared(one))) this.#flakyUntil = now + flakyDuration;
    this.suspects = this.suspects.filter((one) => !isCleared(one));
    for (const suspect of this.suspects) suspect.successes += 1;
    this.#refusalsInARow = 0;
  }

  /**
   * A request with these events failed as a whole: it goes on in smaller parts. Returns the event that cannot be delivered,
   * if it is found.
   * @param {Row[]} events @param {Cause} cause @param {number} now
   */
  narrow(events, cause, now) {
    const probe = this.#search?.cause === cause ? this.probe : null;
    this.#search = { cause, among: probe ?? events };
    const culprit = this.#search.among.length === 1 ? this.#search.among[0] : null;
    if (culprit) this.#search = null;
    if (cause === 'serverFault') this.#serverFailed(culprit ? [culprit] : events, now);
    return culprit;
  }

  /**
   * Takes down that an event failed alone. Returns true if that is enough to set it aside.
   * @param {Row} event @param {Cause} cause @param {number} now @param {number} fraction
   */
  failedAlone(event, cause, now, fraction) {
    let found = new Suspect(event, cause);
    const known = this.suspects.find((one) => one.event.sequence === event.sequence);
    if (known) {
      this.suspects.splice(this.suspects.indexOf(known), 1);
      if (known.cause === cause) found = known;
    } else {
      this.#refusalsInARow += 1;
    }
    // Two at a time are rarely both at fault.
    const isFlaky = now < this.#flakyUntil || this.suspects.some((one) => one.cause === 'serverFault');
    if (found.failedAlone(cause === 'serverFault' && isFlaky)) return true;
    found.retryAt = now + delay({ base: network.base, maximum: longestServerDelay }, found.tries, fraction);
    this.suspects.push(found);
    return false;
  }

  /**
   * Faults on other events point to the server: while it is flaky, earlier evidence does not count.
   * @param {Row[]} events @param {number} now
   */
  #serverFailed(events, now) {
    if (now >= this.#flakyUntil) return;
    for (const suspect of this.suspects) {
      if (!events.some((event) => event.sequence === suspect.event.sequence)) suspect.failures = suspect.successes = 0;
    }
  }
}
