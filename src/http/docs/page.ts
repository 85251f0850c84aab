import { createHash } from 'node:crypto'
import { errorCodes, errorRegistry } from '../../contract/errors.ts'
import type { OpenApi, Operation, Schema } from '../../contract/openapi.ts'
import { breakable, Html, html, prose } from './html.ts'
import { introduction } from './introduction.ts'
import { aboutOf, schemaTable, typeOf } from './schema.ts'
import { script } from './script.ts'
import { style } from './style.ts'

interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(script)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/**
 * Returns the API reference as one page, which loads no other resources and is complete without its script.
 */
export function renderDocs(document: OpenApi): { html: string; headers: Record<string, string> } {
  return { html: pageOf(document).text, headers: { 'content-security-policy': policy } }
}

function pageOf(document: OpenApi): Html {
  const entries = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): Entry => ({ method, path, operation })),
  )
  const topics = document.tags.map(({ name, description = '', 'x-displayName': title = name }) => ({
    ...{ name, title, description },
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }))
  const { title, version, description } = document.info
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} API ${version}</title>
<style>${new Html(style)}</style>
</head>
<body>
<nav aria-label="Contents">
<a class="home" href="#top">${title} <small>API ${version}</small></a>
<div class="filter" hidden><input id="filter" type="search" placeholder="Filter" aria-label="Filter operations, schemas and error codes" autocomplete="off" spellcheck="false"><kbd>/</kbd>
<output id="found" for="filter"></output></div>
<ul><li><a href="#authentication">Authentication</a></li><li><a href="#start">First requests</a></li></ul>
<ul>${topics.map(topic => html`<li><a href="#topic-${topic.name}">${topic.title}</a></li>`)}</ul>
<ul><li><a href="#schemas">Schemas</a></li><li><a href="#errors">Error codes</a></li></ul>
</nav>
<main id="top">
<h1>${title} API</h1>
<p class="lead">${description} For programs, there is an <a href="/api/v1/openapi.json">OpenAPI document</a>.</p>
${introduction(new Set(entries.map(({ operation }) => operation.operationId)))}
${topics.map(topicOf)}
${schemasOf(document.components.schemas)}
${errorsOf()}
</main>
<script>${new Html(script)}</script>
</body>
</html>
`
}

interface Topic {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly entries: readonly Entry[]
}

function topicOf({ name, title, description, entries }: Topic): Html {
  return html`<section id="topic-${name}"><h2>${title}</h2><p>${prose(description)}</p>
${entries.map(entry => operationOf(entry, title))}</section>
`
}

function operationOf({ method, path, operation }: Entry, title: string): Html {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const [body] = Object.entries(requestBody?.content ?? {})
  return html`<div id="${operationId}" data-entry="${method} ${path} ${summary} ${operationId} ${title}"><details>
<summary class="operation"><span class="method ${method}">${method.toUpperCase()}</span><span>${summary}</span>
<code class="path">${breakable(path)}</code></summary>
<div>${description ? html`<p>${prose(description)}</p>` : html``}
<h4>Access</h4><p class="access">${operation['x-access'].rule}</p>
${parameters.length > 0 ? parametersOf(parameters) : html``}
${body ? html`<h4>Body <span class="dim">${body[0]}</span></h4>${schemaTable(body[1].schema)}${exampleOf(body[1].example)}` : html``}
${Object.entries(responses).flatMap(([status, response]) =>
  '$ref' in response || Number(status) >= 400 ? [] : [replyOf(status, response.content)],
)}
<h4>Error codes</h4><p class="codes">${codesOf(operation)}</p></div></details></div>
`
}

function exampleOf(example: unknown): Html {
  if (example === undefined) return html``
  const text = typeof example === 'string' ? example.trimEnd() : JSON.stringify(example, null, 2)
  return html`<h4>Example</h4><pre><code>${text}</code></pre>`
}

function parametersOf(parameters: Operation['parameters']): Html {
  const rows = parameters.map(
    parameter => html`<tr><td><code>${breakable(parameter.name)}</code> <span class="dim">${parameter.in}</span></td>
<td>${typeOf(parameter.schema)}</td><td>${aboutOf({ ...parameter.schema, description: parameter.description })}</td></tr>`,
  )
  return html`<h4>Parameters</h4><div class="scroll"><table>
<thead><tr><th>name</th><th>type</th><th>about</th></tr></thead><tbody>${rows}</tbody></table></div>`
}

function replyOf(status: string, content: Record<string, { schema: Schema }> | undefined): Html {
  const [reply] = Object.entries(content ?? {})
  return html`<h4>Response ${status} <span class="dim">${reply?.[0] ?? 'no body'}</span></h4>${
    reply && reply[0] === 'application/json' && Object.keys(reply[1].schema).length > 0
      ? schemaTable(reply[1].schema)
      : html``
  }`
}

function codesOf(operation: Operation): Html[] {
  const codes = operation['x-error-codes'].map(
    code => html`<a href="#${anchorOf(code)}"><code>${code}</code></a> `,
  )
  return [...codes, html`<span class="dim">and those that every operation can return</span>`]
}

function schemasOf(schemas: Record<string, Schema>): Html {
  const tables = Object.entries(schemas).map(
    ([
      name,
      schema,
    ]) => html`<div id="schema-${name}" data-entry="${name} schema ${schema.description}"><details open><summary><strong>${name}</strong>
<span class="about">${prose(schema.description ?? '')}</span></summary><div>${schemaTable(schema)}</div></details></div>
`,
  )
  return html`<section id="schemas"><h2>Schemas</h2>${tables}</section>
`
}

function errorsOf(): Html {
  const rows = errorCodes.map(code => {
    const { status, hint } = errorRegistry[code]
    return html`<tr id="${anchorOf(code)}" data-entry="${code} ${status} error ${hint}"><td><code>${breakable(code)}</code></td><td>${status}</td><td>${prose(hint)}</td></tr>
`
  })
  return html`<section id="errors"><h2>Error codes</h2><div class="scroll"><table>
<thead><tr><th>code</th><th>status</th><th>what to do</th></tr></thead><tbody>${rows}</tbody></table></div></section>
`
}

function anchorOf(code: string): string {
  return code.replaceAll('_', '-')
}
