#!/usr/bin/env node
import module from 'node:module'

module.enableCompileCache?.()

const [{ main }, { nodeIo }] = await Promise.all([
  import('../dist/src/cli/main.js'),
  import('../dist/src/cli/node-io.js'),
])
process.exitCode = await main(process.argv.slice(2), nodeIo())
