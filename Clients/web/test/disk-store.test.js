// `DiskStore` on connections that are lost. scripts/web-test.py tests it on good ones, in Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DiskStore } from '../src/disk-store.js';

/** As much of IndexedDB as `meta` and `setMeta` use, with connections that can be lost. */
class Factory {
  opened = 0;
  values = new Map();
  /** `throws`, or the error that aborts a transaction of a lost connection. */
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

/** A factory that remembers its connections. */
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
  test(`a connection that the browser has lost is opened again, once (${fail})`, async () => {
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

test('calls at the same time share the new connection', async () => {
  const { factory, connections } = lossy('throws');
  const store = new DiskStore(factory, 'a');
  await store.meta('userId');
  connections[0].isLost = true;
  await Promise.all([store.setMeta([['a', 1]]), store.setMeta([['b', 2]]), store.meta('a')]);
  assert.deepEqual([factory.values.get('a'), factory.values.get('b')], [1, 2]);
  assert.ok(factory.opened <= 3, `${factory.opened}`);
});

test('a failure of the second try is an error', async () => {
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

test('a full disk is no reason to open it again', async () => {
  const { factory, connections } = lossy('QuotaExceededError');
  const store = new DiskStore(factory, 'a');
  await store.meta('userId');
  connections[0].isLost = true;
  await assert.rejects(store.setMeta([['a', 1]]), { name: 'QuotaExceededError' });
  assert.equal(factory.opened, 1);
});
