import { DiskStore } from './disk-store.js';

/**
 * The browser's clock, network, storage and page events.
 * @returns {import('./types.js').Platform}
 */
export function browser() {
  return {
    clock: {
      now: () => Date.now(),
      uptime: () => performance.now() / 1000,
      at(instant, call) {
        const timer = setTimeout(call, instant * 1000 - performance.now());
        return () => clearTimeout(timer);
      },
    },
    random: () => Math.random(),
    // `navigator` alone throws in Node 20, which lacks it.
    facts(page = /** @type {any} */ (globalThis).navigator) {
      return { os: { name: page?.userAgentData?.platform ?? page?.platform }, locale: page?.language };
    },
    async send({ url, headers, body, keepalive, signal }) {
      const request = { method: 'POST', headers, body, keepalive, signal, credentials: 'omit', redirect: 'manual' };
      const response = await fetch(url, /** @type {RequestInit} */ (request)).catch(() => {
        throw { code: 'no_connection', reason: 'offline or blocked (CORS, CSP)' };
      });
      return {
        // A browser hides the status and the target of a redirect.
        status: response.type === 'opaqueredirect' ? 302 : response.status,
        header: (name) => response.headers.get(name),
        body: await textOf(response).catch(() => {
          // After a failure the status is enough. After a success only the body shows which events were accepted.
          if (response.ok) throw { code: 'connection_lost', reason: '' };
          return '';
        }),
      };
    },
    store: (name) => new DiskStore(indexedDB, name),
    // Synchronous, so that the journal is written even if the page ends now.
    journal: (name) => ({
      read: () => attempt(() => JSON.parse(localStorage[name])),
      write: (values) => attempt(() => (values ? (localStorage[name] = JSON.stringify(values)) : delete localStorage[name])),
    }),
    warn: (text) => console.warn(text),
    async lock(name, signal, body) {
      let hasRun = false;
      await Promise.resolve(navigator.locks?.request(name, { signal }, () => ((hasRun = true), body()))).catch(() => {});
      // Without locks every tab sends all events, and the gateway drops duplicates.
      if (!hasRun && !signal.aborted) await body();
    },
    channel(name, hear) {
      const channel = new BroadcastChannel(name);
      channel.onmessage = (event) => hear(event.data);
      return { post: (message) => channel.postMessage(message), close: () => channel.close() };
    },
    isHidden: () => document.visibilityState === 'hidden',
    onPage(hear) {
      const listeners = new AbortController();
      const { signal } = listeners;
      document.addEventListener('visibilitychange', () => hear(document.visibilityState === 'hidden' ? 'hidden' : 'visible'), { signal });
      addEventListener('pagehide', () => hear('leave'), { signal });
      addEventListener('pageshow', (event) => event.persisted && hear('return'), { signal });
      return () => listeners.abort();
    },
  };
}

/**
 * Reads up to about 1 MiB of the body. A longer object is closed after its last complete member.
 * @param {Response} response
 */
async function textOf(response) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (text.length > 1 << 20) {
      reader.cancel().catch(() => {});
      return closed(text);
    }
  }
  return text;
}

/** @param {string} text */
function closed(text) {
  let end = 0;
  for (let at = 0, depth = 0, isQuoted = false; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') isQuoted = !isQuoted;
    else if (isQuoted) at += Number(sign === '\\');
    else if (sign === ',' && depth === 1) end = at;
    else if ('[{'.includes(sign)) depth += 1;
    else if (']}'.includes(sign) && !--depth) return text.slice(0, at + 1);
  }
  return text.slice(0, end) + '}';
}

/** @template T @param {() => T} body */
function attempt(body) {
  try {
    return body();
  } catch {
    return null;
  }
}
