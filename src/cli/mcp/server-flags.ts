import * as Flags from '@oclif/core/flags'

/** Flags for the settings of an MCP server, except its name and address. */
export const mcpServerFlags = {
  credential: Flags.string({
    summary: 'reference to the key that it is sent: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  auth: Flags.option({
    options: ['credential', 'oauth2'] as const,
    summary: 'how calls are authorized: by the key of --credential, or by the sign-in of each caller',
  })(),
  'oauth-client-id': Flags.string({
    summary: 'OAuth client to sign in with; registered with the server when left out',
    helpValue: 'ID',
  }),
  'oauth-client-secret': Flags.string({
    summary: 'reference to the secret of that client: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  'oauth-scope': Flags.string({
    summary: 'a scope to ask for; give it several times. Those that the server names when left out',
    multiple: true,
    helpValue: 'SCOPE',
  }),
  tool: Flags.string({
    summary: 'a tool that agents may call; give it several times. All when left out',
    multiple: true,
    helpValue: 'NAME',
  }),
}

/** Returns the authentication fields that the flags set. */
export function authFieldsOf(flags: {
  readonly auth?: 'credential' | 'oauth2' | undefined
  readonly 'oauth-client-id'?: string | undefined
  readonly 'oauth-client-secret'?: string | undefined
  readonly 'oauth-scope'?: string[] | undefined
}) {
  return {
    authType: flags.auth,
    oauthClientId: flags['oauth-client-id'],
    oauthClientSecretRef: flags['oauth-client-secret'],
    oauthScopes: flags['oauth-scope'],
  }
}
