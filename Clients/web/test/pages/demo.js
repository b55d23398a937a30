// The page of `make web DEMO=1`. Its buttons call test/chromium/demo.py.
import { Countersign } from '../../src/index.js';

const query = new URLSearchParams(location.search);
const ask = async (path) => (await fetch(`/demo/${path}`)).json();
const token = (user) => ask(`token?user=${user}`);

const client = new Countersign({
  endpoint: query.get('endpoint'), writeKey: query.get('key'), tokenProvider: ({ userId }) => token(userId),
});
client.changeUser('ada');

let isRecording = false;
const on = (id, call) => document.getElementById(id).addEventListener('click', call);

on('record', async () => {
  if (isRecording) return;
  isRecording = true;
  for (let number = 1; isRecording; number += 1) {
    const { messageId } = await client.track(`demo ${number}`);
    await ask(`told?id=${messageId}`);
  }
});
on('stop', () => (isRecording = false));
on('cut', () => ask('cut'));
on('mend', () => ask('mend'));
on('expire', async () => {
  await ask('expire');
  client.setToken(await token('ada'));
});
on('renew', () => ask('renew'));

async function show() {
  const [{ told, stored, lost, twice }, { queued, parked, lastError }] = await Promise.all([ask('state'), client.snapshot()]);
  const waits = [...parked.map(({ reason }) => reason), lastError].filter(Boolean).join(', ');
  const verdict = twice ? `${twice} of them more than once!` : lost ? `${lost} not delivered yet` : 'each exactly once';
  document.getElementById('state').textContent =
    `${told} events reported as stored, ${stored} delivered, ${verdict}. ${queued} queued${waits ? ` (${waits})` : ''}.`;
  setTimeout(show, 500);
}
show();
