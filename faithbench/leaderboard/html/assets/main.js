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

// `go` brings the explainer that an address names into view.
function redraw(go = false) {
  showTip(null, null, null, null);
  writeAddress();
  if (!board.tables.length && state.section !== "guide") {
    showSection();
    replace(byId("ranking-body"), make("p", { class: "note" }, "There are no records yet."));
    return;
  }
  if (!WITHOUT_TABLE.includes(state.section) && !openFromPage(state.table)) {
    waitForTable(state.table, go);
    return;
  }
  showWaiting(false);
  DRAW[state.section]();
  if (go) goToExplainer();
  else markExplainer();
  if (!WITHOUT_TABLE.includes(state.section)) performance.mark("table");
}

async function waitForTable(place, go) {
  showWaiting(true, make("p", {}, `Loading ${board.tables[place].title} …`));
  try {
    await openFromFile(place);
  } catch {
    // The browser does not tell a file that is missing from one of another digest.
    if (isWaitedFor(place)) showWaiting(false, whyNotLoaded(), retryButton());
    return;
  }
  if (isWaitedFor(place)) redraw(go);
}

// Meanwhile the reader may have gone elsewhere.
const isWaitedFor = (place) => state.table === place && !WITHOUT_TABLE.includes(state.section);

function whyNotLoaded() {
  const why =
    location.protocol === "file:"
      ? "Browsers load no files for a page that was opened from a disk. Serve its folder, for example with: python -m http.server, or make the page in one file with: faithbench leaderboard build --tables inside"
      : "The table could not be loaded: its file is missing, or is not the one that this page was made with.";
  return make("p", { class: "note" }, why);
}

const retryButton = () =>
  make("button", { type: "button", onclick: () => redraw() }, "Try again");

// What stands in the place of a section while its table is on the way.
function showWaiting(busy, ...told) {
  state.waits = told.length > 0;
  byId("waiting").hidden = !state.waits;
  byId("main").setAttribute("aria-busy", String(busy));
  replace(byId("waiting"), told);
  showSection();
}

function drawGuide() {
  replace(
    byId("guide-metrics"),
    board.metrics.flatMap((metric) => [
      make("dt", {}, `${metric.title} ${ARROWS[metric.better]}`),
      make(
        "dd",
        {},
        `${metric.summary || metric.metric} (${metric.family}, version ${metric.version})`,
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
  const named = readAddress();
  if (named) clearFilters();
  redraw(named);
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
const named = readAddress();
setUpTheme(() => redraw());
setUpControls(() => redraw());
redraw(named);
document.documentElement.dataset.ready = "yes";
performance.mark("interactive");
