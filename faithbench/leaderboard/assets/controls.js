// The choices that all sections share: section, table, which explainers; and light or dark.

function setUpControls(redraw) {
  choices(byId("table"), board.tables.map((table, place) => [place, tableName(table)]), state.table);
  choices(byId("family"), [["", "all"], ...families.map((family, place) => [place, family])], "");
  byId("table").addEventListener("change", (event) => {
    state.table = Number(event.target.value);
    redraw();
  });
  byId("family").addEventListener("change", (event) => {
    state.family = event.target.value;
    redraw();
  });
  byId("find").addEventListener("input", (event) => {
    state.find = event.target.value.trim().toLowerCase();
    redraw();
  });
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
}

const tableName = (table) =>
  `${table.id}${table.source === "bundled" ? " (bundled)" : ""} · n = ${table.n}`;

function showSection() {
  for (const section of SECTIONS) byId(section).hidden = section !== state.section;
  for (const link of byId("sections").querySelectorAll("a")) {
    if (link.hash === `#${state.section}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("controls").hidden = state.section === "guide";
  byId("controls").style.display = state.section === "guide" ? "none" : "";
  byId("table-field").style.display = state.section === "ranking" ? "none" : "";
  byId("table").value = String(state.table);
  const all = state.section === "ranking" ? board.explainers.map(([label]) => label)
    : board.tables.length ? tableData().entrants.map((entrant) => entrant.label) : [];
  byId("count").textContent = `${all.filter(wanted).length} of ${all.length} explainers`;
}

function facts(short_ = false) {
  const { facts: table } = tableData();
  const right = table.kind === "qa" ? "exact match" : "accuracy";
  const pairs = [
    ["task", `${table.title}, version ${table.task_version}`],
    ["examples", `${table.n} of ${table.split}, from ${table.source} data`],
    ["model", table.model],
    table.accuracy === null ? null : [right, decimal(table.accuracy)],
    table.tpr_drop === null || short_ ? null
      : ["right answers lost without the rationales (tpr_drop)", decimal(table.tpr_drop)],
    short_ ? null : ["erased by", `${table.operator} (${table.erasure_token})`],
    short_ ? null : ["long texts", `${table.long}${table.truncated ? `, ${table.truncated} cut` : ""}`],
    short_ ? null : ["rationales", table.rationale],
    short_ ? null : ["precision", table.dtype],
    short_ ? null : ["protocol", String(table.protocol)],
    short_ ? null : ["data", table.data_sha256.slice(0, 12)],
    short_ ? null : ["weights", table.weights_sha256.slice(0, 12)],
  ].filter((pair) => pair !== null);
  const list = make("dl", { class: "facts" }, pairs.map(([term, value]) =>
    make("div", {}, make("dt", {}, term), make("dd", {}, value))));
  const note = table.source === "bundled"
    ? make("p", { class: "note small" }, badge("bundled"),
      " The small sample that ships with faithbench: not comparable with results on the real task.")
    : null;
  return [note, list];
}

function setUpTheme(redraw) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { byId("theme").textContent = dark() ? "Light" : "Dark"; };
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* A browser may refuse storage to a file; the choice then lasts for the visit. */ }
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* as above */ }
    label();
    redraw();
  });
  system.addEventListener("change", () => { label(); redraw(); });
  label();
}
