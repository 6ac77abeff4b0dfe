// What both pages use.

const SVG = new Set(["svg", "g", "path", "line", "text", "circle", "title"]);

// An element; its children are set as text where they are no elements, and left out where they are empty.
export const make = (tag, attributes = {}, ...children) => {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
};

// A duration, as on the command line.
export const span = (seconds) => {
  const units = [["s", 1, 120], ["min", 60, 7200], ["h", 3600, 172800], ["d", 86400, Infinity]];
  const [unit, size] = units.find(([, , until]) => seconds < until);
  const value = seconds / size;
  return `${value.toFixed(value < 9.95 && value > 0 ? 1 : 0)} ${unit}`;
};

// How long a process has worked on a run.
export const elapsed = (run, now) => span(run.wall_s + (run.standing === "running" ? Math.max(0, now - run.last_at) : 0));

// Ask for an address and hand the answer on, again and again; rarely while nobody looks.
export const poll = (url, { everyMs, hiddenMs, answered, failed }) => {
  let timer = 0, asking = false;
  const turn = async () => {
    clearTimeout(timer);
    if (asking) return;
    asking = true;
    let wait = everyMs;
    try {
      const reply = await fetch(url, { cache: "no-store" });
      if (!reply.ok) throw new Error((await reply.text()).trim());
      wait = answered(await reply.json()) ?? everyMs;
    } catch (error) {
      failed(error instanceof TypeError ? "no answer: the server has ended, or the connection is lost" : error.message);
    }
    asking = false;
    document.body.dataset.ready = "yes";
    timer = setTimeout(turn, document.hidden ? hiddenMs : wait);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
  turn();
};
