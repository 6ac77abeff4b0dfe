// The runs side by side, asked for again every two seconds. Texts of runs are only ever set as text.
import { elapsed, make, poll } from "./shared.js";

const POLL_MS = 2000, HIDDEN_MS = 15000, COLOURS = 8;
const $ = (id) => document.getElementById(id);
const dollars = (amount) => `$${amount.toFixed(amount > 0 && amount < 0.1 ? 4 : 2)}`;
const brief = (value) => {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 1 || value === 0 ? String(Number(value.toFixed(2))) : String(Number(value.toPrecision(2)));
};

// ---- curves: [trained candidates, best score so far] at its corners

const bounds = (runs) => {
  const values = runs.flatMap((run) => run.curve.map((point) => point[1]));
  const rate = runs.every((run) => run.rate);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return rate ? [0, Math.max(0.2, Math.ceil(high * 5 - 1e-9) / 5)] : low === high ? [low - 1, high + 1] : [low, high];
};
const path = (curve, x, y) => {
  let line = "";
  curve.forEach(([n, value], i) => { line += i ? `H${x(n)}V${y(value)}` : `M${x(n)} ${y(value)}`; });
  return line;
};
const lineOf = (run, x, y, colour) => {
  const [n, value] = run.curve.at(-1);
  return make("g", { class: `c${colour % COLOURS}`, "data-run": run.key },
    make("title", {}, `${run.run}: ${run.score}`),
    make("path", { d: path(run.curve, x, y), class: colour >= COLOURS ? "line dashed" : "line" }),
    make("circle", { cx: x(n), cy: y(value), r: 3.5 }));
};
const spark = (run, colour) => {
  if (!run.curve.length) return null;
  const values = run.curve.map((point) => point[1]);
  const [low, high] = [Math.min(...values), Math.max(...values, Math.min(...values) + 1e-9)];
  const most = Math.max(run.candidates.budget, run.curve.at(-1)[0], 2);
  const x = (n) => 3 + (124 * (n - 1)) / (most - 1);
  const y = (value) => 27 - (24 * (value - low)) / (high - low);
  return make("svg", { viewBox: "0 0 130 30", preserveAspectRatio: "none", "aria-hidden": "true" },
    make("line", { class: "grid", x1: 0, x2: 130, y1: 29.5, y2: 29.5 }), lineOf(run, x, y, colour));
};
const overview = (runs, colours) => {
  const drawn = runs.filter((run) => run.curve.length);
  if (drawn.length < 2) return null;
  const width = Math.max(260, Math.min(1280, $("runs").clientWidth) - 48), height = 200;
  const [low, high] = bounds(drawn);
  const most = Math.max(2, ...drawn.map((run) => Math.max(run.candidates.budget, run.curve.at(-1)[0])));
  const x = (n) => 44 + ((width - 60) * (n - 1)) / (most - 1);
  const y = (value) => 172 - (160 * (value - low)) / (high - low);
  const label = "Best score so far of every run over its trained candidates";
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(make("line", { class: "grid", x1: 44, x2: width - 16, y1: y(value), y2: y(value) }), make("text", { x: 38, y: y(value) + 4, "text-anchor": "end" }, brief(value)));
  }
  svg.append(make("text", { x: 44, y: 190 }, "1"), make("text", { x: width - 16, y: 190, "text-anchor": "end" }, `${most} trained candidates`));
  svg.append(...drawn.map((run) => lineOf(run, x, y, colours.get(run.key))));
  return make("figure", { class: "overview" }, svg, make("figcaption", {}, `The best ${runs[0].metric} so far in each search over its trained candidates.`));
};

// ---- the table of a task

