import { availableParallelism } from 'node:os'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  Admission,
  type AdmissionLimits,
  type AdmissionTask,
  type QueueLimits,
} from '../../../src/auth/keys/admission.ts'

/** Creates an admission whose tasks end on request. */
function createAdmission(limits: Partial<AdmissionLimits> = {}) {
  const admission = new Admission(limits)
  const running: { name: string; end: () => void }[] = []
  const began: string[] = []
  const refused: string[] = []
  return {
    running,
    began,
    refused,
    ask(client: string, name = client, queue: AdmissionTask['queue'] = 'withoutChecksum') {
      const work = () =>
        new Promise<void>(end => {
          began.push(name)
          running.push({ name, end })
        })
      return admission.run({ queue, client }, work).catch(error => {
        expect(error).toMatchObject({ code: 'rate_limited', status: 429 })
        expect(error.facts.headers).toEqual({ 'retry-after': '1' })
        refused.push(name)
      })
    },
    /** Ends the oldest running task and lets the next one start. */
    async step() {
      running.shift()!.end()
      await settled()
    },
    async drain() {
      while (running.length > 0) await this.step()
    },
  }
}

/** Returns limits for one running task, with the given limits for tokens without a valid checksum. */
function oneAtATime(withoutChecksum: Partial<QueueLimits>): Partial<AdmissionLimits> {
  return { runningMax: 1, withoutChecksum: { waitingMax: 512, waitingPerClientMax: 16, ...withoutChecksum } }
}

/** Waits for pending promise callbacks. */
const settled = () => new Promise(setImmediate)

describe('turns', () => {
  test('at most half of the CPU cores run tasks, and at least one', async () => {
    const wb = createAdmission()
    for (let n = 0; n < 12; n++) wb.ask(`10.0.0.${n}`)
    await settled()
    expect(wb.running).toHaveLength(Math.max(1, Math.floor(availableParallelism() / 2)))
    await wb.drain()
    expect(wb.began).toHaveLength(12)
  })

  test('a new client waits for one task of each earlier client, not for all of their tasks', async () => {
    const wb = createAdmission({ runningMax: 1 })
    for (let n = 0; n < 10; n++) wb.ask('10.0.0.1', `flood ${n}`)
    wb.ask('10.0.0.2', 'newcomer')
    await settled()
    await wb.step()
    await wb.step()
    expect(wb.began).toEqual(['flood 0', 'flood 1', 'newcomer'])
    await wb.drain()
    expect(wb.began).toHaveLength(11)
  })

  test('a failed task frees its slot', async () => {
    const admission = new Admission({ runningMax: 1 })
    const failing = () => Promise.reject(new Error('broken'))
    await expect(admission.run({ queue: 'withChecksum', client: 'a' }, failing)).rejects.toThrow('broken')
    expect(await admission.run({ queue: 'creations', client: 'b' }, async () => 'done')).toBe('done')
  })
})

