import { systemClock } from '../src/base/clock.ts'
import { WbCommand } from '../src/cli/command.ts'
import { due } from '../src/cli/output.ts'
import { runtimeKey } from '../src/cli/profile.ts'
import { nameOf, standingOf, whoIsCalling } from '../src/cli/sign-in/identity.ts'
import { plainLine } from '../src/cli/terminal-text.ts'
import type { Me } from '../src/contract/auth.ts'

const types: Record<Me['type'], string> = {
  apiKey: 'API key',
  oidc: 'identity provider',
  bootstrap: 'bootstrap token',
  system: 'operator',
}

export default class Whoami extends WbCommand {
  static override summary = 'say who you are to the runtime, in one line'
  static override examples = ['wb whoami', 'wb whoami --json']

  async run() {
    await this.parse(Whoami)
    const me = await whoIsCalling(this.session)
    if (this.output.json) return this.output.value(me)
    const runtime = plainLine(runtimeKey(this.profile))
    const { interactive } = this.output
    const words =
      me === null
        ? ['nobody', 'asks nobody who they are']
        : [nameOf(me), types[me.type], standingOf(me), ...(await this.ending(me))]
    this.output.result([...words, runtime].join(interactive ? '  ' : '\t'))
  }

  /** Nothing of a token that is renewed, and where nothing is said of it. */
  private async ending({ expiresAt }: Me): Promise<string[]> {
    const tokens = await this.session.keptTokens?.tokens()
    if (expiresAt === null || tokens?.refreshToken !== undefined) return []
    const ms = expiresAt * 1_000
    return [this.output.interactive ? `ends ${due(ms, systemClock.now())}` : new Date(ms).toISOString()]
  }
}
