// The choices that all sections share: section, table, which explainers; and light or dark.

function setUpControls(redraw) {
  choices(
    byId("table"),
    board.tables.map((table, place) => [place, tableName(table)]),
    state.table,
  );
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

// On a phone the sections are a strip that scrolls. scrollIntoView would also move the place from
// which Tab goes on, past the link that skips to the content.
function bringIntoStrip(link) {
  const strip = link.parentElement;
  const [left, right] = [link.offsetLeft - strip.offsetLeft, link.offsetWidth];
  if (left < strip.scrollLeft) strip.scrollLeft = left;
  else strip.scrollLeft = Math.max(strip.scrollLeft, left + right - strip.clientWidth);
}

function showSection() {
  for (const section of SECTIONS)
    byId(`section-${section}`).hidden = section !== state.section || state.waits;
  for (const link of byId("sections").querySelectorAll("a")) {
    if (link.hash === `#${state.section}`) {
      link.setAttribute("aria-current", "page");
      bringIntoStrip(link);
    } else link.removeAttribute("aria-current");
  }
  const allTables = state.section === "ranking" || (state.section === "cost" && costByRank());
  byId("controls").hidden = state.section === "guide";
  byId("table-field").hidden = allTables;
  byId("table").value = String(state.table);
  replace(byId("table-link"), allTables ? null : linkSign(state.section, null));
  const all = allTables ? rankedLabels() : tableData() ? methodLabels() : [];
  byId("count").textContent = state.waits
    ? ""
    : `${all.filter(wanted).length} of ${all.length} explainers`;
}

// Explainers that compete; controls are no explainers of the model.
const rankedLabels = () =>
  [...(board.ranking?.rows ?? []), ...(board.ranking?.below ?? [])].map((row) => row.label);
const methodLabels = () =>
  tableData()
    .entrants.filter((entrant) => !isControl(entrant))
    .map((entrant) => entrant.label);

// What a table was measured on, in a line; and the rest of it, on request.
function facts() {
  const { facts: table } = tableData();
  const first = [
    ["task", table.title],
    ["examples", `${table.n} of ${table.split}, ${table.source} data`],
    ["model", table.model],
    ["erased by", `${table.operator}${table.erasure_token ? ` (${table.erasure_token})` : ""}`],
    table.accuracy === null
      ? null
      : [table.kind === "qa" ? "exact match" : "accuracy", decimal(table.accuracy)],
  ];
  return [bundledNote(), factList(first)];
}

function moreFacts() {
  const { facts: table } = tableData();
  return make(
    "details",
    {},
    make("summary", {}, "More about this table"),
    factList([
      ["task version", String(table.task_version)],
      [
        "texts too long for the model",
        `${table.long}${table.truncated ? `, ${table.truncated} cut` : ""}`,
      ],
      ["rationales", table.rationale],
      table.tpr_drop === null
        ? null
        : [
            "share of the model's right answers that are lost when rationales are erased (tpr_drop)",
            decimal(table.tpr_drop),
          ],
      ["number format", table.dtype],
      ["protocol", String(table.protocol)],
      ["sha256 of the data", table.data_sha256.slice(0, 12)],
      [
        table.model_known_by === "files" ? "sha256 of the model" : "sha256 of the weights alone",
        table.model_sha256.slice(0, 12),
      ],
    ]),
  );
}

const noteOfBundled = () =>
  make(
    "p",
    { class: "note small" },
    badge("bundled"),
    " The small sample that ships with faithbench: not comparable with results on the real task.",
  );

function bundledNote() {
  return tableData().facts.source === "bundled" ? noteOfBundled() : null;
}

const factList = (pairs) =>
  make(
    "dl",
    { class: "facts" },
    pairs
      .filter((pair) => pair !== null)
      .map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value))),
  );

function setUpTheme(redraw) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => {
    byId("theme").textContent = dark() ? "Light" : "Dark";
  };
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch {
    /* A browser may refuse storage to a file; the choice then lasts for the visit. */
  }
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      /* as above */
    }
    label();
    redraw();
  });
  system.addEventListener("change", () => {
    label();
    redraw();
  });
  label();
}
