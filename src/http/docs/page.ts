import { createHash } from 'node:crypto'
import { errorCodes, errorRegistry } from '../../contract/errors.ts'
import type { JsonSchema, OpenApi, OpenApiOperation } from '../../contract/openapi.ts'
import { breakableHtml, Html, html, proseHtml } from './html.ts'
import { introductionHtml } from './introduction.ts'
import { constraintsHtml, schemaTable, typeHtml } from './schema.ts'
import { docsScript } from './script.ts'
import { docsStyle } from './style.ts'

interface OperationEntry {
  readonly method: string
  readonly path: string
  readonly operation: OpenApiOperation
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const contentSecurityPolicy = `default-src 'none'; style-src ${hashOf(docsStyle)}; script-src ${hashOf(docsScript)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/**
 * Returns the API reference as one HTML page. The page loads no other files, and is complete without its script.
 */
export function renderDocs(document: OpenApi): { html: string; headers: Record<string, string> } {
  return { html: pageHtml(document).text, headers: { 'content-security-policy': contentSecurityPolicy } }
}

function pageHtml(document: OpenApi): Html {
  const entries = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): OperationEntry => ({ method, path, operation })),
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
<style>${new Html(docsStyle)}</style>
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
<p class="lead">${description} This reference is also available as an <a href="/api/v1/openapi.json">OpenAPI document</a>.</p>
${introductionHtml(new Set(entries.map(({ operation }) => operation.operationId)))}
${topics.map(topicHtml)}
${schemasHtml(document.components.schemas)}
${errorsHtml()}
</main>
<script>${new Html(docsScript)}</script>
</body>
</html>
`
}

interface TopicSection {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly entries: readonly OperationEntry[]
}

function topicHtml({ name, title, description, entries }: TopicSection): Html {
  return html`<section id="topic-${name}"><h2>${title}</h2><p>${proseHtml(description)}</p>
${entries.map(entry => operationHtml(entry, title))}</section>
`
}

function operationHtml({ method, path, operation }: OperationEntry, title: string): Html {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const [body] = Object.entries(requestBody?.content ?? {})
  return html`<div id="${operationId}" data-entry="${method} ${path} ${summary} ${operationId} ${title}"><details>
<summary class="operation"><span class="method ${method}">${method.toUpperCase()}</span><span>${summary}</span>
<code class="path">${breakableHtml(path)}</code></summary>
<div>${description ? html`<p>${proseHtml(description)}</p>` : html``}
<h4>Access</h4><p class="access">${proseHtml(operation['x-access'].rule)}</p>
${parameters.length > 0 ? parametersHtml(parameters) : html``}
${body ? html`<h4>Body <span class="dim">${body[0]}</span></h4>${schemaTable(body[1].schema)}${exampleHtml(body[1].example)}` : html``}
${Object.entries(responses).flatMap(([status, response]) =>
  '$ref' in response || Number(status) >= 400 ? [] : [replyHtml(status, response.content)],
)}
<h4>Error codes</h4><p class="codes">${errorCodesHtml(operation)}</p></div></details></div>
`
}

function exampleHtml(example: unknown): Html {
  if (example === undefined) return html``
  const text = typeof example === 'string' ? example.trimEnd() : JSON.stringify(example, null, 2)
  return html`<h4>Example</h4><pre><code>${text}</code></pre>`
}

function parametersHtml(parameters: OpenApiOperation['parameters']): Html {
  const rows = parameters.map(
    parameter => html`<tr><td><code>${breakableHtml(parameter.name)}</code> <span class="dim">${parameter.in}</span></td>
<td>${typeHtml(parameter.schema)}</td><td>${constraintsHtml({ ...parameter.schema, description: parameter.description })}</td></tr>`,
  )
  return html`<h4>Parameters</h4><div class="scroll"><table>
<thead><tr><th>name</th><th>type</th><th>description</th></tr></thead><tbody>${rows}</tbody></table></div>`
}

function replyHtml(status: string, content: Record<string, { schema: JsonSchema }> | undefined): Html {
  const [reply] = Object.entries(content ?? {})
  return html`<h4>Response ${status} <span class="dim">${reply?.[0] ?? 'no body'}</span></h4>${
    reply && reply[0] === 'application/json' && Object.keys(reply[1].schema).length > 0
      ? schemaTable(reply[1].schema)
      : html``
  }`
}

function errorCodesHtml(operation: OpenApiOperation): Html[] {
  const codes = operation['x-error-codes'].map(
    code => html`<a href="#${errorAnchor(code)}"><code>${code}</code></a> `,
  )
  return [...codes, html`<span class="dim">and the codes that every operation can return</span>`]
}

function schemasHtml(schemas: Record<string, JsonSchema>): Html {
  const tables = Object.entries(schemas).map(
    ([
      name,
      schema,
    ]) => html`<div id="schema-${name}" data-entry="${name} schema ${schema.description}"><details open><summary><strong>${name}</strong>
<span class="about">${proseHtml(schema.description ?? '')}</span></summary><div>${schemaTable(schema)}</div></details></div>
`,
  )
  return html`<section id="schemas"><h2>Schemas</h2>${tables}</section>
`
}

function errorsHtml(): Html {
  const rows = errorCodes.map(code => {
    const { status, hint } = errorRegistry[code]
    return html`<tr id="${errorAnchor(code)}" data-entry="${code} ${status} error ${hint}"><td><code>${breakableHtml(code)}</code></td><td>${status}</td><td>${proseHtml(hint)}</td></tr>
`
  })
  return html`<section id="errors"><h2>Error codes</h2><div class="scroll"><table>
<thead><tr><th>code</th><th>status</th><th>what to do</th></tr></thead><tbody>${rows}</tbody></table></div></section>
`
}

function errorAnchor(code: string): string {
  return code.replaceAll('_', '-')
}
