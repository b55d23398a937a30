// The client against an in-memory server and a manual clock: recording, tokens, failures, storage.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CountersignError, Countersign } from '../src/index.js';
import { Bench, fakeToken, reject, settle, start } from './bench.js';
import { seeded } from './simulation.js';

const now = start / 1000;

/** A promise `opened`, and the function `open` that resolves it. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { opened, open };
}

const isBalanced = (counts) => assert.equal(
  counts.recorded,
  counts.queued + counts.sent + counts.quarantined + counts.evicted + counts.wiped);

// Recording

test('events are delivered once, in order, with their user and token', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.track('before');
  client.identify('ada', 'a.a.a', { plan: 'free' });
  await client.track('Order Completed', { total: 42.5, rate: NaN });
  assert.equal((await client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.events, ['before', 'identify', 'Order Completed']);
  assert.deepEqual(bench.gateway.tokens, [null, 'a.a.a']);
  const [before, identify, order] = bench.gateway.stored.values();
  assert.match(before.anonymousId, /^[0-9a-f]{31}$/);
  assert.equal(before.userId, undefined);
  assert.deepEqual([identify.type, identify.userId, identify.traits], ['identify', 'ada', { plan: 'free' }]);
  assert.deepEqual([order.type, order.userId, order.anonymousId], ['track', 'ada', undefined]);
  assert.deepEqual(order.properties, { total: 42.5, rate: null });
  assert.equal(order.timestamp, new Date(start).toISOString());
  assert.equal(order.context.library.name, 'countersign-web');
  assert.equal(order.context.sessionId, (await client.snapshot()).sessionId);
});

test('events carry facts about app and browser, limited to the configured context parts', async () => {
  const bench = new Bench({ context: { appVersion: '2.1', appBuild: '17' } });
  const client = bench.client();
  await client.track('all');
  await client.close();
  bench.configuration.context.parts = ['app'];
  const second = bench.client();
  await second.track('app only');
  await second.flush();
  const [all, some] = [...bench.gateway.stored.values()].map(({ context: { sessionId, library, ...facts } }) => facts);
  assert.deepEqual(all, { app: { version: '2.1', build: '17' }, os: { name: 'Linux' }, locale: 'de-DE' });
  assert.deepEqual(some, { app: { version: '2.1', build: '17' } });
});

test('a receipt has the storage and the message id under which the server stores the event', async () => {
  const bench = new Bench();
  const client = bench.client();
  const { messageId, stored } = await client.track('one');
  assert.equal(stored, 'disk');
  assert.equal((await bench.disk.counts()).queued, 1);
  await client.flush();
  assert.ok(bench.gateway.stored.has(messageId));
});

test('properties changed after `track` do not change the recorded event', async () => {
  const bench = new Bench();
  const client = bench.client();
  const properties = { step: 1 };
  const receipt = client.track('one', properties);
  properties.step = 2;
  await receipt;
  await client.flush();
  assert.equal([...bench.gateway.stored.values()][0].properties.step, 1);
});

test('a lone surrogate is replaced by U+FFFD, and text that looks like its escape is kept', async () => {
  const bench = new Bench();
  const client = bench.client();
  const text = 'cut \ud83d, whole 😀, \\ud83d, "quoted"\u0007';
  await client.track('one', { text });
  await client.flush();
  assert.equal([...bench.gateway.stored.values()][0].properties.text, text.replace('\ud83d,', '\ufffd,'));
});

test('events that a page could not send are sent at once by the next page, with their user and token', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => ({ status: 503 });
  const first = bench.client();
  first.identify('ada', 'a.a.a');
  await first.track('one');
  await first.flush();
  await first.close();
  bench.gateway.respond = () => null;
  const second = bench.client();
  await settle();
  assert.deepEqual(bench.gateway.events, ['identify', 'one']);
  assert.equal(second.userId, 'ada', 'the next page has the user');
  assert.equal(bench.gateway.requests.at(-1).token, 'a.a.a', 'the next page has the token');
});

test('events are sent when 20 are queued, and otherwise after 10 seconds', async () => {
  const bench = new Bench();
  const client = bench.client();
  for (let number = 0; number < 20; number += 1) client.track(`${number}`);
  await settle();
  assert.equal(bench.gateway.stored.size, 20);
  client.track('late');
  await bench.clock.advance(9);
  assert.equal(bench.gateway.stored.size, 20);
  await bench.clock.advance(1);
  assert.equal(bench.gateway.stored.size, 21);
});

for (const [name, record, code] of [
  ['without a name', (client) => client.track(''), 'invalid_event'],
  ['with properties that are not an object', (client) => client.track('a', 42), 'invalid_event'],
  ['with an array for properties', (client) => client.track('a', [1]), 'invalid_event'],
  ['with a date for traits', (client) => client.identify('ada', null, new Date()), 'invalid_event'],
  ['that is too large', (client) => client.track('a', { text: 'x'.repeat(40_000) }), 'event_too_large'],
]) {
  test(`an event ${name} is rejected with the error ${code}`, async () => {
    const client = new Bench().client();
    await assert.rejects(record(client), (error) => error instanceof CountersignError && error.code === code);
    assert.equal((await client.snapshot()).recorded, 0);
  });
}

for (const [name, change] of [
  ['an endpoint without a host', { endpoint: 'gateway.example' }], ['a write key with a space', { writeKey: 'w k' }],
  ['a missing endpoint', { endpoint: undefined }], ['a missing write key', { writeKey: undefined }],
  ['a write key of null', { writeKey: null }], ['an endpoint in an array', { endpoint: ['https://gateway.example'] }],
]) {
  test(`${name} is rejected by the constructor`, () => {
    assert.throws(() => new Bench(change).client(), { code: 'invalid_configuration' });
  });
}

test('a full queue evicts its oldest events and counts them', async () => {
  const bench = new Bench();
  bench.disk.limits = { events: 3, bytes: 16 << 20 };
  bench.gateway.respond = () => ({ status: 503 });
  const client = bench.client();
  for (let number = 0; number < 5; number += 1) await client.track(`${number}`);
  let counts = await client.snapshot();
  assert.deepEqual([counts.queued, counts.evicted], [3, 2]);
  bench.disk.limits = { events: 10, bytes: 500 };
  await client.track('last');
  counts = await client.snapshot();
  assert.ok(counts.evicted > 2);
  isBalanced(counts);
  bench.gateway.respond = () => null;
  await client.flush();
  assert.equal(bench.gateway.events.at(-1), 'last');
  isBalanced(await client.snapshot());
});

test('events beyond the limit of pending writes are dropped and counted', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.flush();
  const receipts = await Promise.all(Array.from({ length: 3000 }, (_, number) => client.track(`${number}`)));
  const dropped = receipts.filter((receipt) => receipt.stored === 'dropped').length;
  assert.ok(dropped > 0 && dropped < 3000, `${dropped}`);
  assert.equal((await client.snapshot()).dropped, dropped);
});

test('after `close` events are dropped, and a flush ends with `closed`', async () => {
  const client = new Bench().client();
  const last = client.track('last');
  await client.close();
  assert.equal((await last).stored, 'disk');
  assert.equal((await client.track('late')).stored, 'dropped');
  assert.equal((await client.flush()).ending, 'closed');
});

// Users

test('events keep the user and token they were recorded under after a change of user', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('hers');
  client.changeUser('bob', 'b.b.b');
  await client.track('his');
  await client.flush();
  assert.deepEqual(bench.gateway.tokens, ['a.a.a', 'b.b.b']);
  assert.deepEqual([...bench.gateway.stored.values()].map((event) => event.userId), ['ada', 'bob']);
});

test('calls take effect in call order, also while earlier ones wait for the queue', async () => {
  const bench = new Bench();
  const client = bench.client();
  const recorded = client.changeUser('ada').then(() => client.track('two'));
  client.track('one');
  client.changeUser('bob');
  await recorded;
  await client.flush();
  assert.deepEqual([...bench.gateway.stored.values()].map(({ event, userId }) => [event, userId]), [['one', 'ada'], ['two', 'bob']]);
});

test('user ids that differ only in Unicode normalization are two users', async () => {
  const bench = new Bench();
  const client = bench.client();
  for (const user of ['\u00e9', 'e\u0301']) {
    client.changeUser(user, `token.${user === '\u00e9' ? 1 : 2}.x`);
    await client.track('one');
  }
  await client.flush();
  assert.deepEqual(bench.gateway.tokens, ['token.1.x', 'token.2.x']);
});

for (const userId of [42, '', null, undefined, { id: 'bob' }, ['bob'], true]) {
  test(`the user id ${JSON.stringify(userId)} is rejected, and user and token do not change`, async () => {
    const bench = new Bench();
    const client = bench.client();
    await client.identify('ada', 'a.a.a');
    const isInvalid = (error) => error instanceof CountersignError && error.code === 'invalid_event';
    await assert.rejects(client.identify(userId, 'b.b.b', { email: 'bob@example.com' }), isInvalid);
    await assert.rejects(client.changeUser(userId, 'b.b.b'), isInvalid);
    await client.track('hers');
    await client.flush();
    assert.deepEqual([bench.gateway.events, bench.gateway.tokens, client.userId], [['identify', 'hers'], ['a.a.a'], 'ada']);
  });
}

for (const [name, traits] of [['long text', { text: 'a'.repeat(32_760) }], ['a long name', { ['a'.repeat(40_000)]: 1 }]]) {
  test(`traits that are too large because of ${name} are rejected, and the user does not change`, async () => {
    const bench = new Bench();
    const client = bench.client();
    await client.identify('ada', 'a.a.a');
    await assert.rejects(client.identify('bob', 'b.b.b', traits), { code: 'event_too_large' });
    await client.track('hers');
    await client.flush();
    assert.deepEqual([bench.gateway.events, bench.gateway.tokens, client.userId], [['identify', 'hers'], ['a.a.a'], 'ada']);
  });
}

test('identifying the current user again without traits records no event', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.identify('ada');
  assert.equal(await client.identify('ada', 'b.b.b'), null);
  assert.equal((await client.identify('ada', null, { plan: 'pro' })).stored, 'disk');
  assert.equal((await client.snapshot()).recorded, 2);
});

test('a log-out sends queued events with the token, and then deletes the token', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  client.track('hers');
  assert.equal((await client.logOut()).isComplete, true);
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
  assert.equal(client.userId, null);
  assert.equal(await bench.disk.meta('token ada') ?? null, null);
  await client.track("nobody's");
  await client.flush();
  assert.equal(bench.gateway.requests.at(-1).token, null);
});

test('events rejected at a log-out wait until the user signs in again with a new token', async () => {
  const bench = new Bench();
  const client = bench.client();
  bench.gateway.respond = ({ token, batch }) => (batch[0].userId && token !== 'new.a.a' ? reject() : null);
  client.changeUser('ada', 'a.a.a');
  await client.track('hers');
  await client.logOut();
  await client.track("nobody's");
  await client.flush();
  assert.deepEqual(bench.gateway.events, ["nobody's"]);
  client.changeUser('ada', 'new.a.a');
  await client.flush();
  assert.deepEqual(bench.gateway.events, ["nobody's", 'hers']);
});

/** A gateway that cannot be reached. */
const offline = () => { throw { code: 'no_connection', reason: '' }; };

