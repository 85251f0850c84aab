import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../src/base/package.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { dayOf } from '../src/cli/terminal/moment.ts'

export default class Version extends WbCommand {
  static override summary = 'show the version and build of wb'
  static override examples = ['wb version', 'wb version --json']
  protected override readonly mindsFolder = false

  async run() {
    await this.parse(Version)
    const built = JSON.parse(readFileSync(join(packageRoot(), 'dist', 'build.json'), 'utf8')) as Build
    const { version, commit, buildTime } = built
    const platform = `${process.platform}-${process.arch}`
    const all = { version, commit, buildTime, node: process.versions.node, platform }
    this.output.fields(all, { ...all, buildTime: undefined, built: dayOf(Date.parse(buildTime)) })
  }
}

interface Build {
  version: string
  commit: string
  buildTime: string
}
