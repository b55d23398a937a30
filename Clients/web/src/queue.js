import { MemoryStore, add } from './memory-store.js';

/**
 * @typedef {import('./types.js').Store} Store
 * @typedef {import('./types.js').NewRow} NewRow
 * @typedef {import('./types.js').DeliveryOutcome} DeliveryOutcome
 */

/** Limits of the events in memory. The oldest are evicted, and counted. */
const memoryLimits = { events: 1000, bytes: 1 << 20 };
/** Time limit of a transaction, in seconds. Some browsers never open a database, or never finish a transaction. */
const timeLimit = 5;
/** Seconds without any transaction after a transaction exceeded its time limit. */
const pause = 30;
/** Seconds before a failed write of users, tokens or outcomes is retried. */
const retryInterval = 5;

/** Queued events: on disk, or in memory if the disk cannot be written. */
export class Queue {
  memory = new MemoryStore(memoryLimits);
  /**
   * The error of the last failed write to the disk; null after an event was stored on disk.
   * @type {string | null}
   */
  problem = null;
  /** No transaction begins before this instant. */
  #pausedUntil = -Infinity;
  /**
   * Values that are not on disk yet.
   * @type {Map<string, { value: any }>}
   */
  #unwritten = new Map();
  /**
   * Outcomes that are not on disk yet. Their events are not claimed again.
   * @type {Set<DeliveryOutcome>}
   */
  #unsettled = new Set();
  /** @type {Promise<void> | null} */
  #pendingOutcomes = null;
  /** @type {(() => void) | null} */
  #retry = null;
  #isLogged = false;
  #counts = {};
  /** The id of this browser if there is no disk. */
  #anonymousId = '';

  /** @param {Store | null} disk @param {import('./types.js').Clock} clock @param {import('./types.js').Journal} journal */
  constructor(disk, clock, journal) {
    this.disk = disk;
    this.clock = clock;
    this.journal = journal;
    if (!disk) this.problem = 'no storage';
  }

