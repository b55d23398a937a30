import { add, isOver, isSound, maximumQuarantined, noCounts, select, soundCounts, wiped } from './memory-store.js';

/** The number of rows to read at a time. */
const page = 200;

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {import('./types.js').Store} Store
 * @typedef {import('./types.js').Counts} Counts
 * @typedef {(name: string) => IDBObjectStore} Stores
 */

/**
 * Events in IndexedDB. A transaction completes only when it is flushed to disk (`durability: 'strict'`).
 * @implements {Store}
 */
export class DiskStore {
  /** @type {Promise<IDBDatabase> | null} */
  #database = null;

  /** The oldest events are evicted, and counted, if either limit is exceeded. */
  limits = { events: 10_000, bytes: 16 << 20 };

  /** @param {IDBFactory} factory @param {string} name */
  constructor(factory, name) {
    this.factory = factory;
    this.name = name;
  }

  #open() {
    this.#database ??= new Promise((resolve, reject) => {
      const request = this.factory.open(this.name, 1);
      request.onupgradeneeded = () => {
        const database = request.result;
        database.createObjectStore('events', { keyPath: 'sequence', autoIncrement: true });
        database.createObjectStore('quarantine', { autoIncrement: true });
        database.createObjectStore('meta');
      };
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        // The browser's data was cleared, or a newer version of the page upgrades the database.
        database.onclose = database.onversionchange = () => {
          database.close();
          this.#database = null;
        };
        resolve(database);
      };
    });
    this.#database.catch(() => (this.#database = null));
    return this.#database;
  }

  /** Closes the database. The next transaction opens it again. */
  reopen() {
    this.#database?.then((database) => database.close(), () => {});
    this.#database = null;
  }

  /**
   * Runs `body` in one transaction over all object stores.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(stores: Stores, done: (result: T) => void) => void} body
   * @param {boolean} [isAgain]
   * @returns {Promise<T>}
   */
  async #run(mode, body, isAgain) {
    const opening = this.#open();
    try {
      const database = await opening;
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction(['events', 'quarantine', 'meta'], mode, { durability: 'strict' });
        /** @type {any} */
        let result;
        transaction.oncomplete = () => resolve(result);
        transaction.onabort = () => reject(transaction.error);
        body((name) => transaction.objectStore(name), (value) => (result = value));
      });
    } catch (/** @type {any} */ error) {
      if (isAgain || error?.name === 'QuotaExceededError') throw error;
      // Safari closes connections without an event. Each transaction then throws, or is aborted.
      if (this.#database === opening) this.reopen();
      return this.#run(mode, body, true);
    }
  }

  /**
   * Changes the counters after all earlier requests of the transaction. `save` stores later changes.
   * @param {Stores} stores @param {(counts: Counts, save: () => void) => void} change
   */
  #count(stores, change) {
    const meta = stores('meta');
    then(meta.get('counts'), (known) => {
      const counts = soundCounts(known);
      const save = () => meta.put(counts, 'counts');
      change(counts, save);
      save();
    });
  }

  /** @param {import('./types.js').NewRow[]} rows @returns {Promise<void>} */
  add(rows) {
    return this.#run('readwrite', (stores) => {
      const events = stores('events');
      for (const row of rows) events.add(row);
      this.#count(stores, (counts, save) => {
        // A transaction never ends over the limits, so such counts are damaged. They must not evict events.
        const isDamaged = isOver(counts, this.limits);
        for (const { bytes } of rows) add(counts, { recorded: 1, queued: 1, queuedBytes: bytes });
        if (!isOver(counts, this.limits)) return;
        if (isDamaged) {
          counts.queued = counts.queuedBytes = 0;
          then(events.getAll(), (all) => {
            for (const row of all) add(counts, { queued: 1, queuedBytes: size(row) });
          });
        }
        then(events.openCursor(), (cursor) => {
          if (!cursor || !isOver(counts, this.limits)) return save();
          add(counts, { evicted: 1, queued: -1, queuedBytes: -size(cursor.value) });
          cursor.delete();
          cursor.continue();
        });
      });
    });
  }

  /** @param {import('./types.js').ClaimRequest} request @returns {Promise<Row[]>} */
  async claim(request) {
    /** @type {Row[]} */
    const damaged = [];
    /** @type {Row[]} */
    const claimed = await this.#run('readonly', (stores, done) => {
      const readAfter = (/** @type {number} */ sequence) => {
        then(stores('events').getAll(IDBKeyRange.lowerBound(sequence, true), page), (/** @type {Row[]} */ rows) => {
          damaged.push(...rows.filter((row) => !isSound(row)));
          const selected = select(rows.filter(isSound), request);
          done(selected);
          if (!selected.length && rows.length) readAfter(rows[rows.length - 1].sequence);
        });
      };
      readAfter(0);
    });
    const problem = { code: 'damaged_row', reason: '' };
    const quarantined = damaged.map((event) => ({ event, problem }));
    if (damaged.length) await this.settle({ delivered: [], quarantined, duplicates: 0 }).catch(() => {});
    return claimed;
  }

  /** @param {import('./types.js').DeliveryOutcome} outcome @returns {Promise<void>} */
  settle({ delivered, quarantined, duplicates }) {
    return this.#run('readwrite', (stores) => {
      const changes = { ...noCounts(), duplicates };
      const events = stores('events');
      const quarantine = stores('quarantine');
      /**
       * Skips rows that were wiped or evicted meanwhile, because they are counted already.
       * @param {Row} row @param {(row: Row) => void} gone
       */
      const remove = ({ sequence }, gone) => then(events.get(sequence), (row) => {
        if (!row) return;
        events.delete(sequence);
        add(changes, { queued: -1, queuedBytes: -size(row) });
        gone(row);
      });
      for (const event of delivered) remove(event, () => (changes.sent += 1));
      for (const { event, problem } of quarantined) {
        remove(event, ({ messageId, userId, body }) => {
          changes.quarantined += 1;
          quarantine.add({ messageId, userId: userId || null, ...problem, body });
        });
      }
      if (quarantined.length) {
        then(quarantine.getAllKeys(), (keys) => {
          for (const key of keys.slice(0, Math.max(0, keys.length - maximumQuarantined))) {
            quarantine.delete(key);
            add(changes, { quarantined: -1, evicted: 1 });
          }
        });
      }
      this.#count(stores, (counts) => add(counts, changes));
    });
  }

  /** @returns {Promise<Counts>} */
  counts() {
    return this.#run('readonly', (stores, done) => then(stores('meta').get('counts'), (known) => done(soundCounts(known))));
  }

  /** @returns {Promise<import('./types.js').QuarantinedEvent[]>} */
  quarantined() {
    return this.#run('readonly', (stores, done) => then(stores('quarantine').getAll(), done));
  }

  /** @param {string} key @param {any} [initial] @returns {Promise<any>} */
  meta(key, initial) {
    return this.#run(initial === undefined ? 'readonly' : 'readwrite', (stores, done) => {
      then(stores('meta').get(key), (known) => {
        done(known ?? initial);
        if (known === undefined && initial !== undefined) stores('meta').put(initial, key);
      });
    });
  }

  /** @param {[string, any][]} values @returns {Promise<void>} */
  setMeta(values) {
    return this.#run('readwrite', (stores) => {
      for (const [key, value] of values) {
        if (value == null) stores('meta').delete(key);
        else stores('meta').put(value, key);
      }
    });
  }

  /** @returns {Promise<void>} */
  wipe() {
    return this.#run('readwrite', (stores) => this.#count(stores, (counts) => {
      wiped(counts);
      for (const name of ['events', 'quarantine', 'meta']) stores(name).clear();
    }));
  }
}

/** @template T @param {IDBRequest<T>} request @param {(result: T) => void} body */
function then(request, body) {
  request.onsuccess = () => body(request.result);
}

/**
 * The size of a row in bytes; 0 if the size is damaged.
 * @param {any} row @returns {number}
 */
const size = ({ bytes }) => (bytes > 0 ? bytes : 0);
