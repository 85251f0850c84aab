import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { signInHints } from '../../src/cli/command/sign-in-hints.ts'
import { isCi } from '../../src/cli/environment.ts'
import { loginCommand } from '../../src/cli/settings/login-command.ts'
import { runtimeKey } from '../../src/cli/settings/profile.ts'
import { authStatusFields, authStatusJson } from '../../src/cli/sign-in/auth-status.ts'
import { describeWorkspaces, identifyCaller } from '../../src/cli/sign-in/identity.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'

export default class AuthStatus extends WbCommand {
  static override summary = 'show the credential in use and its permissions'
  static override examples = ['wb auth status', 'wb auth status --json']

  async run() {
    await this.parse(AuthStatus)
    const { profile, output, session } = this
    const caller = await identifyCaller(session)
    const me = caller.kind === 'identified' ? caller.me : null
    const status = {
      profile,
      selection: session.credential,
      me,
      accessibleWorkspaces: me ? await describeWorkspaces(this.client, me) : undefined,
      tokens: await session.tokenStore?.tokens(),
    }
    output.fields(authStatusJson(status), authStatusFields(status))
    if (caller.kind === 'anonymous') output.note(`  ${runtimeKey(profile)} does not require a credential`)
    if (caller.kind !== 'rejected') return
    this.exitCode = exit.notAllowed
    if (output.json) return
    if (session.credential.used) {
      output.note(
        `  ${runtimeKey(profile)} does not accept your credential: ${plainLine(caller.error.message)}`,
      )
      output.note(`  ${loginCommand(profile)}`)
      return
    }
    output.note(`  ${runtimeKey(profile)} requires a credential`)
    const rejectingRuntime = {
      ...(await session.runtime()),
      authMethods: caller.authMethods,
      isCi: isCi(this.io.env),
      message: caller.error.message,
    }
    for (const hint of signInHints(profile, undefined, rejectingRuntime)) output.note(`  ${hint}`)
  }
}
