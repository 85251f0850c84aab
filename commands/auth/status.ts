import { WbCommand } from '../../src/cli/command.ts'
import { exit } from '../../src/cli/exit.ts'
import { runtimeKey } from '../../src/cli/profile.ts'
import { loginLine } from '../../src/cli/sign-in/credential.ts'
import { reachOf, whoIsCalling } from '../../src/cli/sign-in/identity.ts'
import { statusFields, statusJson } from '../../src/cli/sign-in/status-shown.ts'
import { plainLine } from '../../src/cli/terminal-text.ts'
import type { Me } from '../../src/contract/auth.ts'
import { WbError } from '../../src/contract/errors.ts'

export default class AuthStatus extends WbCommand {
  static override summary = 'say which credential is sent, where it came from, why, and what it may do'
  static override examples = ['wb auth status', 'wb auth status --json']

  async run() {
    await this.parse(AuthStatus)
    const { profile, output, session } = this
    const found = await this.known()
    const me = found instanceof WbError ? undefined : found
    const status = {
      profile,
      chosen: session.credential,
      me: me ?? null,
      reach: me ? await reachOf(this.client, me) : undefined,
      tokens: await session.keptTokens?.tokens(),
    }
    output.fields(statusJson(status), statusFields(status))
    if (me === null) output.note(`  ${runtimeKey(profile)} asks nobody who they are`)
    if (me !== undefined) return
    process.exitCode = exit.notAllowed
    if (output.json) return
    if (found instanceof WbError)
      output.note(`  ${runtimeKey(profile)} does not know you: ${plainLine(found.message)}`)
    output.note(`  ${loginLine(profile)}`)
  }

  /** Null where nobody is asked; the refusal for who is nobody there. */
  private async known(): Promise<Me | null | WbError> {
    try {
      return await whoIsCalling(this.session)
    } catch (error) {
      if (error instanceof WbError && error.code === 'unauthorized') return error
      throw error
    }
  }
}
