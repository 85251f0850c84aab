import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core'

const root = fileURLToPath(new URL('..', import.meta.url))
const path = join(root, 'oclif.manifest.json')

/**
 * Returns the manifest of the built commands. With it, a command is loaded only when it runs.
 *
 * @returns {Promise<string>} text of the manifest
 */
export async function manifestText() {
  const plugin = new Plugin({
    root,
    type: 'core',
    ignoreManifest: true,
    respectNoCacheDefault: true,
    errorOnManifestCreate: true,
  })
  await plugin.load()
  const { commands, ...rest } = plugin.manifest
  // The order in which folders are read is not defined.
  const sorted = Object.fromEntries(Object.entries(commands).sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ commands: sorted, ...rest }, null, 2)}\n`
}

/** Returns the committed manifest; empty if the file is missing. */
export function committedManifest() {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await manifestText()
  if (text !== committedManifest()) writeFileSync(path, text)
}
