import * as Args from '@oclif/core/args'
import { WbCommand } from '../src/cli/command/command.ts'
import {
  chooseShell,
  completionScript,
  installCommands,
  installInstructions,
} from '../src/cli/completion/shells.ts'

export default class Autocomplete extends WbCommand {
  static override summary = 'print a shell completion script'
  static override description = [
    'The script completes commands, flags and their values, and does not contact a runtime. In a pipe, this command prints the script. In a terminal, it prints how to load the script. To load it in every new shell:',
    ...Object.values(installCommands).map(line => `  ${line}`),
  ].join('\n')
  static override examples = ['source <(wb autocomplete bash)', 'wb autocomplete fish >wb.fish']
  static override args = {
    shell: Args.string({
      options: Object.keys(installCommands),
      ignoreStdin: true,
      description: 'shell to print the script for [your shell]',
    }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args } = await this.parse(Autocomplete)
    const shell = chooseShell(args.shell, this.io.env)
    if (this.output.interactive) {
      for (const line of installInstructions(shell)) this.output.result(line)
      return
    }
    const script = completionScript(shell, this.config)
    if (this.output.json) this.output.value({ shell, script })
    else this.output.result(script)
  }
}
