import type { Handlers } from '../access/caller.ts'
import type { auth } from '../contract/auth.ts'
import type { apiKeys } from '../contract/keys.ts'
import type { ApiKeys } from './keys/keys.ts'
import type { SignIn } from './session/sign-in.ts'

export function apiKeyHandlers(room: ApiKeys): Handlers<typeof apiKeys> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await room.list(params.workspaceId, query) }),
    create: async ({ params, body }, caller) => ({
      status: 201,
      body: await room.create(params.workspaceId, body, caller),
    }),
    show: async ({ params }) => ({ status: 200, body: await room.get(params.workspaceId, params.keyId) }),
    rotate: async ({ params, body }, caller) => ({
      status: 201,
      body: await room.rotate(params, body, caller),
    }),
    revoke: async ({ params }, caller) => {
      await room.revoke(params, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function authHandlers(_room: SignIn): Handlers<typeof auth> {
  const unwritten = () => {
    throw new Error('not written')
  }
  return {
    config: unwritten,
    login: unwritten,
    callback: unwritten,
    me: unwritten,
    refresh: unwritten,
    logout: unwritten,
    deviceAuthorize: unwritten,
    deviceToken: unwritten,
    deviceRefresh: unwritten,
  }
}