describe('limits', () => {
  test('rejects an address with too many waiting tasks, and no other address', async () => {
    const wb = createAdmission(oneAtATime({ waitingPerClientMax: 16 }))
    for (let n = 0; n < 20; n++) wb.ask('10.0.0.1', `one ${n}`)
    wb.ask('10.0.0.2', 'two')
    await settled()
    expect(wb.refused).toEqual(['one 17', 'one 18', 'one 19'])
    await wb.drain()
    expect(wb.began).toContain('two')
  })

  test.each([
    ['withoutChecksum', 16],
    ['withChecksum', 64],
    ['creations', 64],
  ] as const)('%s allows %i waiting tasks per client and 512 in total by default', async (queue, each) => {
    const wb = createAdmission({ runningMax: 1 })
    wb.ask('a', 'running', queue)
    for (let n = 0; n <= each; n++) wb.ask('a', String(n), queue)
    await settled()
    expect(wb.refused).toEqual([String(each)])
    await wb.drain()
    wb.ask('a', 'running', queue)
    for (let n = 0; n <= 512; n++) wb.ask(`client ${n}`, `single ${n}`, queue)
    await settled()
    expect(wb.refused.slice(1)).toEqual(['single 512'])
    await wb.drain()
  })

  test('a full queue rejects the last task of the address with the most waiting tasks', async () => {
    const wb = createAdmission(oneAtATime({ waitingMax: 4 }))
    wb.ask('10.0.0.9', 'running')
    for (let n = 0; n < 3; n++) wb.ask('10.0.0.1', `most ${n}`)
    wb.ask('10.0.0.2', 'single')
    wb.ask('10.0.0.3', 'newcomer')
    await settled()
    expect(wb.refused).toEqual(['most 2'])
    await wb.drain()
    expect(wb.began).toEqual(['running', 'most 0', 'single', 'newcomer', 'most 1'])
  })

  test('rejected and aborted tasks free their slots in the queue', async () => {
    const wb = createAdmission(oneAtATime({ waitingMax: 2 }))
    for (let n = 0; n < 5; n++) {
      wb.ask('10.0.0.1', 'running')
      wb.ask('10.0.0.1', 'first')
      wb.ask('10.0.0.1', 'loses its place')
      wb.ask('10.0.0.2', 'takes it')
      await settled()
      await wb.drain()
    }
    expect(wb.refused).toEqual(Array(5).fill('loses its place'))
    expect(wb.began).toHaveLength(15)
  })

  test('a new client is rejected only if no other client has more than one waiting task', async () => {
    const wb = createAdmission(oneAtATime({ waitingMax: 3 }))
    wb.ask('10.0.0.9', 'running')
    for (let n = 1; n <= 3; n++) wb.ask(`10.0.0.${n}`, `single ${n}`)
    wb.ask('10.0.0.4', 'newcomer')
    await settled()
    expect(wb.refused).toEqual(['newcomer'])
    await wb.drain()
  })

  test('the client that would have the most waiting tasks is the one that is rejected', async () => {
    const wb = createAdmission(oneAtATime({ waitingMax: 3 }))
    wb.ask('10.0.0.9', 'running')
    wb.ask('10.0.0.1', 'one')
    wb.ask('10.0.0.2', 'two')
    wb.ask('10.0.0.1', 'one again')
    wb.ask('10.0.0.1', 'one too many')
    await settled()
    expect(wb.refused).toEqual(['one too many'])
    await wb.drain()
  })
})

describe('queues', () => {
  test('900 addresses with wrong tokens neither displace nor delay a token with a valid checksum [security rule 10]', async () => {
    const wb = createAdmission({ runningMax: 1 })
    for (let n = 0; n < 900; n++) wb.ask(`guesser ${n}`)
    for (let n = 0; n < 12; n++) wb.ask(`client ${n}`, `valid ${n}`, 'withChecksum')
    await settled()
    for (let n = 0; n < 12; n++) await wb.step()
    expect(wb.began).toEqual(['guesser 0', ...Array.from({ length: 12 }, (_, n) => `valid ${n}`)])
    await wb.drain()
    expect(wb.refused).toHaveLength(900 - 512 - 1)
    for (const name of wb.refused) expect(name).toMatch(/^guesser/)
  })

  test('a workspace that creates many keys does not delay another, and is rejected at its own limit', async () => {
    const wb = createAdmission({ runningMax: 1 })
    for (let n = 0; n < 400; n++) wb.ask('workspace a', `a ${n}`, 'creations')
    wb.ask('workspace b', 'b', 'creations')
    await settled()
    await wb.step()
    await wb.step()
    expect(wb.began).toEqual(['a 0', 'a 1', 'b'])
    await wb.drain()
    expect(wb.refused).toHaveLength(400 - 64 - 1)
  })

  test('all queues together run at most the allowed number of tasks', async () => {
    const wb = createAdmission({ runningMax: 2 })
    for (const queue of ['withChecksum', 'withoutChecksum', 'creations'] as const)
      for (let n = 0; n < 3; n++) wb.ask(queue, `${queue} ${n}`, queue)
    await settled()
    while (wb.running.length > 0) {
      expect(wb.running.length).toBeLessThanOrEqual(2)
      await wb.step()
    }
    expect(wb.began).toHaveLength(9)
  })

  const queue = fc.constantFrom<AdmissionTask['queue']>('withChecksum', 'withoutChecksum', 'creations')
  const step = fc.option(fc.tuple(queue, fc.integer({ min: 0, max: 3 })), { nil: null })

  test('tokens with a checksum run first, and checks and creations alternate while both are waiting', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        const wb = createAdmission({ runningMax: 1 })
        const submitted: string[] = []
        const queueOf = (name: string) => name.split(' ')[0]!
        const kindOf = (name: string) => (queueOf(name) === 'creations' ? 'mint' : 'check')
        const waiting = () => submitted.filter(name => !wb.began.includes(name) && !wb.refused.includes(name))
        /** Kinds of tasks that were waiting at the last turn, and the kind that got it. */
        let last: { kind: string; kinds: Set<string> } | undefined
        const end = async () => {
          const before = waiting()
          await wb.step()
          const begun = before.find(name => wb.began.at(-1) === name)
          expect(begun === undefined).toBe(before.length === 0)
          if (begun === undefined) {
            last = undefined
            return
          }
          if (queueOf(begun) === 'withoutChecksum') expect(before.map(queueOf)).not.toContain('withChecksum')
          const kinds = new Set(before.map(kindOf))
          if (last?.kinds.size === 2 && kinds.size === 2) expect(kindOf(begun)).not.toBe(last.kind)
          last = { kind: kindOf(begun), kinds }
        }
        for (const one of steps) {
          if (one === null) {
            if (wb.running.length > 0) await end()
          } else {
            const [chosen, client] = one
            const name = `${chosen} ${client} ${submitted.length}`
            submitted.push(name)
            wb.ask(`client ${client}`, name, chosen)
            await settled()
          }
        }
        while (wb.running.length > 0) await end()
        expect([...wb.began, ...wb.refused].sort()).toEqual([...submitted].sort())
      }),
      { numRuns: 200 },
    )
  })
})

