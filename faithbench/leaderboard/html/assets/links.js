// Addresses: #section/table/explainer opens a section of a table and shows an explainer in it.

const WITHOUT_TABLE = ["ranking", "guide"];

function addressOf(section, place, label) {
  const table = WITHOUT_TABLE.includes(section) ? undefined : board.tables[place];
  const parts = [table?.id ?? "", label ?? ""].map(encodeURIComponent);
  while (parts.length && parts.at(-1) === "") parts.pop();
  return `#${[section, ...parts].join("/")}`;
}

function readAddress() {
  const [section, id, label] = location.hash.slice(1).split("/").map(decoded);
  if (SECTIONS.includes(section)) state.section = section;
  const place = board.tables.findIndex((table) => table.id === id);
  if (place >= 0) state.table = place;
  state.explainer = familyOf.has(label) ? label : null;
  return state.explainer !== null;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

function writeAddress() {
  history.replaceState(null, "", addressOf(state.section, state.table, state.explainer));
}

// A sign that leads to an explainer, or to a table as it is shown; a click copies its address.
function linkSign(section, label) {
  const to = label ?? `this table`;
  return make("a", {
    class: "link-sign",
    href: addressOf(section, state.table, label),
    "aria-label": `Copy a link to ${to}`,
    title: `Copy a link to ${to}`,
    onclick: (event) => {
      event.preventDefault();
      state.explainer = label;
      writeAddress();
      markExplainer();
      copyAddress();
    },
  });
}

async function copyAddress() {
  try {
    await navigator.clipboard.writeText(location.href);
    tell("Link copied");
  } catch {
    tell("The link is in the address bar"); // a browser may refuse the clipboard
  }
}

let silence;
function tell(text) {
  byId("told").textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => {
    byId("told").textContent = "";
  }, 4000);
}

// Rows and cards carry the name of their explainer.
function markExplainer() {
  let marked = null;
  for (const one of byId(`section-${state.section}`).querySelectorAll("[data-explainer]")) {
    const here = one.dataset.explainer === state.explainer;
    one.classList.toggle("linked", here);
    if (here) marked = one;
  }
  return marked;
}

// What an address names is brought into view, whatever was filtered before.
function goToExplainer() {
  const marked = markExplainer();
  if (!marked) return;
  marked.setAttribute("tabindex", "-1");
  marked.focus({ preventScroll: true });
  marked.scrollIntoView({ block: "center" });
}

function clearFilters() {
  state.find = state.family = "";
  byId("find").value = byId("family").value = "";
}
