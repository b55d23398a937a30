// The sender in simulated time, each test with one behavior of the server. The expected numbers are the same as in
// SenderTests of the Swift client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Simulation, accepted, answer, failing, hour, rejectedToken, seeded, sequences, status } from './simulation.js';

/** A server that rejects requests with any of the events `bad` with `code`, and accepts all others. */
const poisoned = (code, ...bad) => (request) =>
  request.events.some((event) => bad.includes(event.sequence)) ? status(code)() : accepted(request);

test('a batch has one user and at most the configured count and bytes', () => {
  const simulation = new Simulation(accepted, { batch: { events: 10, bytes: 550 } });
  simulation.record(3, 'ada');
  simulation.record(20, 'bob');
  simulation.record(3, 'ada');
  simulation.sender.flush();
  simulation.run(1);
  assert.equal(simulation.queue.length, 0);
  for (const { events } of simulation.requests) assert.equal(new Set(events.map((event) => event.userId)).size, 1);
  assert.deepEqual(simulation.sizes, [5, 5, 5, 5, 5, 1]);
  assert.deepEqual(simulation.endings, ['drained']);
});

test('events are sent when 20 are queued, and otherwise after 10 seconds', () => {
  const simulation = new Simulation(accepted);
  simulation.record(19);
  simulation.run(9);
  assert.equal(simulation.requests.length, 0);
  simulation.record(1);
  simulation.run(9);
  assert.deepEqual(simulation.sizes, [20]);
  simulation.record(1);
  simulation.run(18.9);
  assert.equal(simulation.requests.length, 1);
  simulation.run(20);
  assert.deepEqual(simulation.requests.map((request) => request.time), [9, 19]);
});

test('`sendSoon`, for a hidden page, sends at once', () => {
  const simulation = new Simulation(accepted);
  simulation.record(1);
  simulation.sender.sendSoon();
  simulation.run(0);
  assert.equal(simulation.requests.length, 1);
});

test('a sender with an empty queue makes no more requests or claims', () => {
  const simulation = new Simulation(accepted);
  simulation.record(1);
  simulation.run(24 * hour);
  assert.equal(simulation.requests.length, 1);
  assert.equal(simulation.claims, 2);
  assert.deepEqual(simulation.sender.next(simulation.now), { do: 'wait', until: null });
});

for (const [name, server, expected] of [
  // Waits of 2, 4, 8, … 128 s, then 180 s: 9 requests within 434 s, then one every 180 s.
  ['500', status(500), 486], ['502', status(502), 486], ['503', status(503), 486], ['200 with an unexpected body', status(200), 486],
  ['429', status(429), 486], ['408', status(408), 486], ['a time-out', failing('timed_out'), 486],
  ['no connection', failing('no_connection'), 486],
  // A Retry-After of a week counts as an hour.
  ['503 with Retry-After of a week', status(503, 604_800), 25],
  // Configuration problems: waits of 5, 10, 20, … 2,560 s, then of an hour.
  ['302', status(302), 33], ['401 without auth_error', status(401), 33], ['403', status(403), 33], ['404', status(404), 33],
]) {
  test(`if every request ends with ${name}, the client sends ${expected} requests a day, and all events stay queued`, () => {
    const simulation = new Simulation(server);
    simulation.record(500, 'ada');
    simulation.run(24 * hour);
    assert.equal(simulation.requests.length, expected);
    assert.equal(simulation.queue.length, 500);
    assert.equal(simulation.delivered.length + simulation.quarantined.length, 0);
  });
}

test('after an outage of an hour all events are delivered within three minutes', () => {
  const simulation = new Simulation((request) => (request.time < hour ? status(500)() : accepted(request)));
  simulation.record(1000);
  simulation.run(2 * hour);
  assert.equal(simulation.queue.length + simulation.quarantined.length, 0);
  assert.ok(simulation.requests.at(-1).time < hour + 180);
  assert.ok(simulation.requests.length < 60);
});

