import { WbCommand } from '../../src/cli/command/command.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { UsageError } from '../../src/cli/faults.ts'
import { loginLine } from '../../src/cli/settings/login-line.ts'
import { runtimeKey } from '../../src/cli/settings/profile.ts'
import { WbError } from '../../src/contract/errors.ts'

export default class AuthToken extends WbCommand {
  static override summary = 'print the token that is sent, for a script'
  static override examples = [
    'wb auth token | wc -c',
    'curl -H "Authorization: Bearer $(wb auth token)" https://wb.example.com/api/v1/workspaces',
  ]
  static override flags = { yes: { ...yesFlag, summary: 'print it in a terminal, too' } }

  async run() {
    const { flags } = await this.parse(AuthToken)
    if (this.output.interactive && !flags.yes)
      throw new UsageError('the token would stand in this terminal for all to read', ['wb auth token --yes'])
    const token = await this.session.token()
    if (token === undefined)
      throw new WbError('unauthorized', `no caller is signed in to ${runtimeKey(this.profile)}`, {
        next: [loginLine(this.profile)],
      })
    if (this.output.json) this.output.value({ token })
    else this.io.stdout.write(`${token}\n`)
  }
}
