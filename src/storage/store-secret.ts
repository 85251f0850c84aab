import { randomHex } from '../base/id.ts'
import type { RowStore } from './rows.ts'
import { tables } from './tables.ts'

const secretBytes = 32

/** Returns a secret of the store, as 64 hex characters. Creates the secret if it does not exist yet. */
export async function getOrCreateSecret(
  rows: RowStore,
  name: 'cursor-key' | 'token-key' | 'sign-in-key',
): Promise<string> {
  const stored = await rows.get(tables.settings, [name])
  if (stored) return stored.row.value
  const secret = { name, value: randomHex(secretBytes) }
  const outcome = await rows.atomic([{ op: 'insert', table: tables.settings, row: secret }])
  return outcome.ok ? secret.value : getOrCreateSecret(rows, name)
}
