import { join } from 'node:path'
import { Plugin } from '@oclif/core/config'
import { packageRoot } from '../../src/base/package.ts'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'

let plugin: Promise<Plugin> | undefined

/** Runs a command line in this process. Returns its exit status. */
export async function runInProcess(args: readonly string[], io: Io): Promise<number> {
  plugin ??= loadPlugin()
  const loaded = await plugin
  return main(args, io, { plugins: new Map([[loaded.name, loaded]]) })
}

/** Loads the commands of the manifest from source as modules of the test. */
async function loadPlugin(): Promise<Plugin> {
  const root = packageRoot()
  const loaded = new Plugin({ isRoot: true, root })
  await loaded.load()
  const findCommand = async (id: string) => {
    const { default: command } = await import(join(root, 'commands', ...`${id}.ts`.split(':')))
    command.id = id
    return command
  }
  return Object.assign(loaded, { findCommand })
}