for (const reloads of [false, true]) {
  test(`events left after a log-out are never sent without a token, ${reloads ? 'also after a reload' : 'also under the next user'}`, async () => {
    const bench = new Bench();
    let client = bench.client();
    client.changeUser('ada', 'a.a.a');
    await client.track('hers');
    bench.gateway.respond = offline;
    assert.equal((await client.logOut()).isComplete, false);
    bench.gateway.requests = [];
    bench.gateway.respond = () => null;
    if (reloads) {
      await client.close();
      client = bench.client();
    }
    client.changeUser('bob', 'b.b.b');
    await client.track('his');
    const { batches } = await client.flush();
    assert.deepEqual(batches.map(({ userId, code }) => `${userId} ${code}`).sort(), ['ada logged_out', 'bob ']);
    await bench.clock.advance(3600);
    assert.deepEqual([bench.gateway.events, bench.gateway.tokens], [['his'], ['b.b.b']]);
    const { parked } = await client.snapshot();
    assert.deepEqual(parked.map(({ userId, reason, isPaused }) => [userId, reason, isPaused]), [['ada', 'logged_out', true]]);
    await client.changeUser('ada');
    await client.flush();
    assert.deepEqual(bench.gateway.events, ['his'], 'nothing is sent before the user has a token');
    client.setToken('c.c.c');
    assert.equal((await client.flush()).isComplete, true);
    assert.deepEqual([bench.gateway.events, bench.gateway.tokens], [['his', 'hers'], ['b.b.b', 'c.c.c']]);
    await client.logOut();
    await client.changeUser('ada');
    await client.track('later');
    assert.equal((await client.flush()).isComplete, true, 'the second log-out left no events');
  });
}

test('events left after a log-out wait while the stored token cannot be read', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('hers');
  bench.gateway.respond = offline;
  await client.logOut();
  await client.close();
  bench.gateway.requests = [];
  bench.gateway.respond = () => null;
  const meta = bench.disk.meta.bind(bench.disk);
  bench.disk.meta = async (key, value) => { if (key === 'token ada') throw new Error('blocked'); return meta(key, value); };
  const next = bench.client();
  assert.deepEqual((await next.flush()).batches.map(({ code }) => code), ['store_unreadable']);
  await next.changeUser('ada');
  await next.logOut();
  bench.disk.meta = meta;
  await bench.clock.advance(180);
  assert.deepEqual((await next.snapshot()).parked.map(({ reason }) => reason), ['logged_out']);
  assert.deepEqual(bench.gateway.requests, []);
});

