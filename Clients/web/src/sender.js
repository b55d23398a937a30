import { UserBackoffs } from './user-backoffs.js';
import { configuration, delay, longestServerDelay, network } from './retry.js';
import { PoisonEventSearch } from './poison-events.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').Problem} Problem
 * @typedef {import('./types.js').Verdict} Verdict
 * @typedef {import('./types.js').DeliveryOutcome} DeliveryOutcome
 * @typedef {import('./types.js').ClaimRequest} ClaimRequest
 * @typedef {import('./types.js').FlushBatch} FlushBatch
 * @typedef {import('./poison-events.js').Cause} Cause
 *
 * @typedef {{ do: 'wait', until: number | null } | { do: 'claim', request: ClaimRequest }
 *   | { do: 'authorize', user: string, rejected: number | null } | { do: 'send', events: Row[] }
 *   | { do: 'settle', outcome: DeliveryOutcome } | { do: 'finish', ending: string }} Action
 *   `wait`: until an external event or `until`, if not null. `claim`: read events, then call `claimed` or
 *   `claimFailed`. `authorize`: find a token that is not of the rejected generation, then call `authorized`,
 *   `authorizationPending` or `authorizationFailed`. `send`: then call `answered` or `failed`. `settle`: apply the
 *   outcome to the queue, then call `settled`. `finish`: the round has ended.
 *
 * @typedef {object} Consequence The result of a request, for reports.
 * @property {FlushBatch} batch
 * @property {Verdict} [failure] A rejected token, or a warning about the token of an accepted request.
 * @property {boolean} [isOptional]
 *
 * @typedef {{ events: Row[], user: string, generation: number | null, providerProblem: Problem | null }} UserBatch
 */

/** A round starts when this many events wait, or when the first has waited for this many seconds. */
const flushCount = 20;
const flushInterval = 10;

/**
 * Decides when events are sent, and how responses change the queue. A state machine without I/O, clock or
 * randomness.
 *
 * The engine calls `next(now)`, carries out the action, and reports the result with a method that `Action`
 * names. Instants are monotonic seconds. The Swift client has the same state machine.
 */
export class Sender {
  /** @type {{ isStale: boolean, isAsking: boolean, ending: string | null, isFlush: boolean, patience: number | null } | null} */
  #round = null;
  /**
   * The events of the current or next request.
   * @type {UserBatch | null}
   */
  #current = null;
  /**
   * Accepted and rejected events that are not removed from the queue yet.
   * @type {DeliveryOutcome | null}
   */
  #pendingOutcomes = null;
  #poisonEvents = new PoisonEventSearch();
  /** Reduced batch limits after a server rejected a request as too large. */
  #narrowed = { events: Infinity, bytes: Infinity };
  /** Events stored since the last claim. */
  #backlog = { events: 0, since: 0, isUrgent: false };
  #failures = 0;
  #configurationFailures = 0;

  backoffs = new UserBackoffs();
  /**
   * No request is sent before this instant.
   * @type {number | null}
   */
  retryAt = null;
  /**
   * The configuration problem that stops sending, except for rare retries and flushes.
   * @type {Problem | null}
   */
  configurationProblem = null;
  /**
   * The last failure since the server accepted events.
   * @type {Problem | null}
   */
  lastProblem = null;

  /** @param {boolean} hasTokenProvider @param {{ events: number, bytes: number }} [batch] The limits of one request. */
  constructor(hasTokenProvider, batch = { events: 100, bytes: 400_000 }) {
    this.hasTokenProvider = hasTokenProvider;
    this.batch = batch;
  }

  // The next action

