import { describe, expect, test } from 'vitest'
import { type ErrorCode, errorCodes, errorRegistry } from '../../src/contract/errors.ts'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'
import { chat } from './codes/chat.ts'
import { content } from './codes/content.ts'
import { models } from './codes/models.ts'
import type { Provocation } from './codes/provocation.ts'
import { resources } from './codes/resources.ts'
import { runtime } from './codes/runtime.ts'
import { signIn } from './codes/sign-in.ts'

/** Codes that cannot occur yet, with the planned feature and the paths or drivers that will add it. */
const owed = {
  control_plane_dns_unresolvable: 'a control plane on another host',
  control_plane_forbidden: 'a control plane on another host',
  control_plane_unauthorized: 'a control plane on another host',
  control_plane_unreachable: 'a control plane on another host',
} as const satisfies Partial<Record<ErrorCode, string>>

/** Codes that are not returned as error responses, with the tests that cover them. */
const toldOtherwise = {
  chat_not_found: 'an outcome of the tools of /mcp: test/mcp/chat.test.ts',
} as const satisfies Partial<Record<ErrorCode, string>>

type Owed = keyof typeof owed | keyof typeof toldOtherwise

/** Provocations by code; the type requires one for every code. */
const provocations: Record<Exclude<ErrorCode, Owed>, Provocation> = {
  ...runtime,
  ...signIn,
  ...resources,
  ...content,
  ...models,
  ...chat,
}

/** Statuses of responses that differ from the registered status of the code. */
const statuses: Partial<Record<ErrorCode, number>> = {}

describe('every registered code', () => {
  test.each(Object.entries(provocations))(
    'S7.1-01: %s is returned over HTTP',
    { timeout: 30_000 },
    async (code, provoke) => {
      const answer = await provoke()
      const { status } = errorRegistry[code as ErrorCode]
      expect(answer, answer.text).toMatchObject({
        status: statuses[code as ErrorCode] ?? status,
        body: {
          error: {
            code,
            message: expect.stringMatching(/\S/),
            requestId: answer.headers.get('x-request-id'),
            hint: expect.stringMatching(/^[A-Z].*\.$/),
            docs: `docs/errors.md#${code.replaceAll('_', '-')}`,
          },
        },
      })
    },
  )

  test('has a provocation or is reserved for a planned feature', () => {
    const others = { ...owed, ...toldOtherwise }
    expect([...Object.keys(provocations), ...Object.keys(others)].sort()).toEqual([...errorCodes])
  })

  test('the planned features do not exist yet', () => {
    const routes = Object.values(api).flatMap(topic => Object.values(topic) as Route[])
    const declared = new Set(routes.flatMap(({ errors }) => errors))
    expect(Object.keys(owed).filter(code => declared.has(code as ErrorCode))).toEqual([])
  })
})