test('events left after a log-out wait until the user signs in again and the provider returns a token', async () => {
  const bench = new Bench();
  let token = null;
  const client = bench.client({ tokenProvider: () => token });
  bench.gateway.respond = offline;
  client.changeUser('ada');
  await client.track('hers');
  await client.logOut();
  bench.gateway.requests = [];
  bench.gateway.respond = () => null;
  await bench.clock.advance(600);
  assert.deepEqual(bench.gateway.tokens, []);
  token = 'a.a.a';
  await client.changeUser('ada');
  await bench.clock.advance(180);
  assert.deepEqual([bench.gateway.events, bench.gateway.tokens], [['hers'], ['a.a.a']]);
});

test('events of a user who never had a token are sent without one after a log-out', async () => {
  const bench = new Bench();
  const client = bench.client();
  bench.gateway.respond = offline;
  client.changeUser('ada');
  await client.track('hers');
  await client.logOut();
  bench.gateway.respond = () => null;
  await bench.clock.advance(2);
  assert.deepEqual(bench.gateway.events, ['hers']);
});

for (const [name, isBack, end] of [
  ['interrupted when the tab is killed is finished by the next page', false, (tab) => tab.kill()],
  ['interrupted when the client is closed is finished by the next page', false, (tab) => tab.client.close()],
  ['interrupted when the tab is killed keeps the new token of a user who signed in again', true, (tab) => tab.kill()],
]) {
  test(`a log-out ${name}`, async () => {
    const bench = new Bench();
    const tab = bench.tab();
    tab.client.changeUser('ada', 'a.a.a');
    await tab.client.track('hers');
    bench.gateway.respond = () => new Promise(() => {});
    tab.client.logOut();
    await settle();
    if (isBack) await tab.client.changeUser('ada', 'b.b.b');
    await end(tab);
    bench.gateway.respond = () => null;
    bench.client();
    await settle();
    assert.deepEqual([bench.gateway.events, bench.gateway.tokens], [['hers'], ['a.a.a', isBack ? 'b.b.b' : 'a.a.a']]);
    assert.equal(await bench.disk.meta('token ada') ?? null, isBack ? 'b.b.b' : null);
  });
}

test('a token that the provider returns late during a log-out is not stored', async () => {
  const [asked, token, posted, answered] = [gate(), gate(), gate(), gate()];
  const bench = new Bench({ tokenProvider: () => (asked.open(), token.opened) });
  const client = bench.client();
  bench.gateway.respond = async () => (posted.open(), await answered.opened, null);
  client.changeUser('ada');
  await client.track('hers');
  const over = client.logOut();
  await asked.opened;
  await bench.clock.advance(30);
  await posted.opened;
  token.open('a.a.a');
  await settle();
  answered.open();
  await over;
  assert.equal(await bench.disk.meta('token ada') ?? null, null);
});

test('a wipe during a log-out deletes the token, and the log-out is not complete', async () => {
  const bench = new Bench({ tokenProvider: () => 'a.a.a' });
  const client = bench.client();
  const [asked, answered] = [gate(), gate()];
  bench.gateway.respond = async () => (asked.open(), await answered.opened, { status: 503 });
  client.changeUser('ada');
  await client.track('hers');
  const over = client.logOut();
  await asked.opened;
  await client.wipe();
  await client.track("nobody's");
  answered.open();
  assert.equal((await over).isComplete, false);
  assert.equal(await bench.disk.meta('token ada') ?? null, null);
});

test('a user who signs in again during the log-out keeps the new token', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  const over = client.logOut();
  client.changeUser('ada', 'b.b.b');
  await over;
  await client.track('two');
  await client.flush();
  assert.equal(bench.gateway.requests.at(-1).token, 'b.b.b');
});

test('a user who signs in again during the log-out with the same token keeps that token', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  const [asked, answered] = [gate(), gate()];
  bench.gateway.respond = async () => (asked.open(), await answered.opened, null);
  const over = client.logOut();
  await asked.opened;
  await client.changeUser('ada', 'a.a.a');
  await client.changeUser('bob', 'b.b.b');
  answered.open();
  await over;
  await client.changeUser('ada');
  await client.track('two');
  await client.flush();
  assert.deepEqual(bench.gateway.tokens, ['a.a.a', 'a.a.a']);
});

test('a change of user starts a new session, and a new token does not', async () => {
  const client = new Bench().client();
  const { sessionId } = await client.snapshot();
  await client.changeUser('ada');
  const second = (await client.snapshot()).sessionId;
  assert.notEqual(second, sessionId);
  await client.changeUser('ada', 'a.a.a');
  assert.equal((await client.snapshot()).sessionId, second);
});

test('a wipe deletes events, tokens and user, and creates a new anonymous id', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.track('one');
  await client.flush();
  const [{ anonymousId }] = bench.gateway.stored.values();
  bench.gateway.respond = () => reject();
  client.changeUser('ada', 'a.a.a');
  await client.track('two');
  await client.flush();
  await client.wipe();
  const counts = await client.snapshot();
  assert.deepEqual([counts.queued, counts.quarantined, counts.wiped, counts.parked.length], [0, 0, 1, 0]);
  isBalanced(counts);
  assert.equal(client.userId, null);
  assert.equal(await bench.disk.meta('token ada'), undefined);
  bench.gateway.respond = () => null;
  await client.track('three');
  await client.flush();
  assert.deepEqual(bench.gateway.events, ['one', 'three']);
  assert.notEqual([...bench.gateway.stored.values()][1].anonymousId, anonymousId);
});

test('events recorded before a wipe are not written to disk after it', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.snapshot();
  // Transactions run in the order of the calls, but their promises resolve later.
  const { add, wipe } = bench.disk;
  const [written, emptied] = [gate(), gate()];
  bench.disk.add = async (rows) => (await add.call(bench.disk, rows), written.opened);
  bench.disk.wipe = async () => (await wipe.call(bench.disk), emptied.opened);
  client.track('one');
  const second = client.track('two');
  await settle();
  const wiped = client.wipe();
  await settle();
  written.open();
  await settle();
  emptied.open();
  await wiped;
  assert.equal((await second).stored, 'dropped');
  assert.equal((await bench.disk.counts()).queued, 0);
});

