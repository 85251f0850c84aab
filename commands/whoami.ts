import { WbCommand } from '../src/cli/command/command.ts'
import { runtimeKey } from '../src/cli/settings/profile.ts'
import { anonymous, callerName, identifyCaller, permissionSummary } from '../src/cli/sign-in/identity.ts'
import { expirationTime } from '../src/cli/sign-in/notes.ts'
import { formatDue } from '../src/cli/terminal/duration.ts'
import { plainLine } from '../src/cli/terminal/terminal-text.ts'
import { wrapLine } from '../src/cli/terminal/wrap.ts'
import type { Me } from '../src/contract/auth.ts'

const continuationIndent = 2

const labelOfType: Record<Me['type'], string> = {
  apiKey: 'API key',
  oidc: 'identity provider',
  bootstrap: 'bootstrap token',
  system: 'operator',
}

export default class Whoami extends WbCommand {
  static override summary = 'show who you are signed in as'
  static override examples = ['wb whoami', 'wb whoami --json']

  async run() {
    await this.parse(Whoami)
    const caller = await identifyCaller(this.session)
    if (caller.kind === 'rejected') throw caller.error
    const me = caller.kind === 'identified' ? caller.me : null
    if (this.output.json) return this.output.value(me ?? anonymous)
    const runtime = plainLine(runtimeKey(this.profile))
    const { interactive } = this.output
    const identityColumns = interactive ? terminalColumns : pipeColumns
    const columns =
      me === null
        ? ['anonymous', 'no credential required']
        : [...identityColumns(me), ...(await this.formatExpiration(me))]
    const line = [...columns, runtime].join(interactive ? '  ' : '\t')
    for (const part of wrapLine(line, this.output.width, continuationIndent)) this.output.result(part)
  }

  /** Returns the expiration, or an empty list if it is unknown or the token is renewed automatically. */
  private async formatExpiration(me: Me): Promise<string[]> {
    const tokens = await this.session.tokenStore?.tokens()
    if (tokens?.refreshToken !== undefined) return []
    const expiresAt = expirationTime(me, undefined)
    if (!this.output.interactive) return expiresAt ? [expiresAt] : []
    if (expiresAt === null) return ['never expires']
    return expiresAt === undefined ? [] : [`expires ${formatDue(Date.parse(expiresAt), this.io.clock.now())}`]
  }
}

/** Returns the fields for a pipe. */
function pipeColumns(me: Me): string[] {
  return [callerName(me), labelOfType[me.type], permissionSummary(me)]
}

/**
 * Returns the fields for a terminal. Each value has a label, because the name of a key can be any string, such as
 * `admin`.
 */
function terminalColumns(me: Me): string[] {
  const identity =
    me.type === 'apiKey' ? `API key ${callerName(me)}` : `${callerName(me)}  ${labelOfType[me.type]}`
  const label = me.role ? 'role ' : me.scopes ? 'scopes ' : ''
  return [identity, `${label}${permissionSummary(me)}`]
}
