// The search field, and copy buttons. `search` and `excerpt` are in search.js.
const root = document.currentScript.dataset.root;
const field = document.querySelector("input[type=search]");
const list = document.querySelector("#results");
if (location.protocol === "file:") document.querySelector("#hint").hidden = false;

let entries;
async function show() {
  const text = field.value.trim();
  list.hidden = !text;
  if (!text) return;
  entries ??= fetch(root + "search.json").then((answer) => answer.json());
  const found = search(await entries, text);
  if (field.value.trim() !== text) return;
  list.replaceChildren(...found.map((entry) => {
    const link = document.createElement("a");
    link.href = root + entry.u;
    link.textContent = entry.t;
    const page = document.createElement("span");
    page.textContent = entry.p;
    const part = document.createElement("small");
    part.textContent = excerpt(entry, text);
    link.append(page, part);
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
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape") list.hidden = true;
});

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    // Of a console block only the commands, without their prompts.
    const text = block.querySelector("code").textContent;
    const isConsole = block.querySelector(".language-console");
    const commands = text.split("\n").filter((line, index, all) => /^\$ /.test(line) || /\\$/.test(all[index - 1] ?? ""));
    await navigator.clipboard.writeText(isConsole ? commands.map((line) => line.replace(/^\$ /, "")).join("\n") : text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  const frame = document.createElement("div");
  frame.className = "block";
  block.replaceWith(frame);
  frame.append(block, button);
}
