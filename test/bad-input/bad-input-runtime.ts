import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { openDatabase } from '../harness/store-file.ts'
import { type Reply, type Serving, useServer, type Wire } from '../wire/harness.ts'
import { serialize } from './invalid-values.ts'
import { createTestData, listEverything, problemOf, type TestData } from './test-data.ts'

const testTimeoutMs = 60_000

/** Collects problems over a table, so that one run shows all of them. */
export class Findings {
  readonly #lines: string[] = []

  add(about: string, reply: Reply, ...wrong: (string | false | undefined)[]): void {
    for (const fact of wrong)
      if (fact) this.#lines.push(`${about}: ${fact} (${reply.status} ${reply.text.slice(0, 160)})`)
  }

  expectNone(): void {
    expect(this.#lines.join('\n')).toBe('')
  }
}

/** A runtime with two filled workspaces, for the tests of a file. */
export class BadInputRuntime {
  data!: TestData
  /** Content after the last table, and the version of the store that contains it. */
  #seen: { readonly content: Record<string, unknown>; readonly version: unknown } | undefined
  #store: ReturnType<typeof openDatabase> | undefined

  constructor(readonly wire: Wire & { serving: Serving }) {}

  /** Runs a table of bad requests. Each must be rejected, and together they must change nothing. */
  async expectAllRejected(run: (findings: Findings) => Promise<void>): Promise<void> {
    const before = this.#seen ?? (await this.#readContent())
    this.#seen = undefined
    const findings = new Findings()
    await run(findings)
    findings.expectNone()
    const after = this.#storeVersion() === before.version ? before : await this.#readContent()
    expect(after.content).toEqual(before.content)
    this.#seen = after
  }

  close(): void {
    this.#store?.close()
  }

  async #readContent() {
    const version = this.#storeVersion()
    // The size of a knowledge base shrinks when the segments of its index are merged in the background.
    const withoutSize = (key: string, value: unknown) => (key === 'size' ? undefined : value)
    const content = JSON.parse(JSON.stringify(await listEverything(this.wire), withoutSize))
    return { version, content }
  }

  /**
   * Returns a number that changes with each commit to the store. Reading it takes less time than reading everything.
   *
   * @see https://www.sqlite.org/pragma.html#pragma_data_version
   */
  #storeVersion(): unknown {
    this.#store ??= openDatabase(join(this.wire.serving.dataDir, 'workbase.db'), { readonly: true })
    return this.#store.pragma('data_version', { simple: true })
  }

  /** Accepts a state that a test has changed on purpose. */
  acceptChanges(): void {
    this.#seen = undefined
  }

  /** Describes the problem with a response. Any of the codes is correct. */
  problemOf(reply: Reply, ...codes: readonly string[]): string | undefined {
    const other = codes.length > 0 && !codes.includes(String(codeOf(reply)))
    return problemOf(reply, this.data.codes) ?? (other ? `expected ${codes.join(' or ')}` : undefined)
  }

  /** Sends an invalid body, and records a response that has none of the codes or does not name the field. */
  async sendInvalid(
    findings: Findings,
    line: string,
    body: unknown,
    { field, codes }: { field?: string; codes: readonly string[] },
  ): Promise<void> {
    const raw = serialize(body)
    const reply = await this.wire.send(line, { raw, headers: jsonType })
    const unnamed = field !== undefined && !messageOf(reply).includes(field)
    const problem = this.problemOf(reply, ...codes) ?? (unnamed && `the message does not name ${field}`)
    findings.add(`${line} ${raw.slice(0, 120)}`, reply, problem)
  }
}

export const jsonType = { 'content-type': 'application/json' }

export function useBadInputRuntime(): BadInputRuntime {
  const folder = mkdtempSync(join(tmpdir(), 'wb-refusals-'))
  const path = join(folder, 'workbase.yaml')
  // A table sends more requests per minute than the limit for sign-in routes.
  writeFileSync(path, JSON.stringify({ version: 1, runtime: { rateLimit: { authCapacity: 100_000 } } }))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const wire = useServer({ args: ['--config', path] })
  const refusals = new BadInputRuntime(wire)
  afterAll(() => refusals.close())
  beforeAll(async () => {
    refusals.data = await createTestData(wire)
  }, testTimeoutMs)
  return refusals
}

export function codeOf(reply: Reply): unknown {
  return (reply.body as { error?: { code?: unknown } } | undefined)?.error?.code
}

export function messageOf(reply: Reply): string {
  return String((reply.body as { error?: { message?: unknown } } | undefined)?.error?.message)
}
