import { MemoryStore, add } from './memory-store.js';

/**
 * @typedef {import('./types.js').Store} Store
 * @typedef {import('./types.js').NewRow} NewRow
 */

/** What a page keeps in memory at most where the disk takes nothing; the oldest go, and are counted. */
const memoryLimits = { events: 1000, bytes: 1 << 20 };
/** Some browsers open a database never, without an error. Seconds. */
const openTimeout = 5;

/** The events that wait: on disk, and in memory what the disk would not take. */
export class Queue {
  memory = new MemoryStore(memoryLimits);
  /**
   * Why the last event went into memory.
   * @type {string | null}
   */
  problem = null;

  /** @param {Store | null} disk @param {import('./types.js').Clock} clock */
  constructor(disk, clock) {
    this.disk = disk;
    this.clock = clock;
    if (!disk) this.problem = 'no storage';
  }

  /**
   * Opens the disk, or goes on without one. Returns what both ends of a page load share.
   * @param {string} anonymousId For a first start.
   */
  async open(anonymousId) {
    try {
      const { disk, clock } = this;
      if (!disk) throw new Error(this.problem ?? '');
      return await new Promise((resolve, reject) => {
        const cancel = clock.at(clock.uptime() + openTimeout, () => reject(new Error('open timed out')));
        disk.meta('anonymousId', anonymousId).then(resolve, reject).finally(cancel);
      });
    } catch (error) {
      this.disk = null;
      this.#note(error);
      return this.memory.meta('anonymousId', anonymousId);
    }
  }

  /** @param {any} error */
  #note(error) {
    this.problem = `${error?.name}: ${error?.message}`;
  }

  /**
   * Returns where they are.
   * @param {NewRow[]} rows @returns {Promise<'disk' | 'memory'>}
   */
  async add(rows) {
    if (this.disk) {
      try {
        await this.disk.add(rows);
        this.problem = null;
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
    const rows = (await this.disk?.claim(request).catch((error) => void (failure = error))) ?? [];
    if (rows.length) return rows;
    const others = await this.memory.claim(request);
    if (failure && !others.length) throw failure;
    return others;
  }

  /**
   * A request has events of one of both only.
   * @param {import('./types.js').Settlement} settlement
   */
  async settle(settlement) {
    const { sequence } = settlement.delivered[0] ?? settlement.quarantined[0].event;
    await (sequence < 0 ? this.memory : this.disk)?.settle(settlement);
  }

  /**
   * Events in memory that another tab has delivered.
   * @param {Set<string>} messageIds
   */
  delivered(messageIds) {
    const delivered = this.memory.rows.filter((row) => messageIds.has(row.messageId));
    return this.memory.settle({ delivered, quarantined: [], duplicates: 0 });
  }

  async counts() {
    const counts = await this.memory.counts();
    if (this.disk) add(counts, await this.disk.counts());
    return counts;
  }

  async quarantined() {
    return [...((await this.disk?.quarantined()) ?? []), ...(await this.memory.quarantined())];
  }

  /** @param {string} key @returns {Promise<any>} */
  meta(key) {
    return (this.disk ?? this.memory).meta(key);
  }

  /**
   * What cannot be kept now lives as long as the page.
   * @param {string} key @param {any} value
   */
  setMeta(key, value) {
    return (this.disk ?? this.memory).setMeta(key, value).catch((error) => this.#note(error));
  }

  async wipe() {
    await this.disk?.wipe();
    await this.memory.wipe();
  }
}
