"use strict";

const make = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter(child => child != null));
  return node;
};
const by = id => document.getElementById(id);
const nameOf = reference => reference.split("/").pop();

// What descriptions are written in: paragraphs, tables, and code between backticks.
const inline = text => text.split(/(`[^`]+`)/).filter(Boolean).map(part =>
  part.startsWith("`") ? make("code", { text: part.slice(1, -1) }) : document.createTextNode(part));
const row = line => line.trim().replace(/^\||\|$/g, "").split("|").map(cell => cell.trim());
const block = text => {
  const lines = text.split("\n");
  if (!lines[0].trim().startsWith("|")) return make("p", null, ...inline(text.replaceAll("\n", " ")));
  const [head, , ...rest] = lines.map(row);
  return make("table", null,
    make("thead", null, make("tr", null, ...head.map(cell => make("th", null, ...inline(cell))))),
    make("tbody", null, ...rest.map(cells => make("tr", null, ...cells.map(cell => make("td", null, ...inline(cell)))))));
};
const prose = text => (text ?? "").split(/\n\s*\n/).filter(part => part.trim()).map(block);

let api;
const resolve = thing => thing?.$ref
  ? thing.$ref.split("/").slice(1).reduce((value, key) => value[key], api)
  : thing;

// What a schema is, in words; types that have a name lead to it.
const kind = schema => {
  if (!schema) return ["any"];
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return [make("a", { href: `#type-${name}`, text: name })];
  }
  const some = schema.oneOf ?? schema.anyOf ?? (schema.allOf?.length === 1 ? schema.allOf : undefined);
  if (some) return some.flatMap((one, at) => at ? [" or ", ...kind(one)] : kind(one));
  if (schema.enum) return [schema.enum.map(word => JSON.stringify(word)).join(" | ")];
  const types = [].concat(schema.type ?? "any");
  if (types.includes("array")) {
    const rest = types.filter(type => type !== "array").map(type => ` or ${type}`);
    return ["[", ...kind(schema.items), "]", ...rest];
  }
  const values = schema.additionalProperties;
  if (types.includes("object") && values?.type) return ["{text: ", ...kind(values), "}"];
  const format = schema.format && !["int32", "int64", "double", "float"].includes(schema.format) ? ` (${schema.format})` : "";
  return [types.join(" or ").replace("string", "text") + format];
};

