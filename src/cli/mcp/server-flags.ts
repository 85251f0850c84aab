import * as Flags from '@oclif/core/flags'

/** What a tool server is registered with, beside its name and address. */
export const mcpServerFlags = {
  credential: Flags.string({
    summary: 'reference to the key that it is sent: env:NAME or file:/path',
    helpValue: 'REF',
  }),
  tool: Flags.string({
    summary: 'a tool that agents may call; give it several times. All when left out',
    multiple: true,
    helpValue: 'NAME',
  }),
}
