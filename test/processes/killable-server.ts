import { fork } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import type { UploadedTestFile } from '../fixtures/runtime/process.ts'
import { programPath } from '../harness/program.ts'

/** A response of the server. */
interface Answer {
  readonly id: number
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** A server in a child process that receives requests until it is killed. */
export interface KillableServer {
  /** Sends a request with a JSON body. Resolves with undefined if the server is killed before it responds. */
  send(line: string, json?: unknown): Promise<Answer | undefined>
  /** Like {@link send}, with a file. */
  upload(line: string, file: UploadedTestFile): Promise<Answer | undefined>
  /** Resolves with the next response to any request. */
  nextAnswer(): Promise<unknown>
  kill(): Promise<void>
}

export async function startKillableServer(dataDir: string): Promise<KillableServer> {
  const child = fork(programPath('runtime/process'), [dataDir, 'server'])
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  const waiting = new Map<number, (answer: Answer | undefined) => void>()
  child.on('message', (answer: Answer) => {
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  const drop = () => {
    for (const resolve of waiting.values()) resolve(undefined)
    waiting.clear()
  }
  child.on('exit', drop)
  let asked = 0
  const request = (message: object) =>
    new Promise<Answer | undefined>(resolve => {
      const id = asked++
      waiting.set(id, resolve)
      // A killed server does not receive the request.
      if (child.connected) child.send({ id, ...message }, error => error && drop())
      else drop()
    })
  return {
    send: (line, json) => request({ line, json }),
    upload: (line, file) => request({ line, file }),
    nextAnswer: () => once(child, 'message'),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

interface Page<T> {
  readonly items: T[]
  readonly nextCursor: string | null
}

/** Reads all pages of a list. */
export async function everyPage<T>(read: (cursor: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = []
  for (let cursor: string | undefined; ; ) {
    const { items, nextCursor } = await read(cursor)
    all.push(...items)
    if (nextCursor === null) return all
    cursor = nextCursor
  }
}
