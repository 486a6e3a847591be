import Handlebars from "handlebars";

Handlebars.registerHelper("loud", (text) => text.toUpperCase());

export const work = () =>
  Handlebars.compile("{{#each xs}}<{{this}}>{{else}}none{{/each}} {{{y}}} {{loud z}} {{#if a.b}}yes{{/if}}")({
    xs: [1, "&"], y: "<b>", z: "x", a: { b: true },
  });