test('if three single events fail with 400, sending stops and no event is quarantined', () => {
  const simulation = new Simulation(status(400));
  simulation.record(1000);
  simulation.run(30 * 60);
  assert.equal(simulation.requests.length, 3 * 7);
  assert.ok(simulation.sender.configurationProblem);
  for (let session = 1; session <= 20; session += 1) {
    if (session % 2) simulation.sender.flush();
    else simulation.sender.sessionStarted();
    simulation.run(simulation.now + 12 * hour);
  }
  assert.equal(simulation.quarantined.length, 0);
  assert.equal(simulation.queue.length, 1000);
  simulation.server = accepted;
  simulation.run(simulation.now + 2 * hour);
  assert.equal(simulation.delivered.length, 1000);
});

for (const code of [200, 400]) {
  test(`if the server rejects all events of every request with ${code}, none is quarantined`, () => {
    const simulation = new Simulation(({ events }) => answer(code, {
      success: true, accepted: 0, rejected: events.map((_, index) => ({ index, code: 'invalid_event' })),
    }, events.length));
    simulation.record(1000);
    simulation.run(48 * hour);
    assert.equal(simulation.quarantined.length, 0);
    assert.ok(simulation.requests.length <= 60);
    simulation.server = accepted;
    simulation.run(simulation.now + 2 * hour);
    assert.equal(simulation.delivered.length, 1000);
  });
}

for (const code of [400, 413, 500]) {
  test(`an event that fails with ${code} is quarantined only after another event was accepted`, () => {
    const simulation = new Simulation(poisoned(code, 1));
    simulation.record(1);
    simulation.run(30 * 24 * hour);
    assert.equal(simulation.quarantined.length, 0, 'no other event was ever accepted');
    assert.ok(simulation.requests.length < 1000);
    simulation.record(1);
    simulation.run(simulation.now + hour);
    assert.deepEqual(sequences(simulation.quarantined), [1]);
    assert.deepEqual(sequences(simulation.delivered), [2]);
  });

  for (const position of [1, 50, 99, 100]) {
    test(`one poison event at ${position} (${code}) is quarantined and the others are delivered`, () => {
      const simulation = new Simulation(poisoned(code, position));
      simulation.record(100);
      simulation.run(hour);
      assert.equal(simulation.delivered.length, 99);
      // The last event is quarantined only after a later one is accepted.
      simulation.record(1);
      simulation.run(2 * hour);
      assert.equal(simulation.delivered.length, 100);
      assert.deepEqual(sequences(simulation.quarantined), [position]);
      const tries = simulation.requests.filter(({ events }) => events.some((event) => event.sequence === position)).length;
      assert.ok(tries <= 9 + (position >= 99 ? 4 : 0), `${tries}`);
    });
  }

  test(`a poison event at any position costs at most ten more requests (${code})`, () => {
    for (let position = 1; position <= (code === 400 ? 99 : 98); position += 1) {
      const simulation = new Simulation(poisoned(code, position));
      simulation.record(100);
      simulation.run(2 * hour);
      assert.deepEqual(sequences(simulation.quarantined), [position]);
      assert.equal(simulation.delivered.length, 99);
      assert.ok(simulation.requests.length - 1 <= 10, `${simulation.requests.length - 1} at ${position}`);
    }
  });
}

test('if half of all requests fail at random, at most five of 34,000 events are quarantined', () => {
  let cost = 0;
  for (let seed = 1; seed <= 10; seed += 1) {
    const random = seeded(seed);
    const coin = () => random() < 0.5;
    const simulation = new Simulation((request) => (coin() ? accepted(request) : status(500)()));
    for (let round = 0; round < 100; round += 1) {
      simulation.record(34, 'ada');
      simulation.run(simulation.now + 600);
    }
    simulation.run(simulation.now + 48 * hour);
    assert.equal(simulation.queue.length, 0);
    cost += simulation.quarantined.length;
  }
  assert.ok(cost <= 5, `${cost}`);
});

