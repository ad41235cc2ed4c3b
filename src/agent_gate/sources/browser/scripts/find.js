// Runs in the world in which references are kept: the element that has this one.
(ref) => {
  const search = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element._ariaRef && element._ariaRef.ref === ref) return element;
      const inner = element.shadowRoot && search(element.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  return search(document);
}
