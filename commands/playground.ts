import * as Args from '@oclif/core/args'
import { WbCommand } from '../src/cli/command/command.ts'
import { configuredServerUrl } from '../src/cli/connection/configured-server-url.ts'
import { supportsUtf8 } from '../src/cli/environment.ts'
import { UsageError } from '../src/cli/errors.ts'
import { JudgmentFiles, judgmentsFlag } from '../src/cli/eval/judgment-files.ts'
import { asciiTerminal } from '../src/cli/terminal/charset.ts'
import { findClipboardProgram } from '../src/cli/terminal/clipboard.ts'
import { plainLine } from '../src/cli/terminal/terminal-text.ts'
import { gradesOf } from '../src/tui/playground/judge.ts'
import { pickBase, RuntimePort } from '../src/tui/playground/port.ts'

/** Flags that select the runtime and the workspace. */
const targetFlags = ['workspace', 'profile', 'url', 'data-dir', 'config'] as const

export default class Playground extends WbCommand {
  static override summary = 'search as you type and try ranking options'
  static override description =
    'Uses the whole terminal. Press Esc to open the settings, ? in the settings to list all keys, and Ctrl-C to quit.'
  static override examples = ['wb playground', 'wb playground handbook', 'wb playground handbook "refunds"']
  static override args = {
    kb: Args.string({
      ignoreStdin: true,
      description: 'knowledge base name or ID [the only knowledge base; prompts if there are several]',
    }),
    question: Args.string({ ignoreStdin: true, description: 'first search' }),
  }
  static override flags = { judgments: judgmentsFlag }

  async run() {
    const { args, flags } = await this.parse(Playground)
    if (!this.output.interactive || !this.canAsk)
      throw new UsageError('the playground needs a terminal', [
        'wb kb search NAME "…"    works without a terminal',
      ])
    const { client, session, signal, output, io } = this
    const { workspaceId, name } = await this.waitFor('loading', this.workspace())
    const port = new RuntimePort(client, workspaceId, io.clock)
    const bases = await this.waitFor('loading', port.knowledgeBases())
    const base = await pickBase(bases, args.kb ?? this.profile.knowledgeBase)
    const { kind, baseUrl } = await session.runtime()
    const { playInTerminal } = await import('../src/tui/playground/play-in-terminal.tsx')
    const judgments = new JudgmentFiles(io.cwd, flags.judgments)
    const grades = gradesOf(judgments.read(bases.map(({ name }) => name)))
    const stdout = supportsUtf8(io.env) ? io.stdout : asciiTerminal(io.stdout)
    const command = await playInTerminal({
      port,
      clock: io.clock,
      terminal: { stdin: io.stdin, stdout, signals: io.signals },
      copy: findClipboardProgram(io),
      judge: (baseName, judgment) => judgments.append(baseName, judgment),
      hasColors: output.style.dim('') !== '',
      start: {
        target: {
          workspaceId,
          workspace: plainLine(name),
          url: kind === 'process' ? await configuredServerUrl(this.profile, io) : baseUrl,
          hasCredential: session.credential.used !== undefined,
          flags: [
            ...(flags.local ? ['--local'] : []),
            ...targetFlags.flatMap(flag => (flags[flag] === undefined ? [] : [`--${flag}`, flags[flag]])),
          ],
        },
        bases,
        base,
        question: args.question ?? '',
        grades,
      },
      signal,
    })
    if (command !== undefined) output.result(command)
  }
}
