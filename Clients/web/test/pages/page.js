// A page of an app, for test/chromium. The query of its URL has the configuration.
import * as braze from '../../src/braze.js';
import { Countersign } from '../../src/index.js';

const query = new URLSearchParams(location.search);
const [endpoint, writeKey] = [query.get('endpoint'), query.get('key')];

/** Functions of the test that Playwright exposes to the page. */
const told = (receipt) => window.told?.(receipt);
const provide = (request) => window.provide(request);

window.failures = [];
window.braze = braze;
if (query.has('braze')) {
  braze.initialize(writeKey, { baseUrl: endpoint, enableSdkAuthentication: true });
} else {
  window.client = new Countersign({ endpoint, writeKey, ...(query.has('provider') && { tokenProvider: provide }) });
  window.client.onAuthenticationFailure((failure) => window.failures.push(failure.reason));
}

/** Records events one after the other, and passes each receipt to the test. */
window.record = async (name, count) => {
  for (let number = 0; number < count; number += 1) {
    const receipt = await window.client.track(`${name} ${number}`);
    await told(receipt);
  }
};
window.ready = true;
