import { read } from './answer.js';
import { Failures } from './failures.js';
import { eventsOf } from './queue.js';
import { Sender } from './sender.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').FlushResult} FlushResult
 * @typedef {import('./types.js').AuthenticationFailure} AuthenticationFailure
 * @typedef {import('./sender.js').Consequence} Consequence
 */

/** Seconds that a request may take. */
const requestTimeout = 30;
/** Seconds that a flush waits for a pending call of the token provider, which may itself wait for the flush. */
const patience = 5;

/** @type {FlushResult} */
export const closed = { batches: [], ending: 'closed', queued: 0, isComplete: false };

/** Remedies for warnings. A hint of the server replaces `tokenRemedy`. */
const tokenRemedy = 'pass a new token or a tokenProvider';
const serverRemedy = 'check endpoint, writeKey, CORS';

/** Carries out the actions that `Sender` chooses, one request at a time, in the tab that holds the lock. */
export class Engine {
  isLeading = false;
  isHidden = false;
  isClosed = false;
  #failures = new Failures();
  /** @type {Sender} */
  #sender;
  /** Whether another tab may have sent events, so that the sender's state in this tab is outdated. */
  isStale = true;
  #wake = () => {};
  /** Whether the sender's state changed since its last action was chosen. */
  #isWoken = false;
  /** @type {number | null} */
  #until = null;
  /** @type {AbortController | null} */
  #request = null;
  /** @type {import('./tokens.js').Credential} */
  #credential = { token: null, generation: 0 };
  /** @type {import('./types.js').FlushBatch[]} */
  #batches = [];
  /** @type {((result: FlushResult | null) => void)[]} */
  #flushes = [];
  /** @type {Set<string>} */
  #warned = new Set();

  /**
   * @param {object} options
   * @param {import('./queue.js').Queue} options.queue
   * @param {import('./tokens.js').Tokens} options.tokens
   * @param {import('./types.js').Clock} options.clock
   * @param {() => number} options.random
   * @param {(rows: Row[], token: string | null, signal: AbortSignal) => Promise<import('./types.js').TransportResponse>} options.send
   * @param {() => void} options.leads This tab has begun to send.
   * @param {(messageIds: string[]) => void} options.settled The server has accepted or rejected these events.
   * @param {(failure: AuthenticationFailure) => void} options.failed
   * @param {(user: string) => void} options.solved The server accepted events of this user.
   * @param {(text: string) => void} options.warn Logs a warning for the developer.
   */
  constructor(options) {
    this.options = options;
    this.#sender = new Sender(!!options.tokens.options.provider);
  }

