"use strict";
// shellLine makes a command line for a POSIX shell out of its words, as shellLine of line.go does.
const shellLine = (() => {
  const plain = /^[A-Za-z0-9_\-./:,@%+]+$/;
  const octal = (c) => "'\"$(printf '\\" + c.charCodeAt(0).toString(8).padStart(3, "0") + "')\"'";
  const quoted = (text) => plain.test(text) ? text
    : "'" + text.replace(/['\x00-\x09\x0b-\x1f\x7f]/g, (c) => c === "'" ? "'\\''" : c === "\0" ? "" : octal(c)) + "'";
  const encoded = { json: JSON.stringify, url: (text) => new URLSearchParams({ x: text }).toString().slice(2) };
  const value = (p, values) => {
    if (!p.value) return p.text ?? "";
    const text = values[p.value] ?? "";
    return encoded[p.as] ? encoded[p.as](text) : text;
  };
  return (words, values) => {
    const all = [];
    for (const word of words) {
      const pieces = word.filter((p) => !p.if || values[p.if]);
      if (!pieces.length) continue;
      const text = pieces.map((p) => value(p, values)).join("");
      all.push(pieces.some((p) => p.syntax) ? text : quoted(text));
    }
    return all.join(" ");
  };
})();
