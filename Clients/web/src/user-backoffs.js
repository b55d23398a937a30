import { authentication, delay, longestServerDelay, network } from './retry.js';

/** @typedef {import('./types.js').Problem} Problem */

/** The back-off state of one user's events. */
class UserBackoff {
  /**
   * `waiting`: no request before `until`. `paused`: no request before a new token, a new session or a flush. `asking`:
   * no request before the pending call of the token provider has ended, and none before `until` if it is set.
   * @type {'open' | 'waiting' | 'paused' | 'asking'}
   */
  state = 'open';
  /** @type {number | null} */
  until = null;
  /**
   * The generation of the token that was rejected last; 0 for a missing token.
   * @type {number | null}
   */
  rejectedGeneration = null;
  /** Whether the rejected token may be sent again if there is no other. */
  mayResend = false;
  /** Rejected tokens in a row. */
  failures = 0;
  /** Consecutive failures of the token provider, and rejections of the old token that was sent instead. */
  providerFailures = 0;
  /** @type {Problem | null} */
  problem = null;

  get isBlocked() {
    return this.state !== 'open';
  }

  /** Ends the wait. The failure counts stay. */
  unblock() {
    if (this.state !== 'asking') this.state = 'open';
    this.until = null;
    this.mayResend = true;
  }

  /** Resets the failure counts for a new session or token. */
  resetFailures() {
    this.failures = this.providerFailures = 0;
  }

  /** @param {number | null} until @param {Problem} problem */
  hold(until, problem) {
    Object.assign(this, { state: until === null ? 'paused' : 'waiting', until, problem });
  }

  /** @param {number} generation */
  tokenRejected(generation) {
    this.rejectedGeneration = generation;
    this.mayResend = false;
  }

  /**
   * @param {Problem} problem @param {boolean} pauses Whether to stop retrying after too many rejections.
   * @param {number | null} serverDelay @param {number} now @param {number} fraction
   */
  park(problem, pauses, serverDelay, now, fraction) {
    this.failures += 1;
    const isTooOften = this.failures >= /** @type {number} */ (authentication.failures);
    const wait = isTooOften ? longestServerDelay : delay(authentication, this.failures, fraction, serverDelay);
    this.hold(isTooOften && pauses ? null : now + wait, problem);
  }

  /**
   * Backs off as for a failing network: the waits grow, and retries never stop.
   * @param {Problem} problem @param {number | null} serverDelay @param {number} now @param {number} fraction
   */
  parkForProvider(problem, serverDelay, now, fraction) {
    this.providerFailures += 1;
    this.hold(now + delay(network, this.providerFailures, fraction, serverDelay), problem);
  }
}

/** Five new tokens end the wait at once. Further ones end it once a minute, until events are accepted. */
const interval = 60;
const burst = 5 * interval;

/** Back-off states of users with token problems or restrictions, and the newest token generation of each user. */
export class UserBackoffs {
  /** @type {Map<string, UserBackoff>} */
  all = new Map();
  /** @type {Map<string, number>} */
  #generations = new Map();
  /** The uptime at which five new tokens may end waits at once again. */
  #fullAt = 0;

  /** @param {string} user */
  backoff(user) {
    let backoff = this.all.get(user);
    if (!backoff) this.all.set(user, (backoff = new UserBackoff()));
    return backoff;
  }

  /** @param {string} user */
  isBlocked(user) {
    return this.all.get(user)?.isBlocked ?? false;
  }

  get blocked() {
    return new Set([...this.all.keys()].filter((user) => this.isBlocked(user)));
  }

  /** Whether a call of the token provider is pending for a user. */
  get awaitTokens() {
    return [...this.all.values()].some((backoff) => backoff.state === 'asking');
  }

  get nextInstant() {
    return Math.min(...[...this.all.values()].map((backoff) => backoff.until ?? Infinity));
  }

  /** @param {number} now */
  lapse(now) {
    for (const backoff of this.all.values()) if (backoff.until !== null && backoff.until <= now) backoff.unblock();
  }

  /**
   * Records that the server has accepted events of this user.
   * @param {string} user
   */
  accepted(user) {
    this.all.delete(user);
    this.#fullAt = 0;
  }

  /**
   * Returns true if waiting events of this user may now be sent at once.
   * @param {string} user @param {number} generation @param {number} now
   */
  tokenChanged(user, generation, now) {
    this.#generations.set(user, generation);
    const backoff = this.all.get(user);
    if (!backoff) return false;
    // Limits a loop of rejected and replaced tokens. More tokens during a wait do not extend the wait.
    if (this.#fullAt - burst <= now) this.#fullAt = Math.max(this.#fullAt, now) + interval;
    backoff.resetFailures();
    backoff.until = this.#fullAt - burst > now ? this.#fullAt - burst : null;
    backoff.state = backoff.until === null ? 'open' : 'waiting';
    return backoff.until === null;
  }

  /**
   * Returns true if a call of the token provider was pending for this user.
   * @param {string} user
   */
  tokenResolved(user) {
    const backoff = this.all.get(user);
    if (backoff?.state !== 'asking') return false;
    backoff.state = backoff.until === null ? 'open' : 'waiting';
    return true;
  }

  /**
   * Records the generation of the token for the user's next request.
   * @param {string} user @param {number} generation @param {boolean} isProvided
   */
  authorized(user, generation, isProvided) {
    this.#generations.set(user, generation);
    const backoff = this.all.get(user);
    if (backoff && isProvided) backoff.providerFailures = 0;
  }

  /**
   * Whether a token has been replaced.
   * @param {number} generation @param {string} user
   */
  isOutdated(generation, user) {
    return (this.#generations.get(user) ?? 0) > generation;
  }
}
