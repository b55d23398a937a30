import { delay, longestServerDelay, network } from './retry.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {'rejected' | 'tooLarge' | 'serverFault'} Cause
 *   Why a request failed. `rejected`: the server rejects an event. If it accepts half of the request, the event is
 *   in the other half. `tooLarge`: the server may accept both halves. `serverFault`: may be transient.
 */

/** Seconds that a server counts as flaky after it accepted events on which it had failed. */
const flakyDuration = 86_400;
/** After this many events in a row failed alone, the cause is the client's or the server's settings, not the events. */
const maximumRejections = 3;

/**
 * An event that failed alone. Accepted requests with other events show whether the event or the server is at
 * fault. The event is quarantined after it failed alone twice, with an accepted request of others in between.
 * While the server is flaky, the event must fail three times, with five accepted requests after each failure.
 */
class PoisonEvent {
  /** The event is not tried before this instant, unless other events are accepted. */
  retryAt = -Infinity;
  /** The number of requests with only this event. */
  tries = 0;
  failures = 0;
  #neededFailures = 2;
  /** Accepted requests of other events since the last failure of this event. */
  successes = 0;
  #neededSuccesses = 1;

  /** @param {Row} event @param {Cause} cause */
  constructor(event, cause) {
    this.event = event;
    this.cause = cause;
  }

  /** Whether enough requests were accepted since the last failure. If so, another failure is the event's fault. */
  get mayRetry() {
    return this.successes >= this.#neededSuccesses;
  }

  /**
   * Records that the event failed alone. Returns true if the event is at fault.
   * @param {boolean} isFlaky
   */
  failedAlone(isFlaky) {
    this.#neededFailures = isFlaky ? 3 : 2;
    if (this.failures === 0 || this.mayRetry) this.failures += 1;
    this.#neededSuccesses = isFlaky ? 5 : 1;
    this.tries += 1;
    this.successes = 0;
    return this.failures >= this.#neededFailures;
  }
}

/** Finds the events at fault when the server rejects requests. */
export class PoisonEventSearch {
  /**
   * The bisection of a failed request with n events: at most log2(n) + 1 further requests, rounded up.
   * @type {{ cause: Cause, among: Row[] } | null}
   */
  #search = null;
  #flakyUntil = -Infinity;
  #rejectionsInARow = 0;
  /**
   * Events that failed alone, in the order of their last try. They stay in the queue, and batches exclude them.
   * @type {PoisonEvent[]}
   */
  suspects = [];

  /** The events to send next in a bisection; null without one. */
  get probe() {
    if (!this.#search) return null;
    const { cause, among } = this.#search;
    // Of the last two, send the second alone. If it fails, the first is sent with later events, not alone.
    if (among.length === 2 && cause !== 'rejected') return [among[1]];
    return among.slice(0, Math.max(1, among.length >> 1));
  }

  /** Whether the newest suspect failed with a server fault, so that the server may be at fault. */
  get isFault() {
    return this.suspects[this.suspects.length - 1]?.cause === 'serverFault';
  }

  get isOfEverything() {
    return this.#rejectionsInARow >= maximumRejections;
  }

  endSearch() {
    this.#search = null;
  }

  reset() {
    this.#search = null;
    this.suspects = [];
  }

  resetRejections() {
    this.#rejectionsInARow = 0;
  }

  /** Lets all suspects be retried now. */
  resume() {
    for (const suspect of this.suspects) suspect.retryAt = -Infinity;
  }

  /**
   * The server has accepted a request with these events.
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
    // A suspect that was accepted is not at fault.
    const isCleared = (/** @type {PoisonEvent} */ suspect) => sent.has(suspect.event.sequence);
    if (this.suspects.some((one) => one.cause === 'serverFault' && isCleared(one))) this.#flakyUntil = now + flakyDuration;
    this.suspects = this.suspects.filter((one) => !isCleared(one));
    for (const suspect of this.suspects) suspect.successes += 1;
    this.#rejectionsInARow = 0;
  }

  /**
   * Records that a request failed, and continues the bisection. Returns the event if only one is left, otherwise null.
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
   * Records that an event failed alone. Returns true if it is to be quarantined.
   * @param {Row} event @param {Cause} cause @param {number} now @param {number} fraction
   */
  failedAlone(event, cause, now, fraction) {
    let found = new PoisonEvent(event, cause);
    const known = this.suspects.find((one) => one.event.sequence === event.sequence);
    if (known) {
      this.suspects.splice(this.suspects.indexOf(known), 1);
      if (known.cause === cause) found = known;
    } else {
      this.#rejectionsInARow += 1;
    }
    // Two events at fault at a time are rare, so a second suspect points to the server.
    const isFlaky = now < this.#flakyUntil || this.suspects.some((one) => one.cause === 'serverFault');
    if (found.failedAlone(cause === 'serverFault' && isFlaky)) return true;
    found.retryAt = now + delay({ base: network.base, maximum: longestServerDelay }, found.tries, fraction);
    this.suspects.push(found);
    return false;
  }

  /**
   * While the server is flaky, faults on other events reset the counts of earlier suspects.
   * @param {Row[]} events @param {number} now
   */
  #serverFailed(events, now) {
    if (now >= this.#flakyUntil) return;
    for (const suspect of this.suspects) {
      if (!events.some((event) => event.sequence === suspect.event.sequence)) suspect.failures = suspect.successes = 0;
    }
  }
}
