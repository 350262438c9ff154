// Mean ranks over tables: a table, and the critical-difference diagram.

let rankingShown = 0;

function drawRanking() {
  const titles = { overall: "all families together" };
  const select = byId("ranked");
  choices(select, board.rankings.map((ranking, place) => [place, titles[ranking.family] ?? ranking.family]), rankingShown);
  select.onchange = () => { rankingShown = Number(select.value); drawRanking(); };
  const ranking = board.rankings[rankingShown];
  if (!ranking || ranking.lines.length === 0) {
    replace(byId("ranking-body"), make("p", { class: "note" },
      ranking?.reason || "No explainer is in all tables, so there is no ranking yet."));
    return;
  }
  const lines = ranking.lines.map((line, place) => [place, ...line]).filter(([, label]) => wanted(label));
  replace(byId("ranking-body"), make("p", { class: "small muted" }, rankingTest(ranking)), make("div", { class: "beside" },
    make("div", {}, rankingTable(ranking, lines)),
    make("div", {}, make("h3", {}, "Critical-difference diagram"), make("p", { class: "small muted" },
      "A dot is a mean rank, the thin line its 95% interval. A bar on the right joins explainers whose mean ranks differ by less than the critical difference (CD): they are not significantly different (Nemenyi, .05)."),
    differenceDiagram(ranking, lines))), rankingBasis(ranking));
}

function rankingTest(ranking) {
  return ranking.p === null ? ranking.reason
    : `Friedman's test over ${ranking.over.length} rows: p ${ranking.p < 0.001 ? "< .001" : `= ${probability(ranking.p)}`}` +
      `${ranking.cd === null ? "" : `; critical difference ${ranking.cd.toFixed(2)}`}.${ranking.reason ? ` ${ranking.reason}` : ""}`;
}

// What was ranked, and who could not be.
function rankingBasis(ranking) {
  const out = ranking.leftOut.length
    ? make("details", {}, make("summary", {}, `Not in all tables, and not ranked: ${ranking.leftOut.length}`),
      make("p", { class: "small" }, ranking.leftOut.join(", ")))
    : null;
  return [out,
    make("details", {}, make("summary", {}, `Ranked over ${ranking.over.length} rows`),
      make("p", { class: "small" }, ranking.over.join(", ")))];
}

function rankingTable(ranking, lines) {
  const letters = groupLetters(ranking);
  return plainTable(`Mean ranks, ${ranking.family}, best first`,
    ["explainer", "family", "mean rank", "95% interval", "ties"],
    lines.map(([place, label, rank, low, high]) => [
      make("span", { class: place === 0 ? "top-tie" : null }, make("span", { class: "mean" }, name(label))),
      familyOf.get(label) ?? "", make("b", {}, rank.toFixed(2)),
      low === null ? "–" : `${low.toFixed(2)} to ${high.toFixed(2)}`, letters[place] || "–",
    ]));
}

const groupLetters = (ranking) => ranking.lines.map((_, place) => ranking.groups
  .map(([first, last], group) => (first <= place && place <= last ? String.fromCharCode(97 + (group % 26)) : "")).join(""));

// Bars that do not overlap share a column.
function barColumns(groups) {
  const ends = [];
  return groups.map(([first, last]) => {
    let column = ends.findIndex((end) => end < first);
    if (column < 0) column = ends.push(0) - 1;
    ends[column] = last;
    return column;
  });
}

function differenceDiagram(ranking, lines) {
  const shown = new Map(lines.map(([place, label]) => [place, label]));
  const dots = lines.map(([, label, rank, low, high]) => ({
    label, rank, low, high,
    tip: `${label}\nmean rank ${rank.toFixed(2)}${low === null ? "" : `\n95% interval ${low.toFixed(2)} to ${high.toFixed(2)}`}`,
  }));
  const most = Math.max(...ranking.lines.map(([, rank, , high]) => high ?? rank), 2);
  const groups = ranking.groups.map(([first, last]) => [...shown.keys()].filter((place) => first <= place && place <= last))
    .filter((places) => places.length > 1).map((places) => [places[0], places.at(-1)]);
  const columns = barColumns(groups);
  const step = most / (innerWidth < 640 ? 24 : 45);
  const bars = groups.map(([first, last], group) => ({
    from: shown.get(first), to: shown.get(last), x: most + step * (2 + columns[group]),
  }));
  const end = most + step * (3 + Math.max(0, ...columns));
  const y = { field: "label", type: "ordinal", sort: null, axis: { title: null, domain: false, ticks: false, grid: true, labelLimit: innerWidth < 640 ? 110 : 200 } };
  const ticks = Array.from({ length: Math.floor(most) }, (_, i) => i + 1).filter((tick) => most < 12 || tick === 1 || tick % 5 === 0);
  const x = (field) => ({ field, type: "quantitative", scale: { domain: [0.4, end], nice: false, zero: false }, axis: { title: "mean rank (1 is best)", values: ticks, orient: "top", grid: true } });
  const scale = ranking.cd === null ? [] : [
    { data: { values: [{ from: 1, to: 1 + ranking.cd }] }, mark: { type: "rule", strokeWidth: 3, color: colour("--accent") },
      encoding: { x: x("from"), x2: { field: "to" }, y: { value: -48 } } },
    { data: { values: [{ at: 1 + ranking.cd }] }, mark: { type: "text", align: "left", dx: 6, text: `CD = ${ranking.cd.toFixed(2)}`, color: colour("--accent") },
      encoding: { x: x("at"), y: { value: -48 } } },
  ];
  const spec = {
    width: "container", height: 19 * dots.length, autosize: { type: "fit-x", contains: "padding" },
    padding: { top: ranking.cd === null ? 5 : 20, left: 0, right: 5, bottom: 5 },
    layer: [
      { data: { values: dots.filter((dot) => dot.low !== null) }, mark: { type: "rule", color: colour("--muted") },
        encoding: { y, x: x("low"), x2: { field: "high" } } },
      { data: { values: dots }, mark: { type: "point", filled: true, size: 70, color: colour("--accent"), opacity: 1 },
        encoding: { y, x: x("rank"), tooltip: { field: "tip" } } },
      { data: { values: bars }, mark: { type: "rule", strokeWidth: 3, strokeCap: "round", color: colour("--ink") },
        encoding: { y: { ...y, field: "from" }, y2: { field: "to" }, x: x("x") } },
      ...scale,
    ],
  };
  const best = dots[0] ? `${dots[0].label} has the lowest mean rank, ${dots[0].rank.toFixed(2)}` : "no explainer is shown";
  return chart(`Critical-difference diagram of ${dots.length} explainers: ${best}.`, spec,
    plainTable("Groups that are not significantly different", ["from", "to"],
      bars.map((bar) => [name(bar.from), bar.to])));
}
