#!/usr/bin/env node
// Runs the command line from source. Commands are listed in `oclif.manifest.json`; worker threads run from `dist`.
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core/config'
import { register } from 'tsx/esm/api'

// Not `--import tsx` in the first line: tsx reads the word `import` there as code, and fails.
register()

const plugin = new Plugin({ isRoot: true, root: fileURLToPath(new URL('..', import.meta.url)) })
await plugin.load()
for (const command of Object.values(plugin.manifest.commands))
  command.relativePath = [
    ...command.relativePath.slice(1, -1),
    command.relativePath.at(-1).replace(/js$/, 'ts'),
  ]

const { main, nodeIo } = await import('../src/cli/bin.ts')
process.exitCode = await main(process.argv.slice(2), nodeIo(), { plugins: new Map([[plugin.name, plugin]]) })
