import * as Flags from '@oclif/core/flags'

/** Flags for the settings of an MCP server, except its name and address. */
export const mcpServerFlags = {
  credential: Flags.string({
    summary: 'secret reference for the key to send: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  auth: Flags.option({
    options: ['credential', 'oauth2'] as const,
    summary: 'how to authorize calls: with the key in --credential, or with the sign-in of each caller',
  })(),
  'oauth-client-id': Flags.string({
    summary: 'OAuth client ID [a new client is registered automatically]',
    helpValue: 'ID',
  }),
  'oauth-client-secret': Flags.string({
    summary: 'secret reference for the OAuth client secret: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  'oauth-scope': Flags.string({
    summary: 'OAuth scope to request; can be repeated [the scopes that the server asks for]',
    multiple: true,
    helpValue: 'SCOPE',
  }),
  tool: Flags.string({
    summary: 'tool that agents can use; can be repeated [all]',
    multiple: true,
    helpValue: 'NAME',
  }),
}

/** Returns the authentication fields of a request body from the flags. */
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
