import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generateSource } from 'oazapfts'
import { expect, onTestFinished, test } from 'vitest'
import { createSandbox } from '../commands/sandbox.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const story = fileURLToPath(new URL('generated-client/story.ts.txt', import.meta.url))
const run = promisify(execFile)

/** Stricter than the options of most programs. */
const compilerOptions = {
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  noImplicitOverride: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
}

test('a client generated from the served document compiles in strict mode, and runs the example of the README', {
  timeout: 60_000,
}, async () => {
  const { url } = await createSandbox().serve()
  const model = await citingModel()
  const folder = await clientOf(`${url}/api/v1/openapi.json`)
  const tools = join(root, 'node_modules')
  const compiled = run(process.execPath, [
    join(tools, 'typescript/bin/tsc'),
    '-p',
    folder,
    '--pretty',
    'false',
  ])
  expect(await compiled.catch((failed: { stdout: string }) => failed)).toMatchObject({ stdout: '' })
  const result = await run(process.execPath, ['--import', 'tsx', join(folder, 'story.ts'), url, model.url], {
    cwd: root,
  })
  expect(result).toEqual({ stdout: 'told\n', stderr: '' })
})

/** Starts a model that searches for a question, and answers with the passage that it finds. */
async function citingModel(): Promise<ChatServer> {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  model.respond(({ body }) => {
    const isFound = JSON.stringify(body.messages).includes('forms along the wing')
    if (isFound) return { text: 'Along the wing [1].' }
    return { toolCalls: [{ name: 'search_kb', arguments: { query: 'boundary layer' } }] }
  })
  return model
}

/** Generates a client next to the example, in a folder below the root so that packages resolve. */
async function clientOf(documentUrl: string): Promise<string> {
  mkdirSync(join(root, 'coverage'), { recursive: true })
  const folder = mkdtempSync(join(root, 'coverage', 'client-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string) => writeFileSync(join(folder, name), text)
  file('openapi.json', await (await fetch(documentUrl)).text())
  const options = { optimistic: true, useUnknown: true, argumentStyle: 'object' } as const
  file(
    'client.ts',
    await generateSource(join(folder, 'openapi.json'), { ...options, futureStripLegacyMethods: true }),
  )
  file('story.ts', readFileSync(story, 'utf8'))
  file('tsconfig.json', JSON.stringify({ compilerOptions, files: ['story.ts'] }))
  return folder
}