test('a response that arrives after a wipe quarantines nothing and counts nothing as sent', async () => {
  const bench = new Bench();
  const client = bench.client();
  const [asked, answered] = [gate(), gate()];
  bench.gateway.respond = async ({ batch }) => {
    asked.open();
    await answered.opened;
    return { status: 200, body: { success: true, accepted: 1, rejected: [{ index: 1, code: 'invalid_event' }] } };
  };
  client.track('one');
  await client.track('two');
  const flushed = client.flush();
  await asked.opened;
  await client.wipe();
  answered.open();
  await flushed;
  assert.deepEqual(await client.quarantinedEvents(), []);
  const counts = await client.snapshot();
  assert.deepEqual([counts.sent, counts.wiped], [0, 2]);
});

test('a wipe that fails on disk is an error, and can be repeated', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.track('one');
  bench.disk.fault = new Error('full');
  await assert.rejects(client.wipe(), { code: 'storage_failed' });
  bench.disk.fault = null;
  await client.wipe();
  assert.equal((await client.snapshot()).wiped, 1);
});

// Tokens

test('the provider is called before the first request of a user without a token', async () => {
  const bench = new Bench();
  const asked = [];
  const client = bench.client({ tokenProvider: async (request) => (asked.push(request), 'a.a.a') });
  client.changeUser('ada');
  await client.track('one');
  assert.equal((await client.flush()).isComplete, true);
  assert.deepEqual(asked, [{ userId: 'ada', reason: 'missing', code: null }]);
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
});

test('a rejected token is replaced once by the provider, and the same events are sent again', async () => {
  const bench = new Bench();
  const asked = [];
  bench.gateway.respond = ({ token }) => (token === 'a.a.a' ? reject() : null);
  const client = bench.client({ tokenProvider: (request) => (asked.push(request), 'b.b.b') });
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  assert.equal((await client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.tokens, ['a.a.a', 'b.b.b']);
  assert.deepEqual(asked, [{ userId: 'ada', reason: 'rejected', code: 22 }]);
  assert.deepEqual(bench.gateway.events, ['one']);
  assert.equal(await bench.disk.meta('token ada'), 'b.b.b');
});

test('a token that is about to expire is replaced before it is used', async () => {
  const bench = new Bench();
  const reasons = [];
  const client = bench.client({ tokenProvider: ({ reason }) => (reasons.push(reason), fakeToken(now + 600)) });
  client.changeUser('ada', fakeToken(now + 4));
  await client.track('one');
  await client.flush();
  assert.deepEqual(reasons, ['expired']);
  assert.deepEqual(bench.gateway.tokens, [fakeToken(now + 600)]);
});

for (const ahead of [-86_400, -60, 86_400, 31_536_000]) {
  for (const saysDate of [true, false]) {
    test(`a fresh token is sent when the device clock is off by ${ahead} s${saysDate ? '' : ' and responses have no Date header'}`, async () => {
      const bench = new Bench();
      bench.clock.time += ahead * 1000;
      const fresh = fakeToken(now + 600);
      let calls = 0;
      bench.gateway.respond = (received) => (received.token === fresh
        ? { ...bench.gateway.store(received), headers: saysDate ? { Date: new Date(start).toUTCString() } : {} } : reject(26, 'MISSING_TOKEN'));
      const client = bench.client({ tokenProvider: () => ((calls += 1), fresh) });
      client.changeUser('ada');
      for (let round = 0; round < 3; round += 1) {
        client.track('one');
        await client.track('two');
        assert.equal((await client.flush()).isComplete, true);
      }
      assert.equal(bench.gateway.stored.size, 6);
      assert.equal(calls, 1, 'the provider is not called again for a token that the server accepts');
    });
  }
}

test('the Date header of a 502 is ignored, and a jump of the device clock resets the clock offset', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => ({ status: 502, headers: { Date: 'Sun, 15 Jan 2040 15:06:40 GMT' } });
  const client = bench.client();
  await client.track('one');
  await client.flush();
  assert.equal((await client.snapshot()).clockOffset, 0);
  bench.gateway.respond = (received) => ({ ...bench.gateway.store(received), headers: { Date: new Date(start + 86_400_000).toUTCString() } });
  await client.flush();
  assert.equal((await client.snapshot()).clockOffset, 86_400);
  await bench.clock.advance(3600);
  assert.equal((await client.snapshot()).clockOffset, 86_400, 'elapsed time is not a jump');
  bench.clock.time += 86_400_000;
  assert.equal((await client.snapshot()).clockOffset, 0);
});

for (const [name, provider] of [
  ['returns nothing', () => null], ['throws', () => { throw new Error('offline'); }], ['returns a malformed token', () => 'not a token'],
]) {
  test(`if the provider ${name}, events are still sent, and the provider is called only once`, async () => {
    const bench = new Bench();
    let calls = 0;
    const client = bench.client({ tokenProvider: () => ((calls += 1), provider()) });
    client.changeUser('ada');
    for (let number = 0; number < 150; number += 1) client.track(`${number}`);
    await settle();
    assert.equal(bench.gateway.stored.size, 150);
    assert.ok(bench.gateway.requests.length > 1);
    assert.equal(calls, 1);
  });
}

for (const [name, provider, reason] of [
  ['the rejected token', () => 'a.a.a', 'token_unchanged'], ['a malformed token', () => 'not a token', 'token_malformed'],
  ['nothing', () => null, 'no_token'], ['an error', () => { throw new Error('offline'); }, 'provider_failed'],
]) {
  test(`a provider that returns ${name} is reported, and the rejected token is not sent again`, async () => {
    const bench = new Bench();
    bench.gateway.respond = () => reject();
    const told = [];
    const client = bench.client({ tokenProvider: async () => provider() });
    client.onAuthenticationFailure((failure) => told.push([failure.reason, failure.origin]));
    client.changeUser('ada', 'a.a.a');
    await client.track('one');
    const result = await client.flush();
    assert.deepEqual(result.batches.map((batch) => batch.code), ['EXPIRED', reason]);
    assert.equal(bench.gateway.requests.length, 1);
    assert.deepEqual(told, [['EXPIRED', 'server'], [reason, 'provider']]);
    const { parked, queued } = await client.snapshot();
    assert.deepEqual([parked[0].reason, queued], [reason, 1]);
  });
}

test('the wait for the provider ends after 30 seconds, and a token it returns later is used', async () => {
  const bench = new Bench();
  const [asked, token] = [gate(), gate()];
  let calls = 0;
  bench.gateway.respond = (received) => (received.token ? null : reject(26, 'MISSING_TOKEN'));
  const client = bench.client({
    tokenProvider: () => {
      calls += 1;
      asked.open();
      return token.opened;
    },
  });
  client.changeUser('ada');
  await client.track('one');
  const first = client.flush();
  await asked.opened;
  await bench.clock.advance(30);
  assert.deepEqual((await first).batches.map((batch) => batch.code), ['MISSING_TOKEN']);
  assert.equal((await client.snapshot()).parked[0].reason, 'provider_timed_out');
  // The provider is still running, so it is not called again. A request without a token is sent instead.
  assert.deepEqual((await client.flush()).batches.map((batch) => batch.code), ['MISSING_TOKEN']);
  token.open('late.late.late');
  await settle();
  assert.deepEqual(bench.gateway.events, ['one']);
  assert.equal(calls, 1);
});