  get #now() {
    return this.options.clock.uptime();
  }

  /** Sends until the engine is closed or, in a hidden page, idle. A frozen page must not hold the lock. */
  async run() {
    if (this.isClosed) return;
    const { queue, tokens, leads } = this.options;
    if (this.isStale) {
      this.isStale = false;
      this.#sender = new Sender(!!tokens.options.provider);
      // Events of an earlier page are sent at once.
      if ((await queue.counts().catch(() => null))?.queued) this.#sender.sessionStarted();
    }
    this.isLeading = true;
    leads();
    for (;;) {
      this.#isWoken = false;
      const action = this.#sender.next(this.#now);
      const isIdle = action.do === 'wait';
      if (isIdle) this.#until = action.until;
      if (this.isClosed ? action.do !== 'settle' : this.isHidden && isIdle && !this.#flushes.length) break;
      await this.#perform(action);
    }
    this.isLeading = false;
    // Callers of `flush` then ask the next tab that begins to send.
    this.#finish(null);
  }

  /** Waits until the sender may have an action. */
  async rest() {
    if (!this.#isWoken) await this.#wait(this.#until);
  }

  // External events

  /** @param {(sender: Sender) => void} [report] */
  tell(report) {
    report?.(this.#sender);
    this.#isWoken = true;
    this.#wake();
  }

  /** @param {number} count */
  stored(count) {
    this.tell((sender) => sender.stored(count, this.#now));
  }

  sessionStarted() {
    this.tell((sender) => sender.sessionStarted());
    this.options.tokens.resume();
    this.#failures.sessionStarted();
  }

  /** @returns {Promise<FlushResult | null>} Null if this tab stopped sending meanwhile. */
  flush() {
    this.options.tokens.resume();
    this.tell((sender) => sender.flush(this.#now + patience));
    return new Promise((resolve) => this.#flushes.push(resolve));
  }

  reset() {
    this.tell((sender) => sender.reset());
    this.#failures.clear();
  }

  /** @param {boolean} isHidden */
  setHidden(isHidden) {
    this.isHidden = isHidden;
    this.tell((sender) => isHidden && sender.sendSoon());
  }

  /** Cancels the request in flight. Its events stay in the queue. */
  abort() {
    this.#request?.abort();
  }

  close() {
    this.isClosed = true;
    this.abort();
    this.#finish(closed);
    this.tell();
  }

  /**
   * Whether no back-off delays the events of this user.
   * @param {string} user
   */
  maySend(user) {
    return (this.#sender.retryAt ?? 0) <= this.#now && !this.#sender.backoffs.isBlocked(user);
  }

  /** @param {AuthenticationFailure} failure @param {string} [hint] The server's advice on how to fix the problem. */
  report(failure, hint) {
    // A provider may return after `close`.
    if (this.isClosed) return;
    const { userId, code, reason } = failure;
    const news = this.#failures.record({ ...failure, userId: userId || null }, this.#now);
    if (news) this.options.failed(news);
    this.#warn(`token of ${userId} failed: ${code}`, reason, hint || tokenRemedy);
  }

  /**
   * Logs each text once in a page. Ignores a different reason, since a server may vary it.
   * @param {string} text @param {string} reason @param {string} remedy
   */
  #warn(text, reason, remedy) {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.options.warn(`${`${text} ${reason}`.trim()}; ${remedy}`);
  }

  /** The part of a snapshot that only the sending tab has. */
  async describe() {
    const { backoffs, configurationProblem, lastProblem, retryAt } = this.#sender;
    const secondsTo = (/** @type {number | null} */ instant) => (instant === null ? null : Math.max(0, instant - this.#now));
    return {
      parked: [...backoffs.blocked].map((user) => {
        const { problem, failures, state, until } = backoffs.backoff(user);
        return {
          userId: user || null, reason: problem?.code ?? '', failures, isPaused: state === 'paused', nextAttemptIn: secondsTo(until),
        };
      }),
      configurationProblem: words(configurationProblem),
      lastError: words(lastProblem),
      nextAttemptIn: secondsTo(retryAt),
      authenticationFailures: this.#failures.total,
      clockOffset: this.options.tokens.clockOffset,
    };
  }

  // The loop

  /** @param {number | null} until @returns {Promise<void>} */
  #wait(until) {
    return new Promise((resolve) => {
      const cancel = until === null ? () => {} : this.options.clock.at(until, () => this.#wake());
      this.#wake = () => {
        cancel();
        this.#wake = () => {};
        resolve();
      };
    });
  }

  /** @param {import('./sender.js').Action} action */
  async #perform(action) {
    const { queue, tokens, random } = this.options;
    const sender = this.#sender;
    switch (action.do) {
      case 'wait':
        return this.#wait(action.until);
      case 'claim':
        try {
          sender.claimed(await queue.claim(action.request), this.#now);
        } catch (error) {
          sender.claimFailed(problemOf(error), this.#now, random());
        }
        return;
      case 'authorize': {
        await tokens.load(action.user, action.rejected);
        const credential = tokens.credential(action.user, action.rejected);
        if (credential === 'pending') return sender.authorizationPending();
        this.#credential = credential;
        const { problem, generation } = credential;
        if (problem) this.#note(sender.authorizationFailed(problem, generation, this.#now, random()));
        else sender.authorized(/** @type {number} */ (generation));
        return;
      }
      case 'send':
        return this.#send(action.events);
      case 'settle':
        await queue.settle(action.outcome);
        sender.settled();
        this.options.settled(eventsOf(action.outcome).map((row) => row.messageId));
        return;
      case 'finish': {
        if (!this.#flushes.length) return;
        const queued = (await queue.counts().catch(() => null))?.queued ?? 0;
        const ending = action.ending === 'drained' && queued && sender.backoffs.blocked.size ? 'parked' : action.ending;
        this.#finish({ batches: this.#batches, ending, queued, isComplete: !queued && ending === 'drained' });
      }
    }
  }

  /** @param {FlushResult | null} result */
  #finish(result) {
    for (const resolve of this.#flushes.splice(0)) resolve(result);
    this.#batches = [];
  }

  /**
   * Records a batch for the report of a pending flush.
   * @param {Consequence | null} consequence
   */
  #note(consequence) {
    if (consequence && this.#flushes.length) this.#batches.push(consequence.batch);
  }

  /** @param {Row[]} events */
  async #send(events) {
    const { tokens, clock, random } = this.options;
    const sender = this.#sender;
    const user = events[0].userId;
    const { token } = this.#credential;
    const requestTimeMs = clock.now();
    const request = (this.#request = new AbortController());
    let isLate = false;
    const cancel = clock.at(this.#now + requestTimeout, () => {
      isLate = true;
      request.abort();
    });
    let consequence;
    try {
      const answer = read(await this.options.send(events, token, request.signal), events.length, token);
      const { serverTime, retryAt } = answer;
      if (retryAt !== null) answer.retryAfter = Math.max(0, (retryAt - clock.now()) / 1000 - tokens.clockOffset);
      if (serverTime) tokens.noteServerTime(serverTime);
      consequence = sender.answered(answer, this.#now, random());
    } catch (error) {
      consequence = sender.failed(isLate ? { code: 'timed_out', reason: '' } : problemOf(error), this.#now, random());
    } finally {
      cancel();
    }
    if (!consequence) return;
    this.#note(consequence);
    const { failure, isOptional = false, batch } = consequence;
    if (failure) {
      if (!tokens.rejected(user, failure) && !isOptional) return;
      const { code, reason, clockSkew, hint } = failure;
      this.report({ code, reason, userId: user, token, isOptional, requestTimeMs, origin: 'server', clockSkew, occurrences: 1 }, hint);
    } else if (batch.outcome === 'delivered') {
      tokens.accepted(user);
      this.#failures.succeeded(user);
      this.options.solved(user);
    } else {
      const { code, reason } = sender.lastProblem ?? { code: batch.code, reason: '' };
      this.#warn(`cannot send: ${code}`, reason, serverRemedy);
    }
  }
}

/** @param {import('./types.js').Problem | null} problem */
const words = (problem) => problem && `${problem.code} ${problem.reason}`.trim();

/** @param {any} error @returns {import('./types.js').Problem} */
function problemOf(error) {
  return error?.reason === undefined ? { code: `${error?.name}`, reason: `${error?.message}` } : error;
}