  /** @param {number} now @returns {Action} */
  next(now) {
    if (this.#pendingOutcomes) return { do: 'settle', outcome: this.#pendingOutcomes };
    if (!this.#round) {
      if (!this.#wantsRound(now)) return wait(this.#nextInstant);
      this.retryAt = null;
      this.#begin();
    }
    const idle = this.#idleUntil(now);
    if (idle !== null) return wait(idle);
    const ending = this.#round?.ending;
    if (ending) {
      this.#round = null;
      return { do: 'finish', ending };
    }
    // Clear the flag only here. Clearing it earlier would lose a request made after the round's last claim.
    this.#backlog.isUrgent = false;
    const probe = this.#poisonEvents.probe;
    if (!this.#current && probe) this.#current = batch(probe);
    const suspect = this.#poisonEvents.suspects.find((one) => one.mayRetry && this.#canTry(one.event));
    if (!this.#current && suspect) this.#current = batch([suspect.event]);
    if (!this.#current) return this.#claim(now);
    const { user, generation, events } = this.#current;
    if (generation !== null) return { do: 'send', events };
    return { do: 'authorize', user, rejected: this.backoffs.all.get(user)?.rejectedGeneration ?? null };
  }

  /** @param {number} now @returns {Action} */
  #claim(now) {
    if (this.#round) this.#round.isStale = this.#round.isAsking = false;
    this.#backlog.events = 0;
    this.backoffs.lapse(now);
    return {
      do: 'claim',
      request: {
        events: Math.min(this.batch.events, this.#narrowed.events),
        bytes: Math.min(this.batch.bytes, this.#narrowed.bytes),
        blocked: this.backoffs.blocked,
        excluded: new Set(this.#poisonEvents.suspects.map((one) => one.event.sequence)),
      },
    };
  }

  /**
   * The instant until which a flush waits for the token provider; infinity without a limit, null without a wait.
   * @param {number} now
   */
  #idleUntil(now) {
    const round = this.#round;
    if (this.#current || !round?.isAsking || round.ending) return null;
    const patience = round.patience ?? Infinity;
    if (!this.backoffs.awaitTokens || patience <= now) {
      round.ending = this.backoffs.awaitTokens ? 'waiting_for_token_provider' : 'drained';
      return null;
    }
    // Work that is due earlier ends the wait.
    const instant = this.#nextInstant;
    return instant <= now ? null : Math.min(patience, instant);
  }

  /** @param {boolean} [isFlush] @param {number | null} [patience] */
  #begin(isFlush = false, patience = null) {
    this.#round = { isStale: true, isAsking: false, ending: null, isFlush, patience };
  }

  /** @param {string} ending */
  #end(ending) {
    if (this.#round) this.#round.ending = ending;
  }

  #readAgain() {
    if (!this.#round) return;
    this.#round.isStale = true;
    this.#round.isAsking = false;
  }

  /** @param {number} now */
  #wantsRound(now) {
    if (this.retryAt !== null) return this.retryAt <= now;
    return this.#backlog.isUrgent || this.#backlog.events >= flushCount || this.#nextInstant <= now;
  }

  get #nextInstant() {
    if (this.retryAt !== null) return this.retryAt;
    const tries = this.#poisonEvents.suspects.filter((one) => this.#canTry(one.event)).map((one) => one.retryAt);
    const due = this.#backlog.events ? this.#backlog.since + flushInterval : Infinity;
    return Math.min(...tries, this.backoffs.nextInstant, due);
  }

  /**
   * Whether the event may be sent: its user is not blocked.
   * @param {Row} event
   */
  #canTry(event) {
    return !this.backoffs.isBlocked(event.userId);
  }

  // External events

  /**
   * Reports that events were stored, on disk or in memory.
   * @param {number} count @param {number} now
   */
  stored(count, now) {
    if (!count) return;
    if (!this.#backlog.events) this.#backlog.since = now;
    this.#backlog.events += count;
    this.#readAgain();
  }

  /**
   * Starts a round that sends everything now.
   * @param {number | null} [patience] The instant until which to wait for a pending call of the provider.
   */
  flush(patience = null) {
    this.#resume();
    const before = this.#round?.patience;
    this.#begin(true, (this.backoffs.awaitTokens && patience) || before);
  }

  /** Resumes paused users and resets failure counts for a new session. */
  sessionStarted() {
    this.#resume();
    for (const backoff of this.backoffs.all.values()) backoff.resetFailures();
    this.#failures = this.#configurationFailures = 0;
    this.#poisonEvents.resetRejections();
    this.#widen();
    this.sendSoon();
  }

  /** Starts a round without waiting for more events or for the interval. */
  sendSoon() {
    this.#backlog.isUrgent = true;
  }

  #resume() {
    this.#poisonEvents.resume();
    this.retryAt = this.configurationProblem = null;
    for (const backoff of this.backoffs.all.values()) backoff.unblock();
  }

  #widen() {
    this.#narrowed = { events: Infinity, bytes: Infinity };
  }

  /**
   * Reports a new token of this user.
   * @param {string} user @param {number} generation @param {number} now
   */
  tokenChanged(user, generation, now) {
    if (!this.backoffs.tokenChanged(user, generation, now)) return;
    this.#readAgain();
    this.sendSoon();
  }

  /**
   * Reports that the token provider has returned or timed out.
   * @param {string} user
   */
  tokenResolved(user) {
    if (!this.backoffs.tokenResolved(user)) return;
    this.#readAgain();
    this.sendSoon();
  }

  /** Reports that the queue was wiped. */
  reset() {
    this.#current = this.#pendingOutcomes = null;
    this.#poisonEvents.reset();
    this.backoffs.all.clear();
  }

  // Results of actions: the queue

  /** @param {Row[]} events @param {number} now */
  claimed(events, now) {
    // Without other events, no accepted request can show that the server works. Retry a suspect that is due.
    const suspect = this.#poisonEvents.suspects.find((one) => this.#canTry(one.event) && one.retryAt <= now);
    const round = this.#round;
    if (events.length || suspect) {
      this.#current = batch(events.length ? events : [/** @type {any} */ (suspect).event]);
    } else if (round && !round.ending && !round.isStale) {
      if (round.isFlush && this.backoffs.awaitTokens) round.isAsking = true;
      else this.#end(this.#poisonEvents.suspects.length ? 'interrupted' : 'drained');
    }
  }

  /** @param {Problem} problem @param {number} now @param {number} fraction */
  claimFailed(problem, now, fraction) {
    this.#backOff(problem, null, now, fraction);
  }

  settled() {
    this.#pendingOutcomes = null;
  }

  /** @param {Partial<DeliveryOutcome>} outcome */
  #settle(outcome) {
    this.#pendingOutcomes = { delivered: [], quarantined: [], duplicates: 0, ...outcome };
  }

  // Results of actions: tokens

  /** @param {number} generation */
  authorized(generation) {
    if (!this.#current) return;
    this.#current.generation = generation;
    this.backoffs.authorized(this.#current.user, generation, true);
  }

  /** The token provider was called; `tokenResolved` follows. Other users' events are sent meanwhile. */
  authorizationPending() {
    if (!this.#current) return;
    this.backoffs.backoff(this.#current.user).state = 'asking';
    this.#setAside();
  }

  /**
   * Reports that there is no better token, such as after a failure of the provider. The last token is sent,
   * since the server may no longer require a valid one. A rejected token is sent again only after a wait.
   * Events of a user who signed out are not sent without a token.
   * @param {Problem} problem
   * @param {number | null} generation The last token's; 0 to send without a token, null not to send.
   * @param {number} now @param {number} fraction @returns {Consequence | null}
   */
  authorizationFailed(problem, generation, now, fraction) {
    const current = this.#current;
    if (!current) return null;
    const backoff = this.backoffs.backoff(current.user);
    if (generation === null || (backoff.rejectedGeneration === generation && !backoff.mayResend)) {
      // Only the app can provide another token.
      if (problem.code === 'logged_out') backoff.hold(null, problem);
      else backoff.parkForProvider(problem, null, now, fraction);
      this.#setAside(problem);
      return { batch: result(current, 'token_problem', problem.code) };
    }
    this.backoffs.authorized(current.user, generation, false);
    Object.assign(current, { generation, providerProblem: problem });
    return null;
  }

  // Results of actions: requests

  /**
   * Reports that there was no response.
   * @param {Problem} problem @param {number} now @param {number} fraction @returns {Consequence | null}
   */
  failed(problem, now, fraction) {
    return this.answered({ meaning: { kind: 'tryLater', problem }, retryAfter: null }, now, fraction);
  }

  /**
   * @param {Pick<import('./types.js').Answer, 'meaning' | 'retryAfter'>} answer
   * @param {number} now @param {number} fraction
   * @returns {Consequence | null}
   */
  answered({ meaning, retryAfter }, now, fraction) {
    const current = this.#current;
    if (!current) return null;
    switch (meaning.kind) {
      case 'accepted':
        return this.#accept(current, meaning, now, fraction);
      case 'token':
        return this.#rejectToken(current, meaning.verdict, retryAfter, now, fraction);
      case 'tooLarge': {
        if (current.events.length > 1) {
          const bytes = current.events.reduce((sum, event) => sum + event.bytes, 0);
          this.#narrowed = { events: current.events.length >> 1, bytes: Math.max(1, bytes >> 1) };
        }
        return this.#narrowLater(current, 'tooLarge', { code: 'too_large', reason: '' }, retryAfter, now, fraction);
      }
      case 'rejected':
      case 'serverFault':
        return this.#narrowLater(current, meaning.kind, meaning.problem, retryAfter, now, fraction);
      case 'configuration':
        this.#stop(meaning.problem, retryAfter, now, fraction);
        return { batch: result(current, 'configuration_problem', meaning.problem.code) };
      case 'user':
        this.backoffs.backoff(current.user)
          .hold(now + delay(configuration, retryAfter ? 1 : 32, fraction, retryAfter), meaning.problem);
        this.#setAside(meaning.problem);
        break;
      case 'tryLater':
        this.#backOff(meaning.problem, retryAfter, now, fraction);
    }
    return { batch: result(current, 'retry_later', meaning.problem.code) };
  }

  /**
   * Splits the request. Backs off after a server fault or with `Retry-After` (RFC 9110, section 10.2.3).
   * @param {UserBatch} current @param {Cause} cause @param {Problem} problem @param {number | null} serverDelay
   * @param {number} now @param {number} fraction
   * @returns {Consequence}
   */
  #narrowLater(current, cause, problem, serverDelay, now, fraction) {
    const consequence = this.#narrow(current, cause, problem, now, fraction);
    if (!this.#pendingOutcomes && (cause === 'serverFault' || serverDelay !== null)) {
      this.#backOff(problem, serverDelay, now, fraction);
    }
    return consequence;
  }

  /** @param {Problem} problem @param {number | null} serverDelay @param {number} now @param {number} fraction */
  #backOff(problem, serverDelay, now, fraction) {
    this.#failures += 1;
    // Does not shorten a wait.
    this.retryAt = Math.max(this.retryAt ?? 0, now + delay(network, this.#failures, fraction, serverDelay));
    this.lastProblem = problem;
    this.#current = null;
    this.#end('interrupted');
  }

  /**
   * Continues with occasional requests, because the server's settings may be fixed, or a proxy may have sent
   * the response.
   * @param {Problem} problem @param {number | null} serverDelay @param {number} now @param {number} fraction
   */
  #stop(problem, serverDelay, now, fraction) {
    this.configurationProblem = problem;
    this.#configurationFailures += 1;
    this.retryAt = now + delay(configuration, this.#configurationFailures, Math.max(fraction, 0.5), serverDelay);
    this.#setAside(problem);
    this.#end('configuration_problem');
  }

  /**
   * Abandons the current batch. Its events stay in the queue.
   * @param {Problem} [problem]
   */
  #setAside(problem) {
    if (problem) this.lastProblem = problem;
    this.#poisonEvents.endSearch();
    this.#current = null;
  }

  /** @param {UserBatch} current @param {Extract<import('./types.js').Meaning, { kind: 'accepted' }>} meaning @param {number} now @param {number} fraction @returns {Consequence} */
  #accept(current, { duplicates, rejected, warning }, now, fraction) {
    const { events } = current;
    if (rejected.size === events.length) {
      // No event was accepted, so a new rejection is only a suspicion.
      this.#setAside();
      const confirmed = events.flatMap((event, index) => {
        const problem = /** @type {Problem} */ (rejected.get(index));
        this.lastProblem = problem;
        return this.#poisonEvents.failedAlone(event, 'rejected', now, fraction) ? [{ event, problem }] : [];
      });
      return this.#conclude(current, confirmed, now, fraction);
    }
    /** @type {DeliveryOutcome} */
    const outcome = { delivered: [], quarantined: [], duplicates };
    events.forEach((event, index) => {
      const problem = rejected.get(index);
      if (problem) outcome.quarantined.push({ event, problem });
      else outcome.delivered.push(event);
    });
    this.#settle(outcome);
    this.#poisonEvents.accepted(events, now);
    this.backoffs.accepted(current.user);
    this.#failures = this.#configurationFailures = 0;
    this.#current = this.retryAt = this.configurationProblem = this.lastProblem = null;
    const batch = { ...result(current, 'delivered', ''), deliveredCount: outcome.delivered.length };
    return warning ? { batch, failure: warning, isOptional: true } : { batch };
  }

  /**
   * Splits the request until one event fails alone.
   * @param {UserBatch} current @param {Cause} cause @param {Problem} problem
   * @param {number} now @param {number} fraction @returns {Consequence}
   */
  #narrow(current, cause, problem, now, fraction) {
    this.#current = null;
    this.lastProblem = problem;
    const event = this.#poisonEvents.narrow(current.events, cause, now);
    if (!event) return { batch: result(current, cause === 'serverFault' ? 'retry_later' : 'refused', problem.code) };
    if (cause === 'tooLarge') this.#widen();
    const isConfirmed = this.#poisonEvents.failedAlone(event, cause, now, fraction);
    return this.#conclude(current, isConfirmed ? [{ event, problem }] : [], now, fraction);
  }

  /** @param {UserBatch} current @param {DeliveryOutcome['quarantined']} confirmed @param {number} now @param {number} fraction @returns {Consequence} */
  #conclude(current, confirmed, now, fraction) {
    const { code, reason } = /** @type {Problem} */ (this.lastProblem);
    if (confirmed.length) {
      this.#settle({ quarantined: confirmed });
      return { batch: result(current, 'quarantined', code) };
    }
    const { isFault, isOfEverything } = this.#poisonEvents;
    if (!isFault && isOfEverything) {
      this.#stop({ code, reason: `all rejected: ${reason}` }, longestServerDelay, now, fraction);
    }
    return { batch: result(current, isFault ? 'retry_later' : 'refused', code) };
  }

  /** @param {UserBatch} current @param {Verdict} verdict @param {number | null} serverDelay @param {number} now @param {number} fraction @returns {Consequence} */
  #rejectToken(current, verdict, serverDelay, now, fraction) {
    const batch = result(current, 'token_problem', verdict.reason);
    const generation = /** @type {number} */ (current.generation);
    if (this.backoffs.isOutdated(generation, current.user)) {
      // A late response about a replaced token does not apply to the new token.
      this.#setAside();
      return { batch };
    }
    const backoff = this.backoffs.backoff(current.user);
    backoff.tokenRejected(generation);
    const problem = current.providerProblem ?? { code: verdict.reason, reason: '' };
    if (current.providerProblem) {
      backoff.parkForProvider(problem, serverDelay, now, fraction);
    } else if (this.hasTokenProvider && backoff.failures === 0) {
      // The first replacement is sent without a wait. Later ones wait, or a server's constant 401 would loop.
      backoff.failures = 1;
      backoff.problem = problem;
      this.#setAside();
      return { batch, failure: verdict };
    } else {
      // With a provider never pause. Its next token may be valid, and a pause would prevent the call.
      backoff.park(problem, !this.hasTokenProvider, serverDelay, now, fraction);
    }
    this.#setAside(problem);
    return { batch, failure: verdict };
  }
}

/** @param {number} until @returns {Action} */
function wait(until) {
  return { do: 'wait', until: until === Infinity ? null : until };
}

/** @param {Row[]} events @returns {UserBatch} */
function batch(events) {
  return { events, user: events[0].userId, generation: null, providerProblem: null };
}

/**
 * The result of a request, for reports.
 * @param {UserBatch} current @param {string} outcome @param {string} code @returns {FlushBatch}
 */
function result({ user, events }, outcome, code) {
  return { userId: user || null, eventCount: events.length, deliveredCount: 0, outcome, code };
}
