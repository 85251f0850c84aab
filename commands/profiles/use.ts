import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { changeProfiles } from '../../src/cli/settings/change-settings.ts'
import { requireProfile } from '../../src/cli/settings/profiles.ts'

export default class ProfilesUse extends WbCommand {
  static override summary = 'switch to another profile'
  static override examples = ['wb profiles use default', 'wb profiles use work']
  static override args = { name: Args.string({ required: true, description: 'profile name' }) }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args } = await this.parse(ProfilesUse)
    await changeProfiles(this.profile.settingsDir, stored => {
      requireProfile(stored, args.name)
      stored.current = args.name
    })
    if (this.output.json) return this.output.value({ name: args.name })
    this.output.note(`  ✓ switched to profile ${args.name}`)
  }
}