// What else is known of a value.
const facts = schema => {
  const known = [];
  const say = (label, value) => value === undefined || known.push(`${label} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  if (schema.minimum !== undefined && schema.maximum !== undefined) known.push(`${schema.minimum} to ${schema.maximum}`);
  else { say("from", schema.minimum); say("up to", schema.maximum); }
  say("at most", schema.maxLength && `${schema.maxLength} characters`);
  say("at most", schema.maxItems && `${schema.maxItems} entries`);
  say("default", schema.default);
  say("such as", schema.example);
  return known.length ? make("div", { class: "facts" }, known.join(" · ")) : null;
};

// An object's fields, those of what it is put together from first.
const properties = schema => {
  const parts = [...(schema.allOf ?? []).map(resolve), schema];
  const required = new Set(parts.flatMap(part => part.required ?? []));
  return parts.flatMap(part => Object.entries(part.properties ?? {}))
    .map(([name, field]) => ({ name, field, required: required.has(name) }));
};
const told = field => field.description ?? field.oneOf?.find(one => one.description)?.description;
const fields = (schema, isAsked) => make("table", { class: "fields" }, make("tbody", null, ...properties(schema).map(({ name, field, required }) =>
  make("tr", null,
    make("td", null, make("code", { text: name }), isAsked && required ? make("span", { class: "required", text: "required" }) : null),
    make("td", { class: field.enum || field.oneOf ? "kind wide" : "kind" }, ...kind(field)),
    make("td", null, ...prose(told(field)), facts(field))))));

// A value that a schema would take: as little as there may be, and what has an example.
const sample = (given, depth = 0) => {
  const schema = resolve(given);
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined && depth) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.oneOf) return sample(schema.oneOf.find(one => one.type !== "null"), depth + 1);
  if (schema.properties || schema.allOf) {
    const wanted = properties(schema).filter(({ required }) => required);
    return Object.fromEntries(wanted.map(({ name, field }) => [name, sample(field, depth + 1)]));
  }
  const type = [].concat(schema.type)[0];
  return { integer: schema.minimum ?? 1, number: 1, boolean: true, array: [], object: {} }[type] ?? "text";
};
const shell = text => `'${text.replaceAll("'", `'\\''`)}'`;

// The same request by curl, ready to be pasted.
const curl = ({ method, path, operation }) => {
  const where = path.replace(/\{(\w+)\}/g, (_, name) => {
    const known = { session_id: "$SESSION", execution_id: "$EXECUTION" }[name];
    return known ?? operation.parameters?.find(one => one.name === name)?.example ?? `$${name.toUpperCase()}`;
  });
  const words = ["curl -s"];
  if (method !== "get") words.push(method === "post" && operation.requestBody ? "" : `-X ${method.toUpperCase()}`);
  if (operation.responses["307"]) words.push("-LO");
  if (path.endsWith("/archive")) words.push("-OJ");
  if (operation.responses["200"]?.content?.["text/event-stream"] && !operation.requestBody) words.push("-N");
  const query = operation.parameters?.some(one => one.name === "wait") ? "?wait=true" : "";
  const lines = [words.filter(Boolean).join(" ") + ` "${location.origin}${where}${query}"`];
  if (operation.security?.some(one => one.api_key)) lines.push(`-H "Authorization: Bearer $KEY"`);
  const content = operation.requestBody?.content ?? {};
  if (content["application/json"]) {
    const { schema, example } = content["application/json"];
    const body = example ?? sample(schema);
    lines.push(`-H 'Content-Type: application/json'`, `-d ${shell(JSON.stringify(body))}`);
  } else if (content["multipart/form-data"]) lines.push(`-F path=data/sales.csv`, `-F file=@sales.csv`);
  return lines.join(" \\\n  ");
};
const example = text => make("div", { class: "example" },
  make("pre", null, make("code", { text })),
  make("button", {
    type: "button", text: "Copy", onclick: async event => {
      const button = event.currentTarget;
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(button.previousSibling); button.textContent = "Selected"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  }));

const parameters = operation => make("table", null, make("tbody", null, ...operation.parameters.map(one => make("tr", null,
  make("td", null, make("code", { text: one.name }), one.required ? make("span", { class: "required", text: "required" }) : null),
  make("td", { class: "kind" }, one.in),
  make("td", { class: "kind wide" }, ...kind(one.schema)),
  make("td", null, ...prose(one.description), facts({ ...one.schema, example: one.example }))))));
const answers = operation => make("table", null, make("tbody", null, ...Object.entries(operation.responses).map(([status, given]) => {
  const answer = resolve(given);
  const bodies = Object.entries(answer.content ?? {}).flatMap(([type, { schema }], at) =>
    [at ? make("br") : null, ...kind(schema), type === "application/json" ? null : ` as ${type}`]);
  return make("tr", null, make("td", null, make("span", { class: `status s${status[0]}`, text: status })),
    make("td", null, ...prose(answer.description)), make("td", { class: "kind wide" }, ...bodies.filter(part => part != null)));
})));

const toggle = (item, wanted = item.inside.hidden) => {
  if (wanted && !item.inside.firstChild) item.inside.append(...item.fill().filter(node => node != null));
  item.inside.hidden = !wanted;
  item.head.setAttribute("aria-expanded", String(wanted));
};
const place = (item, id, label, ...heading) => {
  item.inside = make("div", { class: "inside", hidden: true });
  item.head = make("button", { class: "head", type: "button", "aria-expanded": "false", onclick: () => toggle(item) }, ...heading);
  const anchor = make("a", { class: "anchor", href: `#${id}`, text: "#", "aria-label": "A link to this" });
  item.article = make("article", { id }, make("div", { class: "bar" }, item.head, anchor), item.inside);
  item.link = make("a", { href: `#${id}` }, ...label);
  return item;
};

const routeItem = (path, method, operation) => {
  const item = { path, method, operation, kind: "route" };
  item.text = [method, path, operation.operationId, operation.summary, operation.description, ...(operation.parameters ?? []).map(one => one.name)].join(" ").toLowerCase();
  item.fill = () => {
    const scope = operation.security?.find(one => one.api_key)?.api_key[0];
    const body = Object.entries(operation.requestBody?.content ?? {})[0];
    const schema = body && resolve(body[1].schema.oneOf?.find(one => one.$ref) ?? body[1].schema);
    return [
      make("span", { class: "scope", text: scope ? `needs a key that may ${scope === "admin" ? "do everything" : scope}` : "needs no key" }),
      ...prose(operation.description ?? operation.summary),
      operation.parameters?.length ? make("h4", { text: "Parameters" }) : null,
      operation.parameters?.length ? parameters(operation) : null,
      schema ? make("h4", null, `Body, ${body[0]}: `, ...kind(body[1].schema)) : null,
      schema ? fields(schema, true) : null,
      make("h4", { text: "Example" }), example(curl(item)),
      make("h4", { text: "Answers" }), answers(operation),
    ];
  };
  return place(item, operation.operationId,
    [make("span", { class: `method ${method}`, text: method === "delete" ? "del" : method }), make("span", { text: operation.summary.replace(/\.$/, "") })],
    make("span", { class: `method ${method}`, text: method }), make("span", { class: "path", text: path }),
    make("span", { class: "summary", text: operation.summary }));
};
const typeItem = (name, schema) => {
  const item = { kind: "type" };
  item.text = [name, schema.description, ...properties(schema).map(({ name }) => name)].join(" ").toLowerCase();
  item.fill = () => [
    ...prose(schema.description),
    properties(schema).length ? fields(schema, name.endsWith("Request")) : make("p", { class: "kind wide" }, ...kind(schema)),
    schema.type === "string" && schema.example ? example(schema.example) : null,
  ];
  return place(item, `type-${name}`, [make("span", { text: name })],
    make("span", { class: "path", text: name }), make("span", { class: "summary", text: (schema.description ?? "").split(/[.:\n]/)[0] }));
};
const groupOf = (name, description, items) => {
  const link = make("h2", { text: name });
  const section = make("section", { class: "group", id: `group-${name}` },
    make("h2", { text: name.replace("-", " ") }), description ? make("p", { text: description }) : null, ...items.map(item => item.article));
  by("contents").append(link, ...items.map(item => item.link));
  by("groups").append(section);
  return { link, section, items };
};

const about = () => {
  const first = `KEY=$(cat admin.key)   # in the server's data directory\ncurl -s ${location.origin}/api/v1/sessions \\\n  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\\n  -d '{"template_id":"python-basic"}'`;
  by("about").replaceChildren(
    make("h1", { text: `${api.info.title} API` }),
    make("p", { class: "facts", text: `Version ${api.info.version} · OpenAPI ${api.openapi} · ${api.info.license.name}` }),
    ...prose(api.info.description), make("h4", { text: "First" }), example(first));
};

const show = groups => {
  const items = groups.flatMap(group => group.items);
  const search = by("search");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = item => words.every(word => item.text.includes(word));
    let found = 0;
    for (const { link, section, items } of groups) {
      const shown = items.filter(item => { const fit = fits(item); item.article.hidden = item.link.hidden = !fit; return fit; });
      section.hidden = link.hidden = !shown.length;
      found += shown.length;
    }
    by("about").hidden = words.length > 0;
    by("nothing").hidden = found > 0;
  };
  search.addEventListener("input", filter);
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    else if (event.key === "Escape" && document.activeElement === search) { search.value = ""; filter(); search.blur(); }
    else if (event.key === "Enter" && document.activeElement === search) {
      const first = items.find(item => !item.article.hidden);
      if (first) location.hash = first.article.id;
    }
  });
  const follow = () => {
    const item = items.find(({ article }) => `#${article.id}` === decodeURIComponent(location.hash));
    for (const other of items) other.link.toggleAttribute("aria-current", other === item);
    if (!item) return;
    if (item.article.hidden) { search.value = ""; filter(); }
    toggle(item, true);
    item.article.scrollIntoView();
    item.link.scrollIntoView({ block: "nearest" });
    by("contents").classList.remove("open");
  };
  addEventListener("hashchange", follow);
  follow();
};