test('an event that gets invalid responses is quarantined, and all others are delivered', () => {
  const simulation = new Simulation((request) =>
    request.events.some((event) => event.sequence === 260) ? answer(200, { success: true, accepted: 7 }, 100) : accepted(request));
  simulation.record(520);
  simulation.run(2 * hour);
  assert.equal(simulation.delivered.length, 519);
  assert.deepEqual(sequences(simulation.quarantined), [260]);
});

for (const [name, leave] of [['a flush', (sender) => sender.flush()], ['a new session', (sender) => sender.sessionStarted()]]) {
  test(`${name} ends a configuration problem`, () => {
    const simulation = new Simulation(status(403));
    simulation.record(20);
    simulation.run(4);
    assert.equal(simulation.requests.length, 1);
    simulation.server = accepted;
    leave(simulation.sender);
    simulation.run(4.5);
    assert.equal(simulation.queue.length, 0);
    assert.equal(simulation.sender.configurationProblem, null);
  });
}

test('several poison events are all quarantined', () => {
  const simulation = new Simulation(poisoned(422, 3, 4, 77, 250));
  simulation.record(300);
  simulation.run(hour);
  assert.deepEqual(new Set(sequences(simulation.quarantined)), new Set([3, 4, 77, 250]));
  assert.equal(simulation.delivered.length, 296);
});

test('only the rejected events of a batch are quarantined, without another request', () => {
  const simulation = new Simulation(({ events }) => answer(200, {
    success: true, accepted: events.length - 1, rejected: [{ index: 2, code: 'invalid_event', reason: 'no name' }],
  }, events.length));
  simulation.record(5);
  simulation.run(20);
  assert.equal(simulation.requests.length, 1);
  assert.deepEqual(sequences(simulation.quarantined), [3]);
  assert.deepEqual(sequences(simulation.delivered), [1, 2, 4, 5]);
});

test('responses 413 halve the batch size, and all events are delivered', () => {
  const simulation = new Simulation((request) => (request.events.length > 40 ? status(413)() : accepted(request)));
  simulation.record(1000);
  simulation.run(20);
  assert.equal(simulation.queue.length + simulation.quarantined.length, 0);
  assert.ok(simulation.sizes.filter((size) => size > 40).length <= 2);
});

test('the only event of a queue is not quarantined when it fails with 500', () => {
  const simulation = new Simulation(status(500));
  simulation.record(1);
  simulation.run(6 * hour);
  assert.equal(simulation.quarantined.length, 0);
  simulation.server = accepted;
  simulation.run(7 * hour);
  assert.equal(simulation.delivered.length, 1);
});

const newToken = (simulation, user = 'ada') => {
  simulation.generations[user] += 1;
  simulation.sender.tokenChanged(user, simulation.generations[user], simulation.now);
};

for (const [name, act, more] of [
  ['a new session', (simulation) => simulation.sender.sessionStarted(), 50],
  ['a new token', (simulation) => newToken(simulation), 50],
  ['a flush', (simulation) => simulation.sender.flush(), 1],
]) {
  for (const recovers of [false, true]) {
    test(`fifty token rejections pause sending until ${name}${recovers ? ', which delivers all events if the server accepts them' : ''}`, () => {
      const simulation = new Simulation(rejectedToken(27, 'NO_MATCHING_PUBLIC_KEYS'));
      simulation.generations.ada = 1;
      simulation.record(100, 'ada');
      simulation.run(24 * hour);
      assert.equal(simulation.requests.length, 50);
      simulation.run(48 * hour);
      assert.equal(simulation.requests.length, 50, 'no request while paused');
      assert.equal(simulation.queue.length, 100);
      if (recovers) simulation.server = accepted;
      act(simulation);
      simulation.run(simulation.now + (recovers ? 1 : 24 * hour));
      if (recovers) assert.equal(simulation.queue.length, 0);
      else assert.equal(simulation.requests.length, 50 + more);
    });
  }
}

