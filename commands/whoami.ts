import { systemClock } from '../src/base/clock.ts'
import { WbCommand } from '../src/cli/command.ts'
import { due } from '../src/cli/output.ts'
import { runtimeKey } from '../src/cli/profile.ts'
import { nameOf, whoIsCalling } from '../src/cli/sign-in/identity.ts'
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
    if (me === null) return this.output.result(`nobody\t${runtime}\tasks nobody who they are`)
    const end = me.expiresAt === null ? [] : [`until ${due(me.expiresAt * 1_000, systemClock.now())}`]
    this.output.result(
      [nameOf(me), types[me.type], me.role ?? 'every right', ...end, runtime].join(
        this.output.interactive ? '  ' : '\t',
      ),
    )
  }
}
