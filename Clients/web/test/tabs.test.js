// Several tabs with one queue, pages that are hidden or left, and Braze's functions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as braze from '../src/braze.js';
import { Bench, fakeToken, reject, settle, start } from './bench.js';

test('one tab sends the events of all tabs, in the order of recording', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await one.client.track('1');
  await two.client.track('2');
  await one.client.track('3');
  const result = await two.client.flush();
  assert.deepEqual([result.isComplete, result.batches.length], [true, 1]);
  assert.deepEqual(bench.gateway.events, ['1', '2', '3']);
  assert.equal(bench.gateway.duplicates, 0);
});

test('a token set in one tab is used by the tab that sends', async () => {
  const bench = new Bench();
  const [, two] = [bench.tab(), bench.tab()];
  await settle();
  two.client.changeUser('ada', 'a.a.a');
  await two.client.track('one');
  await two.client.flush();
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
});

test('a new token in one tab releases events that another tab has parked', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ token }) => (token === 'a.a.a' ? reject() : null);
  const [one, two] = [bench.tab(), bench.tab()];
  one.client.changeUser('ada', 'a.a.a');
  await one.client.track('one');
  await one.client.flush();
  await two.client.changeUser('ada', 'b.b.b');
  await settle();
  assert.deepEqual(bench.gateway.tokens, ['a.a.a', 'b.b.b']);
  assert.deepEqual(bench.gateway.events, ['one']);
});

test('only the tab that sends calls its provider', async () => {
  let calls = 0;
  const bench = new Bench({ tokenProvider: () => ((calls += 1), 'a.a.a') });
  const tabs = [bench.tab(), bench.tab(), bench.tab()];
  for (const { client } of tabs) {
    client.changeUser('ada');
    await client.track('one');
  }
  await Promise.all(tabs.map(({ client }) => client.flush()));
  assert.equal(calls, 1);
  assert.equal(bench.gateway.stored.size, 3);
});

test('every tab reports a failure, and none does after it is resolved', async () => {
  const bench = new Bench();
  bench.gateway.respond = ({ token }) => (token === 'a.a.a' ? reject() : null);
  const told = [];
  const tabs = [bench.tab(), bench.tab()];
  tabs.forEach(({ client }, index) => client.onAuthenticationFailure(({ code }) => told.push([index, code])));
  tabs[1].client.changeUser('ada', 'a.a.a');
  await tabs[1].client.track('one');
  await tabs[1].client.flush();
  await settle();
  assert.deepEqual(told, [[0, 22], [1, 22]]);
  tabs[1].client.setToken('b.b.b');
  await tabs[1].client.flush();
  await settle();
  for (const { client } of tabs) client.onAuthenticationFailure(() => told.push('late'));
  await settle();
  assert.equal(told.length, 2);
});

test('when the sending tab is killed, another tab sends and completes the pending flush', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await one.client.track('one');
  bench.gateway.respond = () => new Promise(() => {});
  const flushed = two.client.flush();
  await settle();
  bench.gateway.respond = () => null;
  one.kill();
  assert.equal((await flushed).isComplete, true);
  assert.deepEqual(bench.gateway.events, ['one']);
});

test('the stored events of thirty tabs killed while recording are all delivered', async () => {
  const bench = new Bench();
  const stored = new Set();
  for (let round = 0; round < 30; round += 1) {
    const tab = bench.tab();
    bench.gateway.respond = round % 3 ? () => null : (received) => (bench.gateway.store(received), new Promise(() => {}));
    for (let number = 0; number < 25; number += 1) tab.client.track(`${number}`).then(({ messageId }) => stored.add(messageId));
    await settle();
    tab.kill();
  }
  bench.gateway.respond = () => null;
  assert.equal((await bench.tab().client.flush()).isComplete, true);
  assert.ok(stored.size > 0);
  for (const id of stored) assert.ok(bench.gateway.stored.has(id));
});

test('a hidden tab sends its events and then lets another tab send', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await one.client.track('one');
  one.page('hidden');
  await settle();
  assert.deepEqual(bench.gateway.events, ['one'], 'a hidden tab sends at once');
  one.isDead = true;
  await two.client.track('two');
  const flushed = two.client.flush();
  assert.equal((await flushed).isComplete, true, 'a frozen tab does not block the other');
});

