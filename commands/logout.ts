import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { allLogins, findLogin, type StoredLogin } from '../src/cli/credentials/logins.ts'
import { runtimeKey } from '../src/cli/settings/profile.ts'
import { homeLine, readProfiles } from '../src/cli/settings/profiles.ts'
import { dropLogin, dropOrphans } from '../src/cli/sign-in/keep.ts'
import { plainLine } from '../src/cli/terminal/terminal-text.ts'

export default class Logout extends WbCommand {
  static override summary = 'forget the login of a runtime'
  static override description =
    'The session at the identity provider goes on, and a key stays what it is: wb keys revoke ends a key.'
  static override examples = ['wb logout', 'wb logout https://wb.example.com', 'wb logout --all']
  static override args = {
    url: Args.string({ ignoreStdin: true, description: 'address of the runtime [the one in use]' }),
  }
  static override flags = {
    all: Flags.boolean({ summary: 'every login of every profile' }),
    forget: Flags.boolean({ summary: 'also where the keychain does not answer, which then keeps an entry' }),
  }
  protected override readonly mindsFolder = false

  async run() {
    const { args, flags } = await this.parse(Logout)
    if (args.url !== undefined) this.talkToUrl(args.url)
    const found = flags.all ? allLogins(this.profile.settingsDir) : [findLogin(this.profile)]
    const logins = found.filter(login => login !== undefined)
    for (const login of logins) {
      const left = await dropLogin(this.profile, login, { signal: this.signal, isForced: flags.forget })
      if (left) this.output.warn(`  ! ${left}`)
    }
    const orphans = flags.all ? await this.dropOrphans(logins) : []
    for (const runtime of orphans)
      this.output.note(`  ✓ removed what was left of a login to ${plainLine(runtime)}`)
    if (this.output.json)
      return this.output.value(logins.map(({ profile, runtime }) => ({ profile, runtime })))
    for (const { runtime, who } of logins)
      this.output.note(`  ✓ signed out of ${plainLine(runtime)}, where you were ${plainLine(who)}`)
    if (logins.length === 0 && orphans.length === 0)
      this.output.note(
        flags.all ? '  no caller is signed in' : `  no caller is signed in to ${runtimeKey(this.profile)}`,
      )
    if (this.profile.urlFrom === 'profile')
      this.output.note(
        `  ${homeLine(readProfiles(this.profile.settingsDir))}    switches back to this machine`,
      )
  }

  /** In the keychains that this person uses, and beside the settings. */
  private async dropOrphans(logins: readonly StoredLogin[]): Promise<readonly string[]> {
    const { keychain = 'keyring', settingsDir } = this.profile
    const named = Object.values(readProfiles(settingsDir).profiles).map(stored => stored.keychain ?? keychain)
    const drivers = [keychain, ...named, ...logins.map(({ driver }) => driver), 'file' as const]
    const { removed, left } = await dropOrphans(this.profile, drivers, this.signal)
    for (const fact of left) this.output.warn(`  ! ${fact}`)
    return removed
  }
}
