// Runs in the world in which references are kept: what each element with one is, beyond its role and name.
() => {
  const get = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const formAction = get(HTMLFormElement, "action");
  const formMethod = get(HTMLFormElement, "method");
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const up = (node) => node.parentNode || node.host || null;
  const SECRET = /(^|\s)(current|new)-password(\s|$)/;
  const HOSTS = /^(ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|H[1-6]|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;

  function closest(element, selector) {
    for (let at = element; at; at = up(at)) if (at instanceof Element && at.matches(selector)) return at;
    return null;
  }

  function submission(form, submitter) {
    const action = (submitter && attribute(submitter, "formaction") !== null && submitter.formAction) || formAction.call(form);
    const method = (submitter && attribute(submitter, "formmethod")) || formMethod.call(form);
    return `${method.toUpperCase()} ${new URL(action, document.baseURI).origin}`;
  }

  function isSecret(element) {
    if (!(element instanceof HTMLInputElement)) return false;
    if (element.type === "password" || SECRET.test(attribute(element, "autocomplete") || "")) element.agentGateSecret = true;
    return !!element.agentGateSecret;
  }

  function details(element) {
    const found = {};
    let target = closest(element, "a[href],area[href],button,input,label,summary,select,textarea");
    if (target instanceof HTMLLabelElement && target.control) target = target.control;
    if (target) {
      const submits =
        (target instanceof HTMLButtonElement && target.type === "submit") ||
        (target instanceof HTMLInputElement && /^(submit|image)$/.test(target.type));
      const form = target.form instanceof HTMLFormElement ? target.form : null;
      if (form && submits && !target.disabled) found.submits = submission(form, target);
      else if (form) found.form = submission(form, null);
      if (target.matches("a[href],area[href]")) found.href = String(target.href.baseVal ?? target.href);
      if (attribute(target, "download") !== null) found.download = true;
    }
    if (isSecret(element)) found.secret = true;
    if (element instanceof HTMLInputElement) found.type = element.type;
    if (element.isContentEditable && !(up(element)?.isContentEditable)) found.type = "editable";
    return found;
  }

  // Whether there may be a closed shadow root: it shows something, and has nothing to show of its own.
  function mayHide(element) {
    if (element.tagName.includes("-")) return true;
    if (!HOSTS.test(element.tagName) || element.firstElementChild) return false;
    return !(element.textContent || "").trim() && element.clientHeight > 0;
  }

  // What takes clicks and is only text for the snapshot: the line that opens details, and text under a hand.
  function isQuiet(element) {
    if (element instanceof HTMLElement && element.localName === "summary") return true;
    if (element._ariaRef || !element.firstChild || element.firstElementChild || !(element instanceof HTMLElement)) return false;
    const parent = up(element);
    return getComputedStyle(element).cursor === "pointer" && parent instanceof Element && getComputedStyle(parent).cursor !== "pointer";
  }

  const MOST = 150;
  const refs = {};
  const some = [];
  const hosts = [];
  const quiet = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element._ariaRef) {
        if (!some.length) some.push(element._ariaRef.ref);
        const found = details(element);
        if (Object.keys(found).length) refs[element._ariaRef.ref] = found;
      } else if (isSecret(element)) continue;
      if (isQuiet(element)) quiet.push(element);
      if (element.shadowRoot) walk(element.shadowRoot);
      else if (mayHide(element) && hosts.length < MOST) hosts.push(element);
    }
  };
  walk(document);
  globalThis.agentGateHosts = hosts;
  globalThis.agentGateQuiet = quiet;
  return { origin: self.origin, refs, hosts: hosts.length, quiet: quiet.length, some };
}
