import type { JsonSchema } from '../../contract/openapi.ts'
import { breakableHtml, type Html, html, proseHtml } from './html.ts'

/** Returns a table with the fields of a schema, or only its type if it has no fields. */
export function schemaTable(schema: JsonSchema): Html {
  const rows = fieldRows(schema, '')
  if (rows.length === 0) return html`<p>${typeHtml(schema)}</p>`
  const list = schema.type === 'array' ? html`<p>A list of:</p>` : html``
  return html`${list}<div class="scroll"><table>
<thead><tr><th>field</th><th>type</th><th>description</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}

function fieldRows(schema: JsonSchema, prefix: string): Html[] {
  if (schema.type === 'array' && schema.items) return fieldRows(schema.items, prefix)
  if (schema.contentSchema) return fieldRows(schema.contentSchema, prefix)
  const propertyRows = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = field.type === 'array' ? `${name}[]` : name
    const required = schema.required?.includes(name)
    return [
      html`<tr><td><code>${breakableHtml(`${prefix}${name}`)}</code>${required ? html`` : html` <span class="dim">optional</span>`}</td>
<td>${typeHtml(field)}</td><td>${constraintsHtml(field)}</td></tr>`,
      ...fieldRows(field, `${prefix}${inner}.`),
    ]
  })
  const { anyOf = [], additionalProperties: entries } = schema
  const entryRows = typeof entries === 'object' ? fieldRows(entries, `${prefix}{name}.`) : []
  return [...propertyRows, ...anyOf.flatMap(part => fieldRows(part, prefix)), ...entryRows]
}

/** Returns the type of a schema. A named schema becomes a link to its table. */
export function typeHtml(schema: JsonSchema): Html {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1)!
    return html`<a href="#schema-${name}">${name}</a>`
  }
  if (schema.enum) return html`${joinWithOr(schema.enum.map(value => html`<code>${String(value)}</code>`))}`
  if (schema.const !== undefined) return html`<code>${String(schema.const)}</code>`
  if (schema.anyOf) return joinWithOr(schema.anyOf.map(typeHtml))
  if (schema.type === 'array') return html`list of ${typeHtml(schema.items ?? {})}`
  if (Array.isArray(schema.type)) return html`${schema.type.join(' or ')}`
  return html`${schema.format ?? schema.type ?? 'any value'}`
}

function joinWithOr(parts: Html[]): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html` or ${part}`))}`
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

/** Returns the description of a schema, with its limits and its default. */
export function constraintsHtml(schema: JsonSchema): Html {
  const limits = bounds.flatMap(([keyword, phrase, unit]) => {
    const bound = schema[keyword]
    return typeof bound === 'number' ? [`${phrase} ${bound.toLocaleString('en')} ${unit}`.trim()] : []
  })
  const defaultNote = schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]
  const facts = [...limits, ...defaultNote].join(', ')
  return html`${proseHtml(schema.description ?? '')}${facts ? html` <span class="dim">${facts}</span>` : html``}`
}
