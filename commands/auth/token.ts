import { WbCommand } from '../../src/cli/command/command.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { loginCommand } from '../../src/cli/settings/login-command.ts'
import { runtimeKey } from '../../src/cli/settings/profile.ts'
import { WbError } from '../../src/contract/errors.ts'

export default class AuthToken extends WbCommand {
  static override summary = 'print the API key or access token in use'
  static override examples = [
    'wb auth token | wc -c',
    'curl -H "Authorization: Bearer $(wb auth token)" https://wb.example.com/api/v1/workspaces',
  ]
  static override flags = { yes: { ...yesFlag, summary: 'print the token even if stdout is a terminal' } }

  async run() {
    const { flags } = await this.parse(AuthToken)
    if (this.output.interactive && !flags.yes)
      throw new UsageError('the token is not shown in a terminal without --yes', ['wb auth token --yes'])
    const token = await this.session.token()
    if (token === undefined)
      throw new WbError('unauthorized', `you are not signed in to ${runtimeKey(this.profile)}`, {
        next: [loginCommand(this.profile)],
      })
    if (this.output.json) this.output.value({ token })
    else this.io.stdout.write(`${token}\n`)
  }
}
