import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { parseRuntimeAddress } from '../../src/cli/settings/address.ts'
import { changeProfiles } from '../../src/cli/settings/change-settings.ts'
import { requireFreeName, requireProfileName } from '../../src/cli/settings/profiles.ts'

export default class ProfilesAdd extends WbCommand {
  static override summary = 'add a profile for a runtime'
  static override examples = ['wb profiles add work --url https://wb.example.com', 'wb profiles add here']
  static override args = { name: Args.string({ required: true, description: 'profile name' }) }
  static override flags = {
    keychain: Flags.option({
      options: ['keyring', 'keytar', 'file'] as const,
      summary:
        'where to store logins: the system keychain (keyring), the keytar library, or a file that only you can read',
    })(),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args, flags } = await this.parse(ProfilesAdd)
    requireProfileName(args.name)
    const url = flags.url === undefined ? undefined : parseRuntimeAddress(flags.url, '--url')
    await changeProfiles(this.profile.settingsDir, stored => {
      requireFreeName(stored, args.name)
      stored.profiles[args.name] = {
        workspaces: {},
        ...(url && { url }),
        ...(flags.keychain && { keychain: flags.keychain }),
      }
    })
    if (this.output.json) return this.output.value({ name: args.name, url: url ?? null })
    this.output.note(`  ✓ created profile ${args.name}${url ? ` for ${url}` : ', for this machine'}`)
    this.output.note(`  wb profiles use ${args.name}`)
  }
}
