// Asks the site's search 21 plain questions. The page that answers is among the first five results.
// usage: node questions.test.mjs search.json
import { readFileSync } from "node:fs";

const QUESTIONS = {
  "webhook signature": "guides/webhooks", "offline": "guides/record-events", "gdpr": "reference/admin-api",
  "delete user": "reference/admin-api", "docker": "operating/install", "javascript": "guides/web", "nodejs": "guides/webhooks",
  "401": "reference/http-api", "expired token": "reference/error-codes", "systemd": "operating/install",
  "rotate keys": "guides/rotate-keys", "how do I revoke a user's tokens": "operating/configure",
  "refresh token lifetime": "guides/sign-tokens", "kubernetes": "operating/kubernetes", "restore a backup": "operating/backup",
  "rate limit": "reference/limits", "postgres failover": "operating/several-gateways", "retention": "reference/limits",
  "log out": "guides/record-events", "prometheus alerts": "operating/monitor", "auth0": "guides/identity-providers",
};

const { search } = new Function(`${readFileSync(new URL("search.js", import.meta.url), "utf8")}\nreturn { search };`)();
const entries = JSON.parse(readFileSync(process.argv[2], "utf8"));
let wrong = 0;
for (const [question, page] of Object.entries(QUESTIONS)) {
  const found = search(entries, question).slice(0, 5).map((entry) => entry.u);
  if (found.some((address) => address.startsWith(`${page}.html`))) continue;
  console.error(`search: "${question}" does not find ${page}, but ${found.join(", ") || "nothing"}`);
  wrong++;
}
const [first, second] = [search(entries, "flush"), search(entries, "zzzz")];
if (first.findLastIndex((entry) => entry.x !== undefined) > first.findIndex((entry) => entry.x === undefined)
  && first.some((entry) => entry.x === undefined)) wrong += console.error("search: a symbol precedes prose") ?? 1;
if (second.length) wrong += console.error("search: a word that no page has finds something") ?? 1;
console.log(`search: ${Object.keys(QUESTIONS).length - wrong} of ${Object.keys(QUESTIONS).length} questions are answered`);
process.exit(wrong ? 1 : 0);
