import { statusTone } from '../fields/status-tone.ts'
import type { Column, Field } from '../terminal/output.ts'
import type { Service } from './service-types.ts'

type Cell = string | number | boolean | null

function cellOf(record: Service['record'], field: string): Cell {
  return (record[field] ?? null) as Cell
}

/** Returns the provider and model of a service, or the engine and strategy of a chunking service. */
function modelOrChunker({ record }: Service): string {
  const parts = [record.provider ?? record.engine, record.modelName ?? record.strategy]
  return parts.filter(Boolean).join(' ')
}

export const serviceColumns: Record<string, Column<Service>> = {
  type: { value: row => row.type },
  id: { value: row => row.id, pipeOnly: true },
  name: { value: row => row.record.name },
  with: { value: modelOrChunker, format: 'flexible' },
  credential: { value: row => cellOf(row.record, 'credentialRef'), format: 'flexible' },
  description: { value: row => cellOf(row.record, 'description'), pipeOnly: true },
  status: { value: row => cellOf(row.record, 'status'), tone: row => statusTone(row.record.status) },
}

const labelOfField: Readonly<Record<string, string>> = {
  createdAt: 'created',
  updatedAt: 'updated',
  credentialRef: 'credential',
  endpointBaseUrl: 'endpoint',
  modelName: 'model',
}

/** Returns the fields to show for a service. */
export function serviceFields({ type, id, record }: Service): Record<string, Field> {
  const fields: Record<string, Field> = { id, type }
  for (const [field, value] of Object.entries(record)) {
    if (field.endsWith('ServiceId') || field === 'workspaceId') continue
    const name = labelOfField[field] ?? field.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
    fields[name] = field.endsWith('At')
      ? { time: value as string }
      : Array.isArray(value)
        ? value.join(', ')
        : (value as Cell)
  }
  return fields
}
