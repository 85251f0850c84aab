import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import Database from '../../src/storage/sqlite/driver.ts'
import { type Reply, type Serving, useServer, type Wire } from '../wire/harness.ts'
import { serialise } from './kinds.ts'
import { complaint, everything, type Stage, setStage } from './stage.ts'

const testTimeoutMs = 60_000

/** Collects what was wrong over a table, so that one run shows all of it. */
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
export class Refusals {
  stage!: Stage
  /** Content after the last table, and the version of the store that has it. */
  #seen: { readonly content: Record<string, unknown>; readonly version: unknown } | undefined
  #store: Database.Database | undefined

  constructor(readonly wire: Wire & { serving: Serving }) {}

  /** Run a table of bad requests; each must be refused, and together they must change nothing. */
  async all(run: (findings: Findings) => Promise<void>): Promise<void> {
    const before = this.#seen ?? (await this.#look())
    this.#seen = undefined
    const findings = new Findings()
    await run(findings)
    findings.expectNone()
    const after = this.#storeVersion() === before.version ? before : await this.#look()
    expect(after.content).toEqual(before.content)
    this.#seen = after
  }

  close(): void {
    this.#store?.close()
  }

  async #look() {
    const version = this.#storeVersion()
    return { version, content: await everything(this.wire) }
  }

  /**
   * Returns a number that changes with each commit to the store. Reading it takes less time than reading everything.
   *
   * @see https://www.sqlite.org/pragma.html#pragma_data_version
   */
  #storeVersion(): unknown {
    this.#store ??= new Database(join(this.wire.serving.dataDir, 'workbase.db'), { readonly: true })
    return this.#store.pragma('data_version', { simple: true })
  }

  /** Told by a test that left something behind on purpose. */
  changed(): void {
    this.#seen = undefined
  }

  /** What is wrong with an answer, where any of the codes is right. */
  complaint(reply: Reply, ...codes: readonly string[]): string | undefined {
    const other = codes.length > 0 && !codes.includes(String(codeOf(reply)))
    return complaint(reply, this.stage.codes) ?? (other ? `expected ${codes.join(' or ')}` : undefined)
  }

  /** Send a bad body and note an answer that is no refusal by one of the codes, or does not name the field. */
  async spoil(
    findings: Findings,
    line: string,
    body: unknown,
    { field, codes }: { field?: string; codes: readonly string[] },
  ): Promise<void> {
    const raw = serialise(body)
    const reply = await this.wire.send(line, { raw, headers: jsonType })
    const unnamed = field !== undefined && !messageOf(reply).includes(field)
    const wrong = this.complaint(reply, ...codes) ?? (unnamed && `the message does not name ${field}`)
    findings.add(`${line} ${raw.slice(0, 120)}`, reply, wrong)
  }
}

export const jsonType = { 'content-type': 'application/json' }

export function useRefusals(): Refusals {
  const folder = mkdtempSync(join(tmpdir(), 'wb-refusals-'))
  const path = join(folder, 'workbase.yaml')
  // A table of bad requests is more than a client may send in a minute where sign-ins start.
  writeFileSync(path, JSON.stringify({ version: 1, runtime: { rateLimit: { authCapacity: 100_000 } } }))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const wire = useServer({ args: ['--config', path] })
  const refusals = new Refusals(wire)
  afterAll(() => refusals.close())
  beforeAll(async () => {
    refusals.stage = await setStage(wire)
  }, testTimeoutMs)
  return refusals
}

export function codeOf(reply: Reply): unknown {
  return (reply.body as { error?: { code?: unknown } } | undefined)?.error?.code
}

export function messageOf(reply: Reply): string {
  return String((reply.body as { error?: { message?: unknown } } | undefined)?.error?.message)
}
