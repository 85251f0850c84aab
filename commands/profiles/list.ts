import { WbCommand } from '../../src/cli/command/command.ts'
import { keychainDriver } from '../../src/cli/credentials/keychains.ts'
import { listLogins } from '../../src/cli/credentials/logins.ts'
import { readProfiles } from '../../src/cli/settings/profiles.ts'

export default class ProfilesList extends WbCommand {
  static override summary = 'list profiles and their logins'
  static override examples = ['wb profiles list', 'wb profiles list --json']
  protected override readonly usesFolderFiles = false

  async run() {
    await this.parse(ProfilesList)
    const { settingsDir, dataDir, name: inUse } = this.profile
    const logins = listLogins(settingsDir)
    const stored = Object.entries(readProfiles(settingsDir).profiles)
    const rows = stored
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, { url, keychain }]) => ({
        name,
        inUse: name === inUse,
        url: url ?? null,
        keychain: keychainDriver(keychain),
        who: logins.find(login => login.profile === name && login.runtime === (url ?? dataDir))?.who ?? null,
      }))
    this.output.list(rows, {
      columns: {
        '': { value: row => (row.inUse ? '*' : ''), widthMin: 1 },
        name: { value: row => row.name },
        runtime: { value: row => row.url ?? 'this machine', format: 'flexible' },
        who: { value: row => row.who ?? '', format: 'flexible' },
      },
      empty: [],
    })
  }
}
