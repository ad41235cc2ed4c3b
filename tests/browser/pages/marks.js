// The truth of a saved page, told by the page: every element that a person could act on gets a number, and what was
// clicked is written down. Listeners sit on the document alone, so that they give no element away.
(() => {
  const ACTS =
    "a[href],button,input:not([type=hidden]),select,textarea,summary,[contenteditable=true],[act]," +
    ["button", "checkbox", "link", "menuitem", "option", "radio", "slider", "switch", "tab", "treeitem"]
      .map((role) => `[role=${role}]`).join(",");
  const frame = window === top ? "" : `${window.name}:`;
  const FIELDS = "input,select,textarea";
  const below = {};
  let last = 0;
  window.hits = [];

  function shown(element) {
    const box = element.getBoundingClientRect();
    if (!element.checkVisibility() || !box.width || !box.height || getComputedStyle(element).visibility !== "visible") return false;
    return !element.closest("[inert],[aria-hidden=true]");
  }

  function hit(event, root) {
    const marked = event.composedPath().find((one) => one.dataset && one.dataset.mark);
    if (!marked || (root && marked.getRootNode() !== root)) return;
    top.postMessage({ hit: marked.dataset.mark }, "*");
    const target = event.composedPath().find((one) => one.matches && one.matches("a[href],button,input[type=submit]"));
    if (target && (target.href || target.form)) event.preventDefault();
  }

  function* elements(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      const inner = element.shadowRoot || (window.closedRoots || new Map()).get(element);
      if (inner) yield* elements(inner);
    }
  }

  function mark() {
    for (const element of elements(document)) {
      if (!element.dataset || element.dataset.mark || !element.matches(ACTS) || !shown(element)) continue;
      element.dataset.mark = `${frame}${++last}`;
      const root = element.getRootNode();
      const hidden = root instanceof ShadowRoot && root.mode === "closed";
      if (element.getAttribute("act") === "" || (hidden && element.localName === "button")) {
        element.addEventListener("click", hidden ? (event) => hit(event, root) : () => {});
      }
    }
    if (frame) top.postMessage({ frame, truth: own(), outline: outline() }, "*");
  }

  function labelOf(element) {
    const label = element.labels && element.labels[0] && element.labels[0].cloneNode(true);
    if (label) label.querySelectorAll(FIELDS).forEach((field) => field.remove());
    return (element.getAttribute("aria-label") || (label && label.textContent) || element.placeholder || "").replace(/\s+/g, " ").trim();
  }

  function headingOf(element) {
    const copy = element.cloneNode(true);
    copy.querySelectorAll("[aria-label]").forEach((one) => (one.textContent = one.getAttribute("aria-label")));
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  // Headings in their order; a frame stands for those in it.
  function outline() {
    const found = [];
    for (const element of elements(document)) {
      if (/^h[1-6]$/.test(element.localName) && shown(element)) found.push(headingOf(element));
      if (element.localName === "iframe") found.push({ frame: `${element.name}:` });
    }
    return found;
  }

  function kindOf(element) {
    const root = element.getRootNode();
    if (root instanceof ShadowRoot && root.mode === "closed") return "closed";
    if (element.hasAttribute("act")) return "listener";
    return element.localName;
  }

  // Whether a click on it is written down: the page sees none inside a closed shadow root but those of its listeners.
  function tells(element) {
    return kindOf(element) !== "closed" || element.localName === "button";
  }

  function own() {
    const found = [];
    for (const element of elements(document)) {
      if (!element.dataset || !element.dataset.mark) continue;
      const one = { mark: element.dataset.mark, kind: kindOf(element), disabled: !!element.disabled, tells: tells(element) };
      if (element.matches(FIELDS)) {
        one.label = labelOf(element);
        one.type = element.type;
        one.checked = !!element.checked;
        one.value = element.localName === "select" ? element.selectedOptions[0]?.text || "" : element.value;
      }
      found.push(one);
    }
    return found;
  }

  addEventListener("message", (event) => {
    if (event.data.hit) window.hits.push(event.data.hit);
    else if (event.data.frame) below[event.data.frame] = event.data;
  });
  document.addEventListener("click", (event) => hit(event, null), true);
  document.addEventListener("submit", (event) => event.preventDefault());
  window.truth = () => [...own(), ...Object.values(below).flatMap((one) => one.truth)];
  const resolved = (all) => all.flatMap((one) => (one.frame ? resolved(below[one.frame]?.outline || []) : [one]));
  window.outline = () => resolved(outline());
  const LANDMARKS = { NAV: "navigation", MAIN: "main", ASIDE: "complementary", FOOTER: "contentinfo", HEADER: "banner" };
  window.landmarks = () =>
    [...document.querySelectorAll("nav,main,aside,footer,header")]
      .filter((one) => shown(one) && !(one.matches("header,footer") && one.parentElement.closest("article,aside,main,nav,section")))
      .map((one) => LANDMARKS[one.tagName]);
  window.markAgain = mark;
  mark();
})();
