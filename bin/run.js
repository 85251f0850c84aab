#!/usr/bin/env node
import module from 'node:module'

module.enableCompileCache?.()

const { main, nodeIo } = await import('../dist/src/cli/bin.js')
process.exitCode = await main(process.argv.slice(2), nodeIo())
