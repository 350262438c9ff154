// Start: draw the section that the address names, and only that one.

const DRAW = {
  ranking: drawRanking,
  results: drawResults,
  curves: drawCurves,
  cost: drawCost,
  tests: drawTests,
  examples: drawExamples,
  guide: drawGuide,
};

function redraw() {
  showTip(null, null, null, null);
  showSection();
  if (board.tables.length || state.section === "guide") DRAW[state.section]();
  else replace(byId("ranking-body"), make("p", { class: "note" }, "There are no records yet."));
  writeAddress();
}

function drawGuide() {
  const seen = new Map();
  board.tables.forEach((_, place) =>
    tableData(place).columns.forEach((column) => {
      if (!seen.has(column.metric)) seen.set(column.metric, column);
    }),
  );
  replace(
    byId("guide-metrics"),
    [...seen.values()].flatMap((column) => [
      make("dt", {}, `${column.title} ${ARROWS[column.better]}`),
      make(
        "dd",
        {},
        `${column.summary || column.metric} (${column.family}, version ${column.version})`,
      ),
    ]),
  );
}

byId("sections").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  state.section = link.hash.slice(1);
  redraw();
});
addEventListener("hashchange", () => {
  readAddress();
  redraw();
});

let width = innerWidth;
addEventListener("resize", () => {
  // Labels of the cost chart are placed for one width.
  if (width < 640 !== innerWidth < 640 || (state.section === "cost" && width !== innerWidth))
    redraw();
  width = innerWidth;
});

byId("summary").textContent =
  `${[...familyOf.values()].filter((family) => family !== "control").length} explainers on ${board.tables.length} ${board.tables.length === 1 ? "table" : "tables"}, ${board.records} records.`;
byId("about").textContent =
  `Made by faithbench from records with the digest ${board.digest}. Charts by Vega-Lite.`;
readAddress();
setUpTheme(redraw);
setUpControls(redraw);
redraw();
document.documentElement.dataset.ready = "yes";
performance.mark("interactive");
