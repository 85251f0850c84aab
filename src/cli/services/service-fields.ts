import { statusTone } from '../shown/status-tone.ts'
import type { Column, Field } from '../terminal/output.ts'
import type { Service } from './kinds.ts'

type Cell = string | number | boolean | null

function cell(record: Service['record'], field: string): Cell {
  return (record[field] ?? null) as Cell
}

/** Returns the model of a service, or its chunker. */
function does({ record }: Service): string {
  const parts = [record.provider ?? record.engine, record.modelName ?? record.strategy]
  return parts.filter(Boolean).join(' ')
}

export const serviceColumns: Record<string, Column<Service>> = {
  type: { of: row => row.type },
  id: { of: row => row.id, piped: true },
  name: { of: row => row.record.name },
  with: { of: does, as: 'free' },
  credential: { of: row => cell(row.record, 'credentialRef'), as: 'free' },
  description: { of: row => cell(row.record, 'description'), piped: true },
  status: { of: row => cell(row.record, 'status'), tone: row => statusTone(row.record.status) },
}

const told: Readonly<Record<string, string>> = {
  createdAt: 'created',
  updatedAt: 'updated',
  credentialRef: 'credential',
  endpointBaseUrl: 'endpoint',
  modelName: 'model',
}

/** Returns all fields of a service to show. */
export function serviceFields({ type, id, record }: Service): Record<string, Field> {
  const shown: Record<string, Field> = { id, type }
  for (const [field, value] of Object.entries(record)) {
    if (field.endsWith('ServiceId') || field === 'workspaceId') continue
    const name = told[field] ?? field.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
    shown[name] = field.endsWith('At')
      ? { time: value as string }
      : Array.isArray(value)
        ? value.join(', ')
        : (value as Cell)
  }
  return shown
}
