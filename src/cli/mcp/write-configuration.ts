import { UsageError } from '../errors.ts'
import type { Output } from '../terminal/output.ts'
import type { ConfigurationChange } from './clients.ts'

interface WriteOptions {
  readonly output: Output
  /** True with `--yes`, to write without confirmation. */
  readonly skipsConfirmation: boolean
  /** Asks a yes-or-no question; undefined if there is no terminal. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
  readonly commandName: string
}

/**
 * Asks for confirmation, and writes an entry to the configuration file of an MCP client.
 *
 * @throws UsageError  the user declined, or there is no terminal
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
