import { UsageError } from '../errors.ts'
import type { Output } from '../terminal/output.ts'
import type { ConfigurationChange } from './clients.ts'

interface WriteOptions {
  readonly output: Output
  /** True with `--yes`: the change is not confirmed. */
  readonly skipsConfirmation: boolean
  /** Undefined if the user cannot be asked. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
  readonly commandName: string
}

/**
 * Writes an entry to the configuration file of an MCP client after the user confirmed it.
 *
 * @throws UsageError  the user declined, or cannot be asked
 */
export async function writeConfiguration(
  { title, path, description, isDone, write }: ConfigurationChange,
  { output, skipsConfirmation, confirm, commandName }: WriteOptions,
): Promise<void> {
  if (isDone) return output.note(`  ✓ ${path} of ${title} already contains the entry`)
  if (!skipsConfirmation && !confirm)
    throw new UsageError(`this would ${description}`, ['add --yes to skip the confirmation'])
  if (!skipsConfirmation && !(await confirm!(`${description}?`)))
    throw new UsageError('nothing was written', [commandName])
  write()
  output.note(`  ✓ added the entry to ${path}; restart ${title} to use it`)
}
