import { type Environment, isCi, supportsUtf8 } from '../environment.ts'
import type { Io } from '../io.ts'
import { withTypedProgram } from '../launch-command.ts'
import { asciiSink } from '../terminal/charset.ts'
import { Output, type OutputOptions, type Sink } from '../terminal/output.ts'
import { type Progress, silentProgress, terminalProgress } from '../terminal/progress.ts'

/** Creates the output of a command from its flags. */
export function createOutput(
  io: Io,
  flags: Pick<OutputOptions, 'json' | 'filter' | 'contextFlags'> & { quiet?: boolean },
  hasColors: boolean,
): Output {
  const { stdout, stderr, env, clock } = io
  return new Output({
    stdout: sinkFor(stdout, env),
    stderr: sinkFor(stderr, env),
    json: flags.json,
    filter: flags.filter,
    quiet: flags.quiet ?? false,
    contextFlags: flags.contextFlags,
    useColor: hasColors,
    adaptCommands: text => withTypedProgram(text, io),
    now: clock.now,
  })
}

/** Creates the progress display on stderr; silent in CI, with `--quiet`, and if stderr is not a terminal. */
export function createProgress({ stderr, env, clock }: Io, isQuiet: boolean): Progress {
  if (!stderr.isTTY || isCi(env) || isQuiet) return silentProgress
  return terminalProgress(sinkFor(stderr, env), clock)
}

/** Returns a sink for a stream, limited to ASCII if its terminal does not support UTF-8. */
function sinkFor(stream: NodeJS.WriteStream, environment: Environment): Sink {
  return stream.isTTY && !supportsUtf8(environment) ? asciiSink(stream) : stream
}
