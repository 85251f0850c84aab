import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../../src/base/shell-word.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { openLink } from '../../../src/cli/connection/browser.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import {
  listenForCallback,
  parseAuthorizationResponse,
  parsePastedUrl,
  readPastedLine,
  requireSafeAuthorizationUrl,
  waitForBrowser,
} from '../../../src/cli/mcp/sign-in.ts'
import { plainLine } from '../../../src/cli/terminal/terminal-text.ts'
import { mcpServers, type PendingSignIn } from '../../../src/contract/mcp-servers.ts'

export default class McpServersLogin extends WbCommand {
  static override summary = 'sign in to an MCP server'
  static override description =
    'Opens the sign-in page of the server in a browser. If your browser is on another machine, use --no-browser, and paste the address of the last page.'
  static override examples = ['wb mcp servers login issues', 'wb mcp servers login issues --no-browser']
  static override args = {
    server: Args.string({ ignoreStdin: true, description: 'name or ID [the only server]' }),
  }
  static override flags = {
    'no-browser': Flags.boolean({ summary: 'do not open a browser; paste the address of the last page' }),
  }
  protected override interruptMessage = 'interrupted; you are not signed in'

  async run() {
    const { args, flags } = await this.parse(McpServersLogin)
    const server = await this.waitFor('loading', findMcpServer(this.resolveContext, args.server))
    const { workspaceId, mcpServerId, label } = server
    const params = { workspaceId, mcpServerId }
    const loginCommand = `wb mcp servers login ${shellWord(plainLine(label))}`
    const callback = await listenForCallback()
    try {
      const body = { redirectUri: callback.redirectUri }
      const request = this.client.call(mcpServers.beginSignIn, { params, body })
      const pending = await this.waitFor(`requesting the sign-in page of ${plainLine(label)}`, request)
      this.output.warn(`  Sign in at: ${requireSafeAuthorizationUrl(pending)}`)
      const redirect = flags['no-browser']
        ? parsePastedUrl(await this.#readPastedUrl(loginCommand), loginCommand)
        : await this.#waitForRedirect(pending, callback.waitForRedirect(pending.state), loginCommand)
      const response = parseAuthorizationResponse(redirect, pending.state, loginCommand)
      const signedIn = await this.client.call(mcpServers.finishSignIn, { params, body: response })
      if (this.output.json) return this.output.value(signedIn)
      this.output.note(`  ✓ signed in to ${plainLine(label)}`)
    } finally {
      callback.close()
    }
  }

  async #waitForRedirect(pending: PendingSignIn, redirect: Promise<URL>, loginCommand: string) {
    if (!(await openLink(requireSafeAuthorizationUrl(pending), this.io)))
      this.output.warn('  Open it in a browser on this machine. On another machine, use --no-browser.')
    return this.waitFor(
      'waiting for the browser',
      waitForBrowser(redirect, pending, loginCommand, this.signal),
    )
  }

  async #readPastedUrl(loginCommand: string): Promise<string> {
    this.output.warn('  The last page, at 127.0.0.1, does not load. Paste its address here.')
    return this.canAsk
      ? this.ask('Address:', 'the address is missing')
      : readPastedLine(this.io.stdin, loginCommand)
  }
}
