import type { Config } from '@oclif/core/config'
import { type Environment, loginShell } from '../environment.ts'
import { UsageError } from '../errors.ts'
import { bashScript } from './bash.ts'
import { completionSpec } from './completion-spec.ts'
import { fishScript } from './fish.ts'
import { zshScript } from './zsh.ts'

type Shell = keyof typeof scripts

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** Commands that install the script permanently, by shell. */
export const installCommands: Readonly<Record<Shell, string>> = {
  bash: "echo 'source <(wb autocomplete bash)' >>~/.bashrc",
  zsh: "echo 'source <(wb autocomplete zsh)' >>~/.zshrc",
  fish: 'wb autocomplete fish >~/.config/fish/completions/wb.fish',
}

/** Returns instructions to load the script. They are printed in a terminal, instead of the script. */
export function installInstructions(shell: Shell): string[] {
  const loadCommand =
    shell === 'fish' ? 'wb autocomplete fish | source' : `source <(wb autocomplete ${shell})`
  return [
    `  In a pipe, wb autocomplete ${shell} prints the completion script. To load it:`,
    `  ${loadCommand}`,
    '      in this shell',
    `  ${installCommands[shell]}`,
    '      in every new shell',
  ]
}

/** Returns the completion script of a shell. */
export function completionScript(shell: Shell, config: Pick<Config, 'commands' | 'topics'>): string {
  return scripts[shell](completionSpec(config))
}

/** Returns the named shell, else the login shell. @throws UsageError  the shell is unknown or not supported */
export function chooseShell(name: string | undefined, environment: Environment): Shell {
  const shell = name ?? loginShell(environment)
  if (shell !== undefined && shell in scripts) return shell as Shell
  throw new UsageError(
    shell === undefined ? 'cannot detect your shell' : `${shell} is not supported`,
    Object.keys(scripts).map(name => `wb autocomplete ${name}`),
  )
}
