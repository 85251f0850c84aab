import { pino } from 'pino'
import { presentableMessage, redactLine } from './redact.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Structured log. If the facts contain an `error`, it is written with its stack. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/**
 * Creates a logger that writes one JSON object per line, with secrets removed.
 *
 * @param options.stream  receives the lines, for example `process.stderr`
 */
export function createLog(options: { level: LogLevel; stream: { write(line: string): unknown } }): Log {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
      hooks: {
        logMethod(call, method) {
          const message = call[1]
          if (typeof message === 'string') call[1] = presentableMessage(message)
          method.apply(this, call)
        },
        streamWrite: redactLine,
      },
    },
    options.stream,
  )
}
