#!/usr/bin/env -S node --import tsx
// The command line from source; the list of commands is that of the last build.
const { main } = await import('../src/cli/main.ts')
await main(process.argv.slice(2))
