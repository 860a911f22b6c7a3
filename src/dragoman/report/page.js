// Draws each plot from the data beside it, in the colors of the page.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // A finger on a plot scrolls the page instead of zooming the plot.
  const touched = matchMedia("(pointer: coarse)").matches;

  function colors() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const axis = (name) => ({
      [`${name}.gridcolor`]: of("--line"),
      [`${name}.zerolinecolor`]: of("--line"),
      [`${name}.linecolor`]: of("--line"),
    });
    return {
      "paper_bgcolor": "rgba(0,0,0,0)",
      "plot_bgcolor": "rgba(0,0,0,0)",
      "font.color": of("--quiet"),
      "font.family": getComputedStyle(document.body).fontFamily,
      "hoverlabel.bgcolor": of("--card"),
      "hoverlabel.bordercolor": of("--line"),
      "hoverlabel.font.color": of("--text"),
      ...axis("xaxis"),
      ...axis("yaxis"),
    };
  }

  const plots = [...document.querySelectorAll(".plot")];
  for (const plot of plots) {
    const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
    layout.dragmode = touched ? false : "zoom";
    plot.classList.add("drawn");
    Plotly.newPlot(plot, data, layout, { responsive: true, displayModeBar: false })
      .then(() => Plotly.relayout(plot, colors()));
  }
  dark.addEventListener("change", () => plots.forEach((plot) => Plotly.relayout(plot, colors())));
})();
