// Search over search.json: every word must begin a word of the entry; titles before pages.
const root = document.currentScript.dataset.root;
const field = document.querySelector("input[type=search]");
const list = document.querySelector("#results");
if (location.protocol === "file:") document.querySelector("#hint").hidden = false;

let entries;
async function load() {
  entries ??= fetch(root + "search.json").then((answer) => answer.json());
  return entries;
}

function rank(entry, words) {
  const title = entry.t.toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (title.startsWith(word)) sum += 3;
    else if (new RegExp("(^|[^a-z0-9])" + word.replace(/[^a-z0-9]/g, "\\$&")).test(title)) sum += 2;
    else if (title.includes(word)) sum += 1;
    else if (!entry.p.toLowerCase().includes(word)) return 0;
  }
  return sum;
}

async function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0;
  if (list.hidden) return;
  const all = await load();
  const found = all.map((entry) => [rank(entry, words), entry]).filter(([points]) => points > 0)
    .sort(([a, x], [b, y]) => b - a || x.t.length - y.t.length).slice(0, 30);
  list.replaceChildren(...found.map(([, entry]) => {
    const link = document.createElement("a");
    link.href = root + entry.u;
    link.textContent = entry.t;
    const page = document.createElement("span");
    page.textContent = entry.p;
    link.append(page);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (found.length === 0) list.textContent = "Nothing found.";
}

field.addEventListener("input", show);
field.form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape") list.hidden = true;
});
