// Draws plots from the data beside them, and adds buttons that copy commands. Text and grid take
// their colors from page.css, so that light, dark and paper need nothing from here.
"use strict";
const reportPage = (() => {
  // A finger on a plot scrolls the page instead of zooming the plot.
  const touched = matchMedia("(pointer: coarse)").matches;

  // Drawn again with other data, a plot keeps how it was zoomed. Plotly sees to that, but for an axis
  // whose range is given and moves on: there the reader's range is kept here.
  const zoomed = new WeakMap();
  const noteZoom = (plot, title, change) => {
    if ("xaxis.autorange" in change) zoomed.delete(plot);
    else if ("xaxis.range" in change || "xaxis.range[0]" in change) {
      zoomed.set(plot, { title, range: [...plot.layout.xaxis.range] });
    }
  };

  const draw = (plot) => {
    const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
    const title = plot.parentElement.querySelector("h3").textContent;
    const config = { responsive: true, displayModeBar: false };
    layout.dragmode = touched ? false : "zoom";
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font.family = getComputedStyle(document.body).fontFamily;
    layout.uirevision = title;
    if (layout.xaxis.range) {
      config.doubleClick = "autosize";
      const kept = zoomed.get(plot);
      if (kept?.title === title) layout.xaxis.range = kept.range;
    }
    const isNew = !plot.classList.contains("drawn");
    plot.classList.add("drawn");
    plot.style.height = layout.height ? `${layout.height}px` : "";
    Plotly.react(plot, data, layout, config);
    if (isNew) plot.on("plotly_relayout", (change) => noteZoom(plot, plot.layout.uirevision, change));
  };

  // Not in the page itself, where it would be dead without scripts.
  const addCopyButton = (block) => {
    const code = block.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {  // not allowed here: the reader copies what is selected
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.prepend(button);
  };

  document.querySelectorAll(".plot").forEach(draw);
  document.querySelectorAll("pre.command").forEach(addCopyButton);

  // A plot has the width that it was drawn for. What is folded on the screen cannot be opened on
  // paper, and paper is narrower than most windows: 182 mm between the margins of A4.
  const PAPER_PX = 680;
  const onPaper = (isPaper) => {
    document.querySelectorAll("details.more").forEach((more) => { more.open = isPaper; });
    const size = isPaper ? { autosize: false, width: PAPER_PX } : { autosize: true, width: null };
    document.querySelectorAll(".plot.drawn").forEach((plot) => Plotly.relayout(plot, size));
  };
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(false));

  return { draw, addCopyButton };
})();