const themes = () => {
  const kept = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } }, set: value => { try { localStorage.setItem("theme", value); } catch { /* nowhere to keep it */ } } };
  const apply = theme => theme && theme !== "system" ? document.documentElement.setAttribute("data-theme", theme) : document.documentElement.removeAttribute("data-theme");
  const order = ["system", "light", "dark"];
  apply(kept.get());
  by("theme").addEventListener("click", () => {
    const next = order[(order.indexOf(kept.get() ?? "system") + 1) % order.length];
    kept.set(next); apply(next);
    by("theme").title = `Theme: ${next}`;
  });
};

themes();
by("menu").addEventListener("click", () => {
  const open = by("contents").classList.toggle("open");
  by("menu").setAttribute("aria-expanded", String(open));
});
fetch("openapi.json").then(answer => {
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  return answer.json();
}).then(description => {
  api = description;
  about();
  const routes = Object.entries(api.paths).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => routeItem(path, method, operation)));
  const groups = api.tags.map(tag => groupOf(tag.name, tag.description, routes.filter(({ operation }) => operation.tags.includes(tag.name))));
  groups.push(groupOf("types", "What is sent and answered", Object.entries(api.components.schemas).map(([name, schema]) => typeItem(name, schema))));
  show(groups.filter(group => group.items.length));
}).catch(problem => {
  by("about").querySelector(".loading").textContent = `The description could not be read: ${problem.message}`;
});