test('a flush that the provider calls ends with `waiting_for_token_provider` instead of a deadlock', async () => {
  const bench = new Bench();
  const results = [];
  let client;
  client = bench.client({ tokenProvider: async () => (results.push((await client.flush()).ending), 'a.a.a') });
  client.changeUser('ada');
  await client.track('one');
  const flushed = client.flush();
  await bench.clock.advance(5);
  await flushed;
  assert.deepEqual(results, ['waiting_for_token_provider']);
  await settle();
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
});

test('the provider has at most one call at a time for each user', async () => {
  const bench = new Bench();
  const waiting = [];
  const client = bench.client({ tokenProvider: ({ userId }) => new Promise((resolve) => waiting.push({ userId, resolve })) });
  for (const user of ['ada', 'bob']) {
    client.changeUser(user);
    await client.track('one');
    await client.track('two');
  }
  client.flush();
  const flushed = client.flush();
  await settle();
  assert.deepEqual(waiting.map(({ userId }) => userId), ['ada', 'bob']);
  for (const { resolve } of waiting) resolve('a.a.a');
  assert.equal((await flushed).isComplete, true);
  assert.equal(waiting.length, 2);
});

for (const wipes of [false, true]) {
  test(`a token requested before a ${wipes ? 'wipe' : 'log-out'} and returned after it is neither stored nor sent`, async () => {
    const bench = new Bench();
    const [asked, token] = [gate(), gate()];
    let calls = 0;
    const client = bench.client({ tokenProvider: () => ((calls += 1) === 1 ? (asked.open(), token.opened) : null) });
    client.changeUser('ada');
    await client.track('one');
    client.flush();
    await asked.opened;
    const over = wipes ? client.wipe() : client.logOut();
    await bench.clock.advance(5);
    await over;
    token.open('old.old.old');
    await settle();
    assert.ok(!(await bench.disk.meta('token ada')));
    assert.ok(bench.gateway.tokens.every((sent) => sent === null));
  });
}

test('parked events are delivered once the app no longer requires tokens', async () => {
  const bench = new Bench({ tokenProvider: () => null });
  let isRequired = true;
  bench.gateway.respond = () => (isRequired ? reject(26, 'MISSING_TOKEN') : null);
  const client = bench.client();
  client.changeUser('ada');
  await client.track('one');
  await client.flush();
  await bench.clock.advance(3600);
  assert.equal(bench.gateway.stored.size, 0);
  isRequired = false;
  await bench.clock.advance(180);
  assert.equal(bench.gateway.stored.size, 1);
});

// Failures

test('a token rejection is reported once, with all its details', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => reject(27, 'NO_MATCHING_PUBLIC_KEYS');
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure((failure) => told.push(failure));
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  for (let round = 0; round < 3; round += 1) await client.flush();
  assert.deepEqual(told, [{
    code: 27, reason: 'NO_MATCHING_PUBLIC_KEYS', userId: 'ada', token: 'a.a.a', isOptional: false, requestTimeMs: start,
    origin: 'server', clockSkew: null, occurrences: 1,
  }]);
  assert.equal((await client.snapshot()).authenticationFailures, 3);
});

test('an unresolved failure is reported again in each new session and after five minutes', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => reject();
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure((failure) => told.push(failure.occurrences));
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  await client.flush();
  for (let session = 0; session < 3; session += 1) {
    client.startSession();
    await client.flush();
    await client.flush();
  }
  const before = told.length;
  assert.equal(before, 4);
  await bench.clock.advance(300);
  await client.flush();
  assert.equal(told.length, before + 1);
});

test('a failure of another token or code is reported, and a rejected token that is set again as `token_unchanged`', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ token }) => (token === 'c.c.c' ? reject(21, 'SUBJECT_MISMATCH') : reject());
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure(({ token, code, reason }) => told.push(`${token} ${code} ${reason}`));
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  await client.flush();
  for (const token of ['b.b.b', 'c.c.c', 'c.c.c']) {
    client.setToken(token);
    await client.flush();
  }
  assert.deepEqual(told, ['a.a.a 22 EXPIRED', 'b.b.b 22 EXPIRED', 'c.c.c 21 SUBJECT_MISMATCH', 'c.c.c 21 token_unchanged']);
});

test('a new failure listener receives the last failure unless it is resolved', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ token }) => (token === 'a.a.a' ? reject() : null);
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  await client.flush();
  const told = [];
  const end = client.onAuthenticationFailure(({ code }) => told.push(code));
  await settle();
  assert.deepEqual(told, [22]);
  end();
  client.setToken('b.b.b');
  assert.equal((await client.flush()).isComplete, true);
  client.onAuthenticationFailure(({ code }) => told.push(code));
  await settle();
  assert.deepEqual(told, [22]);
});

test('if the provider fails and the expired token is rejected, only the failure of the provider is reported', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => reject();
  const told = [];
  const client = bench.client({ tokenProvider: () => null });
  client.onAuthenticationFailure(({ reason }) => told.push(reason));
  client.changeUser('ada', fakeToken(now - 10));
  await client.track('one');
  await client.flush();
  assert.equal(bench.gateway.requests.length, 1);
  assert.deepEqual(told, ['no_token']);
});

test('where tokens are optional, events are delivered and the failure has `isOptional`', async () => {
  const bench = new Bench();
  bench.gateway.respond = (received) => {
    const answer = bench.gateway.store(received);
    return { ...answer, body: { ...answer.body, auth_warning: { error_code: 22, reason: 'EXPIRED', clock_skew_seconds: 90 } } };
  };
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure(({ isOptional, clockSkew }) => told.push([isOptional, clockSkew]));
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  assert.equal((await client.flush()).isComplete, true);
  assert.deepEqual(told, [[true, 90]]);
});

test('a malformed token is reported and not sent', async () => {
  const bench = new Bench();
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure(({ reason, origin, token }) => told.push([reason, origin, token]));
  client.changeUser('ada', 'a.a\r\nX-Evil: 1');
  await client.track('one');
  await client.flush();
  assert.deepEqual(told, [['token_malformed', 'app', null]]);
  assert.deepEqual(bench.gateway.tokens, [null]);
});

// Servers and storage

