import * as Flags from '@oclif/core/flags'

/** Flags of `keys create` and `keys rotate` that choose the target of the token. */
export const tokenFlags = {
  write: Flags.string({
    summary: 'write the token to a file that only you can read, not to stdout',
    helpValue: 'FILE',
    exclusive: ['copy'],
  }),
  force: Flags.boolean({ summary: 'replace FILE if it exists', dependsOn: ['write'] }),
  copy: Flags.boolean({ summary: 'copy the token to the clipboard, not to stdout' }),
}
