"use strict";
// Diagrams: decompresses plotly.js, draws the figures of the page, and handles its controls.
(async () => {
  const byId = (id) => document.getElementById(id);
  let figures;
  const drawings = [...document.querySelectorAll(".diagram")];
  // Two side by side on A4 or Letter.
  const PRINT_WIDTH = 315;

  const decompressed = async (id) => {
    const text = atob(byId(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };
  const start = async () => {
    const script = document.createElement("script");
    script.textContent = await decompressed("library");
    document.head.append(script);
    if (!window.Plotly) throw new Error("plotly.js did not start");
    figures = JSON.parse(await decompressed("figures"));
  };

  // Colours are names of CSS variables; plotly needs their values.
  const colour = (name, onPaper) => {
    const [variable, alpha] = name.split(" / ");
    byId("color-probe").className = onPaper ? "on-paper" : "";
    byId("color-probe").style.color = `var(${variable})`;
    const found = getComputedStyle(byId("color-probe")).color;
    return alpha ? found.replace("rgb(", "rgba(").replace(")", `, ${alpha})`) : found;
  };
  const coloured = (value, onPaper, key = "") => {
    if (typeof value === "string" && value.startsWith("--") && key.endsWith("color")) {
      return colour(value, onPaper);
    }
    if (Array.isArray(value)) return value.map((one) => coloured(one, onPaper, key));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k, coloured(v, onPaper, k)]),
    );
  };

  const modelsShown = () => {
    const boxes = [...document.querySelectorAll("input[name=model]")];
    return (index) => index === undefined || !boxes.length || boxes[index].checked;
  };
  const figureOf = (drawing, width, onPaper) => {
    const { data, layout, height, pixels } = coloured(figures[drawing.dataset.view], onPaper);
    const shown = modelsShown();
    data.forEach((trace) => { trace.visible = shown(trace.meta?.model); });
    const { l, r, t, b } = layout.margin;
    layout.width = width;
    layout.height = Math.round((width - l - r) * height + pixels) + t + b;
    const family = getComputedStyle(document.body).fontFamily;
    layout.font = { ...layout.font, family, size: width < 400 ? 11 : 13 };
    layout.hoverlabel.font.family = family;
    // On a touch screen dragging scrolls.
    layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    return { data, layout, config: { displayModeBar: false, doubleClick: "reset" } };
  };
  const draw = (drawing, onPaper = false) => {
    // A hidden diagram has no width, and is drawn when it is shown.
    const width = onPaper ? PRINT_WIDTH : drawing.clientWidth;
    if (!width) return;
    const { data, layout, config } = figureOf(drawing, width, onPaper);
    Plotly.react(drawing, data, layout, config);
  };
  const redraw = () => drawings.forEach((drawing) => draw(drawing));
  const active = () => document.querySelector(".view.active .diagram");

  // Points by the arrow keys: the same text as on hovering.
  const announce = (text) => {
    byId("announcement").textContent = text.replaceAll("<br>", ", ").replace(/<\/?b>/g, "")
      .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  };
  const step = (drawing, key, fine) => {
    const curves = drawing.data.map((trace, i) => [trace, i])
      .filter(([trace]) => trace.meta?.curve && trace.visible);
    if (!curves.length) return;
    const at = drawing.at ?? { curve: 0, point: -1 };
    // Along a single curve all arrow keys move.
    if (curves.length === 1) key = { ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }[key] ?? key;
    const turn = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    at.curve = (at.curve + turn + curves.length) % curves.length;
    const [trace, curveNumber] = curves[at.curve];
    const known = trace.y.map((_, i) => i).filter((i) => trace.y[i] !== null);
    const stride = fine ? 1 : Math.ceil(known.length / 60);
    const move = { ArrowLeft: -stride, ArrowRight: stride, Home: -Infinity, End: Infinity }[key] ?? 0;
    at.point = Math.min(Math.max((at.point < 0 ? -stride : at.point) + move, 0), known.length - 1);
    const pointNumber = known[at.point];
    drawing.at = { ...at, x: trace.x[pointNumber], y: trace.y[pointNumber] };
    Plotly.Fx.hover(drawing, [{ curveNumber, pointNumber }]);
    announce(trace.text[pointNumber]);
  };
  const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

  // Zoom about the last point announced, or the middle.
  const zoom = (drawing, how) => {
    const first = figures[drawing.dataset.view].layout;
    const change = {};
    for (const [name, along] of [["xaxis", "x"], ["yaxis", "y"]]) {
      if (how === "reset") {
        if (first[name].range) change[`${name}.range`] = [...first[name].range];
        else change[`${name}.autorange`] = true;
        continue;
      }
      const [low, high] = drawing.layout[name].range;
      const middle = drawing.at?.[along] ?? (low + high) / 2;
      const reach = (high - low) * (how === "in" ? 0.3 : 0.8);
      change[`${name}.range`] = [middle - reach, middle + reach];
    }
    Plotly.relayout(drawing, change);
  };

  const savePicture = async () => {
    const drawing = active();
    const { data, layout } = figureOf(drawing, drawing.clientWidth, true);
    for (const name of ["xaxis", "yaxis"]) layout[name].range = [...drawing.layout[name].range];
    await Plotly.downloadImage({ data, layout }, {
      format: "svg", width: layout.width, height: layout.height,
      filename: `calibration-${drawing.dataset.view}`,
    });
  };

  // The load event, which printers and screenshots wait for, waits for an open document.
  const waiting = document.body.appendChild(document.createElement("iframe"));
  waiting.hidden = true;
  waiting.contentDocument.open();
  const loaded = () => {
    waiting.contentDocument.close();
    waiting.remove();
  };

  try {
    await start();
  } catch (problem) {
    loaded();
    byId("not-supported").hidden = false;
    console.warn(problem);
    return;
  }
  document.body.classList.add("drawn");
  byId("controls").hidden = false;
  redraw();
  loaded();

  document.querySelectorAll("input[name=view]").forEach((one) => one.addEventListener("change", () => {
    document.querySelectorAll(".view").forEach((view) => {
      view.classList.toggle("active", view.id === `view-${one.value}`);
    });
    redraw();
  }));
  document.querySelectorAll("input[name=model]").forEach((one) => (
    one.addEventListener("change", redraw)
  ));
  document.querySelectorAll("[data-zoom]").forEach((one) => (
    one.addEventListener("click", () => zoom(active(), one.dataset.zoom))
  ));
  byId("picture").addEventListener("click", savePicture);
  drawings.forEach((drawing) => drawing.addEventListener("keydown", (event) => {
    if (!KEYS.includes(event.key)) return;
    event.preventDefault();
    step(drawing, event.key, event.shiftKey);
  }));
  document.addEventListener("recolour", redraw);
  let width = byId("diagrams").clientWidth;
  new ResizeObserver(() => {
    // Drawing changes the height itself.
    if (width !== byId("diagrams").clientWidth) redraw();
    width = byId("diagrams").clientWidth;
  }).observe(byId("diagrams"));
  addEventListener("beforeprint", () => drawings.forEach((drawing) => draw(drawing, true)));
  addEventListener("afterprint", redraw);
})();
