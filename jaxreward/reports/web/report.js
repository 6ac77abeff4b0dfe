// Charts, the table of candidates, and the details of each candidate.
(() => {
  "use strict";
  const run = JSON.parse(document.getElementById("run").textContent);
  const $ = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const number = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(1) : size >= 0.1 || value === 0 ? value.toFixed(3) : value.toPrecision(2);
  };

  // ---- details of candidates, compressed in the page and unpacked when first needed

  let unpacked = null;
  const details = () => {
    unpacked ??= (async () => {
      const bytes = Uint8Array.from(atob($("details").textContent.trim()), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      return JSON.parse(await new Response(stream).text());
    })();
    return unpacked;
  };

  // ---- charts

  const draw = async (place, spec) => {
    const { view } = await vegaEmbed(place, structuredClone(spec), {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, tooltip: { theme: "custom" },
    });
    view.addEventListener("click", (_, item) => {
      const datum = item && item.datum;
      if (datum && datum.id && datum.own !== false) open(datum.id);
    });
    place.dataset.drawn = "yes";
    return view;
  };
  const drawAll = () =>
    Promise.all([...document.querySelectorAll("[data-chart]")].map((place) => draw(place, run.charts[place.dataset.chart])));
  const filled = (name, values) => ({ ...structuredClone(run.templates[name]), data: { values } });

  // ---- the table

  const rows = new Map(run.table.map((row) => [row.id, row]));
  const sorting = { column: "merit", descending: true };
  let shown = [];

  const fill = (select, values) => values.forEach((value) => select.append(make("option", { value }, value)));
  const value = (row, column) => (column === "warnings" ? row.warnings.length : row[column]);
  const compare = (a, b) => {
    const [x, y] = [value(a, sorting.column), value(b, sorting.column)];
    const missing = (v) => v === null || v === undefined || v === "";
    if (missing(x) || missing(y)) return missing(x) - missing(y) || a.order - b.order;
    const by = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
    return (sorting.descending ? -by : by) || a.order - b.order;
  };
  const matches = (row) => {
    const wanted = $("find").value.trim().toLowerCase();
    const text = [row.id, row.operator, row.model, row.state, ...row.parents, ...row.warnings].join(" ").toLowerCase();
    return (
      (!wanted || wanted.split(/\s+/).every((word) => text.includes(word))) &&
      (!$("state").value || row.state === $("state").value) &&
      (!$("operator").value || row.operator === $("operator").value) &&
      (!$("warned").checked || row.warnings.length > 0)
    );
  };
  const opener = (id) => make("button", { type: "button", class: "link", "data-open": id }, id);
  const cell = (row, { key, kind }) => {
    if (key === "id") return make("td", {}, opener(row.id));
    if (key === "score" && row.score !== null) {
      const title = `95 % interval ${number(row.low)} to ${number(row.high)}, ${row.seeds} seed${row.seeds === 1 ? "" : "s"}`;
      return make("td", { title }, Math.abs(row.score) < 100 ? row.score.toFixed(3) : number(row.score));
    }
    if (key === "warnings") return make("td", { class: "words" }, row.warnings.join(", ").replaceAll("_", " "));
    return make("td", { class: kind === "words" ? "words" : null }, kind === "words" ? row[key] : number(row[key]));
  };
  const fillTable = () => {
    shown = run.table.filter(matches).sort(compare);
    const body = $("table").tBodies[0];
    body.replaceChildren(
      ...shown.map((row) => make("tr", { class: row.id === run.best ? "best" : null }, ...run.columns.map((column) => cell(row, column)))),
    );
    $("count").textContent = `${shown.length} of ${run.table.length}`;
    for (const head of $("table").tHead.rows[0].cells) {
      const mine = head.dataset.column === sorting.column;
      if (mine) head.setAttribute("aria-sort", sorting.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  };
  const buildTable = () => {
    for (const { key, title, kind, by } of run.columns) {
      const button = make("button", { type: "button" }, title);
      const column = by ?? key;
      button.addEventListener("click", () => {
        sorting.descending = sorting.column === column ? !sorting.descending : kind !== "words";
        sorting.column = column;
        fillTable();
      });
      $("table").tHead.rows[0].append(make("th", { "data-column": column, class: kind === "words" ? "words" : null, scope: "col" }, button));
    }
    fill($("state"), [...new Set(run.table.map((row) => row.state))].sort());
    fill($("operator"), [...new Set(run.table.map((row) => row.operator))].sort());
    for (const id of ["find", "state", "operator", "warned"]) $(id).addEventListener("input", fillTable);
    fillTable();
  };

  // ---- one candidate

  const pre = (text, label, wrapped = false) => {
    const button = make("button", { type: "button", class: "copy", "data-copy": true }, "Copy");
    return make("div", { class: "code" }, button, make("pre", { tabindex: 0, "aria-label": label, class: wrapped ? "wrapped" : null }, make("code", {}, text)));
  };
  const diff = (lines) => {
    const kinds = { "+": "add", "-": "del", "@": "at" };
    return make("pre", { class: "diff", tabindex: 0 }, ...lines.map((line) => make("span", { class: kinds[line[0]] ?? null }, line)));
  };
  const section = (title, isOpen, ...children) => make("details", { open: isOpen }, make("summary", {}, make("b", {}, title)), ...children);
  const figures = (pairs) =>
    make("dl", { class: "figures" }, ...pairs.filter(([, v]) => v !== null && v !== undefined && v !== "").map(([name, v]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, v instanceof Node ? v : number(v)))));
  const joined = (ids, known) => {
    const line = make("span");
    ids.forEach((id, i) => line.append(i ? ", " : "", rows.has(id) || Object.hasOwn(known, id) ? opener(id) : id));
    return line;
  };
  const picture = (path, frames, caption = path) =>
    frames[path]
      ? make("figure", { class: "frame" }, make("img", { src: `data:image/jpeg;base64,${frames[path]}`, alt: caption }), make("figcaption", {}, caption))
      : make("figure", { class: "frame" }, make("p", { class: "means" }, path), make("figcaption", {}, caption));
  // Texts and pictures of a message in their order; a text that stands before a picture is its caption.
  const parts = (message, frames) => {
    const shown = [];
    let strip = null;
    message.parts.forEach((part, i) => {
      if (part.image !== undefined) {
        if (!strip) shown.push((strip = make("div", { class: "strip" })));
        strip.append(picture(part.image, frames, message.parts[i - 1]?.text ?? part.image));
      } else if (message.parts[i + 1]?.image === undefined) {
        strip = null;
        shown.push(pre(part.text, message.role, true));
      }
    });
    return shown;
  };
  const filmed = (id, episode, number, frames) => {
    const paid = (k) => Object.entries(episode.paid).map(([name, values]) => `${name} ${values[k].toPrecision(3) * 1}`).join(", ");
    return make("div", {},
      make("h3", {}, `Episode ${number + 1}: ${episode.length} steps, ${run.metric} ${episode.success.toPrecision(3) * 1}`),
      make("div", { class: "strip" }, ...episode.steps.map((step, k) =>
        picture(`evidence/${id}/${number}-${String(k).padStart(2, "0")}.jpg`, frames, `step ${step}${k ? `: ${paid(k)}` : ""}`))));
  };
  const scores = (subtasks) => make("dl", { class: "seen" }, ...Object.entries(subtasks).flatMap(([name, seen]) => [
    make("dt", {}, `${name} ${(seen.reduce((sum, s) => sum + s.score, 0) / Math.max(1, seen.length)).toFixed(2)}`),
    ...seen.map((s) => make("dd", {}, `${s.score.toFixed(2)}${s.votes && s.votes.length > 1 ? ` (votes ${s.votes.map((v) => v.toFixed(2)).join(", ")})` : ""}: ${s.why}`)),
  ]));
  const exchange = (call, i, frames) => {
    const cost = call.cost === null ? "price unknown" : `$${call.cost.toFixed(4)}`;
    const title = `Call ${i + 1}${call.part ? `, ${call.part}` : ""}: ${call.model}, ${call.prompt_tokens} + ${call.completion_tokens} tokens, ${cost}, ${call.latency_s} s`;
    return section(title, false,
      call.error ? make("p", { class: "down" }, call.error) : null,
      ...call.messages.flatMap((message) => [make("h3", {}, message.role), ...parts(message, frames)]),
      make("h3", {}, "reply"), pre(call.reply || "(none)", "reply", true));
  };

  const fillCandidate = async (id) => {
    const { candidates, frames } = await details();
    const [row, more] = [rows.get(id), candidates[id]];
    const body = $("candidate-body");
    $("candidate-title").textContent = `${id} · ${row ? row.operator : "words"}`;
    body.replaceChildren();
    if (!more) return;
    const feedback = more.feedback;
    if (more.failure) {
      const where = more.failure.line ? `line ${more.failure.line}: ` : "";
      body.append(make("p", {}, make("span", { class: "tag" }, more.failure.stage), ` ${where}${more.failure.message} `, make("span", { class: "means" }, more.failure.hint)));
    }
    if (row) {
      const interval = row.score === null ? null : `${number(row.low)} to ${number(row.high)}`;
      body.append(figures([
        [run.metric, row.score], ["95 % interval", interval], ["seeds", row.seeds], ["generation", row.generation], ["island", more.island],
        ["parents", row.parents.length ? joined(row.parents, candidates) : "none"], ["repairs", more.repairs ? joined([more.repairs], candidates) : null],
        ["plan", more.plan ? joined([more.plan], candidates) : null], ["features", row.features], ["reward nodes", row.reward_nodes],
        ["operations a step", more.summary && more.summary.operations], ["FLOPs a step", more.summary && more.summary.flops],
        ["environment steps", row.steps || null], ["written by", row.model || more.proposer], ["tokens", row.tokens || null],
        ["dollars", row.tokens ? row.cost : null],
      ]));
    }
    const places = [];
    if (feedback) {
      for (const notice of feedback.notices) body.append(make("p", {}, make("span", { class: "tag" }, notice.kind.replaceAll("_", " ")), ` ${notice.message}`));
      const graph = (name, values, caption) => {
        const place = make("div", { class: "chart" });
        places.push([place, filled(name, values)]);
        return make("figure", {}, place, make("figcaption", {}, caption));
      };
      const split = make("div", { class: "split" });
      if (feedback.curve.length) split.append(graph("curves", feedback.curve, "Learning curve: mean over seeds, and their range."));
      if (feedback.terms.length) split.append(graph("terms", feedback.terms, "What each reward term paid per step."));
      body.append(section("Training", true, split, figures(Object.entries(feedback.figures))));
    }
    if (more.seen && Object.keys(more.seen).length) body.append(section("What was seen of its agent", true, scores(more.seen)));
    if (more.episodes && more.episodes.length) body.append(section(`Frames of its agent (${more.episodes.length} episodes)`, true, ...more.episodes.map((e, n) => filmed(id, e, n, frames))));
    if (more.judging.length) body.append(section(`What the judge was asked (${more.judging.length})`, false, ...more.judging.map((call, i) => exchange(call, i, frames))));
    if (more.thought) body.append(section("Idea", true, make("blockquote", {}, more.thought)));
    if (more.words) body.append(section("Reply in words", true, pre(more.words, "words", true)));
    if (more.changes.length) body.append(section(`Changes from ${row.parents[0]}`, true, diff(more.changes)));
    if (more.source) body.append(section("Program", !more.changes.length, pre(more.source, "program")));
    if (more.summary && more.summary.reads.length) body.append(make("p", { class: "means" }, `Reads ${more.summary.reads.join(", ")}. Digest ${more.summary.digest.slice(0, 12)}.`));
    if (more.exchanges.length) body.append(section(`Prompts and replies (${more.exchanges.length})`, false, ...more.exchanges.map((call, i) => exchange(call, i, frames))));
    body.scrollTop = 0;
    for (const [place, spec] of places) await draw(place, spec);
  };

  const dialog = $("candidate");
  const address = (to) => {
    try {
      history.replaceState(null, "", to);
    } catch {
      // a page without an origin of its own, as in a frame, has no address to change
    }
  };
  let current = "";
  const open = async (id) => {
    if (!rows.has(id) && !Object.hasOwn((await details()).candidates, id)) return;
    current = id;
    if (!dialog.open) dialog.showModal();
    dialog.dataset.ready = "";
    dialog.scrollTop = 0;
    address(`#c=${id}`);
    await fillCandidate(id);
    dialog.dataset.ready = id;
  };
  const step = (by) => {
    const at = shown.findIndex((row) => row.id === current);
    const next = shown[(at + by + shown.length) % shown.length];
    if (next) open(next.id);
  };
  dialog.addEventListener("close", () => address(location.pathname + location.search));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.closest("pre, input, select")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  $("close").addEventListener("click", () => dialog.close());
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));

  // ---- buttons

  const copy = async (button) => {
    const text = button.parentElement.querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-open], [data-copy]");
    if (!target) return;
    if (target.dataset.open) open(target.dataset.open);
    else copy(target);
  });
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // ---- in the frame of `jaxreward serve`, which replaces the page when the run has grown, unless it is being read

  const tell = () => {
    if (parent === window) return;
    const reading = dialog.open || $("warned").checked || ["find", "state", "operator"].some((id) => $(id).value);
    parent.postMessage({ report: document.body.dataset.ready === "yes", reading, top: scrollY }, "*");
  };
  addEventListener("message", (event) => {
    if (event.source === parent && Number.isFinite(event.data?.top)) scrollTo(0, event.data.top);
  });
  addEventListener("scroll", tell, { passive: true });
  for (const kind of ["input", "click", "keyup"]) addEventListener(kind, tell);

  buildTable();
  drawAll().then(() => { document.body.dataset.ready = "yes"; tell(); });
  const wanted = location.hash.match(/^#c=(.+)$/);
  if (wanted) open(wanted[1]);
})();
