import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { renameLogins } from '../../src/cli/credentials/logins.ts'
import { withLoginsLock } from '../../src/cli/credentials/logins-lock.ts'
import { changeProfiles } from '../../src/cli/settings/change-settings.ts'
import { requireFreeName, requireProfile, requireProfileName } from '../../src/cli/settings/profiles.ts'

export default class ProfilesRename extends WbCommand {
  static override summary = 'rename a profile and keep its logins'
  static override examples = ['wb profiles rename default home', 'wb profiles rename work client']
  static override args = {
    name: Args.string({ required: true, description: 'profile name' }),
    to: Args.string({ required: true, description: 'new name' }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args } = await this.parse(ProfilesRename)
    requireProfileName(args.to)
    const { settingsDir } = this.profile
    await withLoginsLock(this.profile, this.signal, async () => {
      await changeProfiles(settingsDir, stored => {
        const profile = requireProfile(stored, args.name)
        requireFreeName(stored, args.to, args.name)
        delete stored.profiles[args.name]
        stored.profiles[args.to] = profile
        if (stored.current === args.name) stored.current = args.to
      })
      renameLogins(settingsDir, args.name, args.to)
    })
    if (this.output.json) return this.output.value({ name: args.to })
    this.output.note(`  ✓ renamed profile ${args.name} to ${args.to}`)
  }
}
