import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface ProfileNode {
  id: number
  callFrame: { functionName: string; url: string; lineNumber: number }
  children?: number[]
}

interface Profile {
  nodes: ProfileNode[]
  samples: number[]
  timeDeltas: number[]
}

/** A part of the work, with a pattern of its source files or `file:function` names. */
export type Stages = Readonly<Record<string, RegExp>>

/** Returns the source file of each line of a readable bundle, from the comments of esbuild. */
function sourceLines(path: string): string[] {
  let source = ''
  return readFileSync(path, 'utf8')
    .split('\n')
    .map(line => {
      source = /^\/\/ ((?:src|commands|node_modules)\/\S+)$/.exec(line)?.[1] ?? source
      return source
    })
}

/**
 * Returns the CPU seconds of each stage by the profiles in a folder, one profile per thread. Time belongs to the
 * innermost function of a stage that is on the stack. Needs a bundle that was built with `--readable`.
 */
export function cpuByStage(folder: string, stages: Stages): Map<string, number> {
  const lines = new Map<string, string[]>()
  const seconds = new Map<string, number>()
  const sourceOf = ({ url, lineNumber }: ProfileNode['callFrame']) => {
    if (!url.startsWith('file:')) return url
    const path = fileURLToPath(url)
    if (!path.includes('/dist/')) return path.slice(path.lastIndexOf('/node_modules/') + 1)
    if (!lines.has(path)) lines.set(path, sourceLines(path))
    return lines.get(path)![lineNumber] ?? ''
  }
  for (const name of readdirSync(folder).filter(file => file.endsWith('.cpuprofile'))) {
    const profile = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Profile
    const nodes = new Map(profile.nodes.map(node => [node.id, node]))
    const stageOf = new Map<number, string>()
    const visit = (node: ProfileNode, inherited: string) => {
      const { functionName } = node.callFrame
      const place = `${sourceOf(node.callFrame)}:${functionName}`
      const own =
        functionName === '(garbage collector)'
          ? 'garbage collection'
          : functionName === '(idle)' || functionName === '(program)'
            ? functionName
            : Object.entries(stages).find(([, pattern]) => pattern.test(place))?.[0]
      stageOf.set(node.id, own ?? inherited)
      for (const child of node.children ?? []) visit(nodes.get(child)!, own ?? inherited)
    }
    visit(profile.nodes[0]!, 'other')
    for (const [at, id] of profile.samples.entries()) {
      const stage = stageOf.get(id)!
      seconds.set(stage, (seconds.get(stage) ?? 0) + profile.timeDeltas[at]! / 1e6)
    }
  }
  seconds.delete('(idle)')
  return seconds
}
