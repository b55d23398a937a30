// The client of the admin API. Handles cookies, CSRF tokens, entity tags and errors.

const BASE = "/admin/api";

/** An error response (RFC 9457), with advice. */
export class Problem extends Error {
  constructor(status, body, retryAfter) {
    super(body.detail || body.title || `The gateway answered ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.title = body.title ?? "";
    this.fields = Array.isArray(body.errors) ? body.errors : [];
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get isTransient() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** Milliseconds until the next attempt: half of the time since the first failure, 1 to 30 s, but at least Retry-After. */
  get delay() {
    const asked = Number(this.retryAfter) * 1000 || 0;
    return Math.max(asked, Math.min(30_000, Math.max(1000, (Date.now() - (this.since ?? Date.now())) / 2)));
  }

  get advice() {
    switch (this.status) {
      case 0: return "Check that the gateway is running and that you are online.";
      case 401: return "Sign in again.";
      case 403: return this.code === "csrf"
        ? "Reload the page and try again."
        : "Ask an owner for a role that may do this.";
      case 404: return "It may have been deleted. Go back and reload the list.";
      case 409: return "Check the current state, then try again if the change still applies.";
      case 412: return "Another change came first. The page shows the new state; check it, then try again.";
      case 429: return `Wait ${this.retryAfter === 1 ? "a second" : `${this.retryAfter ?? "a few"} seconds`}, then try again.`;
      default: return this.status >= 500 ? "Try again. If it fails again, read the gateway's log." : "";
    }
  }
}

let csrf = null;
let onUnauthenticated = () => {};

/** Sets the action for an expired session. */
export function whenUnauthenticated(action) {
  onUnauthenticated = action;
}

export function useSession(session) {
  csrf = session?.csrf ?? null;
}

/** The maximum number of retries of a GET request after 503 with the code `busy`. */
const MORE_TRIES = 3;

async function wait(milliseconds, signal) {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const leave = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", leave); resolve(); }, milliseconds);
    signal?.addEventListener("abort", leave, { once: true });
  });
}

/** The time of each path's first failure since its last success. */
const failing = new Map();

async function call(method, path, options = {}) {
  const place = path.split("?")[0];
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await callOnce(method, path, options);
      if (failing.delete(place)) document.dispatchEvent(new Event("recovered"));
      return answer;
    } catch (error) {
      if (error.isTransient) {
        if (!failing.has(place)) failing.set(place, Date.now());
        error.since = failing.get(place);
      }
      const isBusy = method === "GET" && error.status === 503 && error.code === "busy" && Number(error.retryAfter) > 0;
      if (!isBusy || tries === MORE_TRIES) throw error;
      await wait(Math.min(5, Number(error.retryAfter)) * 1000, options.signal);
    }
  }
}

async function callOnce(method, path, { body, etag, signal }) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") {
    if (csrf) headers["X-CSRF-Token"] = csrf;
    // With the tag null, the request creates a resource. Without a tag, it replaces any version.
    if (method !== "POST" && etag !== null) headers["If-Match"] = etag ?? "*";
  }
  let response;
  try {
    response = await fetch(BASE + path, {
      method, headers, signal, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "No connection", detail: "The gateway cannot be reached." });
  }
  const text = await response.text();
  let data = null;
  if (text !== "") {
    try {
      data = JSON.parse(text);
    } catch {
      throw new Problem(response.status, { detail: `The gateway answered ${response.status} with something other than JSON.` });
    }
  }
  if (!response.ok) {
    const problem = new Problem(response.status, data ?? {}, response.headers.get("Retry-After"));
    if (response.status === 401 && path !== "/session" && path !== "/setup") onUnauthenticated();
    throw problem;
  }
  return { data, etag: response.headers.get("ETag") };
}

function query(parameters) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== undefined && value !== null && value !== "") pairs.set(name, value);
  }
  const text = pairs.toString();
  return text === "" ? "" : `?${text}`;
}

export function path(...parts) {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

/** The URL of a download. */
export function address(where, parameters) {
  return BASE + where + query(parameters);
}

/** The maximum number of empty pages that a search skips automatically. */
const EMPTY_PAGES = 20;

/**
 * The first non-empty page from `cursor` on, or the last requested one. A page has the matches among a
 * limited number of examined items, so it may be empty.
 */
export async function firstFilled(fetchPage, cursor, most = EMPTY_PAGES) {
  let page = await fetchPage(cursor);
  for (let left = most; page.items.length === 0 && page.next && left > 0; left -= 1) page = await fetchPage(page.next);
  return page;
}

export const api = {
  get: async (where, parameters, signal) => (await call("GET", where + query(parameters), { signal })).data,
  /** Includes the entity tag, for a later change. */
  read: (where, parameters, signal) => call("GET", where + query(parameters), { signal }),
  post: async (where, body) => (await call("POST", where, { body: body ?? {} })).data,
  put: (where, body, etag) => call("PUT", where, { body, etag }),
  patch: (where, body, etag) => call("PATCH", where, { body, etag }),
  remove: (where, etag, body) => call("DELETE", where, { etag, body }),
};
