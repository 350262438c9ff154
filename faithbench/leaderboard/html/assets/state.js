// What is shown: the data, read table by table, and the reader's choices.

const board = JSON.parse(byId("board").textContent);
const SECTIONS = ["ranking", "results", "curves", "cost", "tests", "examples", "guide"];
const ARROWS = { 1: "↑", 0: "", "-1": "↓" };
const state = {
  section: "ranking",
  table: board.opens,
  explainer: null,
  waits: false,
  find: "",
  family: "",
};

// Tables are blocks of the page, or files beside it that the browser takes only if their digest
// is the one that the page was made with.
const files = JSON.parse(byId("files")?.textContent ?? "null");
const opened = new Map();
const tableData = (place = state.table) => opened.get(place);

function openFromPage(place) {
  if (!files && !opened.has(place))
    opened.set(place, JSON.parse(byId(`table-${place}`).textContent));
  return opened.has(place);
}

async function openFromFile(place) {
  const [file, integrity] = files[place];
  const answer = await fetch(file, { integrity, cache: "no-cache", credentials: "same-origin" });
  opened.set(place, await answer.json());
}

const meaningOf = new Map(board.metrics.map((metric) => [metric.metric, metric]));
const summaryOf = (column) => meaningOf.get(column.metric).summary;

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

// A name may break after its marks, so that words stay whole where there is little room.
function name(label) {
  const parts = label.split(/(?<=[:,=])/);
  return make("bdi", {}, parts.flatMap((part) => [part, make("wbr")]).slice(0, -1));
}
