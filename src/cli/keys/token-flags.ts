import * as Flags from '@oclif/core/flags'

/** Flags of `keys create` and `keys rotate` that choose the target of the token. */
export const tokenFlags = {
  write: Flags.string({
    summary: 'write the token to a file that you alone can read, not to stdout',
    helpValue: 'FILE',
    exclusive: ['copy'],
  }),
  force: Flags.boolean({ summary: 'replace FILE if it exists', dependsOn: ['write'] }),
  copy: Flags.boolean({ summary: 'put the token into the clipboard, not to stdout' }),
}