test('a hidden tab continues to send if it is the only one', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  tab.page('hidden');
  await settle();
  bench.gateway.respond = () => ({ status: 503 });
  await tab.client.track('one');
  await bench.clock.advance(10);
  assert.equal(bench.gateway.requests.length, 1);
  bench.gateway.respond = () => null;
  await bench.clock.advance(2);
  assert.deepEqual(bench.gateway.events, ['one']);
  await tab.client.track('two');
  assert.equal((await tab.client.flush()).isComplete, true);
  await tab.client.track('three');
  tab.page('visible');
  await bench.clock.advance(10);
  assert.deepEqual(bench.gateway.events, ['one', 'two', 'three']);
});

test('on leaving a page, its events are sent with their token in a keepalive request', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  tab.client.changeUser('ada', 'a.a.a');
  await tab.client.track('one');
  tab.page('leave');
  assert.deepEqual(bench.gateway.requests.map(({ token, keepalive }) => [token, keepalive]), [['a.a.a', true]]);
  tab.kill();
  await settle();
  // The event is still queued. The server drops its second copy by the message id.
  assert.equal((await bench.tab().client.flush()).isComplete, true);
  assert.equal(bench.gateway.stored.size, 1);
});

test('on leaving a page, delivered events are not sent again', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  await tab.client.track('one');
  await tab.client.flush();
  tab.page('leave');
  assert.equal(bench.gateway.requests.length, 1);
});

test('a keepalive request has less than 64 KiB and no events whose token was rejected', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  tab.client.changeUser('ada', 'a.a.a');
  await Promise.all(Array.from({ length: 19 }, (_, number) => tab.client.track(`${number}`, { text: 'x'.repeat(10_000) })));
  tab.page('leave');
  assert.equal(bench.gateway.requests.length, 1);
  const bytes = new TextEncoder().encode(JSON.stringify(bench.gateway.requests[0].batch)).length;
  assert.ok(bytes < 64 << 10, `${bytes}`);
  bench.gateway.respond = () => reject();
  tab.page('return');
  await tab.client.flush();
  const before = bench.gateway.requests.length;
  tab.page('leave');
  assert.equal(bench.gateway.requests.length, before, 'the token was rejected just now');
});

for (const [name, token, tokenProvider, isSent] of [
  ['is expired', fakeToken(start / 1000 - 10), undefined, false],
  ['is about to expire', fakeToken(start / 1000 + 4), () => new Promise(() => {}), false],
  ['is valid', fakeToken(start / 1000 + 600), () => new Promise(() => {}), true],
  ['the provider has not returned yet', null, () => new Promise(() => {}), false],
  ['was never set', null, undefined, true],
]) {
  test(`the keepalive request ${isSent ? 'has' : 'leaves out'} events of a user whose token ${name}`, async () => {
    const bench = new Bench({ tokenProvider });
    const tab = bench.tab();
    tab.client.changeUser('ada', token);
    await tab.client.track('hers');
    tab.page('leave');
    const sent = bench.gateway.requests.map(({ token, keepalive }) => [token, keepalive]);
    assert.deepEqual(sent, isSent ? [[token, true]] : []);
    assert.equal((await bench.disk.counts()).queued, 1);
  });
}

test('the keepalive request leaves out events of a user whose token is not read from disk yet', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  await settle();
  bench.disk.meta = () => new Promise(() => {});
  tab.client.changeUser('ada');
  await tab.client.track('hers');
  tab.page('leave');
  assert.deepEqual(bench.gateway.tokens, []);
});

test('the keepalive request leaves out events of a user who logged out', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  tab.client.changeUser('ada', 'a.a.a');
  await tab.client.track('hers');
  bench.gateway.respond = () => { throw { code: 'no_connection', reason: '' }; };
  await tab.client.logOut();
  bench.gateway.requests = [];
  await bench.clock.advance(2);
  tab.page('leave');
  assert.deepEqual(bench.gateway.tokens, []);
});

