import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { findLogin, listLogins, type StoredLogin } from '../src/cli/credentials/logins.ts'
import { runtimeKey } from '../src/cli/settings/profile.ts'
import { localProfileCommand, readProfiles } from '../src/cli/settings/profiles.ts'
import { removeLogin, removeOrphans } from '../src/cli/sign-in/save-login.ts'
import { plainLine } from '../src/cli/terminal/terminal-text.ts'

export default class Logout extends WbCommand {
  static override summary = 'sign out of a runtime'
  static override description =
    'Does not end your session at the identity provider, and does not revoke an API key. To revoke a key, use wb keys revoke.'
  static override examples = ['wb logout', 'wb logout https://wb.example.com', 'wb logout --all']
  static override args = {
    url: Args.string({ ignoreStdin: true, description: 'address of the runtime [the current runtime]' }),
  }
  static override flags = {
    all: Flags.boolean({ summary: 'sign out of all runtimes in all profiles' }),
    forget: Flags.boolean({
      summary: 'sign out even if the keychain is not available; the entry in the keychain remains',
    }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args, flags } = await this.parse(Logout)
    if (args.url !== undefined) this.useUrl(args.url)
    const candidates = flags.all ? listLogins(this.profile.settingsDir) : [findLogin(this.profile)]
    const logins = candidates.filter(login => login !== undefined)
    for (const login of logins) {
      const remainingEntry = await removeLogin(this.profile, login, {
        signal: this.signal,
        isForced: flags.forget,
      })
      if (remainingEntry) this.output.warn(`  ! ${remainingEntry}`)
    }
    const orphans = flags.all ? await this.removeOrphans(logins) : []
    for (const runtime of orphans)
      this.output.note(`  ✓ removed an unused keychain entry for ${plainLine(runtime)}`)
    if (this.output.json)
      return this.output.value(logins.map(({ profile, runtime }) => ({ profile, runtime })))
    for (const { runtime, who } of logins)
      this.output.note(`  ✓ signed out of ${plainLine(runtime)} (${plainLine(who)})`)
    if (logins.length === 0 && orphans.length === 0)
      this.output.note(
        flags.all ? '  you are not signed in' : `  you are not signed in to ${runtimeKey(this.profile)}`,
      )
    if (this.profile.urlSource === 'profile')
      this.output.note(
        `  ${localProfileCommand(readProfiles(this.profile.settingsDir))}    switches back to this machine`,
      )
  }

  /** Removes entries without a login from the keychains of all profiles, and from files. */
  private async removeOrphans(logins: readonly StoredLogin[]): Promise<readonly string[]> {
    const { keychain = 'keyring', settingsDir } = this.profile
    const profileDrivers = Object.values(readProfiles(settingsDir).profiles).map(
      stored => stored.keychain ?? keychain,
    )
    const drivers = [keychain, ...profileDrivers, ...logins.map(({ driver }) => driver), 'file' as const]
    const { removed, problems } = await removeOrphans(this.profile, drivers, this.signal)
    for (const problem of problems) this.output.warn(`  ! ${problem}`)
    return removed
  }
}
