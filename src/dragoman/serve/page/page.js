"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const AUTO = "auto";
  const ALTERNATIVES = 3;
  const LONGEST_WITH_ALTERNATIVES = 500;  // characters: more of them are read by nobody
  const SHOW_BUSY_MS = 250;
  const RETRY_S = 3;
  const HTML_LANGUAGE = { [AUTO]: "" };

  let settings, languages, models;
  let typed, retry;            // timers
  let current = new AbortController();  // of the newest request

  const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? code;
  const isServed = (source, target) =>
    languages.some((each) => each.code === source && each.targets.includes(target));

  // --- the server -------------------------------------------------------------------------------

  class Refused extends Error {
    constructor(sentence, retryAfterS) {
      super(sentence);
      this.retryAfterS = retryAfterS;
    }
  }

  const ask = async (path, question, signal) => {
    const how = question && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(question),
    };
    let response;
    try {
      response = await fetch(path, { ...how, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused("The server cannot be reached.", RETRY_S);
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) {
      const sentence = answer.error ?? `The server answers with status ${response.status}.`;
      throw new Refused(sentence, Number(response.headers.get("retry-after")) || null);
    }
    return answer;
  };

  // --- what is shown ----------------------------------------------------------------------------

  const showTrouble = (sentence) => {
    $("trouble").textContent = sentence;
    $("trouble").hidden = !sentence;
  };

  // The words of an alternative, from the first to the last that differs in bold.
  const marked = (alternative, text) => {
    const [ours, others] = [alternative, text].map((each) => each.split(/(\s+)/));
    const shorter = Math.min(ours.length, others.length);
    let begin = 0, end = 0;
    while (begin < shorter && ours[begin] === others[begin]) begin += 1;
    while (end < shorter - begin && ours.at(-1 - end) === others.at(-1 - end)) end += 1;
    const different = document.createElement("b");
    different.textContent = ours.slice(begin, ours.length - end).join("");
    return [ours.slice(0, begin).join(""), different, ours.slice(ours.length - end).join("")];
  };

  const showTranslation = (text, alternatives = []) => {
    $("translation").textContent = text;
    $("copy").hidden = !text;
    $("alternatives").hidden = alternatives.length === 0;
    $("alternatives").querySelector("ol").replaceChildren(
      ...alternatives.map((alternative) => {
        const item = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.dir = "auto";
        button.lang = $("target").value;
        button.append(...marked(alternative, text));
        button.addEventListener("click", () => {
          const others = alternatives.map((each) => (each === alternative ? text : each));
          showTranslation(alternative, others);
          $("translation").focus();
        });
        item.append(button);
        return item;
      }),
    );
  };

  const showBusy = (isBusy) => {
    $("answer").setAttribute("aria-busy", isBusy);
    $("state").textContent = isBusy ? "Translating …" : "";
  };

  const showCount = () => {
    const length = [...$("text").value].length;
    const isOver = length > settings.charLimit;
    $("count").textContent = `${length.toLocaleString("en")} / ${settings.charLimit.toLocaleString("en")}`;
    $("count").classList.toggle("over", isOver);
    $("clear").hidden = length === 0;
    return isOver;
  };

  const showCard = () => {
    const source = $("source").value;
    const model = models.find((each) => each.target === $("target").value && (source === AUTO || each.source === source));
    $("card").hidden = !model;
    if (!model) return;
    const number = (value) => value.toLocaleString("en");
    const { score } = model;
    const rows = [["Name", model.name, `${nameOf(model.source)} to ${nameOf(model.target)}`]];
    if (score) {
      const interval = score.bleu_low === null ? "" : `${score.bleu_low.toFixed(1)} to ${score.bleu_high.toFixed(1)} with 95 % confidence, on `;
      const isOlder = String(score.steps) !== String(model.steps);
      const weights = isOlder ? `, by the weights of step ${score.steps.map(number).join(" + ")}` : "";
      rows.push(["BLEU", score.bleu.toFixed(1), `${interval}${number(score.sentences)} ${score.split} sentences${weights}`]);
    } else {
      rows.push(["BLEU", "unknown", "not evaluated yet"]);
    }
    rows.push(["Step", model.steps.map(number).join(" + "), "of the training"]);
    rows.push(["Parameters", number(model.parameters), model.architecture]);
    rows.push(["Engine", model.engine.split(" ")[0], model.engine.split(" ").slice(1).join(" ")]);
    $("card").querySelector("dl").replaceChildren(
      ...rows.map(([title, value, more]) => {
        const row = document.createElement("div");
        const [term, description, small] = ["dt", "dd", "small"].map((tag) => document.createElement(tag));
        term.textContent = title;
        small.textContent = more;
        description.append(value, small);
        row.append(term, description);
        return row;
      }),
    );
    $("report").hidden = !model.report;
    if (model.report) $("report").href = model.report;
  };

  // --- languages --------------------------------------------------------------------------------

  const fill = (select, codes, kept) => {
    select.replaceChildren(...codes.map((code) => new Option(code === AUTO ? "Detect language" : nameOf(code), code)));
    if (codes.includes(kept)) select.value = kept;
  };

  const chooseLanguages = (source, target) => {
    const sources = languages.filter((each) => each.targets.length).map((each) => each.code);
    fill($("source"), sources.length > 1 ? [AUTO, ...sources] : sources, source);
    source = $("source").value;
    const targets = languages.map((each) => each.code).filter((code) =>
      source === AUTO ? sources.some((each) => isServed(each, code)) : isServed(source, code));
    fill($("target"), targets, target);
    target = $("target").value;
    $("text").lang = HTML_LANGUAGE[source] ?? source;
    $("translation").lang = target;
    const canSwap = isServed(target, source);
    $("swap").disabled = !canSwap;
    $("swap").title = canSwap ? "Swap languages" : `${nameOf(target)} to ${source === AUTO ? "others" : nameOf(source)} is not served`;
    showCard();
  };

  const swap = () => {
    const [source, target] = [$("source").value, $("target").value];
    const translated = $("translation").textContent;
    chooseLanguages(target, source);
    if (translated) $("text").value = translated;
    showTranslation("");
    translate();
    $("text").focus();
  };

  // --- translating ------------------------------------------------------------------------------

  const translate = async () => {
    clearTimeout(typed);
    clearTimeout(retry);
    current.abort();
    const mine = (current = new AbortController());
    const q = $("text").value;
    const isOver = showCount();
    showBusy(false);
    if (!q.trim() || isOver) {
      showTranslation("");
      showTrouble(isOver ? `The text is longer than ${settings.charLimit.toLocaleString("en")} characters; shorten it.` : "");
      return;
    }
    const busy = setTimeout(() => showBusy(true), SHOW_BUSY_MS);
    try {
      const answer = await ask("translate", {
        q,
        source: $("source").value,
        target: $("target").value,
        alternatives: q.length <= LONGEST_WITH_ALTERNATIVES ? ALTERNATIVES : 0,
        api_key: $("key").value || null,
      }, mine.signal);
      showTranslation(answer.translatedText, answer.alternatives);
      showTrouble("");
      clearTimeout(busy);
      showBusy(false);
      if (answer.detectedLanguage) $("state").textContent = `From ${nameOf(answer.detectedLanguage.language)}`;
    } catch (error) {
      clearTimeout(busy);
      if (mine.signal.aborted) return;  // a newer request has begun
      showBusy(false);
      showTranslation("");
      if (error.retryAfterS) {
        showTrouble(`${error.message} Trying again in ${error.retryAfterS} s.`);
        retry = setTimeout(translate, 1000 * error.retryAfterS);
      } else {
        showTrouble(error.message);
      }
    }
  };

  const translateSoon = () => {
    clearTimeout(typed);
    showCount();
    typed = setTimeout(translate, settings.frontendTimeout);
  };

  const copy = async () => {
    try {
      await navigator.clipboard.writeText($("translation").textContent);
      $("state").textContent = "Copied";
    } catch {  // not allowed here: the reader copies what is selected
      getSelection().selectAllChildren($("translation"));
      $("state").textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { $("state").textContent = ""; }, 2000);
  };

  const start = async () => {
    try {
      [settings, languages, models] = await Promise.all(["frontend/settings", "languages", "models"].map((path) => ask(path)));
    } catch (error) {
      showTrouble(`${error.message} Trying again in ${RETRY_S} s.`);
      setTimeout(start, 1000 * RETRY_S);
      return;
    }
    showTrouble("");
    if (settings.keyRequired) {
      $("key-row").hidden = false;
      $("key").value = sessionStorage.getItem("key") ?? "";
      $("key-row").addEventListener("submit", (event) => {
        event.preventDefault();
        translate();
      });
      $("key").addEventListener("input", () => {
        sessionStorage.setItem("key", $("key").value);
        translateSoon();
      });
    }
    chooseLanguages(settings.language.source.code, settings.language.target.code);
    for (const id of ["source", "target"]) {
      $(id).addEventListener("change", () => {
        chooseLanguages($("source").value, $("target").value);
        translate();
      });
    }
    $("swap").addEventListener("click", swap);
    $("copy").addEventListener("click", copy);
    $("clear").addEventListener("click", () => {
      $("text").value = "";
      translate();
      $("text").focus();
    });
    $("text").addEventListener("input", translateSoon);
    $("text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
    });
    translate();
    if (models.length < languages.flatMap((each) => each.targets).length) setTimeout(readCards, 1000 * RETRY_S);
  };

  // Models that were not loaded yet when the page was opened.
  const readCards = async () => {
    models = await ask("models").catch(() => models);
    showCard();
    if (models.length < languages.flatMap((each) => each.targets).length) setTimeout(readCards, 1000 * RETRY_S);
  };

  start();
})();