test('despite partial and lost responses, every event is stored or quarantined, and counted once', async () => {
  const bench = new Bench();
  const { gateway } = bench;
  const random = seeded(7);
  const rejectedIDs = new Set();
  gateway.respond = (received) => {
    const dice = Math.floor(random() * 6);
    if (dice === 0) throw { code: 'no_connection', reason: 'before the server had it' };
    if (dice === 1) return { status: 503, headers: { 'Retry-After': '1' } };
    if (dice === 2) {
      // Always rejects the same events.
      const isBad = (event) => event.event.endsWith('7');
      const rejected = received.batch.flatMap((event, index) => (isBad(event) ? [{ index, code: 'invalid_event' }] : []));
      for (const event of received.batch.filter(isBad)) rejectedIDs.add(event.messageId);
      const answer = gateway.store({ batch: received.batch.filter((event) => !isBad(event)) });
      return { ...answer, body: { ...answer.body, rejected } };
    }
    const answer = gateway.store(received);
    if (dice === 3) throw { code: 'timed_out', reason: 'after the server had stored it' };
    if (dice === 4) return { status: 200, text: JSON.stringify(answer.body).slice(0, 10) };
    return answer;
  };
  const client = bench.client();
  const receipts = await Promise.all(Array.from({ length: 900 }, (_, number) => client.track(`event ${number}`)));
  for (let flushes = 0; flushes < 2000 && !(await client.flush()).isComplete; flushes += 1);
  const quarantined = new Set((await client.quarantinedEvents()).map((event) => event.messageId));
  for (const { messageId } of receipts) assert.ok(gateway.stored.has(messageId) || quarantined.has(messageId));
  // Each quarantined event was rejected, or stored by a request whose response failed.
  for (const id of quarantined) assert.ok(rejectedIDs.has(id) || gateway.stored.has(id));
  assert.ok(gateway.duplicates > 0, 'no event was sent again after a lost response');
  const counts = await client.snapshot();
  assert.equal(counts.sent + counts.quarantined, 900);
  isBalanced(counts);
});

test('a request without a response times out after 30 seconds', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => new Promise(() => {});
  const client = bench.client();
  await client.track('one');
  const flushed = client.flush();
  await bench.clock.advance(30);
  assert.deepEqual((await flushed).batches.map(({ code, outcome }) => [code, outcome]), [['timed_out', 'retry_later']]);
});

test('sending resumes after Retry-After, and the snapshot has the seconds until then', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => ({ status: 503, headers: { 'Retry-After': '40' } });
  const client = bench.client();
  await client.track('one');
  assert.equal((await client.flush()).ending, 'interrupted');
  const { nextAttemptIn, lastError } = await client.snapshot();
  assert.equal(nextAttemptIn, 40);
  assert.match(lastError, /^http_503$/);
  bench.gateway.respond = () => null;
  await bench.clock.advance(39);
  assert.equal(bench.gateway.stored.size, 0);
  await bench.clock.advance(1);
  assert.equal(bench.gateway.stored.size, 1);
});

test('an unknown write key is reported as a configuration problem', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => ({ status: 401, body: { code: 'invalid_write_key', reason: 'no app has this write key' } });
  const client = bench.client();
  await client.track('one');
  assert.equal((await client.flush()).ending, 'configuration_problem');
  assert.equal((await client.snapshot()).configurationProblem, 'invalid_write_key no app has this write key');
});

test('an event that the server rejects is quarantined with its code and reason', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ batch }) => (batch.length === 2
    ? { status: 200, body: { success: true, accepted: 1, rejected: [{ index: 1, code: 'invalid_event', reason: 'no' }] } } : null);
  const client = bench.client();
  await client.flush();
  client.track('good');
  const { messageId } = await client.track('bad');
  await client.flush();
  const [event] = await client.quarantinedEvents();
  assert.deepEqual([event.messageId, event.userId, event.code, event.reason], [messageId, null, 'invalid_event', 'no']);
  assert.equal(JSON.parse(event.body).event, 'bad');
});

for (const [name, make] of [
  ['throws', () => { throw new Error('SecurityError'); }], ['does not exist', () => null],
  ['cannot be opened', () => ({ meta: () => Promise.reject(new Error('blocked')) })],
]) {
  test(`if the storage ${name}, events are kept in memory and the snapshot has the problem`, async () => {
    const bench = new Bench();
    const { client } = bench.tab({ store: make });
    assert.equal((await client.track('one')).stored, 'memory');
    const { storage, storageProblem } = await client.snapshot();
    assert.equal(storage, 'memory');
    assert.ok(storageProblem);
    assert.equal((await client.flush()).isComplete, true);
    assert.deepEqual(bench.gateway.events, ['one']);
  });
}

test('if the storage does not open within five seconds, events are kept in memory', async () => {
  const bench = new Bench();
  const { client } = bench.tab({ store: () => ({ meta: () => new Promise(() => {}) }) });
  const receipt = client.track('one');
  await bench.clock.advance(5);
  assert.equal((await receipt).stored, 'memory');
});

test('events that do not fit on a full disk are kept in memory, sent and counted, until the disk has room', async () => {
  const bench = new Bench();
  const client = bench.client();
  await client.track('on disk');
  const full = new Error('no room');
  full.name = 'QuotaExceededError';
  bench.disk.add = async () => { throw full; };
  assert.equal((await client.track('in memory')).stored, 'memory');
  let snapshot = await client.snapshot();
  assert.deepEqual([snapshot.storage, snapshot.storageProblem, snapshot.queued], ['memory', 'QuotaExceededError: no room', 2]);
  assert.equal((await client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.events, ['on disk', 'in memory']);
  delete bench.disk.add;
  assert.equal((await client.track('again')).stored, 'disk');
  snapshot = await client.snapshot();
  assert.equal(snapshot.storage, 'disk');
  isBalanced(snapshot);
});

test('memory keeps at most 1000 events and counts the evicted ones', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => ({ status: 503 });
  const { client } = bench.tab({ store: () => null });
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 500 }, (_, number) => client.track(`${number}`)));
  }
  const counts = await client.snapshot();
  assert.equal(counts.queued, 1000);
  assert.equal(counts.evicted, 500);
  isBalanced(counts);
});

for (const [name, settle] of [
  ['fails to delete them', async () => { throw new Error('full'); }], ['never finishes deleting them', () => new Promise(() => {})],
]) {
  test(`delivered events are not sent again and delay no others when the disk ${name}`, async () => {
    const bench = new Bench();
    const client = bench.client();
    await client.track('one');
    bench.disk.settle = settle;
    const first = client.flush();
    await bench.clock.advance(5);
    assert.deepEqual((await first).batches.map(({ outcome }) => outcome), ['delivered']);
    await bench.clock.advance(40);
    await client.track('two');
    const second = client.flush();
    await bench.clock.advance(5);
    await second;
    assert.deepEqual(bench.gateway.events, ['one', 'two']);
    delete bench.disk.settle;
    await bench.clock.advance(60);
    assert.deepEqual([bench.gateway.requests.length, bench.gateway.duplicates], [2, 0]);
    const snapshot = await client.snapshot();
    assert.deepEqual([snapshot.sent, snapshot.queued], [2, 0]);
    isBalanced(snapshot);
  });
}

