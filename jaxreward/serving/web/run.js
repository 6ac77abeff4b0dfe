// One run: its report in a frame without an origin, replaced when the run has grown; its films and its program.
import { elapsed, make, poll } from "./shared.js";

const POLL_MS = 2000, HIDDEN_MS = 15000, LEAST_MS = 5000, SILENT_MS = 20000;
const $ = (id) => document.getElementById(id);

// ---- the report: a frame that is shown, and one that loads behind it

let frame = null, next = null, wanted = "", loaded = "", began = 0, took = 0, reading = false, top = 0, giveUp = 0;
const load = (hash) => {
  const fresh = make("iframe", { sandbox: "allow-scripts", title: "Report", src: `report.html?v=${wanted}${hash}` });
  began = performance.now();
  loaded = wanted;
  if (frame === null) frame = fresh;
  else {
    next?.remove();
    next = fresh;
    next.className = "next";
  }
  $("report").append(fresh);
  clearTimeout(giveUp);
  giveUp = setTimeout(swap, SILENT_MS); // a page without a script: there is no report
  $("newer").hidden = true;
};
const swap = () => {
  if (next === null) return;
  frame.remove();
  frame = next;
  frame.className = "";
  next = null;
};
const update = () => {
  if (wanted === loaded || next !== null) return;
  const due = performance.now() - began > Math.max(LEAST_MS, 4 * took);
  if (frame === null) load(/^#c=[\w-]+$/.test(location.hash) ? location.hash : "");
  else if (reading) $("newer").hidden = false;
  else if (due) load("");
};
addEventListener("message", (event) => {
  const said = event.data;
  if (typeof said !== "object" || said === null || !said.report) return;
  if (next !== null && event.source === next.contentWindow) {
    took = performance.now() - began;
    next.contentWindow.postMessage({ top }, "*");
    setTimeout(swap, 60);
  } else if (event.source === frame?.contentWindow) {
    if (!took) took = performance.now() - began;
    reading = Boolean(said.reading);
    top = Number(said.top) || 0;
    if (next === null) update();
  }
});
$("newer").addEventListener("click", () => load(""));

// ---- films and the program

let films = "", program = "";
const showFilms = (state) => {
  const key = JSON.stringify(state.films);
  if (key === films || $("films").hidden) return;
  films = key;
  $("films").replaceChildren(...Object.entries(state.films).map(([name, version]) => {
    const src = `films/${encodeURIComponent(name)}?v=${version}`;
    const film = name.endsWith(".mp4") ? make("video", { src, controls: "", loop: "", preload: "metadata" }) : make("img", { src, alt: "Episodes of the agent side by side, with what every reward term pays" });
    return make("section", {}, make("h2", {}, name), film);
  }));
};
const showProgram = async (state) => {
  if (state.version === program || $("program").hidden) return;
  const reply = await fetch("program.py", { cache: "no-store" });
  const text = await reply.text();
  if (reply.ok) program = state.version;
  if ($("program").querySelector("code")?.textContent === text) return;
  $("program").replaceChildren(make("section", {}, make("h2", {}, "The best program so far"), make("pre", { tabindex: "0" }, make("code", {}, text))));
};

// ---- the state

const PARTS = ["report", "films", "program"];
let state = null;
const choose = () => {
  const chosen = PARTS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "report";
  for (const part of PARTS) $(part).hidden = part !== chosen;
  for (const link of $("parts").children) {
    if (link.getAttribute("href") === `#${chosen}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (state !== null) fill();
};
const fill = () => {
  const { candidates, standing } = state;
  document.title = `${state.run} - jaxreward`;
  $("name").textContent = state.run;
  $("standing").textContent = standing;
  $("standing").className = `standing ${standing}`;
  const of = candidates.budget ? ` of ${candidates.budget}` : "";
  $("figures").textContent = [state.number === "-" ? "" : `best ${state.number}`, `${candidates.trained}${of} trained`, elapsed(state, state.now), state.doing].filter(Boolean).join(" · ");
  const [, filmLink, programLink] = $("parts").children;
  const films = Object.keys(state.films).length;
  filmLink.hidden = !films;
  filmLink.textContent = films === 1 ? "Film" : `Films (${films})`;
  programLink.hidden = !state.program;
  showFilms(state);
  showProgram(state).catch(() => {});
  if (!$("report").hidden) update();
};
const say = (text) => {
  $("problem").hidden = !text;
  $("problem").textContent = text;
};
const look = (answer) => {
  say(answer.problem);
  if (answer.problem) return;
  state = answer;
  wanted = state.version;
  fill();
};
addEventListener("hashchange", choose);
choose();
poll("state.json", { everyMs: POLL_MS, hiddenMs: HIDDEN_MS, answered: look, failed: say });