test('a page restored from the back/forward cache records and sends again', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  one.page('leave');
  await settle();
  await two.client.track('two');
  assert.equal((await two.client.flush()).isComplete, true);
  one.page('return');
  await one.client.track('one');
  assert.equal((await one.client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.events, ['two', 'one']);
});

test('a page that was hidden for half an hour begins a new session', async () => {
  const bench = new Bench();
  const tab = bench.tab();
  const { sessionId } = await tab.client.snapshot();
  for (const [seconds, isSame] of [[1799, true], [1800, false]]) {
    tab.page('hidden');
    await bench.clock.advance(seconds);
    tab.page('visible');
    assert.equal((await tab.client.snapshot()).sessionId === sessionId, isSame);
  }
});

test('a log-out in one tab deletes the token in all tabs, and a wipe also deletes the user', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await one.client.changeUser('ada', 'a.a.a');
  await two.client.changeUser('ada');
  await one.client.logOut();
  await two.client.track('one');
  await two.client.flush();
  assert.equal(bench.gateway.requests.at(-1).token, null);
  await one.client.wipe();
  await settle();
  assert.equal(two.client.userId, null);
  await two.client.track('two');
  await two.client.flush();
  assert.equal([...bench.gateway.stored.values()].at(-1).userId, undefined);
});

test('a user who signs in again in another tab during the log-out keeps the token', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await one.client.changeUser('ada', 'a.a.a');
  await settle();
  bench.gateway.respond = () => new Promise(() => {});
  await one.client.track('one');
  const over = one.client.logOut();
  await settle();
  await two.client.changeUser('ada', 'a.a.a');
  bench.gateway.respond = () => null;
  await bench.clock.advance(30);
  await over;
  await two.client.track('two');
  assert.equal((await two.client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.tokens, ['a.a.a', 'a.a.a']);
});

test('a token that the provider of another tab returns during a log-out is deleted after it', async () => {
  const bench = new Bench({ tokenProvider: () => 'a.a.a' });
  const [, two] = [bench.tab(), bench.tab()];
  await settle();
  two.client.changeUser('ada');
  await two.client.track('one');
  assert.equal((await two.client.logOut()).isComplete, true);
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
  assert.equal(await bench.disk.meta('token ada') ?? null, null);
});

test('events left by a log-out in one tab are not sent by the sending tab', async () => {
  const bench = new Bench();
  const [one, two] = [bench.tab(), bench.tab()];
  await settle();
  bench.gateway.respond = () => { throw { code: 'no_connection', reason: '' }; };
  await two.client.changeUser('ada', 'a.a.a');
  await two.client.track('hers');
  await two.client.logOut();
  bench.gateway.requests = [];
  bench.gateway.respond = () => null;
  await bench.clock.advance(10);
  await one.client.flush();
  assert.deepEqual(bench.gateway.tokens, []);
});

test('events of a tab that do not fit on a full disk are sent by the sending tab', async () => {
  const bench = new Bench();
  const [, two] = [bench.tab(), bench.tab()];
  await settle();
  bench.disk.add = async () => { throw new Error('full'); };
  assert.equal((await two.client.track('one')).stored, 'memory');
  assert.equal((await two.client.flush()).isComplete, true);
  assert.deepEqual(bench.gateway.events, ['one']);
  await settle();
  assert.equal((await two.client.snapshot()).queued, 0);
});

