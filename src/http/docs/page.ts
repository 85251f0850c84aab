import { createHash } from 'node:crypto'
import { errorCodes, errorRegistry } from '../../contract/errors.ts'
import type { OpenApi, Operation, Schema } from '../../contract/openapi.ts'
import { Html, html, prose } from './html.ts'
import { aboutOf, schemaTable, typeOf } from './schema.ts'
import { style } from './style.ts'

interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const styleHash = createHash('sha256').update(style).digest('base64')
const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** The reference as one page: no script, no picture, nothing that is fetched. */
export function renderDocs(document: OpenApi): { html: string; headers: Record<string, string> } {
  return { html: pageOf(document).text, headers: { 'content-security-policy': policy } }
}

function pageOf(document: OpenApi): Html {
  const entries = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): Entry => ({ method, path, operation })),
  )
  const topics = document.tags.map(({ name }) => ({
    name,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }))
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API ${document.info.version}</title>
<style>${rawStyle}</style>
</head>
<body>
<nav aria-label="Contents">
<strong>${document.info.title}</strong>
<p>API reference, version ${document.info.version}</p>
<ul>${topics.map(topic => html`<li><a href="#topic-${topic.name}">${wordsOf(topic.name)}</a></li>`)}
<li><a href="#schemas">schemas</a></li><li><a href="#errors">error codes</a></li></ul>
</nav>
<main>
<h1>${document.info.title} API</h1>
<p>${document.info.description} The same reference for machines: <a href="/api/v1/openapi.json">openapi.json</a>.</p>
<p class="dim">Bodies are JSON in UTF-8. Every failure has one form, shown under
<a href="#schema-Error">Error</a>; its <code>requestId</code> is also in the response headers.</p>
${topics.map(topic => topicOf(topic.name, topic.entries))}
${schemasOf(document.components.schemas)}
${errorsOf()}
</main>
</body>
</html>
`
}

/** Its hash is of the text itself, so it may not be escaped; it is ours. */
const rawStyle = new Html(style)

/** `chunkingServices` as `chunking services`. */
function wordsOf(topic: string): string {
  if (topic === 'kb') return 'knowledge bases'
  return topic.replaceAll(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}

function topicOf(name: string, entries: Entry[]): Html {
  return html`<section id="topic-${name}"><h2>${wordsOf(name)}</h2>${entries.map(operationOf)}</section>
`
}

function operationOf({ method, path, operation }: Entry): Html {
  const body = operation.requestBody && Object.entries(operation.requestBody.content)[0]
  return html`<div id="${operation.operationId}"><details>
<summary><span class="method ${method}">${method.toUpperCase()}</span><span class="path">${path}</span>
<span class="about">${operation.summary}</span></summary>
<div>${operation.description ? html`<p>${prose(operation.description)}</p>` : html``}
<h4>access</h4><p>${operation['x-access'].rule}</p>
${operation.parameters.length > 0 ? parametersOf(operation.parameters) : html``}
${body ? html`<h4>body <span class="dim">${body[0]}</span></h4>${schemaTable(body[1].schema)}` : html``}
${Object.entries(operation.responses).flatMap(([status, response]) =>
  '$ref' in response || Number(status) >= 400 ? [] : [replyOf(status, response.content)],
)}
<h4>error codes</h4><p class="codes">${codesOf(operation)}</p></div></details></div>
`
}

function parametersOf(parameters: Operation['parameters']): Html {
  const rows = parameters.map(
    parameter => html`<tr><td><code>${parameter.name}</code> <span class="dim">${parameter.in}</span></td>
<td>${typeOf(parameter.schema)}</td><td>${aboutOf({ ...parameter.schema, description: parameter.description })}</td></tr>`,
  )
  return html`<h4>parameters</h4><div class="scroll"><table>
<thead><tr><th>name</th><th>type</th><th>about</th></tr></thead><tbody>${rows}</tbody></table></div>`
}

function replyOf(status: string, content: Record<string, { schema: Schema }> | undefined): Html {
  const [reply] = Object.entries(content ?? {})
  return html`<h4>reply ${status} <span class="dim">${reply?.[0] ?? 'no body'}</span></h4>${
    reply && reply[0] === 'application/json' && Object.keys(reply[1].schema).length > 0
      ? schemaTable(reply[1].schema)
      : html``
  }`
}

function codesOf(operation: Operation): Html[] {
  const codes = operation['x-error-codes'].map(
    code => html`<a href="#${anchorOf(code)}"><code>${code}</code></a> `,
  )
  return [...codes, html`<span class="dim">and those that any route may answer</span>`]
}

function schemasOf(schemas: Record<string, Schema>): Html {
  const tables = Object.entries(schemas).map(
    ([name, schema]) => html`<div id="schema-${name}"><details open><summary><strong>${name}</strong>
<span class="about">${schema.description ?? ''}</span></summary><div>${schemaTable(schema)}</div></details></div>
`,
  )
  return html`<section id="schemas"><h2>schemas</h2>${tables}</section>
`
}

function errorsOf(): Html {
  const rows = errorCodes.map(code => {
    const { status, hint } = errorRegistry[code]
    return html`<tr id="${anchorOf(code)}"><td><code>${code}</code></td><td>${status}</td><td>${prose(hint)}</td></tr>
`
  })
  return html`<section id="errors"><h2>error codes</h2><div class="scroll"><table>
<thead><tr><th>code</th><th>status</th><th>what to do</th></tr></thead><tbody>${rows}</tbody></table></div></section>
`
}

function anchorOf(code: string): string {
  return code.replaceAll('_', '-')
}
