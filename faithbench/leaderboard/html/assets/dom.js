// Elements and numbers. Text only ever goes in as text: nothing here parses HTML.

const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "disabled" || name === "selected") element[name] = true;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null));
}

function choices(select, options, chosen) {
  // Options are [value, text]; values are places in a list, never text of the data.
  replace(
    select,
    options.map(([value, text]) =>
      make("option", { value, selected: String(value) === String(chosen) }, text),
    ),
  );
}

function chip(text, checked, change, more = {}) {
  const box = make("input", { type: "checkbox", checked, disabled: more.disabled });
  box.addEventListener("change", () => change(box.checked));
  return make("label", { class: "chip", title: more.title }, box, text);
}

function badge(text, title) {
  return make("span", { class: "badge", title }, text);
}

// .533 rather than 0.533, as the project's tables have it.
const bare = (text) => text.replace(/^(-?)0\./, "$1.");

function decimal(value, digits = 3) {
  if (value === null) return "–";
  const size = Math.abs(value);
  return bare(
    value.toFixed(size >= 100 ? Math.max(0, digits - 3) : size >= 10 ? digits - 1 : digits),
  );
}

const short = (value) => (value === null ? "–" : bare(String(Number(value.toPrecision(3)))));

function probability(p) {
  if (p === null) return "–";
  return p < 0.001 ? "<.001" : p > 0.995 ? "1" : bare(p.toFixed(p < 0.1 ? 3 : 2));
}

function amount(metric, value) {
  if (value === null) return "–";
  if (metric === "peak_memory") return `${Math.round(value / 1e6)} MB`;
  if (metric === "seconds") return value < 0.001 ? "<.001" : short(value);
  return short(value);
}
