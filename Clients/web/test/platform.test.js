// The client's platform, with stand-ins for `fetch` and `localStorage`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browser } from '../src/platform.js';

const request = { url: 'https://gateway.example/v1/batch', headers: {}, body: '{}', keepalive: false };

/** Sends a request. Its response has this status and a body that cannot be decoded. */
function answered(t, status) {
  const body = new ReadableStream({ pull: (stream) => stream.error(new TypeError('decoding failed')) });
  const response = { status, ok: status < 300, headers: new Headers({ 'Retry-After': '40' }), body };
  t.mock.method(globalThis, 'fetch', async () => response);
  return browser().send(request);
}

for (const status of [401, 413, 503]) {
  test(`a response ${status} with an unreadable body keeps its status and headers`, async (t) => {
    const answer = await answered(t, status);
    assert.deepEqual([answer.status, answer.body, answer.header('Retry-After')], [status, '', '40']);
  });
}

test('without a navigator, events lack the facts about the browser', () => {
  assert.equal(JSON.stringify(browser().facts(undefined)), '{"os":{}}');
});

test('a response 200 with an unreadable body is the error `connection_lost`', async (t) => {
  await assert.rejects(answered(t, 200), { code: 'connection_lost' });
});

for (const [name, head] of [
  ['a truncated object is closed after its last complete member', '{"success":true,"accepted":1,"quoted":"a\\\\\\"},]","list":[{"a":1},{"b":'],
  ['data after a complete object is ignored', '{"success":true,"accepted":1,"quoted":"a\\\\\\"},]"}'],
]) {
  test(`at most 1 MiB of an endless body is read, and ${name}`, async (t) => {
    let pulled = 0;
    let isCancelled = false;
    const body = new ReadableStream({
      pull(stream) {
        stream.enqueue(new TextEncoder().encode(pulled++ ? ' '.repeat(65_536) : head));
      },
      cancel: () => void (isCancelled = true),
    });
    t.mock.method(globalThis, 'fetch', async () => new Response(body));
    const answer = await browser().send(request);
    assert.deepEqual(JSON.parse(answer.body), { success: true, accepted: 1, quoted: 'a\\"},]' });
    assert.ok(isCancelled && pulled < 30, `${pulled}`);
  });
}

test('a short body is read completely, also with characters split across chunks', async (t) => {
  const bytes = new TextEncoder().encode('{"a":"ä€😀"}');
  const body = new ReadableStream({
    start(stream) {
      for (const byte of bytes) stream.enqueue(new Uint8Array([byte]));
      stream.close();
    },
  });
  t.mock.method(globalThis, 'fetch', async () => new Response(body));
  assert.equal((await browser().send(request)).body, '{"a":"ä€😀"}');
});

test('a redirection is not followed, and has the status 302', async (t) => {
  const fetched = t.mock.method(globalThis, 'fetch', async () => ({ type: 'opaqueredirect', status: 0, headers: new Headers(), body: null }));
  assert.equal((await browser().send(request)).status, 302);
  assert.equal(fetched.mock.calls[0].arguments[1].redirect, 'manual');
});

/** The journal over a stand-in for `localStorage`. */
function journal(t, storage) {
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, get: storage });
  t.after(() => delete globalThis.localStorage);
  return browser().journal('countersign wk');
}

test('the journal is one item of `localStorage`, which is removed when the journal is empty', (t) => {
  const storage = {};
  const { read, write } = journal(t, () => storage);
  assert.equal(read(), null);
  write({ userId: null, leaving: 'ada' });
  assert.deepEqual([Object.keys(storage), read()], [['countersign wk'], { userId: null, leaving: 'ada' }]);
  write(null);
  assert.deepEqual([storage, read()], [{}, null]);
});

for (const [name, storage] of [
  ['is forbidden', () => { throw new Error('SecurityError'); }], ['is full', () => Object.freeze({})],
  ['contains invalid JSON', () => ({ 'countersign wk': '{' })],
]) {
  test(`a \`localStorage\` that ${name} causes no exception in the app`, (t) => {
    const { read, write } = journal(t, storage);
    assert.equal(read(), null);
    write({ userId: 'ada' });
    write(null);
  });
}