// A disk that fails during a change of user

/** Signs in `ada`, then makes every write to disk fail. */
async function signedIn(bench) {
  const tab = bench.tab();
  await tab.client.changeUser('ada', 'a.a.a');
  await tab.client.track('hers');
  await tab.client.flush();
  bench.disk.fault = new Error('full');
  return tab;
}

/** The user and token with which a new page sends its events. */
async function nextPage(bench) {
  const client = bench.client();
  await client.track('next');
  await client.flush();
  return [client.userId, bench.gateway.requests.at(-1).token];
}

for (const [name, change, expected] of [
  ['a log-out', (client) => client.logOut(), [null, null]],
  ['a change of user', (client) => client.changeUser('bob', 'b.b.b'), ['bob', 'b.b.b']],
]) {
  test(`${name} that failed to be written is written within five seconds after the disk works again`, async () => {
    const bench = new Bench();
    const tab = await signedIn(bench);
    await change(tab.client);
    bench.disk.fault = null;
    await bench.clock.advance(5);
    bench.journal = null;
    tab.kill();
    assert.deepEqual(await nextPage(bench), expected);
  });

  test(`${name} that failed to be written is written when the client is closed`, async () => {
    const bench = new Bench();
    const { client } = await signedIn(bench);
    await change(client);
    bench.disk.fault = null;
    await client.close();
    bench.journal = null;
    assert.deepEqual(await nextPage(bench), expected);
  });

  test(`${name} that failed to be written is written with the next event`, async () => {
    const bench = new Bench();
    const tab = await signedIn(bench);
    await change(tab.client);
    bench.disk.fault = null;
    await tab.client.track('more');
    await settle();
    bench.journal = null;
    tab.kill();
    assert.deepEqual(await nextPage(bench), expected);
  });

  test(`${name} that was never written to disk is applied by the next page from the journal`, async () => {
    const bench = new Bench();
    const tab = await signedIn(bench);
    await change(tab.client);
    tab.kill();
    bench.disk.fault = null;
    assert.equal((await nextPage(bench))[0], expected[0]);
    assert.notEqual(bench.gateway.requests.at(-1).token, 'a.a.a');
    assert.equal(await bench.disk.meta('userId') ?? null, expected[0]);
    assert.equal(bench.journal, null, 'the journal is empty once the disk has the change');
  });
}

test('a token that a log-out could not delete is deleted by the next page', async () => {
  const bench = new Bench();
  const tab = await signedIn(bench);
  await tab.client.logOut();
  tab.kill();
  assert.equal(await bench.disk.meta('token ada'), 'a.a.a');
  bench.disk.fault = null;
  bench.client();
  await settle();
  assert.ok(!(await bench.disk.meta('token ada')));
});

test('a change of user while the disk could not be opened is applied by the next page', async () => {
  const bench = new Bench();
  await bench.client().changeUser('ada', 'a.a.a');
  const { client } = bench.tab({ store: () => ({ meta: () => Promise.reject(new Error('blocked')) }) });
  await client.changeUser('bob');
  await client.close();
  assert.equal((await nextPage(bench))[0], 'bob');
});

test('a wipe also discards a change of user that is not on disk yet', async () => {
  const bench = new Bench();
  const { client } = await signedIn(bench);
  await client.changeUser('bob', 'b.b.b');
  await assert.rejects(client.wipe(), { code: 'storage_failed' });
  assert.equal(client.userId, 'bob');
  bench.disk.fault = null;
  await client.wipe();
  await bench.clock.advance(60);
  assert.deepEqual([bench.journal, await bench.disk.meta('userId'), await bench.disk.meta('token bob')], [null, undefined, undefined]);
});

test('while transactions never finish, events are kept in memory; later the disk is used again', async () => {
  const bench = new Bench();
  const { disk, client } = { disk: bench.disk, client: bench.client() };
  assert.equal((await client.track('before')).stored, 'disk');
  await client.flush();
  const methods = ['add', 'claim', 'settle', 'counts', 'quarantined', 'meta', 'setMeta', 'wipe'];
  for (const method of methods) disk[method] = () => new Promise(() => {});
  const settled = async (promise) => {
    await bench.clock.advance(5);
    return Promise.race([promise, settle().then(() => assert.fail('never settles'))]);
  };
  assert.equal((await settled(client.track('one'))).stored, 'memory');
  assert.equal((await client.track('two')).stored, 'memory', 'the disk is not tried again at once');
  const flushed = await client.flush();
  assert.deepEqual([bench.gateway.events, flushed.ending], [['before', 'one', 'two'], 'interrupted']);
  const { storage, storageProblem } = await client.snapshot();
  assert.deepEqual([storage, storageProblem], ['memory', 'Error: timed out']);
  await bench.clock.advance(30);
  await settled(client.changeUser('ada', 'a.a.a'));
  await settled(assert.rejects(client.quarantinedEvents(), { code: 'storage_failed' }));
  for (const method of methods) delete disk[method];
  await bench.clock.advance(40);
  assert.equal((await client.track('again')).stored, 'disk');
  assert.equal(await disk.meta('userId'), 'ada');
  for (const method of methods) disk[method] = () => new Promise(() => {});
  client.track('last');
  client.changeUser('bob');
  const closed = client.close();
  await bench.clock.advance(5);
  await settled(closed);
});

// After `close`

test('after `close` every call settles, and nothing is recorded, sent or written', async () => {
  const bench = new Bench();
  const { client } = bench.tab();
  await client.changeUser('ada', 'a.a.a');
  await client.close();
  const requests = bench.gateway.requests.length;
  client.startSession();
  await client.setToken('b.b.b');
  await client.changeUser('bob', 'b.b.b');
  assert.equal((await client.identify('bob', 'b.b.b', { plan: 'pro' })).stored, 'dropped');
  assert.equal((await client.identify('bob', 'b.b.b')).stored, 'dropped');
  assert.equal((await client.track('late')).stored, 'dropped');
  assert.equal((await client.flush()).ending, 'closed');
  assert.equal((await client.logOut()).ending, 'closed');
  assert.equal(client.userId, 'ada');
  client.onAuthenticationFailure(() => {})();
  assert.deepEqual(await client.quarantinedEvents(), []);
  assert.equal((await client.snapshot()).queued, 0);
  await client.close();
  await bench.clock.advance(60);
  assert.deepEqual([await bench.disk.meta('token ada'), await bench.disk.meta('userId')], ['a.a.a', 'ada']);
  assert.equal(bench.gateway.requests.length, requests);
  await client.wipe();
  assert.equal(await bench.disk.meta('token ada'), undefined, '`wipe` works after `close`');
});