test('after one rejected replacement the provider is called only after the back-off', () => {
  let serial = 1;
  const simulation = new Simulation(rejectedToken(), { provider: () => (serial += 1) });
  simulation.generations.ada = 1;
  simulation.record(20, 'ada');
  simulation.run(0);
  assert.equal(simulation.requests.length, 2);
  assert.equal(simulation.providerCalls, 1);
  simulation.run(24 * hour);
  // 50 within three and a half hours, then one an hour, because the provider may return a valid token later.
  assert.equal(simulation.requests.length, 70);
  assert.equal(simulation.providerCalls, 69);
});

test('if the provider returns no token, events are sent without one', () => {
  const simulation = new Simulation(accepted, { provider: () => null });
  simulation.record(20, 'ada');
  simulation.run(0);
  assert.equal(simulation.queue.length, 0);
});

test('if the provider returns no token and the server requires one, retries follow the network back-off', () => {
  const simulation = new Simulation(rejectedToken(26, 'MISSING_TOKEN'), { provider: () => null });
  simulation.record(20, 'ada');
  simulation.run(24 * hour);
  assert.equal(simulation.requests.length, 486);
  assert.equal(simulation.queue.length, 20);
  simulation.server = accepted;
  simulation.run(simulation.now + 180);
  assert.equal(simulation.queue.length, 0);
});

test('a token that the provider returns at the end of a round starts another round', () => {
  const { sender } = new Simulation(accepted, { provider: () => null });
  sender.stored(20, 0);
  assert.equal(sender.next(0).do, 'claim');
  sender.claimed([{ sequence: 1, messageId: 'm1', userId: 'ada', body: '', bytes: 1 }], 0);
  assert.equal(sender.next(0).do, 'authorize');
  sender.authorizationPending();
  assert.equal(sender.next(0).do, 'claim');
  // No other user has events, so the round ends.
  sender.claimed([], 0);
  sender.tokenResolved('ada');
  assert.equal(sender.next(0).do, 'finish');
  assert.equal(sender.next(0).do, 'claim');
});

test('a rejected token is not sent again at once when the provider fails', () => {
  const simulation = new Simulation(rejectedToken(), { provider: () => null });
  simulation.generations.ada = 1;
  simulation.record(20, 'ada');
  simulation.run(0);
  assert.equal(simulation.requests.length, 1);
  simulation.run(2);
  assert.equal(simulation.requests.length, 2, 'sent again after a wait');
});

test('after fifty rejected new tokens, one is tried each hour', () => {
  let serial = 1;
  const simulation = new Simulation(rejectedToken(27), { provider: () => (serial += 1) });
  simulation.generations.ada = 1;
  simulation.record(20, 'ada');
  simulation.run(100 * hour);
  const before = simulation.requests.length;
  simulation.run(124 * hour);
  assert.equal(simulation.requests.length - before, 24);
  simulation.server = accepted;
  simulation.run(125 * hour);
  assert.equal(simulation.queue.length, 0);
});

for (const code of [302, 401, 403, 404]) {
  test(`a single response ${code} pauses sending for at most 5 s`, () => {
    let isFirst = true;
    const simulation = new Simulation((request) => {
      const reply = isFirst ? status(code)() : accepted(request);
      isFirst = false;
      return reply;
    });
    simulation.record(20);
    simulation.run(5);
    assert.equal(simulation.queue.length, 0);
    assert.equal(simulation.sender.configurationProblem, null);
  });
}

test("one user's token problem does not delay the events of other users", () => {
  const simulation = new Simulation((request) => (request.events[0].userId === 'ada' ? rejectedToken()() : accepted(request)));
  simulation.record(5, 'ada');
  simulation.record(5);
  simulation.record(10, 'bob');
  simulation.run(0);
  assert.deepEqual(new Set(simulation.queue.map((event) => event.userId)), new Set(['ada']));
  assert.equal(simulation.requests.length, 3);
});