describe('any sequence of tasks', () => {
  /** A client number for a new task, or null to end a running task. */
  const step = fc.option(fc.integer({ min: 0, max: 5 }), { nil: null, freq: 3 })
  const limits = fc.record({
    atOnce: fc.integer({ min: 1, max: 3 }),
    waitingMax: fc.integer({ min: 1, max: 12 }),
    waitingPerClientMax: fc.integer({ min: 1, max: 5 }),
  })

  test('starts or rejects every task in order, within the limits, and in fair turns', async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 60 }), async (bounds, steps) => {
        const wb = createAdmission({ runningMax: bounds.atOnce, withoutChecksum: bounds })
        const submitted: string[] = []
        /** Clients that started a task since each waiting client began to wait. */
        const overtakers = new Map<string, string[]>()
        const waiting = () => submitted.filter(name => !wb.began.includes(name) && !wb.refused.includes(name))
        const clientOf = (name: string) => name.split('/')[0]!
        let seen = 0
        const watch = () => {
          for (; seen < wb.began.length; seen++) {
            const client = clientOf(wb.began[seen]!)
            overtakers.delete(client)
            for (const others of overtakers.values()) {
              expect(others).not.toContain(client)
              others.push(client)
            }
          }
          for (const name of waiting())
            if (!overtakers.has(clientOf(name))) overtakers.set(clientOf(name), [])
          for (const client of overtakers.keys())
            if (!waiting().some(name => clientOf(name) === client)) overtakers.delete(client)
        }
        const countOf = (client: string) => waiting().filter(name => clientOf(name) === client).length
        /**
         * Returns the tasks that can be rejected for a new one: the last task of a client with the most waiting
         * tasks, or none if there is room.
         */
        const expectedRefusal = (name: string) => {
          if (wb.running.length < bounds.atOnce) return []
          const own = countOf(clientOf(name))
          if (own >= bounds.waitingPerClientMax) return [name]
          if (waiting().length < bounds.waitingMax) return []
          const counts = waiting().map(other => countOf(clientOf(other)))
          const most = Math.max(...counts)
          if (most <= own + 1) return [name]
          const longest = waiting().filter(other => countOf(clientOf(other)) === most)
          return longest.filter(other => longest.findLast(one => clientOf(one) === clientOf(other)) === other)
        }
        for (const client of steps) {
          if (client === null) {
            if (wb.running.length > 0) await wb.step()
          } else {
            const name = `10.0.0.${client}/${submitted.length}`
            const before = wb.refused.length
            const candidates = expectedRefusal(name)
            submitted.push(name)
            wb.ask(`10.0.0.${client}`, name)
            await settled()
            const refused = wb.refused.slice(before)
            expect(refused).toHaveLength(Math.min(1, candidates.length))
            for (const one of refused) expect(candidates).toContain(one)
          }
          watch()
          expect(wb.running.length).toBeLessThanOrEqual(bounds.atOnce)
          expect(waiting().length).toBeLessThanOrEqual(bounds.waitingMax)
          expect(waiting().length === 0 || wb.running.length === bounds.atOnce).toBe(true)
        }
        await wb.drain()
        expect([...wb.began, ...wb.refused].sort()).toEqual([...submitted].sort())
        for (let client = 0; client <= 5; client++) {
          const own = (names: string[]) => names.filter(name => clientOf(name) === `10.0.0.${client}`)
          expect(own(wb.began)).toEqual(own(submitted).filter(name => wb.began.includes(name)))
        }
      }),
      { numRuns: 300 },
    )
  })
})