test('calls that wait for the queue to open settle after `close`', async () => {
  const opened = gate();
  const bench = new Bench();
  const meta = bench.disk.meta.bind(bench.disk);
  const tab = bench.tab({ store: () => Object.assign(Object.create(bench.disk), { meta: async (...given) => (await opened.opened, meta(...given)) }) });
  const calls = [tab.client.identify('ada', 'a.a.a'), tab.client.setToken('b.b.b'), tab.client.track('one'), tab.client.close()];
  opened.open();
  await Promise.all(calls);
});

for (const [name, result] of [
  ['a token', () => 'late.late.late'], ['no token', () => null], ['an error', () => { throw new Error('offline'); }],
]) {
  test(`a provider that returns ${name} after \`close\` stores nothing, reports nothing and leaves no unhandled rejection`, async (t) => {
    const unhandled = t.mock.fn();
    process.on('unhandledRejection', unhandled);
    t.after(() => process.off('unhandledRejection', unhandled));
    const bench = new Bench();
    const [asked, returned] = [gate(), gate()];
    const told = [];
    const client = bench.client({ tokenProvider: async () => (asked.open(), await returned.opened, result()) });
    client.onAuthenticationFailure((failure) => told.push(failure));
    client.changeUser('ada');
    await client.track('one');
    client.flush();
    await asked.opened;
    await client.close();
    returned.open();
    await settle();
    assert.deepEqual([told, unhandled.mock.callCount(), await bench.disk.meta('token ada')], [[], 0, undefined]);
  });
}

test('the next page deletes the tokens of two users whose log-outs were interrupted', async () => {
  const bench = new Bench();
  bench.gateway.respond = () => new Promise(() => {});
  const tab = bench.tab();
  for (const user of ['ada', 'bob']) {
    await tab.client.identify(user, `${user}.t.t`);
    await tab.client.track(`of ${user}`);
    tab.client.logOut();
    await settle();
  }
  tab.kill();
  bench.gateway.respond = () => ({ status: 503 });
  const next = bench.client();
  await next.flush();
  await settle();
  assert.deepEqual([await bench.disk.meta('token ada'), await bench.disk.meta('token bob')], ['', '']);
  assert.equal(next.userId, null);
});

// Warnings for the developer

test('the first failure of each user and code logs a warning with a remedy and without the token', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ token }) => (token === 'a.a.a' ? reject(22, 'EXPIRED', { hint: 'Issue a new token.' }) : reject(26, 'MISSING_TOKEN'));
  const client = bench.client();
  for (const [user, token] of [['ada', 'a.a.a'], ['bob', undefined]]) {
    await client.changeUser(user, token);
    await client.track('one');
    for (let round = 0; round < 3; round += 1) await client.flush();
  }
  assert.deepEqual(bench.warnings, [
    'countersign: token of ada failed: 22 EXPIRED; Issue a new token.',
    'countersign: token of bob failed: 26 MISSING_TOKEN; pass a new token or a tokenProvider',
  ]);
  assert.ok(bench.warnings.every((text) => !text.includes('a.a.a')));
});

for (const [name, respond, code] of [
  ['a server that cannot be reached', () => { throw { code: 'no_connection', reason: 'offline' }; }, 'no_connection offline'],
  ['a server that fails', () => ({ status: 503 }), 'http_503'],
  ['an unknown write key', () => ({ status: 401, body: { code: 'invalid_write_key', reason: 'no app has it' } }), 'invalid_write_key no app has it'],
]) {
  test(`${name} logs one warning`, async () => {
    const bench = new Bench();
    bench.gateway.respond = respond;
    const client = bench.client();
    await client.track('one');
    for (let round = 0; round < 3; round += 1) await client.flush();
    await bench.clock.advance(600);
    assert.equal(bench.warnings.length, 1);
    assert.ok(bench.warnings[0].startsWith(`countersign: cannot send: ${code}; check endpoint`), bench.warnings[0]);
  });
}

for (const [name, respond] of [
  ['a token', (reason) => reject(22, reason)], ['the server', (reason) => ({ status: 503, body: { code: 'busy', reason } })],
]) {
  test(`a failure of ${name} whose reason differs each time logs one warning`, async () => {
    const bench = new Bench();
    let count = 0;
    bench.gateway.respond = () => respond(`request ${(count += 1)}`);
    const client = bench.client();
    await client.changeUser('ada', 'a.a.a');
    await client.track('one');
    for (let round = 0; round < 3; round += 1) await client.flush();
    assert.ok(count > 1);
    assert.equal(bench.warnings.length, 1, bench.warnings.join('\n'));
  });
}

test('no warning is logged while all requests succeed', async () => {
  const bench = new Bench();
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  await client.flush();
  await client.logOut();
  await client.close();
  assert.deepEqual(bench.warnings, []);
});

test('a flush ends with `parked` while events wait for a token', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ batch }) => (batch[0].userId === 'ada' ? reject() : null);
  const client = bench.client();
  client.changeUser('ada', 'a.a.a');
  await client.track('hers');
  client.changeUser('bob', 'b.b.b');
  await client.track('his');
  const result = await client.flush();
  assert.deepEqual([result.ending, result.queued, result.isComplete], ['parked', 1, false]);
  bench.gateway.respond = () => null;
  assert.equal((await client.flush()).ending, 'drained');
});

test('a token with an earlier warning is reported again when it is rejected', async () => {
  const bench = new Bench();
  bench.gateway.respond = (received) => {
    const answer = bench.gateway.store(received);
    return { ...answer, body: { ...answer.body, auth_warning: { error_code: 22, reason: 'EXPIRED' } } };
  };
  const told = [];
  const client = bench.client();
  client.onAuthenticationFailure(({ isOptional }) => told.push(isOptional));
  client.changeUser('ada', 'a.a.a');
  await client.track('one');
  await client.flush();
  bench.gateway.respond = () => reject();
  await client.track('two');
  await client.flush();
  assert.deepEqual(told, [true, false]);
});

test('importing the client adds no globals', async () => {
  const before = Object.getOwnPropertyNames(globalThis);
  await import('../src/index.js?again');
  await import('../src/braze.js?again');
  assert.deepEqual(Object.getOwnPropertyNames(globalThis), before);
  assert.equal(typeof Countersign, 'function');
});

test('every export in package.json has a module and type declarations', async () => {
  const { existsSync, readFileSync } = await import('node:fs');
  const root = new URL('../', import.meta.url);
  const { exports, version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  for (const entry of Object.values(exports)) {
    assert.ok(existsSync(new URL(entry.default, root)) && existsSync(new URL(entry.types, root)));
  }
  assert.equal((await import('countersign-web')).Countersign, Countersign);
  assert.equal((await import('../src/client.js')).version, version);
});
