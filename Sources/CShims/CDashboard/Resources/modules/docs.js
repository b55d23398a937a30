// The documentation: which page belongs to a screen, and a view of the pages, which are Markdown.

import { freshID, h, replace } from "./dom.js";
import { icon } from "./icons.js";
import { copyable, emptyState, problemNotice } from "./ui.js";
import { Problem } from "./api.js";

/** The page of each screen. */
const pageOf = {
  home: "guides/dashboard", start: "guides/record-events", failures: "reference/error-codes", live: "guides/troubleshooting", keys: "guides/rotate-keys",
  enforcement: "guides/roll-out-enforcement", policy: "guides/identity-providers", events: "guides/read-events", webhooks: "guides/webhooks",
  customers: "guides/dashboard", sessions: "guides/sign-tokens", project: "guides/move-from/bloomreach", settings: "guides/web",
  audit: "operating/security", members: "guides/dashboard", gateways: "operating/several-gateways", system: "operating/backup",
};
/** The pages that the gateway has, with their titles. */
export const pages = {
  "guides/dashboard": "The dashboard", start: "Start in five minutes", "guides/record-events": "Record events", "guides/web": "The browser client", "guides/sign-tokens": "Sign tokens",
  "guides/identity-providers": "Identity providers", "guides/roll-out-enforcement": "Roll out enforcement", "guides/rotate-keys": "Rotate keys", "guides/read-events": "Read events", "guides/webhooks": "Webhooks",
  "guides/troubleshooting": "Troubleshooting", "guides/move-from/bloomreach": "Move from Bloomreach", "reference/error-codes": "Error codes",
  "operating/backup": "Backup", "operating/several-gateways": "Several gateways", "operating/security": "Security",
};

/** The link of a screen to its page. */
export function docsLink(screen) {
  const page = pageOf[screen];
  return page && h("p", { class: "docs-link muted" }, icon("policy", 16), h("a", { href: `#/docs/${page}` }, `Documentation: ${pages[page]}`));
}

export async function docs(context) {
  const { body, signal, query } = context;
  const page = context.parameter || "guides/dashboard";
  try {
    const answer = await fetch(`/admin/docs/${page.replaceAll("/", ",")}.md`, { signal }).catch((error) => {
      throw error.name === "AbortError" ? error : new Problem(0, { detail: "The gateway cannot be reached." });
    });
    if (answer.status >= 500) throw new Problem(answer.status, {});
    const article = h("article", { class: "card doc" });
    replace(body, h("div", { class: "doc-split" }, article, h("nav", { class: "card doc-pages", "aria-label": "Documentation" }, h("h2", { class: "card-title" }, "Pages"),
      h("ul", {}, Object.entries(pages).map(([place, title]) => h("li", {}, h("a", { href: `#/docs/${place}`, "aria-current": place === page ? "page" : undefined }, title)))))));
    replace(article, answer.ok ? blocks((await answer.text()).split("\n"), page) : emptyState("policy", "Page not found", "The gateway has only the pages that its screens link to. The others are in the folder docs of the source code."));
    const at = query.get("at");
    if (at) document.getElementById(`doc-${at}`)?.scrollIntoView();
  } catch (error) {
    if (error.name !== "AbortError") replace(body, problemNotice(error, () => docs(context)));
  }
}

/** The id of a heading, as GitHub makes it. */
const anchor = (text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

/** Elements for lines of Markdown: headings, lists, tables, code and paragraphs. */
function blocks(lines, page) {
  const made = [];
  let level = 1;
  const list = /^( *)([-*]|\d+\.) +/;
  let at = 0;
  const until = (isEnd) => {
    const from = at;
    while (at < lines.length && !isEnd(lines[at], at - from)) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,4}) (.*)$/.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (heading) {
      at += 1;
      // Headings are one level lower, below the screen's title.
      level = Math.min(level + 1, heading[1].length + 1);
      made.push(h(`h${level}`, { id: `doc-${anchor(heading[2])}` }, inline(heading[2], page)));
    } else if (line.startsWith("```")) {
      at += 1;
      made.push(copyable(until((next) => next.startsWith("```")).join("\n")));
      at += 1;
    } else if (line.startsWith("|")) {
      const rows = until((next) => !next.startsWith("|")).map((row) => row.slice(1).replace(/\|\s*$/, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|")));
      made.push(h("div", { class: "doc-table", tabindex: 0, role: "region", "aria-label": freshID("Table").replace("-", " ") }, h("table", {},
        h("thead", {}, h("tr", {}, rows[0].map((cell) => (cell ? h("th", { scope: "col" }, inline(cell, page)) : h("td"))))),
        h("tbody", {}, rows.slice(2).map((row) => h("tr", {}, row.map((cell) => h("td", {}, inline(cell, page)))))))));
    } else if (list.test(line)) {
      const [, , mark] = list.exec(line);
      const items = [];
      for (const next of until((text, index) => text.trim() === "" ? !/^ {2,}\S|^[-*] |^\d+\. /.test(lines[at + 1] ?? "") : index > 0 && !/^ /.test(text) && !list.test(text))) {
        if (list.test(next) && !next.startsWith(" ")) items.push([next.replace(list, "")]);
        else items.at(-1).push(next.replace(/^ {1,3}/, ""));
      }
      made.push(h(/\d/.test(mark) ? "ol" : "ul", {}, items.map((item) => h("li", {}, blocks(item, page)))));
    } else {
      const text = until((next, index) => index > 0 && (next.trim() === "" || /^(#|```|\|)/.test(next) || list.test(next)));
      made.push(h("p", {}, inline(text.map((part) => part.trim()).join(" "), page)));
    }
  }
  return made;
}

/** Text with code, emphasis and links. */
function inline(text, page) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^* ][^*]*\*|!?\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (/^`.+`$/.test(part)) return h("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return h("strong", {}, part.slice(2, -2));
    if (/^\*.+\*$/.test(part)) return h("em", {}, part.slice(1, -1));
    const link = /^!?\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
    return link ? linked(inline(link[1], page), link[2], page) : part;
  });
}

function linked(text, target, page) {
  if (/^https?:/.test(target)) return h("a", { href: target, target: "_blank", rel: "noreferrer" }, text);
  const [place, at] = target.split("#");
  const found = place === "" ? page : new URL(place, `http://docs/${page}`).pathname.slice(1).replace(/\.md$/, "");
  // A link to a page that the gateway does not have is text.
  return pages[found] ? h("a", { href: `#/docs/${found}${at ? `?at=${at}` : ""}` }, text) : text;
}