const cell = (label, kind, ...children) => make("td", { class: kind, "data-label": label }, ...children);
const rowOf = (run, colour, now, costs) => {
  const { trained, budget } = run.candidates;
  const bar = make("span", { class: "bar", "aria-hidden": "true" }, make("i"));
  bar.firstChild.style.width = `${budget ? Math.min(100, (100 * trained) / budget) : 0}%`;
  const link = make("a", { href: `run/${run.key}/` }, run.run);
  const films = Object.keys(run.films).length;
  const film = films ? make("a", { href: `run/${run.key}/#films` }, films === 1 ? "film" : `${films} films`) : "";
  const how = [run.strategy, run.proposer, `seed ${run.seed}`].join(" · ");
  const row = make("tr", { "data-run": run.key },
    make("td", { class: "name" }, make("span", { class: `swatch c${colour % COLOURS}`, "aria-hidden": "true" }), link, make("small", {}, how, film ? " · " : "", film)),
    cell("", "", make("span", { class: `standing ${run.standing}` }, run.standing), make("small", {}, run.doing || run.reason)),
    cell("", "spark", spark(run, colour)),
    cell("best in the search", "num", run.number === "-" ? "" : run.number, run.number === "-" ? "" : make("small", {}, run.score.replace(/^\S+ /, ""))),
    cell("on fresh seeds", "num", run.fresh_number === "-" ? "" : run.fresh_number),
    cell("trained", "num", `${trained}${budget ? ` of ${budget}` : ""}`, bar),
    make("td", { class: "num elapsed", "data-label": "elapsed" }, elapsed(run, now)),
    costs ? cell("cost", "num", run.cost_usd ? dollars(run.cost_usd) : "") : null);
  const mark = (on) => () => document.querySelectorAll(".overview g").forEach((g) => g.classList.toggle("on", on && g.dataset.run === run.key));
  row.addEventListener("mouseenter", mark(true));
  row.addEventListener("mouseleave", mark(false));
  return row;
};
const groupOf = (title, runs, now) => {
  const colours = new Map([...runs].sort((a, b) => a.started_at - b.started_at).map((run, i) => [run.key, i]));
  const costs = runs.some((run) => run.cost_usd);
  const heads = ["run", "state", "best so far", "score", "fresh seeds", "trained", "elapsed", ...(costs ? ["cost"] : [])];
  const table = make("table", { class: "runs" },
    make("thead", {}, make("tr", {}, ...heads.map((head, i) => make("th", { scope: "col", class: i > 2 ? "num" : null }, head)))),
    make("tbody", {}, ...runs.map((run) => rowOf(run, colours.get(run.key), now, costs))));
  return make("section", {}, make("h2", {}, title), overview(runs, colours), make("div", { class: "scroll" }, table));
};

// ---- the page

let known = "", shown = null;
const draw = (answer) => {
  const groups = new Map();
  for (const run of answer.runs) groups.set(run.title, [...(groups.get(run.title) ?? []), run]);
  const parts = [...groups].map(([title, runs]) => groupOf(title, runs, answer.now));
  if (!parts.length && !answer.waiting) parts.push(make("section", {}, make("p", { class: "empty" }, `There is no run in ${answer.folders.join(", ")} yet. This page shows one as soon as it begins.`)));
  if (answer.unreadable.length) {
    parts.push(make("section", {}, make("h2", {}, "Cannot be read"), make("ul", {}, ...answer.unreadable.map(({ run, reason }) => make("li", {}, make("b", {}, run), `: ${reason}`)))));
  }
  const focus = document.activeElement?.getAttribute("href");
  $("runs").replaceChildren(...parts);
  if (focus) [...document.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus)?.focus();
  const table = (key) => `comparison/${key}/comparison`;
  $("comparisons").replaceChildren(...answer.comparisons.flatMap(({ name, key }) => [make("a", { href: `${table(key)}.md` }, `${name}: table`), make("a", { href: `${table(key)}.png` }, "picture")]));
  const running = answer.runs.filter((run) => run.standing === "running").length;
  document.title = `${running ? `${running} running - ` : ""}Runs - jaxreward`;
};
const look = (answer) => {
  const { now, ...rest } = answer, text = JSON.stringify(rest);
  shown = answer;
  if (text !== known) { draw(answer); known = text; }
  const rows = new Map(answer.runs.map((run) => [run.key, run]));
  for (const row of document.querySelectorAll("tr[data-run]")) row.querySelector(".elapsed").textContent = elapsed(rows.get(row.dataset.run), now);
  say(answer.waiting ? `reading, ${answer.waiting} to go` : `${answer.runs.length} run${answer.runs.length === 1 ? "" : "s"}`);
  return answer.waiting ? 50 : POLL_MS;
};
const say = (text, kind = "") => {
  $("status").className = kind;
  $("status").textContent = text;
};
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width && shown) { width = innerWidth; draw(shown); } });
poll("runs.json", { everyMs: POLL_MS, hiddenMs: HIDDEN_MS, answered: look, failed: (why) => say(why, "lost") });
