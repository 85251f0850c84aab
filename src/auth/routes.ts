import type { Handlers } from '../access/caller.ts'
import type { auth } from '../contract/auth.ts'
import type { apiKeys } from '../contract/keys.ts'
import type { ApiKeys } from './keys/api-keys.ts'
import type { Redirection } from './session/browser-login.ts'
import { describeCaller, type SignIn } from './session/sign-in.ts'

export function apiKeyHandlers(keys: ApiKeys): Handlers<typeof apiKeys> {
  return {
    list: async ({ params, query }) => ({ status: 200, body: await keys.list(params.workspaceId, query) }),
    create: async ({ params, body }, caller) => ({
      status: 201,
      body: await keys.create(params.workspaceId, body, caller),
    }),
    show: async ({ params }) => ({ status: 200, body: await keys.get(params.workspaceId, params.keyId) }),
    rotate: async ({ params, body }, caller) => ({
      status: 201,
      body: await keys.rotate(params, body, caller),
    }),
    revoke: async ({ params }, caller) => {
      await keys.revoke(params, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function authHandlers(signIn: SignIn): Handlers<typeof auth> {
  return {
    config: async () => ({ status: 200, body: await signIn.config() }),
    login: async ({ query }, caller) =>
      toRedirectReply(await signIn.flows.login.start(query.redirect_after, caller)),
    callback: async ({ query }, caller) => toRedirectReply(await signIn.flows.login.finish(query, caller)),
    me: async (_, caller) => ({ status: 200, body: describeCaller(caller.auth) }),
    refresh: async (_, caller) => {
      const { expiresAtSeconds, cookies } = await signIn.flows.session.refresh(caller)
      return {
        status: 200,
        body: { ok: true, expiresAt: expiresAtSeconds },
        headers: { 'set-cookie': cookies },
      }
    },
    logout: async (_, caller) => {
      const { session, postLogoutPath } = signIn.flows
      return { status: 200, body: { postLogoutPath }, headers: { 'set-cookie': session.end(caller) } }
    },
    deviceAuthorize: async (_, caller) => ({
      status: 200,
      body: await signIn.flows.device.authorize(caller),
    }),
    deviceToken: async ({ body }, caller) => ({
      status: 200,
      body: await signIn.flows.device.token(body.device_code, caller),
    }),
    deviceRefresh: async ({ body }, caller) => ({
      status: 200,
      body: await signIn.flows.device.refresh(body.refresh_token, caller),
    }),
  }
}

function toRedirectReply({ location, cookies }: Redirection) {
  return { status: 302, body: undefined, headers: { location, 'set-cookie': cookies } } as const
}
