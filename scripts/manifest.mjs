import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core'

const root = fileURLToPath(new URL('..', import.meta.url))
const path = join(root, 'oclif.manifest.json')

/**
 * The command manifest of what is built, as text. With it no command is loaded before it is chosen.
 *
 * @returns {Promise<string>}
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
  // The order in which folders are read is nobody's promise.
  const sorted = Object.fromEntries(Object.entries(commands).sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ commands: sorted, ...rest }, null, 2)}\n`
}

/** The manifest that is committed; empty when there is none. */
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
