// Runs in a world of its own, before the page's scripts, in every frame. While it is armed, a trusted event that is not
// for the element that was decided on, or that finds it changed, goes no further.
(() => {
  if (globalThis.agentGate) return;
  const get = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const formAction = get(HTMLFormElement, "action");
  const formMethod = get(HTMLFormElement, "method");
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const squeezed = (text) => text.replace(/[\s\u200b\u00ad]+/g, "");
  const up = (node) => node.parentNode || node.host || null;

  function closest(element, selector) {
    for (let at = element; at; at = up(at)) if (at instanceof Element && at.matches(selector)) return at;
    return null;
  }

  function textOf(node, depth = 0, without = null) {
    if (node === without) return "";
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (!(node instanceof Element) && !(node instanceof ShadowRoot)) return "";
    if (node instanceof Element && depth) {
      if (attribute(node, "aria-hidden") === "true" || node.hidden) return "";
      const given = attribute(node, "aria-label") || attribute(node, "alt");
      if (given) return given;
    }
    if (depth > 40) return "";
    const inner = node.shadowRoot ? node.shadowRoot.childNodes : node.assignedNodes ? node.assignedNodes() : node.childNodes;
    const list = inner.length ? inner : node.childNodes;
    let text = "";
    for (const child of list) text += textOf(child, depth + 1, without);
    return text;
  }

  function labels(element) {
    const named = (attribute(element, "aria-labelledby") || "").split(/\s+/).filter(Boolean);
    const root = element.getRootNode();
    const others = named.map((id) => root.getElementById && root.getElementById(id)).filter(Boolean);
    const found = [
      attribute(element, "aria-label"),
      others.map((other) => textOf(other, 1)).join(" "),
      element.labels ? [...element.labels].map((label) => textOf(label, 0, element)).join(" ") : "",
      textOf(element),
      element instanceof HTMLInputElement && /^(button|submit|reset|image)$/.test(element.type) ? element.value : "",
      attribute(element, "alt"),
      attribute(element, "title"),
      attribute(element, "placeholder"),
    ];
    return found.filter(Boolean).map(squeezed);
  }

  function formOf(target) {
    const form = target && target.form;
    return form instanceof HTMLFormElement ? form : null;
  }

  function submission(form, submitter) {
    const action = (submitter && attribute(submitter, "formaction") !== null && submitter.formAction) || formAction.call(form);
    const method = (submitter && attribute(submitter, "formmethod")) || formMethod.call(form);
    return `${method.toUpperCase()} ${new URL(action, document.baseURI).origin}`;
  }

  // What a click on an element does by itself, whatever scripts add to it.
  function consequence(element) {
    let target = closest(element, "a[href],area[href],button,input,label,summary");
    if (target instanceof HTMLLabelElement && target.control) target = target.control;
    if (!target) return { submits: "", href: "", download: false };
    const submits =
      (target instanceof HTMLButtonElement && target.type === "submit") ||
      (target instanceof HTMLInputElement && /^(submit|image)$/.test(target.type));
    const form = submits && !target.disabled ? formOf(target) : null;
    const link = target.matches("a[href],area[href]") ? target : null;
    return {
      submits: form ? submission(form, target) : "",
      href: link ? String(link.href.baseVal ?? link.href) : "",
      download: !!link && attribute(link, "download") !== null,
    };
  }

  function print(element) {
    const done = consequence(element);
    const type = element instanceof HTMLInputElement ? element.type : attribute(element, "role");
    return JSON.stringify([element.tagName, type, labels(element), done.submits, done.href]);
  }

  // The outermost element whose closed shadow root hides this one: events from inside seem to come from it.
  function concealing(element) {
    let host = null;
    for (let root = element.getRootNode(); root instanceof ShadowRoot; root = root.host.getRootNode())
      if (root.mode === "closed") host = root.host;
    return host;
  }

  function isFor(event, element) {
    const path = event.composedPath();
    if (path.includes(element)) return true;
    const host = concealing(element);
    if (host && path[0] === host) return true;
    const label = path.find((one) => one instanceof HTMLLabelElement);
    if (label && (label.control === element || label.contains(element))) return true;
    return element instanceof HTMLLabelElement && path[0] === element.control;
  }

  let armed = null;

  function stop(event, why) {
    event.stopImmediatePropagation();
    event.preventDefault();
    armed.blocked ||= why;
  }

  function onInput(event) {
    if (!armed || !event.isTrusted || !armed.element) return;
    // Enter in a field presses the form's own button; where that leads is looked at when the form is submitted.
    if (event.type === "click" && armed.submits && formOf(event.target) && formOf(event.target) === formOf(armed.element)) return;
    if (!isFor(event, armed.element)) return stop(event, "moved");
    if (print(armed.element) !== armed.print) stop(event, "changed");
  }

  function onSubmit(event) {
    if (!armed) return;
    const form = event.target instanceof HTMLFormElement ? event.target : null;
    if (!form) return;
    const where = submission(form, event.submitter);
    if (armed.submits === where) return;
    armed.submission = where;
    stop(event, armed.submits ? "elsewhere" : "submits");
  }

  const inputs = "pointerdown mousedown pointerup mouseup click auxclick dblclick contextmenu touchstart touchend keydown beforeinput";
  for (const type of inputs.split(" ")) window.addEventListener(type, onInput, { capture: true });
  window.addEventListener("submit", onSubmit, { capture: true });

  globalThis.agentGate = {
    consequence,
    // Ready for one action: on `element` as it is named now, or on whatever has the focus where there is none.
    arm(element, name, submits) {
      const now = element ? print(element) : "";
      const wanted = squeezed(name || "");
      const said = element ? labels(element) : [];
      // A name can be put together in ways that are not followed here; one that shares nothing with it is another.
      const known = !element || !wanted || said.includes(wanted);
      const other = !known && said.length > 0 && !said.some((one) => one.includes(wanted) || wanted.includes(one));
      armed = { element, print: now, submits, blocked: "", submission: "" };
      return { known, other, print: now };
    },
    disarm() {
      const report = armed ? { blocked: armed.blocked, submission: armed.submission } : {};
      armed = null;
      return report;
    },
  };
})();