test("the samples of Braze's SDK Authentication run, with another import", async () => {
  const bench = new Bench();
  const appboy = braze;
  bench.gateway.respond = ({ token }) => (token === 'NEW-JWT-TOKEN-FROM-SERVER' ? null : reject());
  const errors = [];
  const renewed = [];
  const getNewTokenSomehow = async (error) => (errors.push(error), 'NEW-JWT-TOKEN-FROM-SERVER');

  assert.equal(braze.subscribeToSdkAuthenticationFailures(() => {}), undefined);
  assert.equal(await new Promise((resolve) => braze.requestImmediateDataFlush(resolve)), false);
  assert.equal(braze.initialize('YOUR-API-KEY-HERE', { baseUrl: 'gateway.example', enableSdkAuthentication: true }, bench.platform()), true);
  braze.changeUser('NEW-USER-ID', 'JWT-TOKEN-FROM-SERVER');
  braze.subscribeToSdkAuthenticationFailures(async (error) => {
    const updated_jwt = await getNewTokenSomehow(error);
    appboy.setSdkAuthenticationSignature(updated_jwt);
    renewed.push(updated_jwt);
  });
  assert.equal(braze.logCustomEvent('Order Completed', { total: 1 }), true);
  assert.equal(braze.logCustomEvent(''), false);
  assert.equal(braze.logCustomEvent(42), false);
  await new Promise((resolve) => braze.requestImmediateDataFlush(resolve));
  await settle();
  assert.deepEqual(errors, [{ errorCode: 22, reason: 'EXPIRED', userId: 'NEW-USER-ID', signature: 'JWT-TOKEN-FROM-SERVER', optional: false }]);
  assert.deepEqual(renewed, ['NEW-JWT-TOKEN-FROM-SERVER']);
  assert.deepEqual(bench.gateway.events, ['Order Completed']);
  await braze.destroy();
});

test('without a key or a `baseUrl` nothing is recorded', (t) => {
  const logged = t.mock.method(console, 'error', () => {});
  const bench = new Bench();
  assert.equal(braze.initialize('key', {}, bench.platform()), false);
  assert.equal(braze.initialize(undefined, { baseUrl: 'gateway.example' }, bench.platform()), false);
  assert.equal(logged.mock.callCount(), 2);
  assert.equal(braze.logCustomEvent('one'), false);
});

test('without enableSdkAuthentication no signature is sent', async () => {
  const bench = new Bench();
  braze.initialize('key', { baseUrl: 'https://gateway.example' }, bench.platform());
  braze.changeUser('ada', 'a.a.a');
  braze.setSdkAuthenticationSignature('b.b.b');
  braze.logCustomEvent('one');
  await new Promise((resolve) => braze.requestImmediateDataFlush(resolve));
  assert.deepEqual(bench.gateway.tokens, [null]);
  await braze.destroy();
});

test('a failure with optional tokens has `optional: true`, as in the Swift SDK', async () => {
  const bench = new Bench();
  bench.gateway.respond = (received) => {
    const answer = bench.gateway.store(received);
    return { ...answer, body: { ...answer.body, auth_warning: { error_code: 22, reason: 'EXPIRED' } } };
  };
  braze.initialize('key', { baseUrl: 'gateway.example', enableSdkAuthentication: true }, bench.platform());
  const errors = [];
  braze.subscribeToSdkAuthenticationFailures((error) => errors.push(error));
  braze.changeUser('ada', 'a.a.a');
  braze.logCustomEvent('one');
  assert.equal(await new Promise((resolve) => braze.requestImmediateDataFlush(resolve)), true);
  assert.deepEqual(errors, [{ errorCode: 22, reason: 'EXPIRED', userId: 'ada', signature: 'a.a.a', optional: true }]);
  await braze.destroy();
});

test('the id of a removed subscription is not used again', async () => {
  const bench = new Bench();
  braze.initialize('key', { baseUrl: 'gateway.example', enableSdkAuthentication: true }, bench.platform());
  const first = braze.subscribeToSdkAuthenticationFailures(() => {});
  const second = braze.subscribeToSdkAuthenticationFailures(() => {});
  braze.removeSubscription(first);
  const third = braze.subscribeToSdkAuthenticationFailures(() => {});
  assert.equal(new Set([first, second, third]).size, 3);
  await braze.destroy();
});

test('a user id that is not a string logs an error and changes nothing', async (t) => {
  const logged = t.mock.method(console, 'error', () => {});
  const bench = new Bench();
  braze.initialize('key', { baseUrl: 'gateway.example', enableSdkAuthentication: true }, bench.platform());
  braze.changeUser('ada', 'a.a.a');
  braze.changeUser(42, 'b.b.b');
  braze.logCustomEvent('one');
  await new Promise((resolve) => braze.requestImmediateDataFlush(resolve));
  assert.deepEqual(bench.gateway.tokens, ['a.a.a']);
  assert.equal(logged.mock.callCount(), 1);
  await braze.destroy();
});
