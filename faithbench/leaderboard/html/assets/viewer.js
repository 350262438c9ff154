// One text as all explainers see it, and how each differs from a chosen one.

const viewer = { example: 0, reference: null };

function drawExamples() {
  const table = tableData();
  replace(byId("examples-facts"), bundledNote());
  if (!table.shown.length) {
    for (const id of ["example", "reference"]) choices(byId(id), [], "");
    replace(
      byId("examples-body"),
      make("p", { class: "note" }, "This table's records keep no scores to show."),
    );
    return;
  }
  viewer.example = Math.min(viewer.example, table.shown.length - 1);
  const labels = table.entrants.map((entrant) => entrant.label);
  const reference = labels.indexOf(viewer.reference);
  choices(
    byId("example"),
    table.shown.map((shown, place) => [place, `${place + 1}. ${opening(shown)}`]),
    viewer.example,
  );
  choices(
    byId("reference"),
    [[-1, "scores"], ...labels.map((label, place) => [place, `difference to ${label}`])],
    reference,
  );
  byId("example").onchange = (event) => {
    viewer.example = Number(event.target.value);
    drawExamples();
  };
  byId("reference").onchange = (event) => {
    viewer.reference = labels[Number(event.target.value)] ?? null;
    drawExamples();
  };
  byId("before").onclick = () => {
    viewer.example -= 1;
    drawExamples();
  };
  byId("after").onclick = () => {
    viewer.example += 1;
    drawExamples();
  };
  byId("before").disabled = viewer.example === 0;
  byId("after").disabled = viewer.example === table.shown.length - 1;
  const shown = table.shown[viewer.example];
  replace(
    byId("examples-body"),
    verdict(table, shown),
    heatLegend(reference < 0 ? null : labels[reference], shown),
    heatCards(table, shown, shown.scores[reference] ? reference : -1),
  );
}

function opening(shown) {
  const gaps = gapsOf(shown.tokens);
  const text = shown.tokens
    .slice(0, 9)
    .map((token, place) => gaps[place] + bareToken(token))
    .join("")
    .trim();
  return text.length > 48 ? `${text.slice(0, 47)}…` : text + (shown.tokens.length > 9 ? " …" : "");
}

// Tokenizers mark either what continues a word (##) or what begins one (\u0120, \u2581).
function gapsOf(tokens) {
  const begins = tokens.some((token) => /^[\u0120\u2581]/.test(token));
  return tokens.map((token, place) => {
    const apart = begins ? /^[\u0120\u2581]/.test(token) : !/^##./.test(token);
    return place > 0 && apart ? " " : "";
  });
}
const bareToken = (token) => token.replace(/^(##(?=.)|[\u0120\u2581])/, "");

function verdict(table, shown) {
  if (table.facts.kind === "qa") {
    // Rows of older records do not tell the words of an answer.
    const told = shown.said === "" ? [] : [": ", make("b", {}, name(shown.said))];
    return make(
      "p",
      { class: "said" },
      `The model's answer is ${shown.right ? "right" : "wrong"} (probability ${decimal(shown.probability)})`,
      told,
      ". Its own words are never erased.",
    );
  }
  return make(
    "p",
    { class: "said" },
    "The model says ",
    make("b", {}, name(shown.said)),
    ` (probability ${decimal(shown.probability)}), `,
    shown.right ? "which is right." : ["but the label is ", make("b", {}, name(shown.truth)), "."],
  );
}

function heatLegend(reference, shown) {
  const key = (classes, text) => make("span", { class: `token ${classes}` }, text);
  const marks = shown.rationale.length ? key("marked", "underlined: in the rationale") : null;
  return reference === null
    ? make(
        "p",
        { class: "scale small" },
        key("up s8", "orange: speaks for the prediction"),
        key("down s8", "blue: speaks against it"),
        marks,
      )
    : make(
        "p",
        { class: "scale small difference" },
        key("up s8", "green: more important here than for "),
        name(reference),
        key("down s8", "red: less important here"),
        marks,
      );
}

function heatCards(table, shown, reference) {
  const base = reference < 0 ? null : shown.scores[reference];
  const marked = new Set(shown.rationale);
  const places = visible(table).filter((place) => shown.scores[place]);
  const cards = places.map((place) => {
    const { label, family } = table.entrants[place];
    const own = base === null || place === reference;
    const values = own
      ? shown.scores[place]
      : shown.scores[place].map((score, i) => (score - base[i]) / 2);
    return make(
      "article",
      { class: `card ${place === reference ? "reference" : ""}`, "data-explainer": label },
      make(
        "h3",
        {},
        name(label),
        make("span", { class: "muted" }, ` ${family}${place === reference ? ", scores" : ""}`),
      ),
      make(
        "p",
        {
          class: `words ${own ? "" : "difference"}`,
          tabindex: shown.tokens.length > 90 ? "0" : null,
        },
        heat(shown.tokens, values, marked, own ? 1 : 2),
      ),
      strongest(shown.tokens, values, own ? 1 : 2),
    );
  });
  return [rationaleCard(table, shown, marked), make("div", { class: "cards" }, cards)];
}

function rationaleCard(table, shown, marked) {
  const who = {
    human: "The text, with what people marked as the reason",
    proxy: "The text, with a proxy rationale: derived, marked by no person",
    none: "The text",
  }[marked.size ? table.facts.rationale : "none"];
  return make(
    "article",
    { class: "card whole", id: "rationale" },
    make("h3", {}, who),
    make(
      "p",
      { class: "words", tabindex: shown.tokens.length > 90 ? "0" : null },
      heat(
        shown.tokens,
        shown.tokens.map(() => 0),
        marked,
        null,
      ),
    ),
  );
}

const signed = (value) => `${value > 0 ? "+" : ""}${bare(value.toFixed(2))}`;

// What colours and tooltips say, for those who see or reach neither.
function strongest(tokens, values, times) {
  const told = values
    .map((value, place) => [value, place])
    .filter(([value]) => value !== 0)
    .sort(([a], [b]) => Math.abs(b) - Math.abs(a))
    .slice(0, 3)
    .map(([value, place]) => `${bareToken(tokens[place])} ${signed((times * value) / 100)}`);
  const nothing = times === 1 ? "all scores are 0" : "no difference";
  const text = told.length ? `strongest: ${told.join(" · ")}` : nothing;
  return make("p", { class: "strongest small muted" }, text);
}

// Words as spans; `times` turns a shade back into the number to tell.
function heat(tokens, values, marked, times) {
  const gaps = gapsOf(tokens);
  return tokens.flatMap((token, place) => {
    const strength = Math.min(10, Math.round(Math.abs(values[place]) / 10));
    const kind = strength === 0 ? "" : `${values[place] > 0 ? "up" : "down"} s${strength}`;
    const title =
      times === null ? null : `${bareToken(token)}: ${signed((times * values[place]) / 100)}`;
    const span = make(
      "span",
      { class: `token ${kind} ${marked.has(place) ? "marked" : ""}`, title },
      bareToken(token),
    );
    return gaps[place] ? [gaps[place], span] : [span];
  });
}