test('a rejection of an old token does not affect a newer token', () => {
  const simulation = new Simulation((request) => (request.generation === 1 ? rejectedToken()() : accepted(request)));
  const { sender } = simulation;
  simulation.generations.ada = 1;
  simulation.record(20, 'ada');
  sender.next(0);
  sender.claimed(simulation.queue, 0);
  sender.next(0);
  sender.authorized(1);
  newToken(simulation);
  assert.equal(sender.answered(rejectedToken()(), 0, 1).failure, undefined);
  simulation.run(0);
  assert.equal(simulation.queue.length, 0);
});

test('new tokens after each rejection cause about one request a minute', () => {
  const simulation = new Simulation(rejectedToken(27));
  simulation.generations.ada = 1;
  simulation.record(20, 'ada');
  while (simulation.now < hour) {
    const rejections = simulation.failures.length;
    simulation.run(simulation.now + 1);
    if (simulation.failures.length > rejections) newToken(simulation);
  }
  assert.ok(simulation.requests.length <= 5 + 60 + 1, `${simulation.requests.length}`);
  assert.ok(simulation.requests.length >= 60, `${simulation.requests.length}`);
});

test('where tokens are optional, events are delivered and the failure is reported', () => {
  const simulation = new Simulation((request) => accepted(request, { auth_warning: { error_code: 22, reason: 'EXPIRED' } }));
  simulation.record(20, 'ada');
  simulation.run(0);
  assert.equal(simulation.queue.length, 0);
  assert.deepEqual(simulation.failures, [{ code: 22, reason: 'EXPIRED', clockSkew: null, hint: '' }]);
});

/** Makes the sender send this event and receive its acceptance. */
function deliver(sender, event) {
  sender.flush();
  sender.next(0);
  sender.claimed([event], 0);
  sender.next(0);
  sender.authorized(0);
  sender.next(0);
  sender.answered(accepted({ events: [event] }), 0, 1);
}

const event = (sequence) => ({ sequence, messageId: `m${sequence}`, userId: '', body: '', bytes: 1 });
const outcome = (row) => ({ do: 'settle', outcome: { delivered: [row], quarantined: [], duplicates: 0 } });

test('a reset discards the outcome that is being stored', () => {
  const { sender } = new Simulation(accepted);
  deliver(sender, event(1));
  assert.deepEqual(sender.next(0), outcome(event(1)));
  sender.reset();
  deliver(sender, event(2));
  assert.deepEqual(sender.next(0), outcome(event(2)));
  assert.equal(sender.lastProblem, null);
});

test('a queue that cannot be read is tried again after a wait', () => {
  const { sender } = new Simulation(accepted);
  sender.flush();
  assert.equal(sender.next(0).do, 'claim');
  sender.claimFailed({ code: 'queue', reason: '' }, 0, 1);
  assert.deepEqual(sender.next(0), { do: 'finish', ending: 'interrupted' });
  assert.deepEqual(sender.next(0), { do: 'wait', until: 2 });
  assert.equal(sender.next(2).do, 'claim');
});

test('only a flush waits for the provider, and no longer than the given time', () => {
  const ask = (patience, isFlush) => {
    const { sender } = new Simulation(accepted, { provider: () => null });
    sender.stored(20, 0);
    if (isFlush) sender.flush();
    sender.next(0);
    sender.claimed([{ ...event(1), userId: 'ada' }], 0);
    sender.next(0);
    sender.authorizationPending();
    // The call of the provider is already in progress.
    if (patience) sender.flush(patience);
    sender.next(0);
    sender.claimed([], 0);
    return sender;
  };
  assert.deepEqual(ask(null, false).next(0), { do: 'finish', ending: 'drained' });
  const endless = ask(null, true);
  assert.deepEqual(endless.next(0), { do: 'wait', until: null }, 'a flush waits for the provider that it called itself');
  endless.tokenResolved('ada');
  assert.equal(endless.next(0).do, 'claim');
  const patient = ask(10, true);
  assert.deepEqual(patient.next(0), { do: 'wait', until: 10 });
  assert.deepEqual(patient.next(10), { do: 'finish', ending: 'waiting_for_token_provider' });
});