  /**
   * Opens the store on disk, or continues without one. Returns the anonymous id.
   * @param {string} anonymousId The id to store if the store has none.
   */
  async open(anonymousId) {
    try {
      return await this.#run((disk) => disk.meta('anonymousId', anonymousId));
    } catch (error) {
      if (this.disk) this.#note(error);
      this.disk = null;
      return (this.#anonymousId ||= anonymousId);
    } finally {
      this.setMeta(this.journal.read() ?? {});
    }
  }

  /**
   * Runs `body` as one transaction, within `timeLimit`.
   * @template T @param {(disk: Store) => Promise<T>} body @returns {Promise<T>}
   */
  #run(body) {
    const { disk, clock } = this;
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error('timed out'));
      if (!disk || clock.uptime() < this.#pausedUntil) return fail();
      const cancel = clock.at(clock.uptime() + timeLimit, () => {
        this.#pausedUntil = clock.uptime() + pause;
        disk.reopen?.();
        fail();
      });
      body(disk).then(resolve, reject).finally(cancel);
    });
  }

  /** @param {any} error */
  #note(error) {
    this.problem = `${error?.name}: ${error?.message}`;
  }

  /**
   * Stores events. Returns where they are stored.
   * @param {NewRow[]} rows @returns {Promise<'disk' | 'memory'>}
   */
  async add(rows) {
    if (this.disk) {
      try {
        await this.#run((disk) => disk.add(rows));
        this.problem = null;
        this.write();
        return 'disk';
      } catch (error) {
        this.#note(error);
      }
    }
    await this.memory.add(rows);
    return 'memory';
  }

  /** @param {import('./types.js').ClaimRequest} request */
  async claim(request) {
    /** @type {any} */
    let failure;
    const excluded = new Set(request.excluded);
    for (const outcome of this.#unsettled) for (const { sequence } of eventsOf(outcome)) excluded.add(sequence);
    const rows = this.disk
      ? await this.#run((disk) => disk.claim({ ...request, excluded })).catch((error) => void (failure = error)) : null;
    if (rows?.length) return rows;
    const others = await this.memory.claim(request);
    if (failure && !others.length) throw failure;
    return others;
  }

  /**
   * Applies an outcome. Its events are all on disk or all in memory. If it cannot be written, it is written later.
   * @param {DeliveryOutcome} outcome
   */
  async settle(outcome) {
    if (eventsOf(outcome)[0].sequence < 0) return this.memory.settle(outcome);
    this.#unsettled.add(outcome);
    await this.write();
  }

  /**
   * Removes events from memory that another tab has delivered or quarantined.
   * @param {Set<string>} messageIds
   */
  delivered(messageIds) {
    const delivered = this.memory.rows.filter((row) => messageIds.has(row.messageId));
    return this.memory.settle({ delivered, quarantined: [], duplicates: 0 });
  }

  /** Returns the counters of disk and memory. If the disk cannot be read, uses its last known counters. */
  async counts() {
    const counts = await this.memory.counts();
    if (this.disk) this.#counts = await this.#run((disk) => disk.counts()).catch(() => this.#counts);
    add(counts, this.#counts);
    return counts;
  }

  async quarantined() {
    return [...(this.disk ? await this.#run((disk) => disk.quarantined()) : []), ...(await this.memory.quarantined())];
  }

  /** @param {string} key @returns {Promise<any>} */
  async meta(key) {
    const unwritten = this.#unwritten.get(key);
    return unwritten ? unwritten.value : this.disk && this.#run((disk) => disk.meta(key));
  }

  /**
   * Stores values for later pages, in one transaction. A write that fails is retried until it succeeds.
   * @param {Record<string, any>} values
   */
  setMeta(values) {
    for (const [key, value] of Object.entries(values)) this.#unwritten.set(key, { value });
    return this.write();
  }

  /**
   * Writes all values and outcomes that are not on disk yet.
   * @param {boolean} [isLast] Whether a failed write is not retried.
   */
  async write(isLast) {
    this.#log();
    if (!this.disk) return;
    const { clock } = this;
    const values = [...this.#unwritten];
    try {
      if (values.length) await this.#run((disk) => disk.setMeta(values.map(([key, { value }]) => [key, value])));
      for (const [key, entry] of values) if (this.#unwritten.get(key) === entry) this.#unwritten.delete(key);
      this.#log();
      await (this.#pendingOutcomes ??= this.#settleAll().finally(() => (this.#pendingOutcomes = null)));
    } catch (error) {
      this.#note(error);
      if (isLast || this.#retry) return;
      this.#retry = clock.at(clock.uptime() + retryInterval, () => {
        this.#retry = null;
        this.write();
      });
    }
  }

  async #settleAll() {
    for (const outcome of this.#unsettled) {
      await this.#run((disk) => disk.settle(outcome));
      this.#unsettled.delete(outcome);
    }
  }

  /**
   * Writes the journal: values that are not on disk yet. Without it, a page that starts before the retry would
   * restore the previous user.
   */
  #log() {
    // The journal has no tokens (keys with a space at index 5), but it has their deletions.
    const values = [...this.#unwritten].filter(([key, { value }]) => !value || key[5] !== ' ').map(([key, { value }]) => [key, value]);
    const isAny = values.length > 0;
    if (isAny || this.#isLogged) this.journal.write(isAny ? Object.fromEntries(values) : null);
    this.#isLogged = isAny;
  }

  async wipe() {
    if (this.disk) await this.#run((disk) => disk.wipe());
    await this.forget();
  }

  /** Drops all events and values that are not on disk. */
  forget() {
    this.#unwritten.clear();
    this.#unsettled.clear();
    this.#log();
    this.#anonymousId = '';
    return this.memory.wipe();
  }
}

/** @param {DeliveryOutcome} outcome */
export const eventsOf = ({ delivered, quarantined }) => [...delivered, ...quarantined.map(({ event }) => event)];
