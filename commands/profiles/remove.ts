import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { listLogins } from '../../src/cli/credentials/logins.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { changeProfiles } from '../../src/cli/settings/change-settings.ts'
import {
  defaultProfile,
  readProfiles,
  requireProfile,
  type StoredProfiles,
} from '../../src/cli/settings/profiles.ts'
import { removeLogin } from '../../src/cli/sign-in/save-login.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'

export default class ProfilesRemove extends WbCommand {
  static override summary = 'remove a profile and its logins'
  static override examples = ['wb profiles remove work', 'wb profiles remove work --yes']
  static override args = { name: Args.string({ required: true, description: 'profile name' }) }
  static override flags = { yes: yesFlag }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args, flags } = await this.parse(ProfilesRemove)
    const { settingsDir } = this.profile
    const stored = readProfiles(settingsDir)
    requireProfile(stored, args.name)
    if (stored.current === args.name)
      throw new UsageError(`profile ${args.name} is in use`, [removalCommand(stored, flags.yes)])
    const logins = listLogins(settingsDir).filter(({ profile }) => profile === args.name)
    const target = `profile ${args.name} and ${formatCounted(logins.length, 'login')}`
    await this.confirmDeletion(target, args.name, flags.yes)
    for (const login of logins) await removeLogin(this.profile, login, { signal: this.signal })
    await changeProfiles(settingsDir, ({ profiles }) => {
      delete profiles[args.name]
    })
    this.output.reportDeleted(args.name, `removed ${target}`)
  }
}

/**
 * Returns the command line that switches to another profile, and then removes the current one. If there is no other
 * profile, the command line first creates one. The profile `default` cannot be replaced by itself, so its login is
 * removed instead.
 */
function removalCommand({ current, profiles }: StoredProfiles, yes: boolean): string {
  const others = Object.keys(profiles).filter(name => name !== current)
  if (others.length === 0 && current === defaultProfile) return 'wb logout    removes its login'
  const other = others.includes(defaultProfile) ? defaultProfile : (others.sort()[0] ?? defaultProfile)
  const creation = others.length === 0 ? `wb profiles add ${other} && ` : ''
  return `${creation}wb profiles use ${other} && wb profiles remove ${current}${yes ? ' --yes' : ''}`
}
