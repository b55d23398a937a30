// `DiskStore` with lost connections, damaged rows, damaged counters, and limits. test/chromium tests it in Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DiskStore } from '../src/disk-store.js';

/** The part of IndexedDB that the first tests use, with connections that can be lost. */
class Factory {
  opened = 0;
  values = new Map();
  /** How a lost connection fails: `throws`, or the name of the error that aborts its transactions. */
  fail = null;

  open() {
    const request = {};
    queueMicrotask(() => {
      this.opened += 1;
      request.result = new Connection(this);
      request.onsuccess();
    });
    return request;
  }
}

class Connection {
  constructor(factory) {
    this.factory = factory;
  }

  close() {
    this.isClosed = true;
  }

  transaction() {
    const { values, fail } = this.factory;
    if (this.isClosed || (this.isLost && fail === 'throws')) throw Object.assign(new Error('closing'), { name: 'InvalidStateError' });
    const transaction = { objectStore: () => store };
    const request = (body) => {
      const made = {};
      queueMicrotask(() => ((made.result = body()), made.onsuccess?.()));
      return made;
    };
    const store = {
      get: (key) => request(() => values.get(key)), put: (value, key) => request(() => values.set(key, value)),
    };
    const error = this.isLost && fail !== 'throws' ? Object.assign(new Error('lost'), { name: fail }) : null;
    setImmediate(() => (error ? Object.assign(transaction, { error }).onabort() : transaction.oncomplete()));
    return transaction;
  }
}

/** A factory and its connections. A connection with `isLost` fails as `fail` says. */
function lossy(fail) {
  const factory = new Factory();
  const open = factory.open.bind(factory);
  const connections = [];
  factory.fail = fail;
  factory.open = () => {
    const request = open();
    queueMicrotask(() => queueMicrotask(() => connections.push(request.result)));
    return request;
  };
  return { factory, connections };
}

for (const fail of ['throws', 'UnknownError', 'AbortError']) {
  test(`a connection that the browser closed is opened again, once (${fail})`, async () => {
    const { factory, connections } = lossy(fail);
    const store = new DiskStore(factory, 'a');
    await store.setMeta([['userId', 'ada']]);
    connections[0].isLost = true;
    await store.setMeta([['userId', 'bob']]);
    assert.equal(await store.meta('userId'), 'bob');
    assert.equal(factory.opened, 2);
    assert.ok(connections[0].isClosed);
  });
}

test('concurrent calls on a lost connection all succeed, with at most two new connections', async () => {
  const { factory, connections } = lossy('throws');
  const store = new DiskStore(factory, 'a');
  await store.meta('userId');
  connections[0].isLost = true;
  await Promise.all([store.setMeta([['a', 1]]), store.setMeta([['b', 2]]), store.meta('a')]);
  assert.deepEqual([factory.values.get('a'), factory.values.get('b')], [1, 2]);
  assert.ok(factory.opened <= 3, `${factory.opened}`);
});

test('a call fails if the database cannot be reopened', async () => {
  const { factory } = lossy('throws');
  const store = new DiskStore(factory, 'a');
  await store.meta('userId');
  factory.open = () => {
    const request = { error: new Error('blocked') };
    queueMicrotask(() => request.onerror());
    return request;
  };
  store.reopen();
  await assert.rejects(store.meta('userId'), /blocked/);
});

test('a full disk does not reopen the database', async () => {
  const { factory, connections } = lossy('QuotaExceededError');
  const store = new DiskStore(factory, 'a');
  await store.meta('userId');
  connections[0].isLost = true;
  await assert.rejects(store.setMeta([['a', 1]]), { name: 'QuotaExceededError' });
  assert.equal(factory.opened, 1);
});

