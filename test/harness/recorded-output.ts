import { Output, type OutputOptions } from '../../src/cli/terminal/output.ts'

/** Returns an output, and the texts that it wrote to each stream. */
export function recordedOutput(options: Partial<OutputOptions> & { isTTY?: boolean; columns?: number } = {}) {
  const { isTTY = true, columns = 40, ...more } = options
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') => ({
    isTTY,
    columns,
    write: (text: string) => {
      written[name] += text
    },
  })
  const now = () => Date.parse('2026-06-15T12:00:00Z')
  const output = new Output({
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    json: false,
    quiet: false,
    useColor: false,
    now,
    ...more,
  })
  return { output, written }
}
