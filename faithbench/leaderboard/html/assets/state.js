// What is shown: the data, read table by table, and the reader's choices.

const board = JSON.parse(byId("board").textContent);
const SECTIONS = ["ranking", "results", "curves", "cost", "tests", "examples", "guide"];
const ARROWS = { 1: "↑", 0: "", "-1": "↓" };
const state = { section: "ranking", table: board.opens, find: "", family: "" };

const opened = new Map();
function tableData(place = state.table) {
  if (!opened.has(place)) opened.set(place, JSON.parse(byId(`table-${place}`).textContent));
  return opened.get(place);
}

const familyOf = new Map(board.explainers);
const families = [...new Set(familyOf.values())].sort();

function wanted(label) {
  if (state.family !== "" && familyOf.get(label) !== families[Number(state.family)]) return false;
  return label.toLowerCase().includes(state.find);
}

// Places of the wanted explainers in a table.
const visible = (table) =>
  table.entrants.map((_, place) => place).filter((place) => wanted(table.entrants[place].label));

function betterFirst(column) {
  const sign = column.better === -1 ? 1 : -1;
  return (one, two) => {
    const [a, b] = [one, two].map((place) => column.cells[place]?.[0] ?? null);
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (a - b);
  };
}

const isControl = (entrant) => entrant.standing === "control";

function faithfulnessColumn(table) {
  return (
    table.columns.find((column) => column.metric.split("@")[0] === "aopc" && column.better) ??
    table.columns.find((column) => column.family === "faithfulness" && column.better)
  );
}

function name(label) {
  return make("bdi", {}, label);
}

function readAddress() {
  const [section, id] = location.hash.slice(1).split("/");
  if (SECTIONS.includes(section)) state.section = section;
  let decoded = null;
  try {
    decoded = id && decodeURIComponent(id);
  } catch {
    decoded = null;
  }
  const place = board.tables.findIndex((table) => table.id === decoded);
  if (place >= 0) state.table = place;
}

function writeAddress() {
  const table = board.tables[state.table];
  const tail =
    table && !["ranking", "guide"].includes(state.section)
      ? `/${encodeURIComponent(table.id)}`
      : "";
  history.replaceState(null, "", `#${state.section}${tail}`);
}