/** One database in memory, with the part of IndexedDB that the tests below use. */
function memoryFactory() {
  const stores = { events: new Map(), quarantine: new Map(), meta: new Map() };
  let last = 0;
  const transaction = () => {
    const made = {};
    let pending = 0;
    const request = (body) => {
      const one = {};
      const run = () => {
        one.result = body();
        one.onsuccess?.();
        if (--pending === 0) made.oncomplete();
      };
      pending += 1;
      queueMicrotask(run);
      one.again = () => ((pending += 1), queueMicrotask(run));
      return one;
    };
    made.objectStore = (name) => {
      const rows = stores[name];
      return {
        add: (row) => request(() => rows.set(++last, name === 'events' ? { ...row, sequence: last } : row)),
        put: (value, key) => request(() => rows.set(key, structuredClone(value))),
        get: (key) => request(() => rows.get(key)),
        delete: (key) => request(() => rows.delete(key)),
        getAllKeys: () => request(() => [...rows.keys()]),
        getAll: (range = 0, count = Infinity) => request(() => [...rows].filter(([key]) => key > range).slice(0, count).map(([, row]) => row)),
        openCursor: () => {
          const keys = [...rows.keys()];
          let index = 0;
          const one = request(() => index < keys.length ? {
            value: rows.get(keys[index]), delete: () => rows.delete(keys[index - 1] ?? keys[0]),
            continue: () => ((index += 1), one.again()),
          } : null);
          return one;
        },
      };
    };
    return made;
  };
  globalThis.IDBKeyRange = { lowerBound: (value) => value };
  const open = () => {
    const request = { result: { transaction, close() {} } };
    queueMicrotask(() => request.onsuccess());
    return request;
  };
  return { stores, factory: { open } };
}

const row = (number) => ({ messageId: `m${number}`, userId: 'ada', body: `{"n":${number}}`, bytes: 7 });
const everything = { events: 100, bytes: 1e6, blocked: new Set(), excluded: new Set() };

for (const [name, damage] of Object.entries({
  'no body': { body: undefined }, 'half a body': { body: '{"n":' }, 'a body of another type': { body: 7 },
  'no user': { userId: null }, 'no size': { bytes: undefined }, 'an impossible size': { bytes: NaN },
})) {
  test(`a row with ${name} is quarantined, and the others are claimed`, async () => {
    const { stores, factory } = memoryFactory();
    const store = new DiskStore(factory, 'a');
    await store.add([row(1), row(2), row(3)]);
    Object.assign(stores.events.get(2), damage);
    assert.deepEqual((await store.claim(everything)).map(({ messageId }) => messageId), ['m1', 'm3']);
    assert.deepEqual([...stores.quarantine.values()].map(({ messageId, code }) => [messageId, code]), [['m2', 'damaged_row']]);
    const counts = await store.counts();
    assert.deepEqual([counts.queued, counts.quarantined], [2, 1]);
  });
}

for (const damage of [{ queued: 1e9 }, { queuedBytes: 1e12 }, { queued: NaN }, { queued: '7' }, { queuedBytes: -5 }, { sent: null }]) {
  test(`a damaged counter evicts no events (${Object.entries(damage)})`, async () => {
    const { stores, factory } = memoryFactory();
    const store = new DiskStore(factory, 'a');
    await store.add([row(1), row(2)]);
    Object.assign(stores.meta.get('counts'), damage);
    await store.add([row(3)]);
    assert.equal(stores.events.size, 3);
    const counts = await store.counts();
    assert.equal(counts.evicted, 0);
    for (const [name, count] of Object.entries(counts)) assert.ok(Number.isSafeInteger(count) && count >= 0, name);
    if (!(damage.queued < 1e9) && typeof damage.queued === 'number' && damage.queued > 0) assert.equal(counts.queued, 3);
  });
}

test('the oldest events beyond the limit are evicted', async () => {
  const { stores, factory } = memoryFactory();
  const store = new DiskStore(factory, 'a');
  store.limits = { events: 3, bytes: 1000 };
  for (const number of [1, 2, 3, 4, 5]) await store.add([row(number)]);
  assert.deepEqual([...stores.events.values()].map(({ messageId }) => messageId), ['m3', 'm4', 'm5']);
  const counts = await store.counts();
  assert.deepEqual([counts.queued, counts.queuedBytes, counts.evicted], [3, 21, 2]);
});
