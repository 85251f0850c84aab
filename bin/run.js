#!/usr/bin/env node
import module from 'node:module'

module.enableCompileCache?.()

const { main } = await import('../dist/src/cli/main.js')
await main(process.argv.slice(2))
