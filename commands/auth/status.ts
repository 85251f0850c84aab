import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { loginLine } from '../../src/cli/settings/login-line.ts'
import { runtimeKey } from '../../src/cli/settings/profile.ts'
import { callerOf, reachOf } from '../../src/cli/sign-in/identity.ts'
import { statusFields, statusJson } from '../../src/cli/sign-in/status-shown.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'

export default class AuthStatus extends WbCommand {
  static override summary = 'show the credential in use and its permissions'
  static override examples = ['wb auth status', 'wb auth status --json']

  async run() {
    await this.parse(AuthStatus)
    const { profile, output, session } = this
    const caller = await callerOf(session)
    const me = caller.kind === 'known' ? caller.me : null
    const status = {
      profile,
      chosen: session.credential,
      me,
      reach: me ? await reachOf(this.client, me) : undefined,
      tokens: await session.keptTokens?.tokens(),
    }
    output.fields(statusJson(status), statusFields(status))
    if (caller.kind === 'anybody') output.note(`  ${runtimeKey(profile)} does not require a credential`)
    if (caller.kind !== 'stranger') return
    this.exitCode = exit.notAllowed
    if (output.json) return
    output.note(
      `  ${runtimeKey(profile)} does not accept your credential: ${plainLine(caller.refusal.message)}`,
    )
    output.note(`  ${loginLine(profile)}`)
  }
}
