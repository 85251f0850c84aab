import type { Schema } from '../../contract/openapi.ts'
import { breakable, type Html, html, prose } from './html.ts'

/** Returns a schema as a table of its fields, or as one line if it has none. */
export function schemaTable(schema: Schema): Html {
  const rows = rowsOf(schema, '')
  if (rows.length === 0) return html`<p>${typeOf(schema)}</p>`
  const list = schema.type === 'array' ? html`<p>A list of:</p>` : html``
  return html`${list}<div class="scroll"><table>
<thead><tr><th>field</th><th>type</th><th>about</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}

function rowsOf(schema: Schema, prefix: string): Html[] {
  if (schema.type === 'array' && schema.items) return rowsOf(schema.items, prefix)
  if (schema.contentSchema) return rowsOf(schema.contentSchema, prefix)
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = field.type === 'array' ? `${name}[]` : name
    const required = schema.required?.includes(name)
    return [
      html`<tr><td><code>${breakable(`${prefix}${name}`)}</code>${required ? html`` : html` <span class="dim">optional</span>`}</td>
<td>${typeOf(field)}</td><td>${aboutOf(field)}</td></tr>`,
      ...rowsOf(field, `${prefix}${inner}.`),
    ]
  })
  const { anyOf = [], additionalProperties: entries } = schema
  const inEach = typeof entries === 'object' ? rowsOf(entries, `${prefix}{name}.`) : []
  return [...own, ...anyOf.flatMap(part => rowsOf(part, prefix)), ...inEach]
}

/** Returns the type of a value in words; a named schema becomes a link to its table. */
export function typeOf(schema: Schema): Html {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1)!
    return html`<a href="#schema-${name}">${name}</a>`
  }
  if (schema.enum) return html`${joined(schema.enum.map(value => html`<code>${String(value)}</code>`))}`
  if (schema.const !== undefined) return html`<code>${String(schema.const)}</code>`
  if (schema.anyOf) return joined(schema.anyOf.map(typeOf))
  if (schema.type === 'array') return html`list of ${typeOf(schema.items ?? {})}`
  if (Array.isArray(schema.type)) return html`${schema.type.join(' or ')}`
  return html`${schema.format ?? schema.type ?? 'any value'}`
}

function joined(parts: Html[]): Html {
  return html`${parts.map((part, at) => (at === 0 ? part : html` or ${part}`))}`
}

const bounds = [
  ['minLength', 'at least', 'characters'],
  ['maxLength', 'at most', 'characters'],
  ['minItems', 'at least', 'entries'],
  ['maxItems', 'at most', 'entries'],
  ['minimum', 'at least', ''],
  ['maximum', 'at most', ''],
  ['exclusiveMinimum', 'more than', ''],
] as const

export function aboutOf(schema: Schema): Html {
  const limits = bounds.flatMap(([keyword, words, unit]) => {
    const bound = schema[keyword]
    return typeof bound === 'number' ? [`${words} ${bound.toLocaleString('en')} ${unit}`.trim()] : []
  })
  const fallback = schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]
  const facts = [...limits, ...fallback].join(', ')
  return html`${prose(schema.description ?? '')}${facts ? html` <span class="dim">${facts}</span>` : html``}`
}
