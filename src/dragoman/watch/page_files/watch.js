// Parts of the page arrive as HTML that the server has written. Each is held against what is there,
// and only what differs is changed: focus, selection, scrolling, opened folds and zoomed plots stay.
"use strict";
(() => {
  const SILENT_MS = 15000;  // the server beats every 5 s
  const RETRY_MS = 2000;
  const CHANGED_MS = 8000;
  const runs = document.getElementById("runs");
  const lost = document.getElementById("lost");
  const link = document.getElementById("link");
  const announced = document.getElementById("announced");

  // Plots are drawn when they come near the window, and not in a tab that nobody sees.
  const due = new Set();
  const near = new Set();
  const drawDue = () => {
    if (document.hidden) return;
    for (const plot of due) {
      if (!plot.isConnected) due.delete(plot);
      else if (near.has(plot)) {
        due.delete(plot);
        reportPage.draw(plot);
      }
    }
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) near.add(target);
      else near.delete(target);
    }
    drawDue();
  }, { rootMargin: "400px" });
  document.addEventListener("visibilitychange", drawDue);

  const enliven = (root) => {
    for (const plot of root.querySelectorAll(".plot")) {
      due.add(plot);
      observer.observe(plot);
    }
    root.querySelectorAll("pre.command").forEach(reportPage.addCopyButton);
  };
  const forget = (root) => {
    for (const plot of root.querySelectorAll?.(".plot") ?? []) {
      observer.unobserve(plot);
      due.delete(plot);
      near.delete(plot);
      if (plot.classList.contains("drawn")) Plotly.purge(plot);
    }
  };

  const announce = (text) => { announced.textContent = text; };
  const markChanged = (card) => {
    card.dataset.changed = "";
    setTimeout(() => { delete card.dataset.changed; }, CHANGED_MS);
    const text = (name) => card.querySelector(name).textContent;
    announce(`${text(".short")}: ${text(".verdict")}, ${text(".how").slice(2)}`);
  };

  // What this page itself has set.
  const OWN = new Set(["open", "data-changed"]);
  const adopt = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  };
  const isAlike = (old, fresh) =>
    old.nodeName === fresh.nodeName && (old.id ?? "") === (fresh.id ?? "");

  const morph = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.matches(".plot")) return;  // Plotly's own
    if (old.matches("pre.command")) {
      const [code, newCode] = [old, fresh].map((block) => block.querySelector("code"));
      adopt(old, fresh);
      if (code.innerHTML !== newCode.innerHTML) code.innerHTML = newCode.innerHTML;
      return;
    }
    // A figure, such as the time that has passed, is another one all the time.
    const verdict = (card) => card.matches(".fact")
      ? card.className
      : card.className + card.querySelector(".verdict").textContent;
    const isChanged = old.matches(".card") && verdict(old) !== verdict(fresh);
    const isNewState = old.matches(".state") && old.dataset.state !== fresh.dataset.state;
    adopt(old, fresh);
    const isData = old.nodeName === "SCRIPT";
    if (isData && old.textContent !== fresh.textContent) due.add(old.previousElementSibling);
    morphChildren(old, fresh);
    if (isChanged) markChanged(old);
    if (isNewState) announce(old.querySelector(".sentence").textContent);
  };

  const morphChildren = (old, fresh) => {
    const wanted = [...fresh.childNodes];
    wanted.forEach((child, place) => {
      const there = old.childNodes[place];
      if (!there) {
        old.append(child);
        if (child.nodeType === Node.ELEMENT_NODE) enlivenSelf(child);
      } else if (isAlike(there, child)) morph(there, child);
      else {
        forgetSelf(there);
        there.replaceWith(child);
        if (child.nodeType === Node.ELEMENT_NODE) enlivenSelf(child);
      }
    });
    while (old.childNodes.length > wanted.length) {
      forgetSelf(old.lastChild);
      old.lastChild.remove();
    }
  };
  // `enliven` looks below an element: a fragment has the element itself below it.
  const enlivenSelf = (element) => {
    if (element.matches(".plot")) {
      due.add(element);
      observer.observe(element);
    } else if (element.matches("pre.command")) reportPage.addCopyButton(element);
    else enliven(element);
  };
  const forgetSelf = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    if (node.matches(".plot")) forget({ querySelectorAll: () => [node] });
    else forget(node);
  };

  const slotOf = (column, name) =>
    [...column.children].find((slot) => slot.dataset.part === name);

  const show = ({ runs: shown }) => {
    if (runs.getAttribute("aria-busy")) {
      runs.removeAttribute("aria-busy");
      runs.replaceChildren();
    }
    while (runs.children.length > shown.length) {
      forget(runs.lastElementChild);
      runs.lastElementChild.remove();
    }
    shown.forEach(({ order, parts }, number) => {
      let column = runs.children[number];
      if (!column) {
        column = document.createElement("article");
        column.className = "run";
        runs.append(column);
      }
      for (const slot of [...column.children]) {
        if (!order.includes(slot.dataset.part)) {
          forget(slot);
          slot.remove();
        }
      }
      order.forEach((name, place) => {
        let slot = slotOf(column, name);
        if (!slot) {
          slot = document.createElement("div");
          slot.dataset.part = name;
        }
        if (column.children[place] !== slot) column.insertBefore(slot, column.children[place]);
        if (name in parts) {
          const fresh = document.createElement("template");
          fresh.innerHTML = parts[name];
          morphChildren(slot, fresh.content);
        }
      });
    });
    runs.classList.toggle("several", shown.length > 1);
    const titles = [...runs.querySelectorAll(".state")].map((state) => state.dataset.title);
    if (titles.length) document.title = titles.join(" · ");
    document.getElementById("what").textContent =
      shown.length > 1 ? `watches ${shown.length} runs` : "watches a run";
    drawDue();
  };

  // A browser gives up on a server that answers with an error, and waits without end for one that
  // has stopped: then a new connection is made.
  let source;
  let heardAt = performance.now();
  const heard = () => {
    heardAt = performance.now();
    lost.hidden = true;
    link.textContent = "Live";
    link.classList.add("live");
  };
  const missed = () => {
    lost.textContent = "The connection to the server is lost, and what is shown may be old. "
      + "It is tried again; if dragoman watch has ended, start it again on the same port.";
    lost.hidden = false;
    link.textContent = "Not connected";
    link.classList.remove("live");
  };
  const connect = () => {
    source?.close();
    source = new EventSource("events");
    source.addEventListener("parts", ({ data }) => {
      heard();
      show(JSON.parse(data));
    });
    source.addEventListener("beat", heard);
    source.addEventListener("error", missed);
    heardAt = performance.now();
  };
  setInterval(() => {
    const isSilent = performance.now() - heardAt > SILENT_MS;
    if (isSilent) missed();
    if (isSilent || source.readyState === EventSource.CLOSED) connect();
  }, RETRY_MS);
  connect();
})();
