import * as Flags from '@oclif/core/flags'

/** Flags of `wb keys create` and `wb keys rotate` for where to write the token. */
export const tokenFlags = {
  write: Flags.string({
    summary: 'write the token to a file that only you can read, instead of stdout',
    helpValue: 'FILE',
    exclusive: ['copy'],
  }),
  force: Flags.boolean({ summary: 'replace FILE if it exists', dependsOn: ['write'] }),
  copy: Flags.boolean({ summary: 'copy the token to the clipboard, instead of printing it' }),
}
