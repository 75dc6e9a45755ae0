// Sorting, filtering, zooming, hiding series, tooltips, dark colours. The content is complete without this script.
"use strict";

const make = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// Dark colours.
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const ofSystem = () => (system.matches ? "dark" : "light");
  const isDark = () => (root.dataset.theme ?? ofSystem()) === "dark";
  const button = make("button", { type: "button", id: "theme", textContent: "Dark colours" });
  const show = () => button.setAttribute("aria-pressed", isDark());
  button.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    // A choice that equals the system's theme keeps following the system.
    if (wanted === ofSystem()) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    show();
  });
  system.addEventListener("change", show);
  document.querySelector("header").append(button);
  show();
}

// Unfolds the target of a link.
{
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.matches("details")) at.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  // Following the same link again does not change the address.
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) dispatchEvent(new Event("hashchange"));
  });
}

// Tables.
const byValue = (a, b) => {
  const [x, y] = [a, b].map((cell) => (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v)));
  if (!isNaN(x) && !isNaN(y)) return x - y;
  // Text sorts after numbers.
  if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
  return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
};
const isMissing = (cell) => cell.dataset.v === undefined && ["", "–"].includes(cell.textContent.trim());

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of heads) other.setAttribute("aria-sort", other === head ? direction : "none");
      const sign = direction === "ascending" ? 1 : -1;
      const rows = [...body.rows].sort((p, q) => {
        const [a, b] = [p.cells[column], q.cells[column]];
        // Unknown values stay at the end in both directions.
        if (isMissing(a) !== isMissing(b)) return isMissing(a) ? 1 : -1;
        return sign * byValue(a, b);
      });
      body.append(...rows);
    });
  });
}

for (const table of document.querySelectorAll("table.filtered")) {
  const rows = [...table.tBodies[0].rows];
  const input = make("input", { type: "search", id: "filter" });
  const count = make("span", { className: "faint" });
  count.setAttribute("role", "status");
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${rows.length} runs` : "";
  };
  input.addEventListener("input", apply);
  const label = make("label", { htmlFor: "filter", textContent: "Show runs with" });
  table.closest(".scroll").before(make("div", { className: "filter" }, label, input, count));
  // A link to a filtered run shows it.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.hidden) {
      input.value = "";
      apply();
      target.scrollIntoView();
    }
  });
}

// Tooltips with values.
const tip = make("div", { id: "tip", hidden: true });
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);

const showTip = (text, x, y) => {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + box.height + 20 > innerHeight ? y - box.height - 8 : y + 14}px`;
};

// Figures.
for (const figure of document.querySelectorAll("figure")) {
  const canvas = figure.querySelector(".canvas");
  const pictures = [...canvas.querySelectorAll("svg")];
  const name = document.getElementById(figure.getAttribute("aria-labelledby")).textContent;
  const tools = make("div", { className: "tools" });
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", `Tools of ${name}`);
  figure.querySelector("summary").after(tools);

  for (const title of canvas.querySelectorAll("svg > title")) {
    title.parentNode.setAttribute("role", "img");
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  for (const title of canvas.querySelectorAll("title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  const point = (event) => showTip(event.target.closest?.("[data-tip]")?.dataset.tip, event.clientX, event.clientY);
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => showTip(""));

  const whole = pictures[0].getAttribute("viewBox").split(/[ ,]+/).map(Number);
  let view = [...whole];
  const show = () => {
    for (const picture of pictures) picture.setAttribute("viewBox", view.join(" "));
    canvas.classList.toggle("zoomed", view[2] < whole[2]);
  };
  const within = (value, low, high) => Math.min(Math.max(value, low), high);
  const move = (x, y) => {
    view[0] = within(x, whole[0], whole[0] + whole[2] - view[2]);
    view[1] = within(y, whole[1], whole[1] + whole[3] - view[3]);
    show();
  };
  // Zooms around a point, given as shares of the view.
  const zoom = (factor, atX = 0.5, atY = 0.5) => {
    const scale = within(factor, view[2] / whole[2], 20 * view[2] / whole[2]);
    const [x, y] = [view[0] + atX * view[2], view[1] + atY * view[3]];
    view[2] /= scale;
    view[3] /= scale;
    move(x - atX * view[2], y - atY * view[3]);
  };
  const reset = () => {
    view = [...whole];
    show();
  };
  const tool = (name, does) => {
    const button = make("button", { type: "button", textContent: name });
    button.addEventListener("click", does);
    tools.append(button);
    return button;
  };
  // With many figures, each button names its figure.
  tool("Zoom in", () => zoom(1.5)).setAttribute("aria-label", `Zoom in: ${name}`);
  tool("Zoom out", () => zoom(1 / 1.5)).setAttribute("aria-label", `Zoom out: ${name}`);
  tool("Whole", reset).setAttribute("aria-label", `Whole: ${name}`);

  for (const series of JSON.parse(figure.dataset.names)) {
    const button = tool(series, () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", isShown);
      for (const mark of canvas.querySelectorAll("[data-series]")) {
        if (mark.dataset.series === series) mark.classList.toggle("off", !isShown);
      }
    });
    button.setAttribute("aria-pressed", "true");
  }

  // The wheel scrolls the page; with a modifier key it zooms, as in maps.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }, { passive: false });
  canvas.addEventListener("dblclick", reset);
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (view[2] < whole[2]) held = { x: event.clientX, y: event.clientY, left: view[0], top: view[1] };
  });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const box = canvas.getBoundingClientRect();
    move(held.left - (event.clientX - held.x) / box.width * view[2], held.top - (event.clientY - held.y) / box.height * view[3]);
  });
  addEventListener("pointerup", () => { held = null; });

  canvas.tabIndex = 0;
  canvas.setAttribute("role", "group");
  canvas.setAttribute("aria-label", `${name}: plus and minus zoom, then arrows move, 0 shows the whole`);
  canvas.addEventListener("keydown", (event) => {
    const step = 0.1;
    const does = {
      "+": () => zoom(1.5),
      "=": () => zoom(1.5),
      "-": () => zoom(1 / 1.5),
      "0": reset,
      ArrowLeft: () => move(view[0] - step * view[2], view[1]),
      ArrowRight: () => move(view[0] + step * view[2], view[1]),
      ArrowUp: () => move(view[0], view[1] - step * view[3]),
      ArrowDown: () => move(view[0], view[1] + step * view[3]),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    // If the picture is not zoomed in, arrows scroll the page.
    if (event.key.startsWith("Arrow") && view[2] >= whole[2]) return;
    event.preventDefault();
    does();
  });
}

// Print shows everything unfolded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    folded.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const opened of document.querySelectorAll("details[data-opened]")) {
    opened.open = false;
    delete opened.dataset.opened;
  }
});
